"""Progress on a terminal: one line that is rewritten, or sparse plain lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from discreet.progress import Progress

_QUIET = 2.0
"""Seconds before a stage is worth a word."""


class Console(Progress):
    """Says where a long run is and how long it may still take."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._name, self._steps = "", 0
        self._began = self._said = time.monotonic()
        self._first: tuple[float, int] | None = None
        self._width = 0

    def stage(self, name: str, steps: int = 0) -> None:
        """A new stage begins."""
        self._name, self._steps = name, steps
        self._began = time.monotonic()
        self._first = None
        if self._live:
            self._rewrite(name)

    def step(self, done: int, note: str = "") -> None:
        """Some steps are done: tell, but not too often."""
        now = time.monotonic()
        if self._first is None:  # whatever was set up before the first step does not count for the estimate
            self._first = now, done
        if now - self._said < (0.2 if self._live else 10) or now - self._began < _QUIET:
            return
        self._said = now
        text = f"{self._name}: {done:,}"
        if self._steps:
            text += f" of {self._steps:,} ({100 * done // self._steps} %"
            since, before = self._first
            if done > before:
                left = (now - since) / (done - before) * (self._steps - done)
                text += f", at most {_clock(left)} left"
            text += ")"
        text += f", {note}" if note else ""
        if self._live:
            self._rewrite(text)
        else:
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the line clean."""
        if self._live and self._width:
            self._rewrite("")
            print("\r", end="", file=self._stream, flush=True)

    def _rewrite(self, text: str) -> None:
        print(f"\r{text:<{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(text)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
