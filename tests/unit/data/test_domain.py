from __future__ import annotations

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.errors import BadSchema, BadWorkload, UnknownAttribute


def test_cells_are_addressed_like_a_c_array() -> None:
    domain = Domain({"a": 2, "b": 3, "c": 4})
    codes = np.array(list(np.ndindex(2, 3, 4)))
    assert domain.ravel(codes).tolist() == list(range(24))
    assert domain.unravel(np.arange(24)).tolist() == codes.tolist()


def test_sizes_and_offsets() -> None:
    domain = Domain([("a", 2), ("b", 3)])
    assert (domain.size, domain.bits, domain.offsets, len(domain)) == (6, 5, (0, 2), 2)
    assert "a" in domain and "z" not in domain and list(domain) == ["a", "b"]
    assert repr(domain) == "Domain(a: 2, b: 3)"


def test_project_keeps_the_order_asked_for() -> None:
    assert Domain({"a": 2, "b": 3}).project(["b", "a"]) == Domain({"b": 3, "a": 2})


def test_projecting_to_nothing_leaves_one_cell() -> None:
    empty = Domain({"a": 2}).project([])
    assert empty.size == 1
    assert empty.unravel([0]).shape == (1, 0)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownAttribute, match=r"'z'.*a, b"):
        Domain({"a": 2, "b": 3}).project(["z"])


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2", None])
def test_sizes_must_be_positive_integers(size: object) -> None:
    with pytest.raises(BadSchema, match="'a'"):
        Domain({"a": size})  # type: ignore[arg-type]


def test_names_must_be_distinct_and_not_empty() -> None:
    with pytest.raises(BadSchema, match="'a' stands twice"):
        Domain([("a", 2), ("a", 3)])
    with pytest.raises(BadSchema, match="non-empty"):
        Domain({"": 2})


def test_codes_and_cells_outside_are_refused() -> None:
    domain = Domain({"a": 2, "b": 3})
    for codes in ([[2, 0]], [[0, -1]]):
        with pytest.raises(BadWorkload):
            domain.ravel(codes)
    for cells in ([6], [-1]):
        with pytest.raises(BadWorkload):
            domain.unravel(cells)


def test_a_domain_may_be_huge_but_not_its_addresses() -> None:
    Domain({"a": 2**62, "b": 2}).require_addressable()
    with pytest.raises(BadWorkload, match="2\\^63"):
        Domain({"a": 2**62, "b": 3}).ravel([[0, 0]])
