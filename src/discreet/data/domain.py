"""Domain: which attributes a table has and how many values each can take. Public."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadSchema, BadWorkload, UnknownAttribute

Codes = NDArray[np.int64]

LARGEST_INDEX = 2**63 - 1
"""Cells are addressed by one signed 64-bit integer; a marginal with more cells is refused."""

UNKNOWN = -1
"""Stands for a code that is not known, such as that of an attribute which a public table lacks."""


@dataclass(frozen=True)
class Domain:
    """Ordered attributes with finite value sets, each value a code `0 .. size-1`.

    A *cell* is one value for every attribute, addressed in mixed radix with the last attribute running fastest,
    as in a C array of shape `domain.sizes`.

    Example:
        >>> domain = Domain({"sex": 2, "age": 85})
        >>> domain.size
        170
        >>> domain.project(["age"]).attributes
        ('age',)
        >>> domain.ravel([[1, 3]])
        array([88])
        >>> domain.unravel([88])
        array([[1, 3]])
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]

    def __init__(self, sizes: Mapping[str, int] | Iterable[tuple[str, int]]) -> None:
        pairs = list(sizes.items()) if isinstance(sizes, Mapping) else list(sizes)
        names = tuple(name for name, _ in pairs)
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise BadSchema(f"Attribute names must be distinct; {', '.join(map(repr, twice))} stands twice.")
        for name, size in pairs:
            if not isinstance(name, str) or not name:
                raise BadSchema(f"An attribute name must be a non-empty string, not {name!r}.")
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise BadSchema(f"The size of {name!r} must be a whole number of at least 1, not {size!r}.")
        object.__setattr__(self, "attributes", names)
        object.__setattr__(self, "sizes", tuple(size for _, size in pairs))

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.attributes

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {size}" for name, size in zip(self.attributes, self.sizes, strict=True))
        return f"Domain({inside})"

    @property
    def size(self) -> int:
        """Number of cells, exact whatever its length."""
        return math.prod(self.sizes)

    @property
    def bits(self) -> int:
        """Width of the one-hot encoding."""
        return sum(self.sizes)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each attribute's block starts in the one-hot encoding."""
        return tuple(sum(self.sizes[:position]) for position in range(len(self)))

    def index(self, name: str) -> int:
        """Position of an attribute."""
        try:
            return self.attributes.index(name)
        except ValueError:
            known = ", ".join(self.attributes)
            raise UnknownAttribute(f"There is no attribute {name!r}. The domain has: {known}.") from None

    def size_of(self, name: str) -> int:
        """Number of values of one attribute."""
        return self.sizes[self.index(name)]

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of some attributes, in the order asked for."""
        return Domain([(name, self.size_of(name)) for name in names])

    def ravel(self, codes: Sequence[Sequence[int]] | Codes) -> Codes:
        """Cell index of each row of codes (rows x attributes)."""
        self.require_addressable()
        rows = np.asarray(codes, dtype=np.int64).reshape(len(codes), len(self))
        if rows.size and (rows.min() < 0 or (rows >= np.array(self.sizes)).any()):
            raise BadWorkload("A code lies outside its attribute's values.")
        cells = np.zeros(len(rows), dtype=np.int64)
        for column, size in enumerate(self.sizes):
            cells = cells * size + rows[:, column]
        return cells

    def unravel(self, cells: Sequence[int] | Codes) -> Codes:
        """Codes (rows x attributes) of each cell index."""
        self.require_addressable()
        rest = np.asarray(cells, dtype=np.int64).copy()
        if rest.size and (rest.min() < 0 or rest.max() >= self.size):
            raise BadWorkload(f"A cell index lies outside 0 .. {self.size - 1}.")
        codes = np.empty((len(rest), len(self)), dtype=np.int64)
        for column in reversed(range(len(self))):
            rest, codes[:, column] = np.divmod(rest, self.sizes[column])
        return codes

    def require_addressable(self) -> None:
        """Refuse a domain whose cells do not fit one 64-bit index."""
        if self.size - 1 > LARGEST_INDEX:
            names = " x ".join(self.attributes)
            raise BadWorkload(
                f"{names} has {self.size:,} cells; a marginal can have at most 2^63. "
                "Ask for fewer attributes, or give the largest ones coarser bins in the schema."
            )
