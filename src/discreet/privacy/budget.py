"""Budget: how much one run may spend. It refuses or charges, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet import _check
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.privacy.event import Event
from discreet.privacy.ledger import Charge, Ledger


class Budget:
    """A limit in zCDP and the ledgers where charges are written.

    Args:
        rho: Most that this run may spend.
        ledgers: Where each charge is recorded before the table is read; a shared ledger may have a limit of its
            own and refuse.

    Example:
        >>> budget = Budget(Fraction(1, 2))
        >>> budget.remaining
        Fraction(1, 2)
    """

    def __init__(self, rho: Fraction, ledgers: Sequence[Ledger] = ()) -> None:
        _check.positive("rho", rho)
        self.total = Fraction(rho)
        self._ledgers = list(ledgers)
        self._charges: list[Charge] = []
        self.spent = Fraction(0)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What this run has paid for, in order."""
        return tuple(self._charges)

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        return self.total - self.spent

    def charge(self, event: Event, label: str) -> None:
        """Pay for one private step, or refuse it and change nothing."""
        if event.rho > self.remaining:
            raise BudgetExceeded(self._refusal(event, label))
        written: list[tuple[Ledger, Charge]] = []
        try:
            for ledger in self._ledgers:
                written.append((ledger, ledger.record(event, label)))
        except DiscreetError:
            for ledger, charge in written:  # nothing will be read for them
                ledger.take_back(charge)
            raise
        self._charges.append(Charge(label, event))
        self.spent += event.rho

    def _refusal(self, event: Event, label: str) -> str:
        lines = [
            f"{label!r} needs rho {float(event.rho):.4g}, but {float(self.remaining):.4g} of "
            f"{float(self.total):.4g} remains."
        ]
        if self._charges:
            spent = ", ".join(f"{float(charge.rho):.4g} on {charge.label!r}" for charge in self._charges[-5:])
            lines.append(f"  Spent: {spent}.")
        lines.append(f"  Nothing was read. Next: ask with rho {float(self.remaining):.4g} or less.")
        return "\n".join(lines)
