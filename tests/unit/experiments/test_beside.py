from collections import Counter
from typing import Any

import pytest

from discreet.experiments import beside, claim, family
from discreet.experiments.claim import CONFIRMED, REFUTED, UNDECIDED


def row(mechanism: str, error: float, seed: int = 100, epsilon: float = 1.0, **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("max_error", "mean_error", "rmse", "mean_tvd", "release_seconds", "peak"), error)
    where = {"dataset": "adult", "workload": "all:3", "epsilon": epsilon, "seed": seed, "mechanism": mechanism}
    return {**where, **figures, **more}


def test_a_mechanism_stands_against_the_best_of_the_others() -> None:
    rows = [row("auto", 0.2), row("auto", 0.4, 101), row("rap", 0.2), row("gem", 0.5), row("rap", 0.1, epsilon=0.1)]
    (found,) = beside.standing(rows, "`auto`", ["max_error"], "dataset", "epsilon")
    assert found.where == ("adult", 1.0)
    assert found.best == "`rap`"
    assert found.ratio == pytest.approx(1.5)


@pytest.mark.parametrize(("error", "verdict"), [(0.09, CONFIRMED), (0.11, REFUTED), (0.2, REFUTED)])
def test_the_default_must_be_the_best_of_all(error: float, verdict: str) -> None:
    rows = [row(name, what, seed) for seed in (100, 101) for name, what in (("auto", error), ("rap", 0.1))]
    assert family.EXPERIMENT.findings(rows)[-1].verdict == verdict


def test_now_and_then_it_may_be_a_little_worse_but_not_much() -> None:
    cells = [(0.1 * many, 0.9) for many in range(1, 10)]
    for last, verdict in ((1.2, CONFIRMED), (1.3, REFUTED)):
        rows = [
            row(name, what, epsilon=epsilon)
            for epsilon, ratio in [*cells, (1.0, last)]
            for name, what in (("auto", ratio), ("rap", 1.0))
        ]
        assert family.EXPERIMENT.findings(rows)[-1].verdict == verdict


def test_it_is_counted_against_all_and_against_what_others_published() -> None:
    rows = [
        row("auto", 0.2),
        row("rap", 0.1),
        row("gem", 0.4),
        row("auto", 0.1, epsilon=0.1),
        row("rap", 0.2, epsilon=0.1),
    ]
    told = family.EXPERIMENT.tables(rows, [])["`auto` over the best other"].splitlines()
    assert "| of all mechanisms | 3 of 6 | 1 of 2 | 1 of 2 | 1 of 2 | 1 of 2 | 2.00 |" in told
    assert "| but for `rap` | 3 of 3 | 1 of 1 | 1 of 1 | 1 of 1 | 1 of 1 | 0.50 |" in told
    stands = family.EXPERIMENT.findings(rows)[-1].ours
    assert "All three at once: in 1 of 2 (tables, workloads and epsilons); but for `rap`, in 1 of 1." in stands
    between = [row("auto", 0.2, epsilon=0.5), row("rap", 0.1, epsilon=0.5)]
    told = family.EXPERIMENT.tables([*rows, *between], [])["`auto` over the best other"].splitlines()
    assert "| of all mechanisms | 3 of 9 | 1 of 3 | 1 of 3 | 1 of 3 | 1 of 3 | 2.00 |" in told
    slow = (
        "| of all, at epsilon 0.1 and 1, where slow ones ran too | 3 of 6 | 1 of 2 | 1 of 2 | 1 of 2 | 1 of 2 | 2.00 |"
    )
    assert slow in told
    alone = [one for one in rows if one["mechanism"] != "gem"]
    assert "but for `rap`" not in family.EXPERIMENT.tables(alone, [])["`auto` over the best other"]


def test_what_is_slow_on_a_table_has_fewer_cells_there() -> None:
    cells = family.EXPERIMENT.cells("full", 5)
    counts = Counter((one.dataset, beside.name(one.setting)) for one in cells if one.setting["workload"] == "all:3")
    assert counts["nltcs", "`rap-paper`"] == 4 * 5
    assert counts["adult-binned", "`rap-paper`"] == 2 * 3
    assert counts["adult-binned", "`rap-paper`, in a box"] == 4 * 5


def test_seeds_of_the_cells_that_are_compared_decide() -> None:
    """Another mechanism with more cells of one seed does not make two seeds of these one."""
    rows = [row(name, error, seed) for seed in (100, 101) for name, error in (("pep", 0.1), ("mwem", 0.2))]
    rows += [row("gem", 0.3, epsilon=epsilon) for epsilon in (0.1, 1.0)]
    found = {finding.paper: finding.verdict for finding in claim.findings(family.EXPERIMENT, rows)}
    assert found["PEP beats MWEM."] == CONFIRMED
    one = [cell for cell in rows if cell["seed"] == 100]
    found = {finding.paper: finding.verdict for finding in claim.findings(family.EXPERIMENT, one)}
    assert found["PEP beats MWEM."] == UNDECIDED


def test_the_best_of_each_column_is_bold() -> None:
    rows = [row("mwem", 0.5, passes=20), row("auto", 0.125), row("rap", 0.25)]
    (text,) = beside.tables(rows, [], "dataset").values()
    bold = [line for line in text.splitlines() if "**0.125" in line]
    assert len(bold) == 1 and "`auto`" in bold[0]
    names = [line.split(" | ")[1] for line in text.splitlines()[2:]]
    assert names == ["`auto`", "`rap`", "`mwem`, 20 passes"]


def test_what_came_to_no_end_has_a_line_too() -> None:
    """And so do seeds that did not, of what ended with others."""
    ended = [row("gem", 0.0, seed, ended="unfinished") for seed in (100, 101)]
    ended += [row("mwem", 0.0, ended="refused"), row("pep", 0.0, epsilon=0.1, ended="refused")]
    rows = [row("auto", 0.125), row("gem", 0.25, 102)]
    (text,) = beside.tables(rows, [*ended, row("aim", 0.0, dataset="loans", ended="refused")], "dataset").values()
    _, _, auto, gem, mwem = text.splitlines()
    assert auto.endswith("| 1 |")
    assert gem.startswith("| 1 | `gem` | 0.25 (") and gem.endswith("| 1, 2 unfinished |")
    assert mwem == "| 1 | `mwem` | refused |  |  |  |  |  | 1 |"
    assert mwem.count("|") == auto.count("|")


def test_pictures_show_the_best_six() -> None:
    rows = [row(f"m{number}", 0.1 * number, epsilon=epsilon) for number in range(1, 9) for epsilon in (0.1, 1.0)]
    found = beside.pictures(rows, "dataset", "workload", without=("`m1`",))
    assert set(found) == {"adult-all-3-max-error", "adult-all-3-mean-tvd"}
    picture = found["adult-all-3-max-error"]
    assert [f"m{number}" in picture for number in range(1, 9)] == [False, *[True] * 6, False]


def test_what_was_not_run_asks_for_no_more_seeds() -> None:
    """No seed would help where a mechanism refuses the table."""
    rows = [row("auto", 0.1, 100)]
    (pep,) = [finding for finding in claim.findings(family.EXPERIMENT, rows) if finding.paper == "PEP beats MWEM."]
    assert pep.verdict == UNDECIDED
    assert "one of the two was not run, was refused, or did not end in time" in pep.why
