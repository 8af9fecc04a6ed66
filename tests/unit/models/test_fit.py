from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tables import brute_force, random_table

from discreet.data.domain import Domain
from discreet.models import fit, projection, start, tiles, transform
from discreet.models.fit import FitSettings
from discreet.models.projection import ProjectionSettings
from discreet.models.targets import targets
from discreet.privacy.measurement import Measurement
from discreet.progress import Progress
from discreet.queries.threshold import Threshold

DOMAIN = Domain({"a": 5, "b": 2, "c": 7, "d": 1})
SETS = [("a",), ("a", "b"), ("a", "b", "c"), ("b", "c", "d"), ("a", "b", "c", "d")]


def whole(names: tuple[str, ...], counts: np.ndarray, sigma_squared: Fraction = Fraction(4)) -> Measurement:
    return Measurement(Threshold(names), None, counts.astype(np.int64), sigma_squared)


def measured(total: int = 300, sets: list[tuple[str, ...]] = SETS, noise: float = 0.0) -> list[Measurement]:
    table = random_table(total, domain=DOMAIN)
    rng = np.random.default_rng(1)
    found = []
    for at, names in enumerate(sets):
        counts = brute_force(table, names, len(names))
        found.append(whole(names, counts + np.rint(rng.normal(0, noise, len(counts))), Fraction(1 + at)))
    return found


def some_rows(count: int = 6) -> jax.Array:
    logits = jax.random.normal(jax.random.key(0), (DOMAIN.bits, count))
    return transform.per_attribute(DOMAIN, transform.softmax, logits)


def direct_residual(x: jax.Array, found: Measurement, total: int) -> jax.Array:
    """Cell by cell, from its definition."""
    names = found.threshold.attributes
    codes = DOMAIN.project(names).unravel(np.arange(len(found.counts)))
    product = jnp.ones((len(codes), x.shape[1]))
    for at, name in enumerate(names):
        product = product * x[codes[:, at] + DOMAIN.offsets[DOMAIN.index(name)]]
    return product.mean(axis=1) - found.counts / total


def direct_loss(x: jax.Array, measurements: list[Measurement], total: int, emphasis: float = 0.0) -> jax.Array:
    """Half the weighted squared residual, and a quarter of its fourth power, cell by cell, from their definition."""
    smallest = min(float(m.sigma_squared) for m in measurements)
    loss = jnp.zeros(())
    for found in measurements:
        residual = direct_residual(x, found, total)
        square = smallest / float(found.sigma_squared) * residual**2
        loss = loss + jnp.sum(square / 2 + emphasis**2 * square**2 / 4)
    return loss


def test_tiles_have_the_loss_and_gradient_of_every_cell() -> None:
    measurements, x = measured(), some_rows()
    packed = tiles.pack(DOMAIN, targets(measurements, total=300, seed=0), seed=0)
    padded = tiles.with_constants(x)
    parts = [
        tiles.pull(padded, bucket, jnp.arange(len(bucket.y)), jnp.ones(len(bucket.y)), (0.0,))
        for bucket in packed.buckets
    ]
    loss = float(jnp.sum(jnp.stack([part.loss for part in parts]))) / 2
    gradient = jnp.sum(jnp.stack([part.half for part in parts]), axis=0)[:-2] / x.shape[1]
    assert loss == pytest.approx(float(direct_loss(x, measurements, 300)), rel=1e-4)
    assert np.allclose(gradient, jax.grad(direct_loss)(x, measurements, 300), atol=1e-6)
    worst = max(float(jnp.abs(direct_residual(x, found, 300)).max()) for found in measurements)
    assert max(float(part.worst) for part in parts) == pytest.approx(worst, rel=1e-4)


def test_emphasis_is_the_fourth_power_of_what_is_not_yet_met_up_to_a_limit() -> None:
    measurements, x = measured(), some_rows()
    packed = tiles.pack(DOMAIN, targets(measurements, total=300, seed=0), seed=0)

    def gradient(emphasis: float) -> jax.Array:
        parts = [
            tiles.pull(
                tiles.with_constants(x), bucket, jnp.arange(len(bucket.y)), jnp.ones(len(bucket.y)), (0.0,), emphasis
            ).half
            for bucket in packed.buckets
        ]
        return jnp.sum(jnp.stack(parts), axis=0)[:-2] / x.shape[1]

    assert np.allclose(gradient(3.0), jax.grad(direct_loss)(x, measurements, 300, 3.0), atol=1e-6)
    assert not np.allclose(gradient(3.0), gradient(0.0), atol=1e-6)
    assert np.allclose(gradient(1e9), (1 + tiles.MOST_STRESS) * gradient(0.0), rtol=1e-3, atol=1e-6)


