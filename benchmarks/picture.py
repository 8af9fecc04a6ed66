"""The picture of the README and of docs/benchmarks.md, from results.jsonl alone."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.record import HERE
from discreet.publish.svg import Series, Words, lines, standalone

ORDER = ("all-zero", "rap-paper", "gaussian", "rap")


def main() -> None:
    found: dict[tuple[str, float], list[float]] = defaultdict(list)
    for line in (HERE / "results.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["benchmark"] == "utility" and entry["workload"] == "random:3:64":
            found[entry["mechanism"], entry["epsilon"]].append(entry["max_error"])
    series = []
    for name in ORDER:
        at = sorted(epsilon for mechanism, epsilon in found if mechanism == name)
        points = [(epsilon, float(np.mean(found[name, epsilon]))) for epsilon in at]
        ends = [(min(found[name, epsilon]), max(found[name, epsilon])) for epsilon in at]
        series.append(Series(name, points, ends))
    words = Words(
        "Largest error over 2,492,287 queries (64 three-way marginals of ADULT)",
        "Mean of the seeds, with the smallest and the largest; lower is better.",
        "epsilon",
        "largest error, fraction of rows",
    )
    picture = standalone(lines(series, words, log_x=True, log_y=True))
    Path(HERE.parent / "docs" / "largest-error.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
