"""The report: one HTML page about a release, for people. It sees public things only and works without a network."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.models.noisy import NoisyCounts
from discreet.models.relaxed import RelaxedRows
from discreet.models.residuals import ResidualCounts
from discreet.models.weighted import WeightedRows
from discreet.privacy.ledger import total_of
from discreet.privacy.loss import epsilon_of
from discreet.privacy.measurement import Measurement
from discreet.publish import svg
from discreet.publish.certificate import at_most
from discreet.publish.release import Release
from discreet.publish.svg import Row, Words, escape, shorten
from discreet.publish.tables import MOST_ANSWERS
from discreet.queries import parse
from discreet.queries.answers import GRID
from discreet.queries.threshold import Attributes, at_cells

Floats = NDArray[np.float64]

MOST_CELLS = 2**21
"""Cells of answers that are worked out for the histograms; the page says when measurements were left out."""

MOST_ATTRIBUTES = MOST_LABELS = MOST_STEPS = 40
_MOST_BARS = 200
_EVENTS = {"gaussian": 0, "selection": 1, "laplace": 2}

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # should a name slip through, it still runs nothing
_CSS = """
:root{color-scheme:light dark;--code:#f4f5f8} @media print{:root{color-scheme:light}}
@media screen and (prefers-color-scheme:dark){:root{--code:#1d232d}}
*{box-sizing:border-box} body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:70rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,'Segoe UI',Roboto,Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:2rem;line-height:1.2;margin:.2rem 0 .8rem} h2{font-size:1.35rem;margin:0 0 .6rem} p,li{max-width:52rem}
section{border-top:1px solid var(--grid);margin-top:2.2rem;padding-top:1.6rem} .plain li{margin-bottom:.5rem}
.kind{color:var(--soft);font-size:.85rem;letter-spacing:.06em;text-transform:uppercase;margin:0}
.tiles{display:flex;flex-wrap:wrap;gap:.75rem;margin:1.2rem 0 0;padding:0;list-style:none}
.tiles li,.says{border:1px solid var(--grid);border-radius:.5rem;padding:.65rem 1rem}
.tiles li{color:var(--soft);font-size:.85rem} .tiles b{display:block;font-size:1.3rem;color:var(--ink)}
.says{border-left:4px solid var(--c2);margin:.6rem 0;font-size:1.08rem;max-width:none}
.warning{border:2px solid var(--c4);border-radius:.5rem;padding:.7rem 1rem;color:var(--c4);font-weight:600}
figure{margin:1rem 0;break-inside:avoid} figcaption,summary{color:var(--soft);font-size:.88rem;max-width:60rem}
.many{display:grid;grid:auto-flow dense/repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1rem}
.many figure{margin:0} .many .wide{grid-column:1/-1} summary{cursor:pointer;padding-left:.75rem}
table{border-collapse:collapse;margin:.6rem 0 1.4rem;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--grid);padding:.3rem 1.5rem .3rem 0;text-align:left;vertical-align:top}
th{min-width:6rem} thead th{color:var(--soft)} td{max-width:44rem}
pre{background:var(--code);border-radius:.5rem;padding:.8rem 1rem;white-space:pre-wrap}
@media print{body{padding:0;font-size:11pt} tr,.says,.tiles li{break-inside:avoid} h2{break-after:avoid}}
"""


def render(release: Release) -> str:
    """The whole page; the same release gives the same bytes."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(release.mechanism)} release</title>\n<style>\n{svg.STYLE}{_CSS}</style>\n</head>\n<body>\n"
        + "\n".join(section(release) for section in (_headline, _accuracy, _future, _attributes, _budget, _provenance))
        + "\n</body>\n</html>\n"
    )