def test_cells_that_stand_out_are_in_every_batch_and_all_others_in_their_turn() -> None:
    domain = Domain({"a": 40, "b": 40, "c": 50})
    counts = np.random.default_rng(0).normal(scale=2, size=domain.size).round().astype(np.int64)
    counts[[70_000, 12_345]] += 300
    found = whole(("a", "b", "c"), counts)
    packed = tiles.pack(domain, targets([found], total=1000, seed=1), seed=1)
    (bucket,), (real,), (heavy,), _ = packed
    assert real == 25
    assert heavy.tolist() == [0]
    assert np.sort(np.asarray(bucket.y[0]).reshape(-1))[-2:] == pytest.approx(np.sort(counts)[-2:] / 1000)
    batches = fit._Batches(packed, FitSettings(batch_cells=1, batch_share=0.5), seed=2)
    weight = np.zeros(real)
    for _ in range(30):
        (chosen,) = batches.take()
        assert chosen.shape == (fit._STRETCH, 14)
        assert (np.asarray(chosen[:, 0]) == 0).all()
        np.add.at(weight, np.asarray(chosen), np.asarray(batches.scales[0]))
    assert weight / (30 * fit._STRETCH) == pytest.approx(np.ones(real), abs=0.02)


def test_single_attributes_are_in_every_batch_even_if_nothing_of_them_stands_out() -> None:
    """Drawn now and then with a large scale, the one row of a large attribute would be thrown about by its own pull."""
    domain = Domain({"a": 40, "b": 40, "c": 50})
    generator = np.random.default_rng(0)
    counts = generator.normal(scale=2, size=domain.size).round().astype(np.int64)
    found = targets([whole(("a", "b", "c"), counts), whole(("c",), np.full(50, 1))], total=1000, seed=1)
    packed = tiles.pack(domain, found, seed=1)
    (bucket,), _, (heavy,), _ = packed
    assert heavy.tolist() == [0]
    assert np.asarray(bucket.y[0][0]) == pytest.approx(np.full(50, 0.001))
    batches = fit._Batches(packed, FitSettings(batch_cells=1, batch_share=0.1), seed=2)
    (chosen,) = batches.take()
    assert (np.asarray(chosen[:, 0]) == 0).all()
    assert float(batches.scales[0][0]) == 1


def test_all_single_attributes_are_in_every_batch_however_many_there_are() -> None:
    domain = Domain({f"a{at}": 10 for at in range(50)})
    names = list(domain)
    alone = [whole((name,), np.full(10, 1)) for name in names]
    noise = np.random.default_rng(0).normal(scale=2, size=(30, 10_000)).round().astype(np.int64)
    large = [whole(tuple(names[at : at + 4]), counts) for at, counts in enumerate(noise)]
    packed = tiles.pack(domain, targets([*large, *alone], total=1000, seed=1), seed=1)
    assert packed.single == [50]
    batches = fit._Batches(packed, FitSettings(batch_cells=1, batch_share=0.01), seed=2)
    (chosen,) = batches.take()
    assert {*packed.heavy[0][:50].tolist()} <= {*np.asarray(chosen[0]).tolist()}
    assert (np.asarray(batches.scales[0])[:50] == 1).all()


def test_of_large_marginals_only_rows_that_stand_out_are_fitted() -> None:
    domain = Domain({"a": 30, "b": 30, "c": 60})
    counts = np.random.default_rng(0).normal(scale=2, size=domain.size).round().astype(np.int64)
    counts[[40_000, 12_345]] += 300
    pair = np.random.default_rng(1).normal(scale=2, size=900).round().astype(np.int64)
    found = targets([whole(("a", "b", "c"), counts), whole(("a", "b"), pair)], total=1000, seed=1)
    packed = tiles.pack(domain, found, large=10_000, seed=1)
    tall, wide = packed.buckets
    assert packed.real == [1, 1]  # 30 rows of the pair, and two of the larger marginal
    assert int(np.count_nonzero(tall.weight)) == 30
    assert int(np.count_nonzero(wide.weight)) == 2
    assert np.sort(np.asarray(wide.y).reshape(-1))[-2:] == pytest.approx(np.sort(counts)[-2:] / 1000)
    assert tiles.pack(domain, found, large=domain.size, seed=1).real == [1, 15]  # not larger than that: all rows


