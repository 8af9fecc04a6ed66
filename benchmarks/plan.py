"""Plans against what happens: time, memory and largest error, forecast and found.

Each cell is a release in a process of its own, with the whole budget for answers. Forecasts of time are for one core,
so they are compared with processor time; by the clock, several cores are faster, and a busy machine is slower.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from benchmarks.record import Context
from discreet.data.table import read
from discreet.publish.planning import plan

SEED = 100

CELLS: list[tuple[str, str, float, str]] = [
    ("nltcs", "all:3", 0.1, "auto"),
    ("nltcs", "all:3", 0.1, "rap"),
    ("nltcs", "all:3", 0.1, "residual-planner"),
    ("nltcs", "all:3", 0.1, "mwem"),
    ("nltcs", "all:3", 0.1, "dualquery"),
    ("adult-reduced", "all:3", 1.0, "auto"),
    ("adult-reduced", "all:3", 1.0, "pep"),
    ("adult-reduced", "all:3", 1.0, "mst"),
    ("adult-binned", "all:3", 0.1, "auto"),
    ("adult", "random:3:64", 0.1, "auto"),
    ("adult", "random:3:64", 1.0, "gaussian"),
    ("adult", "random:3:64", 1.0, "residual-planner"),
    ("adult", "random:3:64", 0.1, "dualquery"),
    ("loans", "random:3:64", 1.0, "gaussian"),
]
SLOW: list[tuple[str, str, float, str]] = [
    ("adult", "random:3:64", 1.0, "auto"),
    ("adult", "random:3:64", 1.0, "fem"),
    ("adult", "random:3:64", 1.0, "rap-paper"),
    ("adult", "all:3", 1.0, "auto"),
    ("adult", "all:3", 1.0, "residual-planner"),
    ("loans", "random:3:64", 1.0, "auto"),
    ("nltcs", "all:3", 0.1, "gem"),
    ("nltcs", "all:3", 0.1, "mst"),
]


_MEASURED = """
import json, resource, sys, time
from discreet.compare.errors import errors
from discreet.data.table import read
from discreet.publish.make import release
from discreet.queries import parse

data, schema, workload, epsilon, mechanism, seed = sys.argv[1:]
table = read(data, schema=schema)
asked = parse.workload(workload, table.domain)
clock, processor = time.perf_counter(), time.process_time()
made = release(table, asked, epsilon=float(epsilon), mechanism=mechanism, certificate=0, seed=int(seed))
clock, processor = time.perf_counter() - clock, time.process_time() - processor
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
error = errors(made.answers, table, asked, made.schema, worst=1).max_error
print(json.dumps({"clock": clock, "seconds": processor, "bytes": peak, "largest_error": error}))
"""


def run(context: Context) -> None:
    """Print forecast, finding and ratio of each; the slow ones with --full."""
    off = 0
    print(f"{'':48} {'processor seconds':^23} {'clock':^7} {'GB':^23} {'largest error':^23}")
    for dataset, workload, epsilon, mechanism in [*CELLS, *(SLOW if context.full else [])]:
        source, schema = context.data / f"{dataset}.csv", context.data / f"{dataset}-domain.json"
        if not source.is_file():
            print(f"{source} is not there: left out")
            continue
        table = read(source, schema=schema)
        (told,) = plan(table, workload, epsilon=epsilon, mechanisms=[mechanism], certificate=0)
        found = _process([str(source), str(schema), workload, str(epsilon), mechanism, str(SEED)])
        figures = {}
        for name, unit in (("seconds", 1.0), ("bytes", 1e9), ("largest_error", 1.0)):
            foreseen = float(getattr(told, name))
            ratio = found[name] / foreseen
            figures[name] = f"{foreseen / unit:8.3g} {found[name] / unit:8.3g} x{ratio:.2f}"
            off += name != "largest_error" and not 1 / 2 <= ratio <= 2
        clock = f"{found['clock']:7.3g}"
        print(
            f"{dataset:14} {workload:12} {epsilon:<4g} {mechanism:16} {figures['seconds']}  {clock}  "
            f"{figures['bytes']}  {figures['largest_error']}",
            flush=True,
        )
        setting = {"table": dataset, "workload": workload, "epsilon": epsilon, "mechanism": mechanism}
        context.record("plan", **setting, foreseen=asdict(told), found=found)
    print(f"Forecast, finding, and finding over forecast; {off} times and sizes are off by more than a factor of two.")


def _process(arguments: list[str]) -> dict[str, float]:
    """A release in a process of its own: seconds of the processor and of the clock, peak memory, largest error."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *arguments], capture_output=True, text=True, check=False, timeout=7200
    )
    if done.returncode:
        raise RuntimeError(f"a release failed ({' '.join(arguments)}):\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