def _headline(release: Release) -> str:
    guarantee, warnings, public = release.guarantee, [], release.guarantee.neighbours.total_is_public
    tiles = [
        (f"{release.workload.size:,}", "queries"),
        (f"{len(release.workload):,}", "thresholds (sets of attributes)"),
        (f"{release.answers.total:,}", "rows in the table" if public else "rows, counted with noise"),
        ("none" if release.codes is None else f"{len(release.codes):,}", "synthetic rows"),
        (f"{guarantee.epsilon:g}", f"epsilon, at delta {guarantee.delta:.3g}"),
    ]
    if release.noise_seed is not None:
        warnings.append(
            f"The noise was seeded: for tests only. Whoever knows the seed ({release.noise_seed}) can take the noise "
            "away, so nothing is promised to the people in the table. Do not publish this release."
        )
    if release.schema.drafted_from_data:
        warnings.append("The schema was drafted by looking at rows: review it, unless that file is public.")
    if unseen := release.warning_of_unseen():
        warnings.append(unseen)
    return (
        '<header>\n<p class="kind">discreet · private release</p>\n'
        f"<h1>{release.workload.size:,} queries answered with {escape(release.mechanism)}</h1>\n"
        + "".join(f'<p class="warning" role="alert">{escape(text)}</p>\n' for text in warnings)
        + f"<p>{escape(guarantee.in_words(release.charges))}</p>\n"
        + _list([f"<b>{escape(number)}</b> {escape(what)}" for number, what in tiles], "tiles")
        + "</header>"
    )


def _accuracy(release: Release) -> str:
    found, total, title = release.certificate, max(1, release.answers.total), "How accurate is it?"
    if found is None:
        told = "<p>There is no certificate: it was skipped, so nothing is said about how large the errors can be.</p>"
        return _section(title, told, _differences(release))
    bounds = {"Published answers": found.bound, "Counts of the synthetic rows": found.rows_bound}
    said = [
        f'<p class="says">{what}: largest error at most <b>{at_most(bound)}</b> of the rows '
        f"({math.ceil(bound * total - 1e-6):,} rows) with {100 * found.confidence:g} % confidence.</p>"
        for what, bound in bounds.items()
        if bound is not None
    ]
    noise = f"the certificate's own noise (sigma {found.sigma:,.1f} rows)"
    if release.total_variance:
        noise += " and that of the number of rows"
    told = (
        f"This holds for all {release.workload.size:,} queries of the workload at once, the worst one included, "
        "against the true table. It was measured privately, and paid for below; the doubt that remains is "
        f"{noise}. It does not cover queries outside the workload, "
        "rows drawn anew, or how well the table stands for a larger population."
    )
    return _section(title, *said, f"<p>{told}</p>", _differences(release))


def _future(release: Release) -> str:
    if release.outlook is None:
        return ""
    told = [release.outlook.origin(), *release.outlook.sentences()]
    return _section("What about future queries?", _list([escape(sentence) for sentence in told]))


def _differences(release: Release) -> str:
    """Published answers against noisy counts: both are public."""
    every, units = release.measurements, lru_cache(maxsize=None)(release.answers.units)
    if not every:
        return "<p>No counts were measured, so there is nothing to compare the answers with.</p>"
    if isinstance(release.answers, ResidualCounts):
        told = f"{sum(len(found.counts) for found in every):,} numbers in {len(every):,} residuals of marginals"
        return f"<p>{told} were measured; the answers are put together from them: the noise is the error.</p>"
    rows: list[tuple[Floats, float]] = []
    for found in _affordable(release):
        cells = np.arange(len(found.counts)) if found.cells is None else found.cells
        with suppress(DiscreetError):
            value_at = release.answers.at if found.cells is not None else lambda names, part: units(names).at(part)
            answered = at_cells(found.threshold, cells, release.domain, value_at) / GRID
            rows.append((answered - _counts(release, found), math.sqrt(_variance(release, found))))
    counts, shown = sum(len(found.counts) for found in every), sum(len(part) for part, _ in rows)
    squares = [_variance(release, found) for found in (_affordable(release) if release.residuals else every)]
    noise = " to ".join(dict.fromkeys(f"{math.sqrt(square):,.1f}" for square in (min(squares), max(squares))))
    how = "were put together from what was measured" if release.residuals else "were measured"
    told = f"{counts:,} counts of {len(every):,} thresholds {how}; sigma of the noise: {noise} rows."
    if not shown:
        return f"<p>{told} They have too many cells to be compared with the answers here.</p>"
    if not any(part.any() for part, _ in rows):
        return f"<p>{told} They are the published answers themselves: the noise is the error.</p>"
    if shown < counts:
        told += f" The chart shows {shown:,} of them, in {len(rows):,} thresholds picked by a fixed rule."
    rms = math.sqrt(sum(float(part @ part) / sigma**2 for part, sigma in rows) / shown)
    told += (
        f" Root mean square: {rms:.2f} sigma. Answers without error would follow the curve (1.00); wider bars mean "
        "that the model misses something, narrower ones that it follows some of the noise. Each difference holds the "
        "noise of its count, so it may lie beyond the certificate though the answer's error does not. The outermost "
        "bars hold what lies further out."
    )
    return f"<figure>{_histogram(release, rows)}<figcaption>{told}</figcaption></figure>"


