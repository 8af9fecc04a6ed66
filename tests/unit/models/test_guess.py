from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import fit, start
from discreet.models.fit import FitSettings
from discreet.models.guess import STANDS_OUT, guess
from discreet.models.targets import targets
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Threshold

DOMAIN = Domain({"a": 12, "b": 9, "c": 10, "d": 11})
EMPTY = (11, 8, 9, 10)
TOTAL = 1000


def codes_with_empty_rows(share: float) -> np.ndarray:
    """Rows x attributes: uniform values, but in the first rows the last value of every attribute."""
    codes = np.random.default_rng(0).integers(0, [size - 1 for size in DOMAIN.sizes], size=(TOTAL, len(DOMAIN)))
    codes[: int(share * TOTAL)] = EMPTY
    return codes


def whole(codes: np.ndarray, names: tuple[str, ...], sigma: float, seed: int = 0) -> Measurement:
    part = DOMAIN.project(names)
    counts = np.bincount(part.ravel(codes[:, [DOMAIN.index(name) for name in names]]), minlength=part.size)
    noisy = counts + np.random.default_rng(seed).normal(0, sigma, part.size).round().astype(np.int64)
    return Measurement(Threshold(names), None, noisy, Fraction(sigma) ** 2)


def guessed(measurements: list[Measurement], shifts: tuple[float, ...] = (0.5, -0.5), rows: int = 2000) -> np.ndarray:
    return guess(DOMAIN, targets(measurements, total=TOTAL, seed=3), rows=rows, shifts=shifts, seed=3)


def test_values_that_go_together_are_guessed_together() -> None:
    table = codes_with_empty_rows(0.2)
    codes = guessed([whole(table, ("a", "b", "c"), 2.0, 1), whole(table, ("b", "c", "d"), 2.0, 2)])
    empty = (codes.T == EMPTY).all(axis=1)
    known = (codes != UNKNOWN).all(axis=0)
    assert (codes[:, known].T == EMPTY).all()  # nothing else stands out of this noise
    assert empty.mean() > 0.9


def test_noise_alone_is_not_guessed() -> None:
    nothing = np.random.default_rng(1).integers(0, DOMAIN.sizes, size=(TOTAL, len(DOMAIN)))
    codes = guessed([whole(nothing, ("a", "b", "c"), 20.0, 1)])
    assert (codes == UNKNOWN).all()


def test_without_noise_guesses_follow_the_counts() -> None:
    table = codes_with_empty_rows(0.3)
    codes = guessed([whole(table, ("a", "b"), 0.001)], shifts=(0.0, 0.0), rows=20_000)
    part = DOMAIN.project(("a", "b"))
    truth = np.bincount(part.ravel(table[:, :2]), minlength=part.size) / TOTAL
    drawn = np.bincount(part.ravel(codes[:2].T), minlength=part.size) / 20_000
    assert abs(drawn - truth).max() < 4 * np.sqrt(0.3 * 0.7 / 20_000)
    assert (codes[2:] == UNKNOWN).all()


def test_halves_are_guessed_from_the_numbers_that_they_are_fitted_to() -> None:
    """Public noise that lifts a cell for one half lowers it for the other."""
    at_the_edge = np.full(12 * 9 * 10, round(STANDS_OUT * 20 * np.sqrt(1 + 3.0**2)))
    found = Measurement(Threshold(("a", "b", "c")), None, at_the_edge, Fraction(20) ** 2)
    halves = np.split(guessed([found], shifts=(3.0, -3.0), rows=4000)[:3], 2, axis=1)
    one, other = ({tuple(row) for row in half.T.tolist()} - {(UNKNOWN,) * 3} for half in halves)
    assert one and other
    assert one.isdisjoint(other)


def test_a_fit_finds_rows_that_are_empty_everywhere() -> None:
    """From even rows this cell is at a saddle, and a fit takes long to find it."""
    domain = Domain(dict.fromkeys("abcd", 60))
    codes = np.random.default_rng(0).integers(0, 59, size=(5000, 4))
    codes[:300] = 59
    sets = [("a", "b", "c"), ("b", "c", "d")]
    found = []
    for seed, names in enumerate(sets):
        part = domain.project(names)
        counts = np.bincount(part.ravel(codes[:, [domain.index(name) for name in names]]), minlength=part.size)
        noise = np.random.default_rng(seed).normal(0, 5, part.size).round().astype(np.int64)
        found.append(Measurement(Threshold(names), None, counts + noise, Fraction(25)))
    settings = FitSettings(max_steps=48)

    def share(lean: bool) -> float:
        logits = start.even(domain, 40, settings, 0)
        if lean:
            logits = start.lean(domain, logits, targets(found, total=5000, seed=0), settings=settings, seed=0)
        logits, _ = fit.fit(domain, logits, targets(found, total=5000, seed=0), settings=settings, seed=0)
        rows = fit.probabilities(domain, logits)
        return float(jnp.mean(rows[59] * rows[119] * rows[179] * rows[239]))

    assert abs(share(lean=True) - 0.06) < 0.02
    assert share(lean=False) < 0.02