def test_large_marginals_without_anything_that_stands_out_are_left_alone() -> None:
    domain = Domain({"a": 40, "b": 40, "c": 50})
    counts = np.random.default_rng(0).normal(scale=2, size=domain.size).round().astype(np.int64)
    found = targets([whole(("a", "b", "c"), counts), whole(("a",), np.full(40, 25))], total=1000, seed=1)
    packed = tiles.pack(domain, found, large=10_000, seed=1)
    assert [bucket.y.shape[2] for bucket in packed.buckets] == [40]
    alone = targets([whole(("c",), np.zeros(50))], total=1000, seed=1)  # larger than that, and nothing but noise
    assert [bucket.y.shape[2] for bucket in tiles.pack(domain, alone, large=10, seed=1).buckets] == [50]


def test_the_answer_lies_beyond_the_first_that_is_not_clearly_worse_and_further_in_long_fits() -> None:
    kept = fit._Kept(FitSettings(caution=1.0, overrun=1.6, lasting=800))
    noise = np.random.default_rng(0).normal(0, 0.1, 100)
    for at in range(40):
        risks = noise + (1.0 if at < 20 else 0.0)  # clearly better from step 400 on, and then the same
        kept.add(20 * at, risks, 1.0, jnp.full(1, 20 * at))
    assert kept.best == 400
    assert kept.answered == 520  # half way to 800, so half of the 0.6
    assert float(kept.answer[0]) == 520


def test_long_fits_overrun_in_full_and_others_in_proportion() -> None:
    settings = FitSettings(overrun=1.3, lasting=300)
    assert [settings.beyond(step) for step in (0, 30, 300, 1000)] == pytest.approx([0, 30 * 1.03, 390, 1300])
    assert [FitSettings(overrun=1.3).beyond(step) for step in (0, 10, 1000)] == pytest.approx([0, 13, 1300])


def test_steps_and_the_emphasis_on_large_residuals_grow_alike() -> None:
    """In a hurry by two: steps twice as large, and residuals of 1 / sqrt(2) times the size pull twice as strongly."""
    found = targets(measured(), total=300, seed=0)
    packed = tiles.pack(DOMAIN, found, seed=0)
    begun = np.asarray(start.even(DOMAIN, 20, FitSettings(), 0))

    def moved(settings: FitSettings, stress: float) -> np.ndarray:
        batches = fit._Batches(packed, settings, 0)
        state = fit._State(jnp.array(begun), jnp.array(begun), jnp.array(begun), jnp.float32(100))
        taken = batches.take(), batches.scales, fit._load(DOMAIN, found), fit._kernels(found, settings)
        return np.asarray(
            fit._stretch(DOMAIN, settings, 4, state, packed.buckets, *taken, jnp.float32(stress), jnp.float32(1)).logits
        )

    hurried = moved(FitSettings(step=10.0, growth=0.01, hurry=100.0), 3.0)
    assert np.allclose(hurried, moved(FitSettings(step=20.0), 3.0 * 2**0.5), atol=1e-5)
    assert not np.allclose(hurried, moved(FitSettings(step=20.0), 3.0), atol=1e-3)


