"""Run benchmarks by name, or all of them."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.record import HERE, Context

NAMES = (
    "noise",
    "counting",
    "selection",
    "utility",
    "speed",
    "blocks",
    "grid",
    "scale",
    "engines",
    "programs",
    "plan",
    "forecasts",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"of: {', '.join(NAMES)}")
    parser.add_argument("--data", type=Path, required=True, help="folder with adult.csv and adult-domain.json")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="slow peers run to their end, tables grow to 10^8 rows")
    parser.add_argument("--results", type=Path, default=HERE / "results.jsonl")
    arguments = parser.parse_args()
    context = Context(arguments.data, arguments.results, arguments.seeds, arguments.full)
    if not context.adult.is_file():
        parser.error(f"{context.adult} is not there; --data takes the folder that holds adult.csv.")
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}; choose from {', '.join(NAMES)}.")
        print(f"== {name}", flush=True)
        import_module(f"benchmarks.{name}").run(context)


main()