def _counts(release: Release, found: Measurement) -> NDArray[np.int64] | Floats:
    """Noisy counts: as they were measured, or of a marginal whose residuals were."""
    return (
        release.residuals.counts(found.threshold.attributes) if found.residual and release.residuals else found.counts
    )


def _variance(release: Release, found: Measurement) -> float:
    """Of the noise in one of them."""
    if found.residual and release.residuals:
        return release.residuals.variance(found.threshold.attributes)
    return float(found.sigma_squared)


def _affordable(release: Release) -> list[Measurement]:
    """Measurements whose answers are soon worked out, picked without looking at their values."""
    used, left, known = [], MOST_CELLS, set[Attributes]()
    for position in np.random.default_rng(0).permutation(len(release.measurements)):
        found = release.measurements[position]
        fresh = {subset for _, subset in found.threshold.terms()} - known
        cost = sum(release.domain.project(subset).size for subset in fresh)
        if cost <= left:
            used.append(found)
            left -= cost
            known |= fresh
    return used


def _histogram(release: Release, rows: list[tuple[Floats, float]]) -> str:
    """Differences in percent of the rows; bins are whole rows wide, centred on zero, so integers make no comb."""
    row = 100 / max(1, release.answers.total)
    values = np.concatenate([part for part, _ in rows]) * row
    bound = None if release.certificate is None else release.certificate.bound
    reach = max(120 * (bound or 0), float(np.quantile(np.abs(values), 0.9995)) * 1.05, row)
    half = row * max(1, round(reach / 40 / row)) / 2
    many = max(1, math.ceil(reach / half / 2 - 0.5))
    edges = (2 * np.arange(-many, many + 2) - 1) * half
    heights = np.histogram(np.clip(values, edges[0] + half / 2, edges[-1] - half / 2), edges)[0]
    noise: Counter[float] = Counter()
    for part, sigma in rows:
        noise[sigma * row * math.sqrt(2)] += len(part)
    curve = [
        (x, sum(n * (math.erf((x + half) / s) - math.erf((x - half) / s)) / 2 for s, n in noise.items()))
        for x in np.linspace(edges[0], edges[-1], 241).tolist()
    ]
    about = f"Histogram of {len(values):,} differences under the curve of the noise, with the certificate's bound."
    return svg.histogram(
        edges.tolist(),
        heights.tolist(),
        Words("Published answers minus noisy counts", about, "difference, % of the rows", "measured cells"),
        curve=curve,
        names=("differences", "what noise alone would give"),
        marks=[] if bound is None else [(-100 * bound, ""), (100 * bound, f"certificate {at_most(bound)}")],
        size=(820, 330),
    )


def _attributes(release: Release) -> str:
    names = release.domain.attributes
    key = [("bar", "published answers", 0), ("dot", "synthetic rows", 1), ("whisker", "noisy counts ± 2 sigma", 0)]
    told = "Percent of the rows. Noisy counts, if there are any, come from the least noisy marginal with the attribute."
    if len(names) > MOST_ATTRIBUTES:
        told += f" The first {MOST_ATTRIBUTES} of {len(names):,} attributes are shown."
    figures = "\n".join(_attribute(release, name) for name in names[:MOST_ATTRIBUTES])
    return _section("Attribute by attribute", f"<p>{told}</p>", svg.legend(key), f'<div class="many">{figures}</div>')


