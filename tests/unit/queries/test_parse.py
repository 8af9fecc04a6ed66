import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.errors import BadWorkload, DiscreetError, UnknownAttribute
from discreet.queries import parse
from discreet.queries.threshold import Query, Threshold
from discreet.queries.workload import Workload

DOMAIN = Domain({"age": 85, "sex": 2, "race": 5, "income>50K": 2, "a, b": 3})


def test_all_sets_in_schema_order() -> None:
    found = parse.workload("all:3", DOMAIN)
    assert [t.attributes for t in found] == list(combinations(DOMAIN.attributes, 3))
    assert found.size == sum(t.cells(DOMAIN) for t in found)


def test_random_sets_are_those_at_the_drawn_positions() -> None:
    found = parse.workload("random:2:4", DOMAIN, seed=7)
    kept = sorted(np.random.default_rng(7).choice(10, 4, replace=False))
    every = list(combinations(DOMAIN.attributes, 2))
    assert [t.attributes for t in found] == [every[i] for i in kept]
    assert found != parse.workload("random:2:4", DOMAIN, seed=8)


def test_thresholds_and_sums_of_short_forms() -> None:
    assert {t.r for t in parse.workload("all:3@1", DOMAIN)} == {1}
    assert len(parse.workload("all:1+all:2", DOMAIN)) == 15


def test_lists_in_words() -> None:
    found = parse.workload("sex, age; 2 of (age, sex, race)", DOMAIN)
    assert found.thresholds == (Threshold(("age", "sex")), Threshold(("age", "sex", "race"), 2))


def test_json_files_and_round_trip(tmp_path: Path) -> None:
    content = {"thresholds": [{"attributes": ["age", "a, b"], "r": 1, "weight": 2.5}, ["sex"]]}
    path = tmp_path / "w.json"
    path.write_text(json.dumps(content))
    found = parse.workload(str(path), DOMAIN)
    assert found.weights == (2.5, 1.0)
    assert parse.workload(found.to_json(), DOMAIN) == found
    assert parse.workload(path, DOMAIN) == found
    assert parse.workload([["age"], Threshold(("sex",))], DOMAIN).size == 87


def test_duplicates_merge_and_keep_the_larger_weight() -> None:
    found = Workload(DOMAIN, [Threshold(("sex", "age")), Threshold(("age", "sex"))], [1, 3])
    assert found.thresholds == (Threshold(("age", "sex")),)
    assert found.weights == (3.0,)


def test_marginals_that_a_workload_needs() -> None:
    found = parse.workload("1 of (age, sex); age, sex; sex", DOMAIN)
    assert set(found.marginals) == {("age",), ("sex",), ("age", "sex")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("all:0", "k must be"),
        ("all:6", "k must be"),
        ("all:3:4", "no second number"),
        ("random:3", "how many"),
        ("random:3:0", "how many"),
        ("random:3:11", "only 10 sets"),
        ("all:3@4", "r must be"),
        ("agge, sex", "not an attribute"),
        ("nothing.json", "cannot be read"),
        ("3 of (age, sex)", "r must be"),
        ("age, age", "distinct"),
        ("1.5 of (age, sex)", "r must be a whole number from 1 to 2"),
        ("-1 of (age, sex)", "r must be a whole number from 1 to 2"),
        ("9" * 5000 + " of (age, sex)", "r must be a whole number from 1 to 2"),
        ("all:" + "9" * 5000, "not an attribute"),
    ],
)
def test_bad_workloads_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(BadWorkload, match=says):
        parse.workload(text, DOMAIN)


@pytest.mark.parametrize(
    "content",
    [
        {"thresholds": 3},
        {"thresholds": [{"attributes": "age"}]},
        {"thresholds": [{"attributes": ["age"], "colour": 1}]},
        {"thresholds": [{"attributes": ["age"], "weight": -1}]},
        {"thresholds": [{"attributes": ["age"], "weight": "heavy"}]},
        {"thresholds": [{"attributes": ["age"], "weight": 10**400}]},
        {"thresholds": [{"attributes": ["age"], "weight": 1.5e308}]},
        {"thresholds": [{"attributes": ["age"], "weight": 1e-5}, {"attributes": ["sex"], "weight": 1.1e4}]},
        {"thresholds": [{"attributes": [1, 1]}]},
        {"thresholds": [{"attributes": ["age"], "r": "all"}]},
        {"thresholds": []},
        {},
    ],
)
def test_bad_json_is_refused(content: dict[str, object]) -> None:
    with pytest.raises(DiscreetError):
        parse.workload(content, DOMAIN)
    with pytest.raises(UnknownAttribute):
        parse.workload([["agge"]], DOMAIN)


def test_mistakes_in_a_list_are_found_by_their_place() -> None:
    for wrong in (
        ["agge"],
        ["age", "age"],
        "age",
        {"attributes": ["age"], "r": 2},
        {"attributes": ["sex"], "weight": 0},
    ):
        with pytest.raises(DiscreetError, match="Threshold 2: "):
            parse.workload([["age"], wrong, ["sex"]], DOMAIN)


def test_brackets_without_end_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(BadWorkload, match="is not JSON"):
        parse.workload(tmp_path / "deep.json", DOMAIN)


def code_of(name: str, value: str) -> int:
    return int(value)


def test_queries_in_words() -> None:
    assert parse.query("age=39, sex=1", DOMAIN, code_of) == Query(Threshold(("age", "sex")), 79)
    assert parse.query("sex=1 , age = 39", DOMAIN, code_of) == Query(Threshold(("age", "sex")), 79)
    assert parse.query("income>50K=1", DOMAIN, code_of) == Query(Threshold(("income>50K",)), 1)
    assert parse.query("a, b=2, sex=0", DOMAIN, code_of) == Query(Threshold(("sex", "a, b")), 2)
    found = parse.query("2 of (age=39, sex=1, race=4)", DOMAIN, code_of)
    assert found == Query(Threshold(("age", "sex", "race"), 2), (39 * 2 + 1) * 5 + 4)


@pytest.mark.parametrize("text", ["", "39", "=39", "height=3", "age=1, age=2", "4 of (age=1, sex=0)", "x age=3"])
def test_bad_queries_are_refused(text: str) -> None:
    with pytest.raises(BadWorkload):
        parse.query(text, DOMAIN, code_of)


def test_marginals_beyond_64_bits_are_refused_with_advice() -> None:
    wide = Domain({f"a{i}": 2**16 for i in range(5)})
    with pytest.raises(BadWorkload, match="coarser bins"):
        parse.workload("all:5", wide)
    assert parse.workload("all:3", wide).size == 10 * 2**48


def test_what_is_written_in_words_can_be_read_again() -> None:
    labels = {"a": ["5, <=10", "x, b=1", """it's, so='no'""", "plain", "[10, 20)"], "b": ["0", "1"]}
    domain = Domain({name: len(some) for name, some in labels.items()})
    for code, label in enumerate(labels["a"]):
        text = parse.in_words({"a": label, "b": "1"})
        found = parse.query(text, domain, lambda name, value: labels[name].index(value))
        assert found.cell == 2 * code + 1, text
    assert parse.in_words({"a": "5, <=10", "b": "1"}) == "a=5, <=10, b=1"
    assert parse.in_words({"a": "x, b=1"}) == 'a="x, b=1"'
