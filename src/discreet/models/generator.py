"""A generator: a network that turns noise into relaxed rows, trained until they answer as measured.

Every column of noise becomes one row, a probability vector for each attribute, so that a batch of B columns is a
mixture of B products and answers queries as relaxed rows do. Layers pass on what they were given beside what they made
of it, with batch normalisation, as in CTGAN (Xu et al. 2019); the last one ends in a softmax for each attribute.

Reference: Liu, Vietri, Wu (2021), "Iterative methods for private synthetic data", Algorithm 3 and appendix B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import compiled, projection, transform
from discreet.models.adam import Adam
from discreet.models.projection import Queries
from discreet.models.tiles import Bucket
from discreet.progress import SILENT, Progress

_STRETCH = 50
"""Steps between two reports of progress."""

_STEADY = 1e-5
"""Added to variances before they are divided by."""

_PUBLIC_ROWS = 1024
"""Public rows in one step."""


@dataclass(frozen=True)
class GeneratorSettings:
    """Constants of the training.

    Attributes:
        rate: Adam's learning rate.
        steps: Most steps of one training.
        resample: Draw fresh noise for every step, instead of one batch for all.
    """

    rate: float = 0.0001
    steps: int = 100
    resample: bool = False


class Generator(NamedTuple):
    """The network, and where its optimiser stands.

    Attributes:
        hidden: For each hidden layer its weights (out x in), and the scale and shift of its normalised outputs.
        last: Weights and biases of the last layer, one output for each bit of the domain.
        adam: Averages of gradients, kept from one training to the next.
        noise: One batch, inputs x rows.
        key: For fresh batches.
    """

    hidden: list[tuple[jax.Array, jax.Array, jax.Array]]
    last: tuple[jax.Array, jax.Array]
    adam: Adam
    noise: jax.Array
    key: jax.Array

    @property
    def network(self) -> Any:
        """What is learned."""
        return self.hidden, self.last

    def with_network(self, network: Any, adam: Adam | None = None) -> Generator:
        """The same with other weights."""
        return self._replace(hidden=network[0], last=network[1], adam=adam or self.adam)


def start(domain: Domain, *, rows: int, inputs: int, hidden: Sequence[int], seed: int) -> Generator:
    """A network with random weights, and a batch of noise."""
    noise_key, key, *keys = jax.random.split(jax.random.key(seed), len(hidden) + 3)
    layers, width = [], inputs
    for layer, size in enumerate(hidden):
        weights = jax.random.normal(keys[layer], (size, width)) / np.sqrt(width)
        layers.append((weights, jnp.ones((size, 1)), jnp.zeros((size, 1))))
        width += size
    last = (jax.random.normal(keys[-1], (domain.bits, width)) / np.sqrt(width), jnp.zeros((domain.bits, 1)))
    noise = jax.random.normal(noise_key, (inputs, rows))
    return Generator(layers, last, Adam.start((layers, last)), noise, key)


@partial(jax.jit, static_argnums=0)
def probabilities(domain: Domain, network: Any, noise: jax.Array) -> jax.Array:
    """Relaxed rows (bits x rows) of a batch of noise."""
    return transform.per_attribute(domain, transform.softmax, _logits(network, noise))


def train(
    domain: Domain,
    generator: Generator,
    targets: list[Queries] | list[Bucket],
    *,
    gamma: float,
    settings: GeneratorSettings,
    progress: Progress = SILENT,
) -> tuple[Generator, int]:
    """Move the answers towards measured ones until none is further away than gamma; also how many steps it took.

    Single queries: absolute errors of those that are further away. Whole marginals: all squared errors.
    """
    compiled.trim()
    progress.stage("training", settings.steps)
    steps, worst = 0, np.inf
    while steps < settings.steps and worst >= gamma:
        most = min(_STRETCH, settings.steps - steps)
        generator, taken, left = _stretch(domain, settings, generator, targets, jnp.float32(gamma), most)
        steps, worst = steps + int(taken), float(left)
        progress.step(steps)
    return generator, steps


def learn(
    domain: Domain,
    generator: Generator,
    codes: NDArray[np.int64],
    *,
    settings: GeneratorSettings,
    seed: int,
    progress: Progress = SILENT,
) -> Generator:
    """Move towards public rows: the likelihood of the mixture, over those attributes that the rows have.

    Args:
        domain: Public.
        generator: Where to start.
        codes: Public rows (rows x attributes), `UNKNOWN` where the table lacks an attribute.
        settings: Constants; `steps` of them are taken.
        seed: For the order of the rows.
        progress: Hears about steps.
    """
    bits = np.where(codes == UNKNOWN, domain.bits, codes + np.array(domain.offsets))
    draws = np.random.default_rng(seed)
    progress.stage("learning from public rows", settings.steps)
    for step in range(settings.steps):
        batch = jnp.asarray(bits[draws.integers(len(bits), size=_PUBLIC_ROWS)], jnp.int32)
        generator = _likelier(domain, settings, generator, batch)
        progress.step(step + 1)
    return generator.with_network(generator.network, Adam.start(generator.network))


def _logits(network: Any, noise: jax.Array) -> jax.Array:
    hidden, (weights, biases) = network
    flow = noise
    for layer, scale, shift in hidden:
        made = layer @ flow
        made = made - jnp.mean(made, axis=1, keepdims=True)
        made = made / jnp.sqrt(jnp.mean(made**2, axis=1, keepdims=True) + _STEADY)
        flow = jnp.concatenate([jax.nn.relu(made * scale + shift), flow])
    logits: jax.Array = weights @ flow + biases
    return logits


def _batch(generator: Generator, settings: GeneratorSettings) -> jax.Array:
    """The batch of noise for the next step."""
    if not settings.resample:
        return generator.noise
    return jax.random.normal(jax.random.fold_in(generator.key, generator.adam.number), generator.noise.shape)


@partial(jax.jit, static_argnums=(0, 1))
def _stretch(
    domain: Domain,
    settings: GeneratorSettings,
    generator: Generator,
    targets: list[Queries] | list[Bucket],
    gamma: jax.Array,
    most: int,
) -> tuple[Generator, jax.Array, jax.Array]:
    """Steps until a limit, or until no answer is off by gamma or more."""

    def step(state: tuple[Generator, jax.Array, jax.Array]) -> tuple[Generator, jax.Array, jax.Array]:
        generator, number, _ = state
        noise = _batch(generator, settings)
        x, back = jax.vjp(lambda network: probabilities(domain, network, noise), generator.network)
        worst, outer = _pull(x, targets, gamma)
        (gradient,) = back(outer)
        network, adam = generator.adam.step(generator.network, gradient, settings.rate)
        moved = generator.with_network(network, adam)
        kept = jax.tree.map(lambda new, old: jnp.where(worst >= gamma, new, old), moved, generator)
        return kept, number + (worst >= gamma), worst

    def go_on(state: tuple[Generator, jax.Array, jax.Array]) -> jax.Array:
        return (state[1] < most) & (state[2] >= gamma)

    return jax.lax.while_loop(go_on, step, (generator, jnp.int32(0), jnp.float32(jnp.inf)))


def _pull(x: jax.Array, targets: list[Queries] | list[Bucket], gamma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest error, and the gradient of the loss with respect to the rows."""
    asked = [target for target in targets if isinstance(target, Queries)]
    if not asked:
        _, gradient, worst = projection.pull(x, targets)
        return worst, gradient

    def loss(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        off = jnp.abs(jnp.concatenate([same.target - projection.answers(x, same) for same in asked]))
        counted = off >= gamma
        return jnp.sum(jnp.where(counted, off, 0.0)) / jnp.maximum(1, jnp.sum(counted)), jnp.max(off)

    gradient, worst = jax.grad(loss, has_aux=True)(x)
    return worst, gradient


@partial(jax.jit, static_argnums=(0, 1))
def _likelier(domain: Domain, settings: GeneratorSettings, generator: Generator, bits: jax.Array) -> Generator:
    """One step towards a batch of public rows, given as bits (rows x attributes)."""
    noise = _batch(generator, settings)

    def loss(network: Any) -> jax.Array:
        logs = transform.per_attribute(domain, partial(jax.nn.log_softmax, axis=0), _logits(network, noise))
        padded = jnp.concatenate([logs, jnp.zeros((1, logs.shape[1]))])
        each = jnp.sum(jnp.stack([padded[bits[:, at]] for at in range(bits.shape[1])]), axis=0)
        return -jnp.mean(jax.nn.logsumexp(each, axis=1))

    network, adam = generator.adam.step(generator.network, jax.grad(loss)(generator.network), settings.rate)
    return generator.with_network(network, adam)
