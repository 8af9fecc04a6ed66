"""Progress: how long work tells the caller where it is. Public facts only: step numbers, never private values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Progress:
    """Hears about stages and steps, and says nothing. `discreet.apps.console` has one that prints."""

    def stage(self, name: str, steps: int = 0) -> None:
        """A new stage begins, with this many steps if that is known."""

    def step(self, done: int, note: str = "") -> None:
        """So many steps of the current stage are done."""

    def fitted(self, loss: float, rows: Callable[[], Any]) -> None:
        """A fit has come so far: its loss, and on demand its relaxed rows (bits x rows)."""


SILENT = Progress()
