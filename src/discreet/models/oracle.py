"""The best row: an integer program that finds the combination of values which matches most of some weighted queries.

A row has one bit for each value of each attribute, exactly one of them set per attribute. A query "at least r of k" has
an indicator c. Where matching is wanted c may be 1 only if r of its bits are set; where it is not, c must be 1 if they
are. The program maximises the sum of weights times indicators, plus a linear term in the bits. It is solved by HiGHS,
to optimality or until a number of nodes, when the best row found so far is taken.

References: Gaboardi et al. (2014), "Dual Query", section 4; Vietri et al. (2020), "New oracle-efficient algorithms for
private synthetic data release"; Huangfu, Hall (2018), for HiGHS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.errors import BadSetting
from discreet.queries.threshold import Query

Floats = NDArray[np.float64]

_MOST_NODES = 200
"""Nodes of the search tree for one row; not a time, so that the same seed gives the same rows everywhere."""


class Oracle:
    """Finds best rows, and remembers how many of them are not known to be best."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._highs = solver()
        self.solved = 0
        self.cut_short = 0

    def best(self, wanted: Mapping[Query, float], bits: Floats | None = None) -> NDArray[np.int64]:
        """Codes of a row with the largest sum of weights of the queries that it matches, plus those of its bits.

        Args:
            wanted: Queries and their weights, which may be negative.
            bits: A weight for each bit of the domain; zero by default.
        """
        domain, highs = self._domain, self._highs
        queries = {query: weight for query, weight in wanted.items() if weight}
        linear = np.zeros(domain.bits) if bits is None else bits
        columns = domain.bits + len(queries)
        costs = np.concatenate([linear, list(queries.values())])
        lower, upper, starts, index, value = _constraints(domain, queries)
        empty = np.zeros(0)
        highs.clearModel()
        highs.addCols(
            columns, -costs, np.zeros(columns), np.ones(columns), 0, np.zeros(0, np.int32), np.zeros(0, np.int32), empty
        )
        highs.changeColsIntegrality(columns, np.arange(columns, dtype=np.int32), np.ones(columns, np.uint8))
        highs.addRows(len(lower), lower, upper, len(index), starts, index, value)
        highs.run()
        self.solved += 1
        self.cut_short += "Optimal" not in str(highs.getModelStatus())
        found = np.array(highs.getSolution().col_value)
        return np.array(
            [
                int(np.argmax(found[start : start + size]))
                for start, size in zip(domain.offsets, domain.sizes, strict=True)
            ]
        )


def _constraints(domain: Domain, queries: Mapping[Query, float]) -> tuple[Floats, Floats, Any, Any, Floats]:
    """Bounds of each row of the program, and its entries: one value per attribute, and what each indicator means."""
    lower, upper, starts = [], [], []
    index: list[int] = []
    value: list[float] = []

    def add(bits: list[int], weights: list[float], low: float, high: float) -> None:
        starts.append(len(index))
        index.extend(bits)
        value.extend(weights)
        lower.append(low)
        upper.append(high)

    for start, size in zip(domain.offsets, domain.sizes, strict=True):
        add(list(range(start, start + size)), [1.0] * size, 1.0, 1.0)
    for number, (query, weight) in enumerate(queries.items()):
        names, r = query.threshold.attributes, query.threshold.r
        codes = domain.project(names).unravel(np.array([query.cell]))[0]
        bits = [domain.offsets[domain.index(name)] + int(code) for name, code in zip(names, codes, strict=True)]
        indicator = domain.bits + number
        ones = [1.0] * len(bits)
        if weight > 0 and r == len(bits):
            for bit in bits:  # the tightest form of "all of them"
                add([bit, indicator], [1.0, -1.0], 0.0, np.inf)
        elif weight > 0:
            add([*bits, indicator], [*ones, -float(r)], 0.0, np.inf)
        else:
            add([*bits, indicator], [*ones, -float(len(bits) - r + 1)], -np.inf, float(r - 1))
    return (
        np.array(lower),
        np.array(upper),
        np.array(starts, dtype=np.int32),
        np.array(index, dtype=np.int32),
        np.array(value),
    )


def solver() -> Any:
    """HiGHS, silent, or an error that says how to get it."""
    try:
        import highspy
    except ImportError:
        raise BadSetting("Integer programs need HiGHS: pip install 'discreet[oracles]'.") from None
    highs: Any = highspy.Highs  # untyped
    highs = highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_max_nodes", _MOST_NODES)
    highs.setOptionValue("threads", 1)
    return highs
