"""Fitting relaxed rows to whole noisy marginals, and stopping before the fit chases the noise.

The rows are softmax rows, moved by mirror descent (exponentiated gradients) with momentum on batches of tiles, and
the answer is an average of late iterates. The stop needs no truth and no budget. Half of the rows see y + g z and the
other half y - g z, where y are the noisy measurements and z is fresh public noise of the same variance. For Gaussian
noise y - z/g is independent of y + g z (data thinning), so each half can be judged on numbers it has never seen; the
two noises cancel in the average of the halves, so nothing is lost in the answer. That gives an unbiased estimate of
the squared distance between the model's answers and the truth, up to a constant, and the fit stops once it no longer
falls. All of this is post-processing.

Where there is little noise, steps may be too long: rows swing from side to side, and the risk rises for that reason.
Then so does the distance to what the rows are fitted to, which otherwise always falls, and the fit goes back to the
average where it was least and on from there with half the steps.

References: Aydore et al. (2021) for relaxed rows; Neufeld et al. (2024), "Data thinning for convolution-closed
distributions", and Oliveira et al. (2021), "Unbiased risk estimation in the normal means problem via coupled
bootstrap techniques", for the estimate; Shamir, Zhang (2013) for the average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.models import compiled, smooth, tiles, transform
from discreet.models.targets import Target
from discreet.models.tiles import Bucket, Packed
from discreet.progress import SILENT, Progress

GROUPS = 2
"""Halves of the rows: each is judged on what the other one has not seen."""


@dataclass(frozen=True)
class FitSettings:
    """Constants of the fit; they were chosen on ADULT, a public table, and then fixed (see docs/rap.md).

    Attributes:
        step: First step size, divided by the largest number of attributes in a marginal.
        growth: Step sizes, and how strongly large residuals pull beyond their squares, grow by this share with every
            step: fits that go on for long may hurry,
        hurry: for so many steps. Beyond, rows would swing from one value to another.
        momentum: Share of the velocity that survives a step.
        averaging: Iterates are averaged with polynomial decay: about the last 1/averaging of them count.
        thinning: g above.
        batch_cells: Least number of cells in a step.
        batch_share: Least share of all cells in a step.
        caution: Answer with the first average whose estimated risk is at most so many standard errors above the least.
        overrun: Answer with the average at this multiple of that step,
        lasting: if it is at least this one, and earlier steps in proportion. Long fits are those with little noise,
            where what is left to mend are heavy cells, which come last.
        max_steps: Stop there in any case.
        start: Standard deviation of the first logits.
        lean: What is added to the logits of guessed values.
        smooth: Share of a step that is passed on to neighbouring values, for attributes with many of them.
        emphasis: Residuals of so many standard deviations pull twice as strongly as their squares ask for, at first; 0
            for none.
        averaged: Of what averages are taken: logits, or probabilities. A row that swings from one value to another
            between steps is, on average of its logits, sure of one of them; of its probabilities, of none.
        large: Of marginals with more cells than this only rows that stand out of the noise are fitted.
    """

    step: float = 75.0
    growth: float = 0.0
    hurry: float = 200.0
    momentum: float = 0.9
    averaging: float = 8.0
    thinning: float = 0.5
    batch_cells: int = 2**18
    batch_share: float = 1 / 40
    caution: float = 0.0
    overrun: float = 1.3
    lasting: int = 0
    max_steps: int = 1500
    start: float = 0.5
    lean: float = 2.0
    smooth: float = 0.0
    emphasis: float = 0.0
    averaged: str = "logits"
    large: float = inf

    @property
    def shifts(self) -> tuple[float, float]:
        """What is added to the measurements of each half of the rows, in units of the public noise."""
        return self.thinning, -self.thinning

    def beyond(self, step: int) -> float:
        """The step to answer with, by the one whose risk is not clearly above the least."""
        return step * (1 + (self.overrun - 1) * min(1.0, step / max(1, self.lasting)))


_STRETCH = 8
"""Steps in one call of compiled code."""

_ALWAYS = 32
"""Heavy tiles of a width that are in every batch, however small it is; more if single attributes are in more."""

_SWINGS = 1.05
"""Steps are halved when the loss of an average is above the least one by this factor."""

_MOST_HALVED = 8
"""How often at most."""

_LEAST = 1e-30
"""Probabilities below this are taken for this, where logits are needed."""


class _State(NamedTuple):
    logits: jax.Array
    velocity: jax.Array
    average: jax.Array
    step: jax.Array


def probabilities(domain: Domain, logits: jax.Array) -> jax.Array:
    """The rows that logits stand for."""
    return transform.per_attribute(domain, transform.softmax, logits)


def fit(
    domain: Domain,
    logits: jax.Array,
    targets: Sequence[Target],
    *,
    settings: FitSettings,
    seed: int,
    progress: Progress = SILENT,
) -> tuple[jax.Array, dict[str, int]]:
    """Move relaxed rows towards whole noisy marginals; returns the logits and how many steps it took.

    Args:
        domain: Public.
        logits: Where to start, bits x rows; the number of rows is even.
        targets: Whole marginals.
        settings: Constants.
        seed: Public.
        progress: Hears about steps.
    """
    compiled.trim()
    packed = tiles.pack(domain, targets, large=settings.large, seed=seed)
    batches = _Batches(packed, settings, seed)
    load = _load(domain, targets)
    kernels = _kernels(targets, settings)
    widest = max(len(target.attributes) for target in targets)
    least = min(target.sigma for target in targets)
    stress = jnp.float32(1 / (settings.emphasis * least) if settings.emphasis else 0)
    first = jnp.array(logits) if settings.averaged == "logits" else probabilities(domain, logits)
    state = _State(jnp.array(logits), jnp.zeros_like(logits), first, jnp.float32(0))
    done, check, halved, resumed, kept = 0, 0, 0, 0, _Kept(settings)
    progress.stage("fit", settings.max_steps)
    while True:
        if done >= check:
            judged = _judged(domain, settings, state, packed.buckets)
            risks, losses = (np.concatenate(each).astype(np.float64) for each in zip(*judged, strict=True))
            if losses.sum() > _SWINGS * kept.least_loss and halved < _MOST_HALVED:
                back = jnp.array(_logits(settings, kept.closest))
                state = _State(back, jnp.zeros_like(logits), jnp.array(kept.closest), state.step)
                halved, resumed = halved + 1, done
            else:
                kept.add(done, risks, float(losses.sum()), jnp.array(state.average))
            progress.fitted(float(risks.sum()), partial(_rows, domain, settings, kept.newest))
            check = done + max(_STRETCH, done // 16)
            if done >= settings.max_steps or done >= max(resumed, settings.beyond(kept.best)) + 4 * _STRETCH:
                break
        taken = batches.take(), batches.scales
        state = _stretch(
            domain, settings, widest, state, packed.buckets, *taken, load, kernels, stress, jnp.float32(0.5**halved)
        )
        done += _STRETCH
        progress.step(done, f"least risk at {kept.best}")
    steps = {"steps": done, "least_risk_at": kept.best, "answered_at": kept.answered}
    return _logits(settings, kept.answer), steps | ({"halved": halved} if halved else {})


def _logits(settings: FitSettings, average: jax.Array) -> jax.Array:
    """The logits that an average stands for."""
    return average if settings.averaged == "logits" else jnp.log(jnp.maximum(average, _LEAST))


def _rows(domain: Domain, settings: FitSettings, average: jax.Array) -> jax.Array:
    """The rows that an average stands for."""
    return probabilities(domain, average) if settings.averaged == "logits" else average


class _Kept:
    """Averages that may become the answer.

    The least risk is an estimate, and noisy: where it hardly changes for long, its least value may come late, when the
    fit has begun to follow the noise. So the answer is the first average that is not clearly worse. The risk is a sum
    over tiles, whose noise is independent (but for residuals that marginals share), so the standard error of a
    difference between two averages is the root of the sum of squared differences (the rule of one standard error:
    Breiman et al. 1984, section 3.4.3).
    """

    def __init__(self, settings: FitSettings) -> None:
        self._settings = settings
        self._entries: list[tuple[int, NDArray[np.float64], jax.Array]] = []
        self.least_loss = inf
        self.best = 0
        self._least: NDArray[np.float64] = np.zeros(0)

    def add(self, step: int, risks: NDArray[np.float64], loss: float, average: jax.Array) -> None:
        """One more, with its risk in every tile; those that are out of the question are forgotten."""
        if loss < self.least_loss:
            self.least_loss, self.closest = loss, average
        if not self._entries or risks.sum() < self._least.sum():
            self.best, self._least = step, risks
            self._entries = [entry for entry in self._entries if self._close(entry[1])]
        self._entries.append((step, risks, average))

    def _close(self, risks: NDArray[np.float64]) -> bool:
        """Whether a risk is not clearly above the least."""
        above = risks - self._least
        return float(above.sum()) <= self._settings.caution * float(np.sqrt((above**2).sum()))

    @property
    def newest(self) -> jax.Array:
        """The average that was added last."""
        return self._entries[-1][2]

    @property
    def answered(self) -> int:
        """The step that is answered with."""
        first = next(step for step, risks, _ in self._entries if self._close(risks))
        steps = [step for step, _, _ in self._entries]
        return next((step for step in steps if step >= self._settings.beyond(first)), steps[-1])

    @property
    def answer(self) -> jax.Array:
        """The average there."""
        return next(average for step, _, average in self._entries if step == self.answered)


class _Batches:
    """Which tiles each step looks at: heavy ones always, a few or half a batch of them; others once per epoch, in turn.

    Single attributes are always among the former: drawn now and then, with a large scale, one with many values would be
    thrown about by its own pull.

    Heavy tiles are chosen by y, which both halves of the rows then depend on. The mean of a step does not change by it,
    only its variance, so that the estimate of the risk stays unbiased to first order.
    """

    def __init__(self, packed: Packed, settings: FitSettings, seed: int) -> None:
        cells = sum(bucket.y[0].size * real for bucket, real in zip(packed.buckets, packed.real, strict=True))
        share = min(1.0, max(settings.batch_share, settings.batch_cells / cells))
        self._generator = np.random.default_rng(seed)
        self._always: list[NDArray[np.int32]] = []
        self._others: list[NDArray[np.int32]] = []
        self._counts: list[int] = []
        self.scales: list[jax.Array] = []
        for real, heavy, single in zip(packed.real, packed.heavy, packed.single, strict=True):
            count = min(real, tiles.roomy(int(np.ceil(real * share))))
            always = heavy[: max(count // 2, _ALWAYS, single) if count < real else 0]
            others = np.setdiff1d(np.arange(real, dtype=np.int32), always)
            count = max(count - len(always), min(len(others), tiles.roomy(int(np.ceil(len(others) * share)))))
            scale = len(others) / max(count, 1)
            self.scales.append(jnp.asarray(np.repeat([1.0, scale], [len(always), count]), jnp.float32))
            self._always.append(always)
            self._others.append(others)
            self._counts.append(count)
        self._queues = [np.zeros(0, np.int32) for _ in packed.real]

    def take(self) -> list[jax.Array]:
        """For each bucket: steps x tiles."""
        taken = []
        for at, (always, count) in enumerate(zip(self._always, self._counts, strict=True)):
            while len(self._queues[at]) < _STRETCH * count:
                more = self._generator.permutation(self._others[at])
                self._queues[at] = np.concatenate([self._queues[at], more])
            head, self._queues[at] = np.split(self._queues[at], [_STRETCH * count])
            kept = np.tile(always, (_STRETCH, 1))
            taken.append(jnp.asarray(np.hstack([kept, head.reshape(_STRETCH, count)])))
        return taken


def _kernels(targets: Sequence[Target], settings: FitSettings) -> dict[str, jax.Array]:
    """What smooths the steps of each attribute that has many values in order."""
    single = [target for target in targets if len(target.attributes) == 1]
    found = {one.attributes[0]: smooth.kernel(one.y, one.sigma, settings.smooth) for one in single if settings.smooth}
    return {name: jnp.asarray(kernel) for name, kernel in found.items() if kernel is not None}


def _load(domain: Domain, targets: Sequence[Target]) -> jax.Array:
    """Per bit: how many marginals, weighted by precision, pull at its attribute. It evens out step sizes."""
    least = min(target.sigma for target in targets)
    load: NDArray[np.float64] = np.zeros(len(domain))
    for target in targets:
        for name in target.attributes:
            load[domain.index(name)] += (least / target.sigma) ** 2
    return jnp.asarray(np.repeat(np.maximum(load, 1e-9), domain.sizes)[:, None], jnp.float32)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _stretch(
    domain: Domain,
    settings: FitSettings,
    widest: int,
    state: _State,
    buckets: list[Bucket],
    chosen: list[jax.Array],
    scales: list[jax.Array],
    load: jax.Array,
    kernels: dict[str, jax.Array],
    stress: jax.Array,
    pace: jax.Array,
) -> _State:
    """A few steps of mirror descent with momentum."""

    def step(state: _State, chosen: list[jax.Array]) -> tuple[_State, None]:
        x = tiles.with_constants(probabilities(domain, state.logits))
        hurry = 1 + settings.growth * jnp.minimum(state.step, settings.hurry)
        pulls = [
            tiles.pull(x, bucket, ids, scale, settings.shifts, stress * jnp.sqrt(hurry), hurry * tiles.MOST_STRESS).half
            for bucket, ids, scale in zip(buckets, chosen, scales, strict=True)
        ]
        natural = jnp.sum(jnp.stack(pulls), axis=0)[:-2] / load
        moves = []
        for name, first, size in zip(domain, domain.offsets, domain.sizes, strict=True):
            block = natural[first : first + size]
            centred = block - jnp.sum(block * x[first : first + size], axis=0)
            moves.append(kernels[name] @ centred if name in kernels else centred)
        velocity = settings.momentum * state.velocity + (1 - settings.momentum) * jnp.concatenate(moves)
        logits = state.logits - pace * (settings.step * hurry / widest) * velocity
        number = state.step + 1
        weight = (settings.averaging + 1) / (number + settings.averaging)
        iterate = logits if settings.averaged == "logits" else probabilities(domain, logits)
        return _State(logits, velocity, state.average + (iterate - state.average) * weight, number), None

    return jax.lax.scan(step, state, chosen)[0]


@partial(jax.jit, static_argnums=(0, 1))
def _judged(
    domain: Domain, settings: FitSettings, state: _State, buckets: list[Bucket]
) -> list[tuple[jax.Array, jax.Array]]:
    """Per tile, with q the average answer and p the truth: an unbiased estimate of the weighted |q - p|^2 - |p|^2.

    And the weighted squared distance of each half to what it is fitted to, summed over both.
    """
    x = tiles.with_constants(_rows(domain, settings, state.average))

    def body(_: None, bucket: Bucket) -> tuple[None, tuple[jax.Array, jax.Array]]:
        one, other = tiles.answers(x, bucket.left, bucket.column, GROUPS)
        q = (one + other) / 2
        terms = q * q - 2 * q * bucket.y + (one - other) * bucket.z / settings.thinning
        first, second = (shift * bucket.z for shift in settings.shifts)
        left = (one - bucket.y - first) ** 2 + (other - bucket.y - second) ** 2
        return None, (jnp.sum(terms * bucket.weight[:, None]), jnp.sum(left * bucket.weight[:, None]))

    return [jax.lax.scan(body, None, bucket)[1] for bucket in buckets]
