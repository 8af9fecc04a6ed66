"""Raw columns to codes, and codes back to values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.attribute import Attribute, value_type
from discreet.data.domain import Codes as CodeRows
from discreet.data.kind import Categorical, Date, Numeric, Whole
from discreet.data.schema import Schema
from discreet.errors import BadSetting, Bug

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Ints = NDArray[np.int64]


def encode(table: ir.Table, schema: Schema, *, lenient: bool = True) -> ir.Table:
    """Replace each attribute's column by its codes; other columns are dropped, the order of rows is not kept.

    The result is an expression: nothing is read yet, and the engine of `table` will do the work. Bad content
    never stops it; it is marked instead, so that it can be counted without being shown.

    Args:
        table: Private.
        schema: Public.
        lenient: Whether the engine has a cast that gives null where it fails.

    Returns:
        One integer column per attribute, never null: a code, or -1 for a value outside the schema, or -2 for
        a missing value where the schema allows none.
    """
    from discreet.data.reading import coded  # Ibis is slow to import

    return coded(table, schema, lenient=lenient)


def decode(codes: CodeRows, schema: Schema, *, generator: np.random.Generator, labels: bool = False) -> pa.Table:
    """Turn rows of codes into values of the schema.

    Integers, numbers and dates are drawn uniformly inside their bin, categories come with their own type,
    missing values are null. "other" is the text `other` in a categorical column (whose values are then all
    texts) and null elsewhere, because no value of the original type stands for it.

    Args:
        codes: Rows x attributes, in the order of the schema.
        schema: Public.
        generator: Where values inside a bin come from; they carry no private information.
        labels: Give the text of each code instead.
    """
    import pyarrow as pa  # slow to import

    rows = np.asarray(codes, dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != len(schema):
        raise BadSetting(f"codes must have one column per attribute ({len(schema)}), not shape {rows.shape}.")
    if rows.size and (rows.min() < 0 or (rows >= np.array(schema.domain.sizes)).any()):
        raise BadSetting("codes must lie in the schema's domain; some do not.")
    columns = [
        _label_column(attribute, rows[:, position]) if labels else _column(attribute, rows[:, position], generator)
        for position, attribute in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, names=[attribute.name for attribute in schema])


def _label_column(attribute: Attribute, codes: Ints) -> pa.Array:
    import pyarrow as pa

    used, position = np.unique(codes, return_inverse=True)
    return pa.array([attribute.label(int(code)) for code in used], pa.string()).take(pa.array(position))


def _column(attribute: Attribute, codes: Ints, generator: np.random.Generator) -> pa.Array:
    import pyarrow as pa

    if isinstance(attribute, Categorical):
        return _categories(attribute).take(pa.array(codes))
    regular = np.minimum(codes, attribute.regular - 1)
    drawn: NDArray[Any]
    match attribute:
        case Whole():
            drawn = _draw_integers(attribute, regular, generator)
        case Numeric():
            drawn = _draw_numbers(attribute, regular, generator)
        case Date():
            drawn = _draw_days(attribute, regular, generator)
        case _:
            raise Bug(f"There is no decoding for {type(attribute).__name__}.")
    return pa.array(drawn, mask=codes >= attribute.regular)


def _categories(attribute: Categorical) -> pa.Array:
    """The value of each code: in the type they share, or as texts if they share none or include "other"."""
    import pyarrow as pa

    absent = [] if attribute.missing is None else [None]
    types = {value_type(value) for value in attribute.values}
    if len(types) > 1 or attribute.outside == "other":
        return pa.array([*attribute.labels()[: attribute.size - len(absent)], *absent], pa.string())
    as_float = any(isinstance(value, float) for value in attribute.values)
    return pa.array([*attribute.values, *absent], pa.float64() if as_float else None)


def _draw_integers(attribute: Whole, codes: Ints, generator: np.random.Generator) -> Ints:
    low = attribute.least + codes * attribute.step
    return generator.integers(low, np.minimum(low + attribute.step - 1, attribute.largest), endpoint=True)


def _draw_numbers(attribute: Numeric, codes: Ints, generator: np.random.Generator) -> NDArray[np.float64]:
    """Uniform in each bin; rounding may reach the open upper edge, so that is cut off."""
    edges = np.array(attribute.edges)
    low, high = edges[codes], edges[codes + 1]
    share = generator.random(len(codes))
    return np.clip(low * (1 - share) + high * share, low, np.nextafter(high, low))


def _draw_days(attribute: Date, codes: Ints, generator: np.random.Generator) -> NDArray[Any]:
    used, position = np.unique(codes, return_inverse=True)
    spans = np.array([attribute.bounds(int(code)) for code in used], dtype="datetime64[D]").reshape(-1, 2)
    first, last = spans[position].astype(np.int64).T
    days: Ints = generator.integers(first, last, endpoint=True)
    return days.astype("datetime64[D]")
