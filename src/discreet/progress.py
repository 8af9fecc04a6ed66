"""Progress: how long work tells the caller where it is. Public facts only: step numbers, never private values."""

from __future__ import annotations


class Progress:
    """Hears about stages and steps, and says nothing. `discreet.apps.console` has one that prints."""

    def stage(self, name: str, steps: int = 0) -> None:
        """A new stage begins, with this many steps if that is known."""

    def step(self, done: int, note: str = "") -> None:
        """So many steps of the current stage are done."""


SILENT = Progress()
