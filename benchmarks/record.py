"""What every result carries: where, when and with what it was measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.experiments.record import environment

HERE = Path(__file__).parent


@dataclass
class Context:
    """Settings of one benchmark run."""

    data: Path
    results: Path
    seeds: int
    full: bool

    def noise_seeds(self) -> range:
        """Seeds that were never looked at while settings were chosen (those were 0 and 1)."""
        return range(100, 100 + self.seeds)

    @property
    def adult(self) -> Path:
        return self.data / "adult.csv"

    @property
    def adult_schema(self) -> Path:
        return self.data / "adult-domain.json"

    def record(self, benchmark: str, **figures: Any) -> None:
        """Append one line to the results."""
        line = {"benchmark": benchmark, **figures, **environment()}
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def recorded(self, benchmark: str, setting: dict[str, Any]) -> dict[str, Any] | None:
        """An earlier line with this setting, if there is one."""
        if not self.results.is_file():
            return None
        lines = map(json.loads, self.results.read_text(encoding="utf-8").splitlines())
        matching = [line for line in lines if {"benchmark": benchmark, **setting}.items() <= line.items()]
        return matching[-1] if matching else None


class Clock:
    """Seconds that a block took."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Clock]:
    clock = Clock()
    began = time.perf_counter()
    yield clock
    clock.seconds = time.perf_counter() - began


def spread(values: list[float]) -> str:
    """Mean, standard deviation and range, as text."""
    return f"{np.mean(values):.4f} ± {np.std(values):.4f} ({min(values):.4f} to {max(values):.4f})"
