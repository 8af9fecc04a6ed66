"""Every exception a caller may meet.

Messages say what was asked, what is true and what can be done next. They speak of public facts only: names from
the schema, sizes, budgets. A value that came from a row never enters a message.
"""

from __future__ import annotations


class DiscreetError(Exception):
    """Base of all errors that are about the caller's input or budget."""


class BadSchema(DiscreetError):
    """A schema file is not understood, or contradicts itself."""


class BadData(DiscreetError):
    """A table cannot be read, or has rows outside its schema."""


class UnknownAttribute(DiscreetError):
    """A name is not an attribute of the domain."""


class BadWorkload(DiscreetError):
    """A workload or a query is not understood, or does not fit the domain."""


class BadSetting(DiscreetError):
    """An argument or option has a value that cannot be used."""


class BudgetExceeded(DiscreetError):
    """A private step costs more than what remains. Nothing was read."""


class BadLedger(DiscreetError):
    """A ledger file is damaged, or belongs to another table."""


class BadRelease(DiscreetError):
    """A folder is not a finished release."""


class Bug(Exception):
    """Something that should be impossible happened; please report it."""

    def __str__(self) -> str:
        return f"{super().__str__()} This is a fault in discreet, not in your input: please report it."
