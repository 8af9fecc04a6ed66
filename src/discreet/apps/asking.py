"""`discreet answer`: answers of a release with their error bars."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from discreet.apps.console import Console
from discreet.apps.writing import require_free, writing
from discreet.data.table import read
from discreet.errors import BadSetting, DiscreetError
from discreet.publish.certificate import at_most
from discreet.publish.intervals import Intervals
from discreet.publish.release import Release
from discreet.publish.store import save_spread
from discreet.publish.tables import require_few
from discreet.queries import parse
from discreet.queries.threshold import Threshold


def answer(arguments: Namespace) -> None:
    """Answer queries in words, or a workload into a file."""
    if bool(arguments.queries) == bool(arguments.workload) or (arguments.queries and arguments.output):
        raise BadSetting('Give either queries, such as "age=39, sex=Male", or --workload W -o answers.parquet.')
    opened = Release.open(arguments.dir)
    if arguments.queries:
        asked = [opened.query(text) for text in arguments.queries]
        opened = _with_bars(opened, arguments, ((query.threshold, np.array([query.cell])) for query in asked))
        found = {text: opened.interval(text) for text in arguments.queries}
        if arguments.json:
            print(json.dumps({text: asdict(one) for text, one in found.items()}, ensure_ascii=False))
            return
        for text, one in found.items():
            print(f"{one}  about {one.estimate * opened.answers.total:,.0f} of {opened.answers.total:,}  {text}")
        if any(one.kind == "estimated" for one in found.values()):
            print(
                "Estimated intervals come from a bootstrap and are not guaranteed: they hold less often than they say."
            )
        if any(one.kind == "measured" and not one.low <= one.estimate <= one.high for one in found.values()):
            print(
                "Measured intervals lie around noisy counts, and a model moves answers, mostly for the better: now and "
                "then out of their interval."
            )
        unseen = [name for name in opened.unseen if any(name in query.threshold.attributes for query in asked)]
        if unseen:
            print(f"Nothing was asked or measured of {', '.join(unseen)}: answers there are not from the table.")
        if opened.certificate is not None:
            print(f"Largest error of the release's own workload: at most {at_most(opened.certificate.bound)}.")
        return
    if not arguments.output:
        raise BadSetting("Say where the answers go, with -o answers.parquet.")
    require_free(arguments.output)
    import pyarrow.parquet as pq

    workload = parse.workload(arguments.workload, opened.domain, seed=arguments.workload_seed)
    require_few(workload)
    opened = _with_bars(opened, arguments, ((one, np.arange(one.cells(opened.domain))) for one in workload))
    with writing(arguments.output):
        pq.write_table(opened.answer(workload), arguments.output, compression="zstd")
    print(f"Wrote {workload.size:,} answers to {arguments.output}.")


def _with_bars(
    opened: Release, arguments: Namespace, asked: Iterable[tuple[Threshold, np.ndarray[tuple[int], np.dtype[np.int64]]]]
) -> Release:
    """The release with a bootstrap behind it, where some query has no other error bar."""
    intervals = Intervals(opened)
    wanted = arguments.bootstrap
    if wanted is None:
        wanted = int(opened.spread is None and any(intervals.needs_estimate(*one) for one in asked))
    if not wanted:
        return opened
    console = Console()
    public = None if arguments.public is None else read(arguments.public, schema=opened.schema, part=True)
    try:
        opened = opened.bootstrap(wanted, public=public, progress=console)
    except DiscreetError as error:
        if arguments.bootstrap is not None or public is not None:
            raise
        print(f"Some answers were neither measured nor certified. {error}", file=sys.stderr)
        return opened  # their error bars say "unknown"
    finally:
        console.close()
    kept = "and kept there"
    try:
        save_spread(opened, Path(arguments.dir))
    except OSError as error:  # the answers are not lost for that
        kept = f"but not kept ({error.strerror or error})"
    told = f"Ran {opened.mechanism} on the release's own rows to see how far it errs: free of charge, {kept}."
    print(told, file=sys.stderr if arguments.json else sys.stdout)
    return opened
