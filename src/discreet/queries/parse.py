"""Text and JSON into workloads and queries.

Workloads: `all:3`, `random:3:64`, either with `@r` for r-of-k (`all:3@1`), several joined by `+`
(`all:1+all:2`); a list in words (`age, sex; 2 of (age, sex, race)`); a JSON file, or its content.
Queries: `age=39, sex=Male` or `2 of (age=39, sex=Male, race=White)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, islice
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.errors import BadWorkload, DiscreetError
from discreet.queries.threshold import Query, Threshold
from discreet.queries.workload import Workload

WorkloadLike = Workload | str | Path | Sequence[Any] | dict[str, Any]

_SHORT = re.compile(r"(?P<kind>all|random):(?P<k>\d{1,9})(?::(?P<many>\d{1,9}))?(?:@(?P<r>\d{1,9}))?")
_R_OF = re.compile(r"\s*(?P<r>[-+.\d]+)\s+of\s*\((?P<inside>.*)\)\s*", re.DOTALL)
_STRAY = re.compile(r",\s*([^,=]*[^,=<>!\s])\s*=")
"""What looks like a further attribute inside a value; `5, <=10` does not."""

_QUOTED = re.compile(r"=\s*(?:\"[^\"]*\"|'[^']*')(?=\s*(?:,|$))")
"""A value in quotes, where nothing is taken for an attribute."""

_MOST_SETS = 10_000_000

HELP = (
    'Write all:3, random:3:64, all:3@1 (1 of 3), "age, sex; 2 of (age, sex, race)", or name a .json file with '
    '{"thresholds": [{"attributes": ["age", "sex"], "r": 2, "weight": 1.0}, ...]}.'
)


def workload(source: WorkloadLike, domain: Domain, *, seed: int = 0) -> Workload:
    """Read a workload in any of its forms.

    Args:
        source: A short form, a list in words, a JSON file or its content, or a Workload over the same domain.
        domain: Public.
        seed: For `random:k:m`: attribute sets in schema order, those at
            `sorted(default_rng(seed).choice(number_of_sets, m, replace=False))`.
    """
    _check.whole("workload_seed", seed, least=0)
    if isinstance(source, Workload):
        if source.domain != domain:
            raise BadWorkload("The workload was made for another domain.")
        return source
    if isinstance(source, Path):
        return _from_json(load(source), domain)
    if isinstance(source, str):
        return _from_text(source, domain, seed)
    return _from_json(source, domain)


def _from_text(text: str, domain: Domain, seed: int) -> Workload:
    parts = [part.strip() for part in text.split("+")]
    matches = [_SHORT.fullmatch(part) for part in parts]
    if all(matches):
        return Workload(domain, [t for match in matches if match for t in _short_form(match, domain, seed)])
    if text.endswith(".json"):
        return _from_json(load(Path(text)), domain)
    if not text.strip():
        raise BadWorkload(f"The workload is empty. {HELP}")
    return Workload(domain, [threshold(entry, domain) for entry in text.split(";") if entry.strip()])


def drawn(sets: int, many: int, seed: int) -> list[int]:
    """Which of so many sets of attributes, in schema order, `random:k:m` keeps."""
    return sorted(int(at) for at in np.random.default_rng(seed).choice(sets, many, replace=False))


def _short_form(match: re.Match[str], domain: Domain, seed: int) -> list[Threshold]:
    k, many, r = (int(match[name]) if match[name] else None for name in ("k", "many", "r"))
    if not k or k > len(domain):
        raise BadWorkload(f"{match[0]}: k must be from 1 to {len(domain)}, the number of attributes.")
    sets = comb(len(domain), k)
    if match["kind"] == "all":
        if many is not None:
            raise BadWorkload(f"{match[0]}: all:{k} takes no second number. {HELP}")
        if sets > _MOST_SETS:
            raise BadWorkload(f"{match[0]} means {sets:,} thresholds; at most {_MOST_SETS:,} can be listed.")
        return [Threshold(names, r) for names in combinations(domain.attributes, k)]
    if not many:
        raise BadWorkload(f"{match[0]}: say how many, as in random:{k}:64.")
    if many > sets:
        raise BadWorkload(f"{match[0]}: there are only {sets:,} sets of {k} attributes.")
    if sets > _MOST_SETS:
        raise BadWorkload(f"{match[0]}: drawing from {sets:,} sets is more than the {_MOST_SETS:,} supported.")
    kept = drawn(sets, many, seed)
    every = combinations(domain.attributes, k)
    chosen, before = [], 0
    for index in kept:
        chosen.append(next(islice(every, index - before, None)))
        before = index + 1
    return [Threshold(names, r) for names in chosen]


def threshold(entry: str, domain: Domain, *, advice: str = HELP) -> Threshold:
    """Read one threshold in words: `age, sex`, or `2 of (age, sex, race)`."""
    match = _R_OF.fullmatch(entry)
    inside = match["inside"] if match else entry
    names = [name.strip() for name in inside.split(",")]
    if any(name not in domain for name in names):
        wrong = next(name for name in names if name not in domain)
        raise BadWorkload(
            f"{wrong!r} in {entry.strip()!r} is not an attribute; the domain has: {', '.join(domain)}.\n  {advice}"
        )
    return Threshold(tuple(names), _needed(match))


def load(path: Path, what: str = "workload") -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadWorkload(f"The {what} file {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadWorkload(f"The {what} file {path} is not JSON: {error}.") from None


def _from_json(source: Any, domain: Domain) -> Workload:
    entries = source.get("thresholds") if isinstance(source, dict) else source
    if not isinstance(entries, list | tuple):
        raise BadWorkload(f"A workload must hold a list of thresholds. {HELP}")
    thresholds, weights = [], []
    for position, entry in enumerate(entries, start=1):
        try:
            threshold, weight = _entry(entry)
            Workload(domain, [threshold], [weight])  # refuses names and weights here, where the position is known
        except DiscreetError as error:
            raise type(error)(f"Threshold {position}: {error}") from None
        thresholds.append(threshold)
        weights.append(weight)
    return Workload(domain, thresholds, weights)


def _entry(entry: Any) -> tuple[Threshold, Any]:
    if isinstance(entry, Threshold):
        return entry, 1.0
    if isinstance(entry, list | tuple):
        entry = {"attributes": entry}
    if not isinstance(entry, dict) or set(entry) - {"attributes", "r", "weight"}:
        raise BadWorkload(f"Only attributes, r and weight are understood. {HELP}")
    names = entry.get("attributes")
    if not isinstance(names, list | tuple):
        raise BadWorkload("attributes must be a list of names.")
    return Threshold(tuple(names), entry.get("r")), entry.get("weight", 1.0)


def query(text: str, domain: Domain, code_of: Callable[[str, str], int]) -> Query:
    """Read one query in words.

    Args:
        text: `age=39, sex=Male`, or `2 of (age=39, sex=Male, race=White)`.
        domain: Public.
        code_of: Gives the code of an attribute's value from its text.
    """
    match = _R_OF.fullmatch(text)
    inside = match["inside"] if match else text
    names = "|".join(re.escape(name) for name in sorted(domain, key=len, reverse=True))
    plain = _QUOTED.sub(lambda value: "=" + "." * (len(value[0]) - 1), inside)
    found = list(re.finditer(rf"(?:^|,)\s*({names})\s*=", plain))
    if not found or inside[: found[0].start()].strip():
        raise BadWorkload(
            f'{text!r} is not understood. Write "age=39, sex=Male" or "2 of (age=39, sex=Male, race=White)"; '
            f"the attributes are: {', '.join(domain)}. (A whole workload is asked for with --workload.)"
        )
    ends = [*(later.start() for later in found[1:]), len(inside)]
    texts = [(here[1], inside[here.end() : end].strip()) for here, end in zip(found, ends, strict=True)]
    for name, value in texts:
        stray = _STRAY.search(value)
        if stray and _unquoted(value) == value:
            raise BadWorkload(
                f"{stray[1]!r} in {text!r} is not an attribute; the domain has: {', '.join(domain)}. "
                f"(If it is part of a value of {name}, put that value in quotes.)"
            )
    values = {name: code_of(name, _unquoted(value)) for name, value in texts}
    if len(values) != len(found):
        raise BadWorkload(f"{text!r} names an attribute twice.")
    attributes = tuple(sorted(values, key=domain.index))
    threshold = Threshold(attributes, _needed(match))
    cell = int(domain.project(attributes).ravel([[values[name] for name in attributes]])[0])
    return Query(threshold, cell)


def _needed(match: re.Match[str] | None) -> Any:
    """How many attributes must match; what is no whole number stays as it is, for `Threshold` to refuse."""
    if match is None:
        return None
    return int(match["r"]) if re.fullmatch(r"[+-]?\d{1,9}", match["r"]) else match["r"]


def in_words(labels: Mapping[str, str]) -> str:
    """Values of attributes as `query` reads them."""
    return ", ".join(f"{name}={_quoted(label)}" for name, label in labels.items())


def _quoted(label: str) -> str:
    """In quotes where part of it would be taken for a further attribute."""
    quote = "'" if '"' in label else '"'
    return f"{quote}{label}{quote}" if _STRAY.search(label) else label


def _unquoted(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" and value[0] not in value[1:-1]
    return value[1:-1] if quoted else value
