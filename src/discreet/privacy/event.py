"""Events: inert descriptions of private steps. The meaning of an event never changes; a new meaning gets a new name.

An event knows its cost in zCDP. It holds public settings only and can be written to a ledger and read back; the cost
is always computed again from the settings, never believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet.errors import BadLedger
from discreet.privacy.loss import rho_of_pure, rho_of_selection


@dataclass(frozen=True)
class GaussianEvent:
    """Integer counts plus independent discrete Gaussian noise.

    Cost: `weighted_sensitivity` / 2, where `weighted_sensitivity` is the sum over the released vectors of
    (squared L2 sensitivity) / sigma^2 (Canonne, Kamath, Steinke 2020, Theorem 14).
    """

    name: ClassVar[str] = "gaussian"
    weighted_sensitivity: Fraction

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP."""
        return self.weighted_sensitivity / 2


@dataclass(frozen=True)
class LaplaceEvent:
    """Integer counts plus independent discrete Laplace noise: pure epsilon-DP, (epsilon^2 / 2)-zCDP."""

    name: ClassVar[str] = "laplace"
    epsilon: Fraction

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP."""
        return rho_of_pure(self.epsilon)


@dataclass(frozen=True)
class DrawsEvent:
    """`draws` independent draws from the exponential mechanism at `epsilon` each.

    Cost: draws * epsilon^2 / 8 (Cesar, Rogers 2021, Lemma 3.2, and composition).
    """

    name: ClassVar[str] = "draws"
    draws: int
    epsilon: Fraction

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP."""
        return self.draws * rho_of_selection(self.epsilon)


@dataclass(frozen=True)
class SelectionEvent:
    """`picks` draws without replacement from the exponential mechanism at `epsilon` each.

    Cost: picks * epsilon^2 / 8 (Cesar, Rogers 2021, Lemma 3.2, and composition).
    """

    name: ClassVar[str] = "selection"
    picks: int
    epsilon: Fraction

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP."""
        return self.picks * rho_of_selection(self.epsilon)


Event = GaussianEvent | LaplaceEvent | SelectionEvent | DrawsEvent


def to_json(event: Event) -> dict[str, Any]:
    """Plain JSON; fractions are written exactly."""
    fields = {key: str(value) if isinstance(value, Fraction) else value for key, value in vars(event).items()}
    return {"event": event.name, **fields}


def from_json(entry: dict[str, Any]) -> Event:
    """Read an event back; an unknown one is refused, never guessed."""
    name = entry.get("event", "")
    try:
        if name == GaussianEvent.name:
            return GaussianEvent(Fraction(entry["weighted_sensitivity"]))
        if name == LaplaceEvent.name:
            return LaplaceEvent(Fraction(entry["epsilon"]))
        if name == SelectionEvent.name:
            return SelectionEvent(int(entry["picks"]), Fraction(entry["epsilon"]))
        if name == DrawsEvent.name:
            return DrawsEvent(int(entry["draws"]), Fraction(entry["epsilon"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise BadLedger(f"A {name} event in the ledger is damaged.") from None
    raise BadLedger(f"The ledger holds an event of unknown kind {name!r}.")
