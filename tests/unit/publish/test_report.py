from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest
from tests.readable import small_table

import discreet
from discreet.data.schema import Schema
from discreet.models.noisy import NoisyCounts
from discreet.models.relaxed import RelaxedRows
from discreet.privacy.event import GaussianEvent, SelectionEvent
from discreet.privacy.ledger import Charge
from discreet.privacy.loss import rho_of
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours
from discreet.publish import report
from discreet.publish.certificate import Certificate
from discreet.publish.release import Guarantee, Release
from discreet.publish.report import render
from discreet.queries.answers import GRID, Zeros
from discreet.queries.threshold import Threshold, at_cells
from discreet.queries.workload import Workload

VOID = {"meta", "br", "hr", "img", "link", "input"}
SMALL = Schema.load(
    {
        "attributes": [
            {"name": "sex", "type": "categorical", "values": ["female", "male"]},
            {"name": "age", "type": "integer", "min": 0, "max": 99, "width": 5},
            {"name": "income", "type": "numeric", "min": 0, "max": 9e4, "bins": 50},
        ]
    }
)
CERTIFICATE = Certificate(bound=0.012341, rows_bound=0.0201, confidence=0.95, noisy_maximum=100, sigma=8.0)


class Page(HTMLParser):
    """Checks that every element is closed, and collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def read(release: Release) -> Page:
    return Page(render(release))


def noisy(answers: RelaxedRows, threshold: Threshold, sigma: int, cells: Sequence[int] | None = None) -> Measurement:
    """Counts that are the answers plus noise."""
    generator = np.random.default_rng(7)
    kept = np.arange(threshold.cells(answers.domain)) if cells is None else np.array(cells)
    exact = at_cells(threshold, kept, answers.domain, answers.at) // GRID
    counts = exact + np.rint(generator.normal(0, sigma, len(kept))).astype(np.int64)
    return Measurement(threshold, None if cells is None else kept, counts, Fraction(sigma**2))


def make(schema: Schema = SMALL, *, total: int = 10_000, ways: int = 2, sigma: int = 20) -> Release:
    """A release as rap would make it, over random products."""
    domain, generator = schema.domain, np.random.default_rng(0)
    workload = Workload(domain, [Threshold(names) for names in combinations(domain.attributes, ways)])
    probabilities = [generator.dirichlet(np.full(size, 0.5), size=50).T for size in domain.sizes]
    answers = RelaxedRows.publish(domain, total, np.concatenate(probabilities))
    rho = rho_of(1.0, 1e-9)
    return Release(
        mechanism="rap",
        settings={"rows": 50, "per_round": None},
        schema=schema,
        workload=workload,
        guarantee=Guarantee(1.0, 1e-9, rho, "tight", Neighbours()),
        charges=(
            Charge("round 1 of 1: select", SelectionEvent(4, Fraction(1, 100))),
            Charge("measure", GaussianEvent(rho)),
            Charge("certificate", GaussianEvent(rho / 10)),
        ),
        answers=answers,
        measurements=[noisy(answers, threshold, sigma) for threshold in workload],
        codes=answers.sample(20, generator),
        certificate=CERTIFICATE,
        noise_seed=None,
        notes={"steps": 500},
    )


def test_the_page_says_what_an_owner_asks() -> None:
    release = make()
    words = " ".join(read(release).words.split())
    for expected in (
        "1,140 queries answered with rap",
        release.guarantee.in_words(release.charges),
        "Published answers: largest error at most 1.24 % of the rows (124 rows) with 95 % confidence.",
        "Counts of the synthetic rows: largest error at most 2.01 % of the rows (201 rows) with 95 % confidence.",
        "1,140 counts of 3 thresholds were measured; sigma of the noise: 20.0 rows.",
        "unspent",
        "replace-one; rows of one person: at most 1",
        "$ discreet answer DIR 'sex=female, age=0-4'",
        "synthetic.parquet",
    ):
        assert expected in words
    assert "seeded" not in words


def test_every_picture_is_xml_and_every_table_has_heads() -> None:
    text = render(make())
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 1 + 1 + 3 + 1  # histogram, legend, attributes, budget
    for picture in pictures:
        assert ET.fromstring(picture).findtext("desc")
    tables = re.findall(r"<table>.*?</table>", text, flags=re.DOTALL)
    assert tables and all('<th scope="col">' in table and '<th scope="row">' in table for table in tables)


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = render(make())
    for tag, attributes in Page(text).tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "base", "image", "use"}
        assert not {name for name in attributes if name in {"src", "href", "xlink:href"} or name.startswith("on")}
    assert not re.search(r"https?:|url\(|@import|//", text)


def test_the_same_release_gives_the_same_bytes() -> None:
    assert render(make()) == render(make())


def test_hostile_names_and_labels_stay_text() -> None:
    hostile = [
        "</title><script>alert(1)</script>",
        "\"' onload='x'",
        "a=b, c=d; $(rm) `x`",
        "\x00\ud800\u202e年",
        "&lt;",
    ]
    schema = Schema.load({"attributes": [{"name": name, "type": "categorical", "values": hostile} for name in hostile]})
    made = make(schema)
    made = replace(
        made,
        mechanism=hostile[0],
        settings=dict.fromkeys(hostile, hostile[0]),
        notes={hostile[0]: {hostile[1]: hostile}},
        charges=tuple(Charge(name, GaussianEvent(Fraction(1, 1000))) for name in hostile),
    )
    text = render(made)
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not {name for _, attributes in page.tags for name in attributes if name.startswith("on")}
    assert hostile[0] in page.words
    text.encode("utf-8")
    for picture in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ET.fromstring(picture)


def test_a_seeded_release_warns() -> None:
    page = read(replace(make(), noise_seed=3))
    assert "The noise was seeded: for tests only" in page.words
    assert ("p", {"class": "warning", "role": "alert"}) in page.tags
    assert "Promised, had the noise not been seeded" in page.words


def test_a_schema_drafted_from_rows_warns() -> None:
    assert "drafted by looking at rows" in read(replace(make(), schema=replace(SMALL, drafted_from_data=True))).words


def test_without_certificate_it_says_so() -> None:
    words = read(replace(make(), certificate=None)).words
    assert "it was skipped" in words and "largest error at most" not in words


def test_a_bound_is_never_rounded_down() -> None:
    for bound in (0.0, 1e-7, 0.0123401, 0.1, 0.99999, 1.0):
        words = read(replace(make(), certificate=replace(CERTIFICATE, bound=bound, rows_bound=None))).words
        found = re.search(r"at most (\S+) % of the rows \(([\d,]+) rows\)", words)
        assert found and float(found[1]) >= 100 * bound * (1 - 1e-9)
        assert int(found[2].replace(",", "")) >= bound * 10_000 - 1e-6
        assert "Counts of the synthetic rows" not in words


def test_plain_noise_publishes_its_counts_and_no_rows() -> None:
    made = make()
    answers = NoisyCounts(made.domain, 10_000, made.measurements[:1])  # nothing is known about the third attribute
    made = replace(made, mechanism="gaussian", answers=answers, measurements=made.measurements[:1], codes=None)
    words = read(made).words
    assert "They are the published answers themselves" in words
    assert "income: not measured" in words
    assert "model.parquet" not in words and "synthetic.parquet" not in words and "release.rows()" not in words


def test_all_zero_has_nothing_to_compare() -> None:
    made = make()
    made = replace(made, answers=Zeros(made.domain, 10_000), measurements=[], codes=None, charges=(), certificate=None)
    words = read(made).words
    assert "No counts were measured" in words and "Nothing private was read" in words
    assert "measurements.parquet" not in words


@pytest.mark.parametrize("total", [0, 1, 2])
def test_tiny_tables(total: int) -> None:
    schema = Schema.load({"only": 1})
    made = replace(make(schema, total=1, ways=1, sigma=1), codes=np.zeros((total, 1), dtype=np.int64))
    read(replace(made, answers=RelaxedRows(made.domain, total, np.array([[2**14]], dtype=np.uint16))))


def test_counts_that_are_all_zero() -> None:
    made = make()
    zeros = [replace(found, counts=np.zeros_like(found.counts)) for found in made.measurements]
    read(replace(made, measurements=zeros, answers=Zeros(made.domain, 10_000)))
    read(replace(made, measurements=zeros))


def test_single_queries_and_thresholds_are_compared_too() -> None:
    made = make()
    assert isinstance(made.answers, RelaxedRows)
    threshold = Threshold(("sex", "age", "income"), 2)
    measured = [noisy(made.answers, threshold, 20, [0, 3, 8]), noisy(made.answers, Threshold(("sex",)), 5, [1])]
    words = read(replace(made, measurements=measured)).words
    assert "4 counts of 2 thresholds were measured; sigma of the noise: 5.0 to 20.0 rows." in words


def test_answers_that_follow_the_truth_differ_by_the_noise() -> None:
    found = re.search(r"Root mean square: (\S+) sigma", read(make()).words)
    assert found and float(found[1]) == pytest.approx(1, abs=0.1)


def test_large_attributes_are_merged_and_many_are_left_out() -> None:
    text = render(make(Schema.load({"zip": 1_000, **{f"a{number}": 2 for number in range(60)}})))
    assert "5 neighbouring values in each bar" in text
    assert "The first 40 of 61 attributes are shown" in text
    assert "a38" in text and "% of the rows" in text
    assert len(re.findall("<figure", text)) == 40 + 2


def test_noisy_counts_come_from_the_marginal_with_the_least_noise() -> None:
    made = make()
    assert isinstance(made.answers, RelaxedRows)
    precise = noisy(made.answers, Threshold(("sex", "age")), 1)
    text = unescape(render(replace(made, measurements=[*made.measurements, precise])))
    spread = 2 * np.sqrt(20) / 100  # the variance of 20 cells with sigma 1, in percent of 10,000 rows
    assert f"noisy counts % (± {spread:.2f})" in text


def test_residuals_are_told_as_the_counts_that_they_make_up() -> None:
    settings = {"measures": "residuals"}
    table = small_table(400)
    made = discreet.release(table, "all:2", epsilon=4.0, rows=50, settings=settings, certificate=0, seed=1)
    words = read(made).words
    assert "counts of 10 thresholds were put together from what was measured" in words
    spread = float(re.search(r"Root mean square: ([\d.]+) sigma", words).group(1))  # type: ignore[union-attr]
    assert 0.3 < spread < 1.7  # residuals taken for counts would be a hundred off
    counts, variance = report._summed(made, "sex")
    assert counts is not None
    exact = np.bincount(table.codes()[:, made.domain.index("sex")])
    assert np.abs(counts - exact).max() < 5 * variance**0.5 < 100
    plain = discreet.release(table, "all:2", epsilon=4.0, mechanism="gaussian", certificate=0, seed=1)
    assert "thresholds were measured" in read(plain).words


def test_many_steps_are_summed_up() -> None:
    charges = tuple(Charge(f"step {number}", GaussianEvent(Fraction(1, 10**6))) for number in range(100))
    words = read(replace(make(), charges=charges)).words
    assert "step 39" in words and "step 40" not in words and "60 further steps" in words


def test_a_private_total_is_called_an_estimate() -> None:
    made = make()
    relation = replace(made.guarantee, neighbours=Neighbours("add-remove", 3))
    words = read(replace(made, guarantee=relation)).words
    assert "rows, counted with noise" in words and "rows of one person: at most 3" in words


def test_the_example_query_gives_the_answer_it_shows() -> None:
    made = make()
    shown = re.search(r"^(0\.\d{6}) \(.*\)  about .*  (sex=.*)$", read(made).words, flags=re.MULTILINE)
    assert shown and made.answer(shown[2]) == pytest.approx(float(shown[1]), abs=1e-6)


def test_large_measurements_are_sampled_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_CELLS", 2**18)
    made = make(Schema.load({f"a{number}": 50 for number in range(6)}), ways=3)
    began = time.process_time()
    words = read(made).words
    assert time.process_time() - began < 10
    assert "2,500,000 counts of 20 thresholds" in words
    assert "The chart shows 250,000 of them, in 2 thresholds picked by a fixed rule." in words


def test_measurements_too_large_to_compare_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_CELLS", 10)
    assert "too many cells to be compared" in read(make()).words
