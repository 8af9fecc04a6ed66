from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from discreet.data.domain import Domain
from discreet.errors import BadSetting, BadWorkload, DiscreetError, UnknownAttribute
from discreet.queries.history import MOST_QUERIES, History
from discreet.queries.threshold import Threshold

DOMAIN = Domain({"age": 85, "sex": 2, "race": 5, "income": 2})
AGE_SEX, RACE = Threshold(("age", "sex")), Threshold(("race",))


def test_every_way_of_writing_a_past_query(tmp_path: Path) -> None:
    written = [
        "age=39, sex=Male",
        'sex="no longer a value", age=1000',
        "2 of (age=39, sex=Male, race=White)",
        "2 of (age, sex, race)",
        "sex, age",
        ["race"],
        {"attributes": ["sex", "age"], "count": 4},
        {"attributes": ["age", "sex"], "r": 1, "count": 12},
        {"query": "race=White", "count": 2},
        {"query": "race"},
    ]
    found = History.read(written, DOMAIN)
    assert found.counts == {
        AGE_SEX: 7,
        Threshold(("age", "sex", "race"), 2): 2,
        RACE: 4,
        Threshold(("age", "sex"), 1): 12,
    }
    assert found.size == 25
    assert found.kinds == {(2, 2): 7, (3, 2): 2, (1, 1): 4, (2, 1): 12}
    for content in (written, {"queries": written}, found.to_json()):
        path = tmp_path / "past.json"
        path.write_text(json.dumps(content))
        assert History.read(str(path), DOMAIN) == History.read(path, DOMAIN) == found
    assert History.read(found, DOMAIN) is found
    assert History.read([Threshold(("sex", "age"))], DOMAIN).counts == {AGE_SEX: 1}


def test_the_workload_is_what_was_asked_weighted_by_how_often() -> None:
    found = History(DOMAIN, [AGE_SEX, RACE], [8, 1]).workload()
    assert found.thresholds == (AGE_SEX, RACE)
    assert found.weights == pytest.approx((4, 1))


def test_augmenting_adds_so_many_new_thresholds_of_the_same_kinds() -> None:
    past = History(DOMAIN, [AGE_SEX, Threshold(("age", "sex", "race"), 1)], [5, 5])
    for augment in range(9):
        found = past.workload(augment=augment, seed=3)
        assert found.thresholds[:2] == tuple(past.counts)
        added = found.thresholds[2:]
        assert len(set(found.thresholds)) == 2 + augment
        assert {(len(threshold.attributes), threshold.r) for threshold in added} <= {(2, 2), (3, 1)}
        assert set(found.weights[2:]) <= {1.0}
    assert past.workload(augment=4, seed=3) == past.workload(augment=4, seed=3)
    assert len({past.workload(augment=2, seed=seed).thresholds for seed in range(10)}) > 3


def test_kinds_are_added_in_proportion_to_how_often_they_were_asked() -> None:
    domain = Domain({f"a{i}": 2 for i in range(30)})
    past = History(domain, [Threshold(("a0", "a1")), Threshold(("a0", "a1", "a2"))], [90, 10])
    added = past.workload(augment=300).thresholds[2:]
    pairs = Counter(len(threshold.attributes) for threshold in added)[2]
    assert 240 <= pairs <= 295


def test_spaces_too_large_to_list_are_drawn_from_too() -> None:
    domain = Domain({f"a{i}": 2 for i in range(60)})
    past = History(domain, [Threshold(domain.attributes[:5])])
    added = past.workload(augment=50).thresholds[1:]
    assert len(set(added)) == 50
    assert all(list(threshold.attributes) == sorted(threshold.attributes, key=domain.index) for threshold in added)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"attributes": ["age", "sex"], "r": 3}, "r must be"),
        ({"attributes": ["age", "sex"], "r": 0}, "r must be"),
        ({"attributes": ["age", "sex"], "r": "all"}, "r must be"),
        ({"attributes": ["age", "age"]}, "distinct"),
        ({"attributes": []}, "at least one attribute"),
        ({"attributes": ["height"]}, "no attribute 'height'"),
        ({"attributes": "age"}, "attributes"),
        ({"attributes": [3]}, "list of names"),
        ({"attributes": ["age"], "colour": 1}, "understood"),
        ({"attributes": ["age"], "count": 0}, "count must be"),
        ({"attributes": ["age"], "count": -2}, "count must be"),
        ({"attributes": ["age"], "count": 1.5}, "count must be"),
        ({"query": "age=3", "r": 1}, "understood"),
        ({"query": 3}, "understood"),
        ({}, "understood"),
        ("3 of (age=1, sex=Male)", "r must be"),
        ("0 of (age, sex)", "r must be"),
        ("age=1, age=2", "twice"),
        ("height=3", "not understood"),
        ("age=3, hight=3", "'hight' in .* is not an attribute"),
        ("sex='Male', hight='3'", "'hight' in .* is not an attribute"),
        ("sex=Male , hight = no, age=3", "'hight' in .* is not an attribute"),
        ("age, height", "not an attribute"),
        ("", "not an attribute"),
        (3, "not understood"),
        (None, "not understood"),
    ],
)
def test_a_bad_entry_is_named_by_its_position(entry: Any, says: str) -> None:
    with pytest.raises(DiscreetError, match=says) as caught:
        History.read(["sex=Male", entry], DOMAIN)
    assert str(caught.value).startswith("Past query 2: ")


@pytest.mark.parametrize("content", [[], {"queries": []}])
def test_an_empty_history_is_refused(content: Any) -> None:
    with pytest.raises(BadWorkload, match="history is empty"):
        History.read(content, DOMAIN)


@pytest.mark.parametrize("text", ["3", "{}", '"age"', "null", '{"thresholds": []}'])
def test_files_without_a_list_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "past.json").write_text(text)
    with pytest.raises(BadWorkload, match="must hold a list"):
        History.read(tmp_path / "past.json", DOMAIN)


def test_files_that_are_not_there_or_not_json(tmp_path: Path) -> None:
    with pytest.raises(BadWorkload, match=r"history file .* cannot be read"):
        History.read(tmp_path / "nothing.json", DOMAIN)
    with pytest.raises(BadWorkload, match="cannot be read"):
        History.read(tmp_path, DOMAIN)
    for content in (b"{", b"", b"\xff\xfe\x00"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(BadWorkload, match=r"history file .* is not JSON"):
            History.read(tmp_path / "bad.json", DOMAIN)


def test_what_cannot_be_augmented_is_refused() -> None:
    past = History(DOMAIN, [AGE_SEX])
    with pytest.raises(BadSetting, match="augment must be a whole number"):
        past.workload(augment=-1)
    with pytest.raises(BadWorkload, match=r"6 further thresholds .* only 5 of the history's kinds \(2 of 2\)"):
        past.workload(augment=6)
    assert len(past.workload(augment=5)) == 6
    with pytest.raises(BadSetting, match="workload_seed"):
        past.workload(seed=-1)


def test_histories_that_contradict_themselves() -> None:
    with pytest.raises(BadWorkload, match="1 past queries but 2 counts"):
        History(DOMAIN, [RACE], [1, 2])
    with pytest.raises(UnknownAttribute):
        History(DOMAIN, [Threshold(("height",))])
    with pytest.raises(BadWorkload, match="another domain"):
        History.read(History(DOMAIN, [RACE]), Domain({"race": 5}))
    with pytest.raises(BadWorkload, match="divide the counts"):
        History(DOMAIN, [RACE, AGE_SEX], [MOST_QUERIES, 1])
