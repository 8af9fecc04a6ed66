"""r-of-4 thresholds, r from 1 to 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.experiments import trial
from discreet.experiments.chart import adaptive, best, line, lines_of, over_seeds, spread, values, where
from discreet.experiments.claim import NOT_PRIVATE, Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import lines

_EPSILONS = {"tiny": (1.0,), "quick": (0.1,), "default": (0.1, 1.0), "full": (0.1, 1.0)}
_THRESHOLDS = {"tiny": (2,), "quick": (4,), "default": (4,), "full": (1, 4, 16, 64, 256)}
_SCHEDULES: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny": ((2, 2),),
    "quick": ((4, 4), (16, 4)),
    "default": ((4, 4), (4, 16), (16, 4)),
    "full": trial.PAPER_GRID,
}
_PLACE = ("dataset", "epsilon", "thresholds", "r")
_CELL = (*_PLACE, "seed")
_MUCH = 2.0


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    mechanisms = [trial.baseline(name) for name in ("all-zero", "gaussian-paper", "gaussian")]
    mechanisms += [trial.published(size, schedule) for schedule in _SCHEDULES[size]] + [trial.ours(size)]
    for dataset in datasets:
        for epsilon in _EPSILONS[size]:
            for many in _THRESHOLDS[size]:
                for r in (1, 4) if size == "tiny" else (1, 2, 3, 4):
                    for mechanism in mechanisms:
                        yield dataset, {"epsilon": epsilon, "k": 4, "r": r, "thresholds": many, **mechanism}


def _kinds(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        "rap-paper (least over T, K)": best(adaptive(rows), *_PLACE),
        "rap": where(rows, mechanism="rap"),
        "gaussian": where(rows, mechanism="gaussian"),
        "gaussian-paper": where(rows, mechanism="gaussian-paper"),
        "all-zero": where(rows, mechanism="all-zero"),
    }


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for dataset in values(rows, "dataset"):
        for epsilon in values(rows, "epsilon"):
            for many in reversed(values(rows, "thresholds")):
                some = where(rows, dataset=dataset, epsilon=epsilon, thresholds=many)
                series = lines_of(line(name, found, "r") for name, found in _kinds(some).items())
                words = over_seeds(
                    f"Largest error on {many} r-of-4 thresholds of {dataset}, epsilon {epsilon:g}",
                    "r, how many of four must match",
                )
                if series:
                    made[f"{dataset}-{many}-epsilon-{epsilon:g}"] = lines(series, words, log_y=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    chosen, rap, gaussian, gaussian_paper, zero = _kinds(rows).values()
    found = []
    for name, some in (("rap-paper", chosen), ("rap", rap)):
        found.append(
            judged(
                "RAP is far better than both baselines (all-zero, and Gaussian noise that pays for each query) for "
                "every r.",
                f"`{name}` over the better of `all-zero` and `gaussian-paper`",
                ratio(pairs(some, _better(zero, gaussian_paper), *_CELL)),
                below=1,
            )
        )
        whole, part = where(some, r=4), [row for row in some if row["r"] < 4]
        beside = ratio(pairs(part, whole, "dataset", "epsilon", "thresholds", "seed"))
        listed = "; ".join(f"r = {r}: {spread(where(some, r=r), 'max_error')}" for r in (1, 2, 3, 4))
        found.append(
            judged(
                "Marginals (r = 4) have the least error.",
                f"`{name}`: {listed}. r < 4 over r = 4",
                beside,
                above=1,
            )
        )
        found.append(
            judged(
                "Thresholds with r < 4 have not much more.",
                f"`{name}`: r < 4 over r = 4, where up to {_MUCH:g} times as much is not much",
                beside,
                below=_MUCH,
            )
        )
    found.append(
        judged(
            "Gaussian noise on whole marginals, charged for what one person can change, does better than the "
            "published recipe on thresholds too.",
            f"`gaussian`, {spread(gaussian, 'max_error')}, over `rap-paper`",
            ratio(pairs(gaussian, chosen, *_CELL)),
            below=1,
            whose="We",
        )
    )
    return found


def _better(one: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    """Of two baselines the one with the smaller error, cell by cell."""
    least: dict[tuple[object, ...], Row] = {}
    for row in [*one, *other]:
        key = tuple(row[name] for name in _CELL)
        if key not in least or row["max_error"] < least[key]["max_error"]:
            least[key] = row
    return list(least.values())


EXPERIMENT = Experiment(
    name="thresholds",
    title="r-of-4 thresholds",
    source="Avent and Korolova (2023), Figure 7 and Table 4",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(NOT_PRIVATE,),
)