def test_averages_of_probabilities_are_those_of_the_iterates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps of any size: the average must lie between the rows, not between their logits."""
    monkeypatch.setattr(fit, "_MOST_HALVED", 0)
    found = targets(measured(), total=300, seed=0)
    begun = start.even(DOMAIN, 20, FitSettings(), 0)
    rows: dict[str, list[np.ndarray]] = {}
    for averaged in ("logits", "probabilities"):
        settings = FitSettings(step=4000.0, momentum=0.0, averaging=0.0, max_steps=8, overrun=100.0, averaged=averaged)
        seen: list[np.ndarray] = []

        class Listener(Progress):
            def fitted(self, loss: float, rows: Callable[[], Any], seen: list[np.ndarray] = seen) -> None:
                seen.append(np.asarray(rows()))

        logits, taken = fit.fit(DOMAIN, begun, found, settings=settings, seed=0, progress=Listener())
        assert taken["steps"] == 8
        rows[averaged] = seen
        assert np.allclose(np.asarray(fit.probabilities(DOMAIN, logits))[:5].sum(axis=0), 1, atol=1e-5)
    assert np.allclose(rows["logits"][0], rows["probabilities"][0], atol=1e-6)  # both begin where they are put
    # Steps are huge: rows jump from one value to another, so that averages of logits are surer than any mixture.
    surest = {averaged: float(seen[-1][:5].max(axis=0).mean()) for averaged, seen in rows.items()}
    assert surest["logits"] > surest["probabilities"] + 0.1


def test_noise_of_earlier_measurements_survives_later_ones() -> None:
    def noise_of(count: int) -> set[float]:
        packed = tiles.pack(DOMAIN, targets(measured()[:count], total=300, seed=3), seed=3)
        return {float(value) for bucket in packed.buckets for value in np.asarray(bucket.z).reshape(-1) if value}

    assert noise_of(3) < noise_of(5)


def test_risk_estimates_are_unbiased() -> None:
    """Over fresh noise, the mean estimate must be the true squared distance, up to the constant |p|^2."""
    truth = brute_force(random_table(300, domain=DOMAIN), ("a", "c"), 2) / 300
    x = some_rows(8)
    rng = np.random.default_rng(0)
    sigma, g = 0.03, 0.5
    one, other = (np.asarray(x[:, part]) for part in (slice(0, 4), slice(4, 8)))

    def answers(rows: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """A made-up fit: answers of some rows, moved towards what they see."""
        product = (rows[:5, None, :] * rows[None, 7:14, :]).mean(axis=2).reshape(-1)
        return np.asarray(0.7 * product + 0.3 * pull)

    gaps = []
    for _ in range(4000):
        y = truth + rng.normal(0, sigma, len(truth))
        z = rng.normal(0, sigma, len(truth))
        q1, q2 = answers(one, y + g * z), answers(other, y - g * z)
        q = (q1 + q2) / 2
        estimate = np.sum(q * q - 2 * q * y + (q1 - q2) * z / g)
        gaps.append(estimate - np.sum((q - truth) ** 2) + np.sum(truth**2))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / len(gaps) ** 0.5


def test_the_fit_stops_and_beats_its_measurements() -> None:
    table = random_table(2000, domain=DOMAIN)
    rng = np.random.default_rng(2)
    sets = [("a", "b", "c"), ("a", "c", "d"), ("b", "c")]
    truth = [brute_force(table, names, len(names)) for names in sets]
    noisy = [
        whole(names, counts + np.rint(rng.normal(0, 60, len(counts))), Fraction(3600))
        for names, counts in zip(sets, truth, strict=True)
    ]
    settings = FitSettings()
    begun = start.even(DOMAIN, 40, settings, 0)
    logits, taken = fit.fit(DOMAIN, begun, targets(noisy, total=2000, seed=0), settings=settings, seed=0)
    assert 0 <= taken["least_risk_at"] <= taken["steps"] < settings.max_steps
    x = np.asarray(fit.probabilities(DOMAIN, logits))
    product = (x[0:5][:, None, None] * x[5:7][None, :, None] * x[7:14][None, None, :]).mean(axis=3).reshape(-1)
    fitted = np.abs(product * 2000 - truth[0]).mean()
    assert fitted < 0.5 * np.abs(noisy[0].counts - truth[0]).mean()


def test_steps_that_are_too_long_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that swing from side to side would end the fit far from numbers that have next to no noise."""
    table = random_table(2000, domain=DOMAIN)
    sets = [("a", "b"), ("b", "c"), ("a", "c")]
    truth = [brute_force(table, names, 2) for names in sets]
    exact = [whole(names, counts, Fraction(1, 100)) for names, counts in zip(sets, truth, strict=True)]
    found = targets(exact, total=2000, seed=0)

    def largest_error(step: float, averaged: str) -> tuple[float, dict[str, int]]:
        settings = FitSettings(step=step, emphasis=5.0, averaged=averaged)
        begun = start.even(DOMAIN, 100, settings, 0)
        logits, taken = fit.fit(DOMAIN, begun, found, settings=settings, seed=0)
        x = np.asarray(fit.probabilities(DOMAIN, logits))
        return float(np.abs((x[:5] @ x[5:7].T / 100).reshape(-1) - truth[0] / 2000).max()), taken

    for averaged in ("logits", "probabilities"):
        error, taken = largest_error(2000.0, averaged)
        assert 1 <= taken["halved"] <= 8
        assert error < 0.003
    assert "halved" not in largest_error(50.0, "probabilities")[1]
    monkeypatch.setattr(fit, "_MOST_HALVED", 0)
    assert largest_error(2000.0, "probabilities")[0] > 0.01


