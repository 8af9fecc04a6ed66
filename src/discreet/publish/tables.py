"""Answers and measurements as Arrow tables that people can read without us."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.data.schema import Schema
from discreet.errors import BadWorkload
from discreet.publish.intervals import KINDS, Intervals
from discreet.publish.release import Release
from discreet.queries.answers import fractions
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

Ints = NDArray[np.int64]

MOST_ANSWERS = 10**7
"""Answers that are written out one by one; larger workloads are answered in parts."""


def answer_table(release: Release, workload: Workload) -> pa.Table:
    """One row per query: its threshold, its attributes and values in words, the estimate and its error bar."""
    require_few(workload)
    tables = list(answer_batches(release, workload))
    return pa.concat_tables(tables).unify_dictionaries()


def require_few(workload: Workload) -> None:
    """Refuse more answers than are written out."""
    if workload.size > MOST_ANSWERS:
        raise BadWorkload(
            f"{workload.size:,} answers are too many for a table (at most {MOST_ANSWERS:,}); ask for fewer thresholds."
        )


def answer_batches(release: Release, workload: Workload) -> Iterator[pa.Table]:
    """The same, threshold by threshold."""
    intervals = Intervals(release)
    width = workload.widest
    for threshold in workload:
        estimates = fractions(release.answers, threshold)
        cells = np.arange(len(estimates))
        bars = intervals.of(threshold, cells, estimates)
        columns = {"threshold": _constant(str(threshold), len(cells))}
        columns |= _in_words(threshold, release.schema, cells, width)
        columns |= {"estimate": pa.array(estimates), "low": pa.array(bars.low), "high": pa.array(bars.high)}
        columns["interval"] = pa.DictionaryArray.from_arrays(pa.array(bars.kind), pa.array(KINDS))
        yield pa.table(columns)


def _in_words(threshold: Threshold, schema: Schema, cells: Ints, width: int) -> dict[str, pa.Array]:
    """attribute_1, value_1, attribute_2, ...: empty where a threshold has fewer attributes."""
    codes = schema.domain.project(threshold.attributes).unravel(cells)
    columns = {}
    for place in range(width):
        if place < len(threshold.attributes):
            name = threshold.attributes[place]
            labels = pa.array(schema[name].labels(), type=pa.string())
            value = pa.DictionaryArray.from_arrays(pa.array(codes[:, place], type=pa.int32()), labels)
            columns[f"attribute_{place + 1}"] = _constant(name, len(cells))
        else:
            value = _constant(None, len(cells))
            columns[f"attribute_{place + 1}"] = value
        columns[f"value_{place + 1}"] = value
    return columns


def _constant(text: str | None, count: int) -> pa.DictionaryArray:
    """One text, or nothing, `count` times."""
    words = pa.array([] if text is None else [text], type=pa.string())
    index = pa.nulls(count, pa.int32()) if text is None else pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(index, words)
