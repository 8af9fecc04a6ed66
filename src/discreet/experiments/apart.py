"""One cell in a process of its own: its peak memory, and an end to those that take too long.

The child is this file run as a program. It reads one JSON line (experiment, data, dataset, setting, seed) and prints
another (figures, or why it was refused, and its peak memory).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from discreet.errors import BadSetting, BadWorkload, Bug
from discreet.experiments.experiment import Cell, Experiment
from discreet.mechanisms import machine


def measured(experiment: Experiment, cell: Cell, data: Path) -> dict[str, Any]:
    """`figures` with peak memory in bytes, `refused`, or `unfinished`: the minutes that it had, or what ended it.

    A slow machine gives it more of them in proportion: what ends in time on one should end on another.
    """
    asked = {"experiment": experiment.name, "data": str(data), **vars(cell)}
    minutes = (experiment.minutes or 0) * max(1.0, machine.slowness())
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            timeout=60 * minutes,
        )
    except subprocess.TimeoutExpired:
        return {"figures": None, "unfinished": minutes}
    if done.returncode < 0:  # 9 is how a machine that runs out of memory ends a process
        return {"figures": None, "unfinished": f"killed by signal {-done.returncode}"}
    if done.returncode:
        raise Bug(f"A cell failed ({cell}):\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _main() -> None:
    from discreet.experiments import catalogue, runner

    asked = json.loads(sys.stdin.read())
    experiment = catalogue.find(asked["experiment"])
    table = runner.read_dataset(Path(asked["data"]), asked["dataset"])
    began = time.perf_counter()
    told: dict[str, Any] = {"figures": None}
    try:
        figures = experiment.measure(table, asked["setting"], asked["seed"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        told["figures"] = {"whole_seconds": time.perf_counter() - began, **figures, "peak": peak}
    except (BadSetting, BadWorkload) as error:
        told["refused"] = str(error)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    _main()