def _attribute(release: Release, name: str) -> str:
    """One attribute: bars, dots and whiskers, and the same in numbers."""
    size, total, attribute = release.domain.size_of(name), max(1, release.answers.total), release.schema[name]
    step = -(-size // _MOST_BARS)

    def percent(values: NDArray[np.int64] | Floats, whole: float) -> list[float]:
        return [float(value) for value in np.add.reduceat(values, np.arange(0, size, step)) * (100 / whole)]

    try:
        published = percent(release.answers.units((name,)).dense(size), GRID * total)
    except DiscreetError:
        return f"<p>{escape(name)}: not measured, and this mechanism has no model to answer it from.</p>"
    rows: list[float] = []
    if release.codes is not None and len(release.codes):
        codes = release.codes[:, release.domain.index(name)]
        rows = percent(np.bincount(codes, minlength=size), len(codes))
    counts, variance = _summed(release, name)
    middles, spread = [] if counts is None else percent(counts, total), 200 * math.sqrt(variance * step) / total
    whiskers = [(middle - spread, middle, middle + spread) for middle in middles]
    each, kind, space = size <= MOST_LABELS, *(("wide", (1060, 240)) if size > 16 else ("slim", (344, 230)))
    labels = attribute.labels() if each else (attribute.label(0), attribute.label(size - 1))
    unit = "% of the rows" if step == 1 else f"% of the rows; {step} neighbouring values in each bar"
    shown = f"{name}: not asked or measured, so not from the table" if name in release.unseen else name
    words = Words(shown, f"Shares of the {size:,} values of {name}.", "", unit)
    picture = svg.bars(published, words, labels=labels, dots=rows, whiskers=whiskers, size=space)
    columns = [("published %", published), ("synthetic rows %", rows), (f"noisy counts % (± {spread:.2f})", middles)]
    kept = [(title, values) for title, values in columns if values]
    lines = [[label, *(f"{values[at]:.2f}" for _, values in kept)] for at, label in enumerate(labels) if each]
    numbers = f"<details><summary>Numbers</summary>{_table(['value', *dict(kept)], lines)}</details>" if each else ""
    return f'<figure class="{kind}">{picture}{numbers}</figure>'


def _summed(release: Release, name: str) -> tuple[NDArray[np.int64] | Floats | None, float]:
    """Noisy counts of one attribute and their variance, from the measured marginal that gives the least."""
    if release.residuals and release.residuals.knows((name,)):
        return release.residuals.counts((name,)), release.residuals.variance((name,))
    whole = [found for found in release.measurements if found.cells is None and found.threshold.is_marginal]
    holding = [found for found in whole if name in found.threshold.attributes]
    if not holding:
        return None, 0.0
    best = min(holding, key=lambda found: found.sigma_squared * len(found.counts))
    shape = release.domain.project(best.threshold.attributes).sizes
    away = tuple(axis for axis, other in enumerate(best.threshold.attributes) if other != name)
    summed = best.counts.reshape(shape).sum(axis=away)
    return summed, float(best.sigma_squared) * (len(best.counts) // len(summed))


def _budget(release: Release) -> str:
    guarantee, spent = release.guarantee, total_of(release.charges)
    steps = [(charge.label, charge.event.name, charge.rho) for charge in release.charges[:MOST_STEPS]]
    if rest := release.charges[MOST_STEPS:]:
        steps.append((f"{len(rest):,} further steps", "", total_of(rest)))
    steps.append(("unspent", "", guarantee.rho - spent))
    lines, bars = [], []
    for label, event, rho in [*steps, ("whole budget", "", guarantee.rho)]:
        share = f"{float(100 * rho / (guarantee.rho or 1)):.1f} %"
        lines.append((label, event, f"{float(rho):.4g}", share))
        bars.append(Row(label, float(rho), share, _EVENTS.get(event, 5)))
    reached = epsilon_of(spent, guarantee.delta, conversion=guarantee.conversion)
    told = (
        f"Losses add up in zero-concentrated DP, as rho. Spent: rho = {float(spent):.4g}, which is epsilon = "
        f"{reached:.4g} at delta = {guarantee.delta:.3g}; allowed: epsilon = {guarantee.epsilon:g}. Every step was "
        "charged before it read the table."
    )
    picture = svg.horizontal(bars[:-1], Words("Share of the budget by step", "Bars; the table below has the numbers."))
    table = _table(["step", "event", "rho", "share"], lines)
    return _section("Where did the budget go?", f"<p>{told}</p>", f"<figure>{picture}</figure>", table)


def _measured(release: Release) -> str:
    """What measurements.parquet holds."""
    if release.residuals is None:
        return "the noisy counts, as measured" if release.measurements else ""
    return (
        "noisy residuals of marginals, as measured, each times the number of its cells: take the mean out along every "
        "attribute and divide by that number; a marginal is the sum of the residuals of its subsets, each spread evenly"
    )


def _provenance(release: Release) -> str:
    guarantee, neighbours = release.guarantee, release.guarantee.neighbours
    facts = [
        ("neighbours", f"{neighbours.relation}; rows of one person: at most {neighbours.rows_per_person:,}"),
        ("conversion", f"{guarantee.conversion}, from (epsilon, delta) to rho = {float(guarantee.rho):.4g}"),
        ("answers", f"from {release.answers.source}"),
        ("noise", "operating system entropy" if release.noise_seed is None else f"seeded with {release.noise_seed}"),
    ]
    for name, value in [*release.settings.items(), *release.notes.items()]:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        facts.append((name, shorten(text, 300)))
    rows, model = release.codes is not None, isinstance(release.answers, RelaxedRows | WeightedRows)
    files = {
        "release.json": "what was done, promised and paid, with schema, workload and versions",
        "synthetic.parquet": "synthetic rows in the original schema" if rows else "",
        "codes.parquet": "the same rows as codes 0, 1, ... of each attribute's values" if rows else "",
        "answers.parquet": "every answer in words, with its error bar" if release.workload.size <= MOST_ANSWERS else "",
        "measurements.parquet": _measured(release),
        "model.parquet": "the fitted model, from which further queries are answered" if model else "",
        "report.html": "this page",
    }
    promised = "Promised" if release.noise_seed is None else "Promised, had the noise not been seeded"
    promises = [
        f"<b>{promised}:</b> whoever sees all of this folder, whatever else they know or will learn, and whatever they "
        "compute from it, learns almost the same as if one person's rows had been different.",
        "<b>Not promised:</b> that nothing can be inferred about people from what holds for everybody; protection of "
        "people with more rows than stated; the same loss after further releases of this table: losses add up, so "
        "keep one ledger for all of them.",
        "<b>Trusted:</b> the schema, the workload and the settings, which must not come from the rows, and whoever "
        "ran the release and holds the table.",
    ]
    return _section(
        "How was it made, and what can be done with it?",
        _table(["setting", "value"], facts),
        _table(["file", "what it holds"], [pair for pair in files.items() if pair[1]]),
        "<p>Further queries are free of charge: from a shell, or from Python.</p>",
        f"<pre>{escape(_example(release))}</pre>",
        _list(promises),
    )


def _example(release: Release) -> str:
    """A query about two attributes (more where only those were counted), with its answer, in a shell and in Python."""
    names = release.domain.attributes[:2]
    if isinstance(release.answers, NoisyCounts | ResidualCounts):  # without a model, nothing else can be answered
        covered = release.workload.thresholds[0].attributes
        names = covered if any(found.least is not None for found in release.measurements) else covered[:2]
    asked = parse.in_words({name: release.schema[name].label(0) for name in names})
    lines = [f"$ discreet answer DIR {shlex.quote(asked)}"]
    with suppress(DiscreetError):
        if release.domain.project(names).size <= MOST_CELLS:
            found, total = release.interval(asked), release.answers.total
            lines.append(f"{found}  about {found.estimate * total:,.0f} of {total:,}  {asked}")
    python = [">>> from discreet import Release", '>>> release = Release.open("DIR")']
    rows = [] if release.codes is None else [">>> release.rows()"]
    return "\n".join([*lines, "", *python, f">>> release.answer({asked!r})", *rows])


def _section(title: str, *parts: str) -> str:
    return "\n".join(["<section>", f"<h2>{escape(title)}</h2>", *parts, "</section>"])


def _list(items: Sequence[str], kind: str = "plain") -> str:
    """Items are HTML already."""
    return f'<ul class="{kind}">' + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Texts in rows; the first of each row names it."""
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in others) + "</tr>\n"
        for first, *others in lines
    )
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    return f"<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