def test_whoever_listens_can_see_the_rows_on_the_way() -> None:
    class Listener(Progress):
        def __init__(self) -> None:
            self.losses: list[float] = []
            self.rows: list[np.ndarray[Any, Any]] = []

        def fitted(self, loss: float, rows: Callable[[], Any]) -> None:
            self.losses.append(loss)
            self.rows.append(np.asarray(rows()))

    heard, settings = Listener(), ProjectionSettings(rate=0.01, steps=600, tolerance=0.0)
    begun = projection.start(DOMAIN, 30, settings.transform, 0)
    found = measured(sets=[("a", "b"), ("b", "c")])
    parameters, _ = projection.project(DOMAIN, begun, found, total=300, settings=settings, progress=heard)
    assert len(heard.losses) == 3
    assert heard.losses[0] > heard.losses[-1] >= 0
    assert np.array_equal(heard.rows[-1], np.asarray(projection.probabilities(parameters, settings.transform)))
    heard, constants = Listener(), FitSettings(max_steps=40)
    fit.fit(
        DOMAIN,
        start.even(DOMAIN, 30, constants, 0),
        targets(found, total=300, seed=0),
        settings=constants,
        seed=0,
        progress=heard,
    )
    assert len(heard.losses) > 1
    assert np.allclose(heard.rows[-1][:5].sum(axis=0), 1, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_sparsemax_is_the_euclidean_projection_onto_the_simplex(seed: int) -> None:
    point = np.random.default_rng(seed).normal(0, 1 + seed, (9, 3))
    found = np.asarray(transform.sparsemax(jnp.asarray(point)))
    assert np.allclose(found.sum(axis=0), 1, atol=1e-4)
    assert (found >= 0).all()
    # Optimality: the residual is constant where the projection is positive, and not larger elsewhere.
    for column in range(3):
        residual = point[:, column] - found[:, column]
        inside = found[:, column] > 0
        assert np.ptp(residual[inside]) < 1e-4
        assert residual.max() < residual[inside].mean() + 1e-4


@pytest.mark.parametrize("kind", transform.NAMES)
def test_projection_reaches_answers_that_rows_can_give(kind: str) -> None:
    measurements = [
        Measurement(found.threshold, np.arange(len(found.counts)), found.counts, found.sigma_squared)
        for found in measured(sets=[("a", "b"), ("b", "c")])
    ]
    settings = ProjectionSettings(rate=0.05 if kind == "softmax" else 0.01, steps=1500, transform=kind)
    start = projection.start(DOMAIN, 30, kind, 0)
    parameters, steps = projection.project(DOMAIN, start, measurements, total=300, settings=settings)
    assert 0 < steps <= settings.steps
    [asked] = projection.queries(DOMAIN, measurements, 300)
    rows = projection.probabilities(parameters, kind)
    assert float(jnp.abs(projection.answers(rows, asked) - asked.target).max()) < 0.02


def test_whole_marginals_and_single_queries_pull_the_same_way() -> None:
    found = measured(sets=[("a", "b"), ("b", "c")])
    level = [Measurement(m.threshold, None, m.counts, Fraction(1)) for m in found]
    listed = [Measurement(m.threshold, np.arange(len(m.counts)), m.counts, Fraction(1)) for m in found]
    x = some_rows()
    one = projection.pull(x, projection.targets_of(DOMAIN, level, 300))
    two = projection.pull(x, projection.targets_of(DOMAIN, listed, 300))
    assert float(one[0]) == pytest.approx(float(two[0]), rel=1e-4)
    assert np.allclose(one[1], two[1], atol=1e-6)
