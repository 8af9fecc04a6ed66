from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readable import small_table

from discreet.errors import BadSetting, BadWorkload
from discreet.mechanisms.search import Settings, feasible, lowest
from discreet.publish.make import release
from discreet.queries import parse


@given(st.integers(1, 12), st.integers(0, 11), st.integers(1, 5))
def test_the_lowest_of_errors_that_fall_and_rise_is_found_in_few_trials(many: int, best: int, slope: int) -> None:
    best = min(best, many - 1)
    asked: list[int] = []

    def error(pair: tuple[int, int]) -> int:
        asked.append(pair[0])
        return slope * abs(pair[0] - best)

    pairs = [(at, 0) for at in range(many)]
    assert lowest(pairs, error) == (best, 0)
    assert len(set(asked)) <= 2 * many.bit_length()


def test_only_pairs_that_the_workload_has_queries_for_are_tried() -> None:
    workload = parse.workload("all:1", small_table(10).domain)
    pairs = feasible(workload, Settings())
    assert pairs
    assert all(rounds * per_round <= workload.size for rounds, per_round in pairs)


def test_every_trial_is_charged_and_named() -> None:
    made = release(
        small_table(800), "all:2", epsilon=1.0, mechanism="rap-search", rows=20, settings={"steps": 5}, seed=0
    )
    labels = [charge.label for charge in made.charges]
    tried = made.notes["tried"]
    assert len([label for label in labels if label.endswith(": error")]) == len(tried) <= 5
    chosen = min(tried, key=lambda trial: trial["noisy_error"])
    assert made.notes["chosen"] in [[trial["rounds"], trial["per_round"]] for trial in tried]
    product = made.notes["chosen"][0] * made.notes["chosen"][1]
    same = [trial for trial in tried if trial["rounds"] * trial["per_round"] == product]
    assert min(same, key=lambda trial: trial["noisy_error"])["noisy_error"] >= chosen["noisy_error"]


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.0}, {"share": 2.0}, {"rows": 0}, {"steps": 0}])
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        Settings(**wrong)


def test_a_workload_that_no_pair_fits_is_refused_before_anything_is_charged(tmp_path: Any) -> None:
    table = small_table(50)
    with pytest.raises((BadSetting, BadWorkload)):
        release(table, "sex", epsilon=1.0, mechanism="rap-search", ledger=tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()
