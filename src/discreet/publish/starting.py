"""Public tables that some mechanisms start from: which fit, and their rows as codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import UNKNOWN, Domain
from discreet.data.table import Table
from discreet.errors import BadData, BadSetting
from discreet.mechanisms.catalogue import Mechanism


def check(mechanism: Mechanism, public: Table | None, domain: Domain) -> None:
    """Refuse a public table where none is needed, and one that does not fit where one is."""
    if mechanism.public == "no":
        if public is not None:
            raise BadSetting(f"{mechanism.name} does not start from a public table; leave it out, or use pep-pub.")
        return
    if public is None:
        raise BadSetting(f"{mechanism.name} starts from a public table of the same schema: give one with --public.")
    if any(name not in domain for name in public.domain) or public.domain != domain.project(public.domain.attributes):
        raise BadSetting("The public table has another schema; read both with the same.")
    lacking = [name for name in domain if name not in public.domain]
    if lacking and mechanism.public == "whole":
        raise BadSetting(
            f"The public table lacks {', '.join(map(repr, lacking))}, which {mechanism.name} needs; use gem-pub, which "
            "takes what there is."
        )
    if public.rows() == 0:
        raise BadData("The public table has no rows to start from.")


def codes(domain: Domain, public: Table) -> NDArray[np.int64]:
    """Codes of a public table, rows x all attributes of the domain; `UNKNOWN` for those that it lacks."""
    found = np.full((public.rows(), len(domain)), UNKNOWN, dtype=np.int64)
    found[:, [domain.index(name) for name in public.domain]] = public.codes()
    return found
