"""Graphical models: the distribution of largest entropy among those that fit noisy marginals, through `mbi`.

A model over a junction tree: exact, and as large as its largest clique. Its answers are computed by eliminating
variables (`discreet.models.elimination`); what is released is rows drawn from it, which are the same for everyone who
counts them.

Reference: McKenna, Sheldon, Miklau (2019), "Graphical-model based estimation and inference for differential privacy".
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import BadSetting
from discreet.models import compiled
from discreet.models.elimination import Directed
from discreet.models.rounded import RoundedRows
from discreet.models.targets import merged
from discreet.privacy.measurement import Measurement
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes


class GraphicalModel(Answers):
    """Answers of a fitted model.

    Attributes:
        domain: Public.
        total: Rows that fractions are taken of.
    """

    source = "the graphical model"

    def __init__(self, domain: Domain, total: int, model: Any) -> None:
        self.domain = domain
        self.total = total
        self._model = model

    @staticmethod
    def fit(
        domain: Domain,
        total: int,
        measurements: Sequence[Measurement],
        *,
        steps: int,
        start: GraphicalModel | None = None,
    ) -> GraphicalModel:
        """Fit whole marginals, weighed by their precision, from an earlier model or from nothing."""
        mbi = package()
        compiled.trim()
        seen = [mbi.LinearMeasurement(y, names, stddev=sigma) for names, (y, sigma) in merged(measurements).items()]
        with jax.enable_x64(True):
            model = mbi.estimation.MirrorDescent().estimate(
                mbi.Domain(domain.attributes, domain.sizes),
                seen,
                known_total=float(total),
                iters=steps,
                warm_start=None if start is None else start._model,
            )
        return GraphicalModel(domain, total, model)

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to one marginal, in units of 1/GRID of a row."""
        return Sparse.from_dense(np.rint(self.counts(attributes) * GRID).astype(np.int64))

    def counts(self, attributes: Attributes) -> NDArray[np.float64]:
        """Expected counts of all cells of one marginal."""
        return self._directed.marginal(attributes).reshape(-1) * self.total

    @cached_property
    def _directed(self) -> Directed:
        tables = self._model.potentials.tables.values()
        return Directed(self.domain, [(table.domain.attributes, np.asarray(table.values)) for table in tables])

    def draw(self, count: int, seed: int) -> RoundedRows:
        """Rows drawn from the model, counts of cliques rounded at random."""
        with _seeded(seed), jax.enable_x64(True):
            table = self._model.synthetic_data(rows=count, method="round")
        columns = table.to_dict()
        return RoundedRows(
            self.domain,
            self.total,
            np.stack([np.asarray(columns[name], dtype=np.int64) for name in self.domain], axis=1),
        )


def package() -> Any:
    """mbi, or an error that says how to get it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # it advises settings for whole programs; ours are above
            import mbi
    except ImportError:
        raise BadSetting("Graphical models need mbi: pip install 'discreet[graphical]'.") from None
    return mbi


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """mbi draws from numpy's global generator: seed it, and leave it as it was."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)
