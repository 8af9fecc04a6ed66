"""What each command does: read arguments, call the library, print. No mathematics here."""

from __future__ import annotations

import json
import textwrap
import time
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.apps.console import Console
from discreet.apps.writing import require_free, writing
from discreet.compare.downstream import MOST_UNASKED, Downstream, usual_target
from discreet.compare.errors import evaluate as compare
from discreet.confidence import Mean
from discreet.data import population
from discreet.data.draft import draft
from discreet.data.schema import Schema
from discreet.data.scratch import clean_up
from discreet.data.shown import shown
from discreet.data.table import Table, read
from discreet.errors import BadSetting, DiscreetError
from discreet.mechanisms import catalogue
from discreet.models.rounded import RoundedRows
from discreet.privacy.ledger import total_of
from discreet.privacy.loss import epsilon_of
from discreet.publish.certificate import at_most
from discreet.publish.make import release as make
from discreet.publish.make import requested
from discreet.publish.release import Release
from discreet.publish.report import render
from discreet.publish.store import Folder, account_of
from discreet.queries import parse


def demo(arguments: Namespace) -> None:
    """Invent a population and release all its 3-way marginals."""
    began = time.monotonic()
    console = Console()
    if arguments.rows < 2:
        raise BadSetting(f"--rows must be at least 2, not {arguments.rows}.")
    table = read(population.draw(arguments.rows, seed=0), schema=population.SCHEMA)
    made = make(table, "all:3", epsilon=1.0, seed=arguments.seed, out=arguments.out, progress=console)
    console.close()
    _summarise(made, Path(arguments.out))
    found = compare(made, table, progress=console)
    console.close()
    print("Against the invented truth (an owner's check, not private):")
    _print_errors(found)
    print(f"Done in {time.monotonic() - began:.0f} s. Next:")
    print(f'  discreet answer {arguments.out} "age=42, sex=female"')
    print(f"  open {Path(arguments.out) / 'report.html'} in a browser")


def schema_draft(arguments: Namespace) -> None:
    """Propose a schema from the values of a file."""
    require_free(arguments.output)
    drafted, notes = draft(arguments.file, table=arguments.table)
    schema = Schema.load(drafted)
    with writing(arguments.output):
        schema.save(arguments.output)
    print(f"Wrote {arguments.output}: {len(schema.domain)} attributes, {schema.domain.bits:,} values in all.")
    for note in notes:
        print(f"  {note}")
    print(
        "This draft looked at the values. A schema is public: use it as it is only if the file is public;\n"
        "otherwise review every value and range, and keep only what may be known without the data."
    )


def schema_check(arguments: Namespace) -> None:
    """Check that a file fits a schema."""
    table = read_as_asked(arguments.file, arguments, arguments.schema)
    print(f"{shown(arguments.file)} fits {arguments.schema}: {table.rows():,} rows, {len(table.domain)} attributes.")


def release(arguments: Namespace) -> None:
    """Make a release."""
    _require_apart(arguments)
    schema = Schema.load(arguments.schema)  # mistakes in what is asked show before a large table is read
    requested(schema.domain, arguments.workload, arguments.history, arguments.augment, arguments.workload_seed)
    Folder.require_free(Path(arguments.out))
    console = Console()
    console.stage("reading the table")
    table = read_as_asked(arguments.data, arguments, schema)
    public = None if arguments.public is None else read(arguments.public, schema=schema, part=True)
    made = make(
        table,
        arguments.workload,
        epsilon=arguments.epsilon,
        history=arguments.history,
        augment=arguments.augment,
        delta=arguments.delta,
        mechanism=arguments.mechanism,
        rounds=arguments.rounds,
        per_round=arguments.per_round,
        rows=arguments.rows,
        settings=dict(setting(text) for text in arguments.set),
        public=public,
        seed=arguments.seed,
        workload_seed=arguments.workload_seed,
        neighbours=arguments.neighbours,
        rows_per_person=arguments.rows_per_person,
        certificate=arguments.certificate,
        conversion=arguments.conversion,
        oversample=arguments.oversample,
        ledger=arguments.ledger,
        ledger_epsilon=arguments.ledger_epsilon,
        out=arguments.out,
        progress=console,
    )
    console.close()
    _summarise(made, Path(arguments.out))


def evaluate(arguments: Namespace) -> None:
    """Compare a release with the truth."""
    console = Console()
    opened = Release.open(arguments.dir)
    table = read_as_asked(arguments.data, arguments, opened.schema)
    asked = None
    if arguments.workload:
        asked = parse.workload(arguments.workload, opened.domain, seed=arguments.workload_seed)
    if arguments.holdout is not None and Path(arguments.holdout).resolve() == Path(arguments.data).resolve():
        raise BadSetting(
            "--holdout names the table itself; rows held out are others. Leave it out to test on a quarter."
        )
    holdout = None if arguments.holdout is None else read(arguments.holdout, schema=opened.schema)
    target, untold = _target(arguments.predict, opened, table)
    if holdout is not None and untold:
        raise BadSetting(f"Rows are held out to test a classifier, and none is trained: {untold}.")
    found = compare(
        opened,
        table,
        asked,
        future=arguments.future,
        predict=target,
        holdout=holdout,
        progress=console,
    )
    console.close()
    if arguments.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    print("NOT PRIVATE: these figures come from the true table. Keep them with the owner.")
    _print_errors(found)
    if "future" in found:
        _print_future(found["future"])
    if "downstream" in found:
        _print_downstream(Downstream(**found["downstream"]))
    if untold:
        print(f"No classifier was trained: {untold}.")
    print("Worst answers:")
    for worst in found["worst"]:
        print(f"  {worst['error']:.5f}  true {worst['truth']:.5f}  published {worst['answer']:.5f}  {worst['query']}")


def _target(asked: str | None, opened: Release, table: Table) -> tuple[str | None, str]:
    """What a classifier should predict: as asked, or the usual one; if none, why."""
    if asked is not None:
        return (None if asked == "none" else asked), ""
    if opened.codes is None:
        return None, f"{opened.mechanism} makes no synthetic rows"
    if find_spec("sklearn") is None:
        return None, "it needs scikit-learn, pip install 'discreet[learning]'"
    if table.rows() > MOST_UNASKED:
        return None, f"more than {MOST_UNASKED:,} rows would be read at once; ask for it with --predict"
    usual = usual_target(opened.domain)
    return usual, "" if usual else "no attribute has 2 to 10 values; name one with --predict"


def _print_downstream(found: Downstream) -> None:
    tested = f"{found.tested:,} rows " + ("held out" if found.held_out else "that the release was made from too")
    print(f"A classifier that predicts {found.target} is right on this share of {tested}:")
    print(f"  trained on synthetic rows  {found.trained_on_synthetic:.3f}")
    print(f"  trained on true rows       {found.trained_on_true:.3f}")
    print(f"  most frequent value        {found.most_frequent:.3f}")


def report(arguments: Namespace) -> None:
    """Write the report anew and summarise."""
    opened = Release.open(arguments.dir)
    path = Path(arguments.dir) / "report.html"
    with writing(str(path)):
        path.write_text(render(opened), encoding="utf-8")
    _summarise(opened, Path(arguments.dir))


def ledger(arguments: Namespace) -> None:
    """Show what was charged."""
    account = account_of(Path(arguments.dir))
    total = total_of(account.charges)
    if arguments.json:
        entries = [charge.to_json() for charge in account.charges]
        limit = None if account.limit is None else account.limit.epsilon
        figures = {"charges": entries, "rho": float(total), "delta": account.delta, "limit_epsilon": limit}
        print(json.dumps(figures, ensure_ascii=False))
        return
    for charge in account.charges:
        print(f"{float(charge.rho):12.6g}  {charge.event.name:10}  {charge.time:25}  {charge.run} {charge.label}")
    print(f"{float(total):12.6g}  in all, of zero-concentrated DP (rho)")
    delta = account.delta or 1e-9
    print(f"{epsilon_of(total, delta):12.6g}  as epsilon, at delta {delta:.3g}")
    if account.limit is not None:
        left = account.limit.rho - total
        most = f"rho {float(account.limit.rho):.6g}, epsilon {account.limit.epsilon:g} at that delta"
        print(f"{float(left):12.6g}  left of the ledger's limit, in rho ({most})")


def experiment(arguments: Namespace) -> None:
    """Run an experiment, or report on one that was run."""
    from discreet.experiments import catalogue, runner

    if arguments.list:
        for name, summary in catalogue.NAMES.items():
            print(f"{name:14} {summary}")
        return
    if not arguments.name:
        raise BadSetting("Name an experiment; `discreet experiment --list` says which there are.")
    catalogue.find(arguments.name)
    folder = Path(arguments.out or f"experiment-{arguments.name}")
    if arguments.report_only:
        runner.report(folder, name=arguments.name)
    elif not arguments.data:
        raise BadSetting("--data is missing: the folder that holds adult.csv and adult-domain.json.")
    else:
        arguments.out = str(folder)  # where to go on from, should it be interrupted
        console = Console()
        runner.run(
            arguments.name,
            data=arguments.data,
            out=folder,
            size=arguments.size,
            seeds=arguments.seeds,
            datasets=arguments.dataset,
            resume=arguments.resume,
            progress=console,
        )
        console.close()
    text, _, _ = (folder / "claim.md").read_text(encoding="utf-8").partition("\n## Why numbers differ")
    for line in text.splitlines():
        if line.startswith(("## ", "- **", "|")) and not line.startswith("- **Verdict"):  # which the heading says
            print(f"\n{line}" if line.startswith("## ") else line)
    print(f"\nWrote {folder / 'claim.md'} and its pictures. These are errors against the truth: NOT private.")


def interrupted(arguments: Namespace) -> str:
    """What to say after Ctrl-C, once private files are removed."""
    clean_up()
    text = "\nInterrupted."
    out = getattr(arguments, "out", None)
    if arguments.command == "experiment":
        return text + (f" {out} keeps every finished cell: run the same again with --resume." if out else "")
    if not out or not (Path(out) / "unfinished.json").is_file():
        return text + " Nothing was spent."
    try:
        spent = float(total_of(account_of(Path(out)).charges))
    except DiscreetError:
        return text
    if not spent:
        Folder(Path(out)).discard()
        return text + " Nothing was spent."
    return text + f" {out} is unfinished; it spent rho = {spent:.4g}, which stays spent. See `discreet ledger {out}`."


def read_as_asked(data: str, arguments: Namespace, schema: str | Schema) -> Table:
    """A table, with what was said about how to read it."""
    return read(data, schema=schema, table=arguments.table, memory=arguments.memory, scratch=arguments.scratch)


def _require_apart(arguments: Namespace) -> None:
    scratch, out = arguments.scratch, arguments.out
    if scratch is not None and Path(scratch).resolve().is_relative_to(Path(out).resolve()):
        raise BadSetting("--scratch holds exact counts, so it must not be inside --out; choose another folder.")
    require_another(arguments)


def require_another(arguments: Namespace) -> None:
    """Refuse the private table as the public one."""
    if arguments.public is not None and Path(arguments.public).resolve() == Path(arguments.data).resolve():
        raise BadSetting("--public names the private table, whose rows would be published; give another file.")


def setting(text: str) -> tuple[str, str]:
    """One of --set."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadSetting(f"--set takes key=value, not {text!r}.")
    return name.strip(), value.strip()


def _summarise(made: Release, folder: Path) -> None:
    rows = 0 if made.codes is None else len(made.codes)
    print(f"{folder}: {made.mechanism}, {made.workload.size:,} queries of {len(made.workload)} thresholds")
    print(_paragraph("  privacy       ", made.guarantee.in_words(made.charges)))
    if made.schema.drafted_from_data:
        print("  WARNING       the schema was drafted from data: it is public now, so it must have been reviewed")
    if made.noise_seed is not None:
        print(f"  WARNING       the noise was seeded ({made.noise_seed}): this release is for tests only")
    if unseen := made.warning_of_unseen():
        print(_paragraph("  WARNING       ", unseen))
    if made.certificate is not None:
        sure = f"with {made.certificate.confidence:.0%} confidence"
        print(f"  certificate   largest error at most {at_most(made.certificate.bound)} of the rows, {sure}")
        if made.certificate.rows_bound is not None:
            print(
                f"                and at most {at_most(made.certificate.rows_bound)} when counting the synthetic rows"
            )
    elif made.codes is not None and made.spread is None:
        once_more = "" if catalogue.find(made.mechanism).public == "no" else ", given the public table once more"
        unsure = "none: answers that were not measured have no error bars until `discreet answer` estimates them"
        print(_paragraph("  certificate   ", f"{unsure}{once_more}"))
    if isinstance(made.answers, RoundedRows):
        print(f"  answers       from {made.answers.source}")
    if made.outlook is not None:
        print(_paragraph("  history       ", made.outlook.origin()))
        print(_paragraph("  future        ", " ".join(made.outlook.sentences())))
    if rows:
        print(f"  synthetic     {rows:,} rows in {folder / 'synthetic.parquet'}")
    print(f"  report        {folder / 'report.html'}")


def _paragraph(head: str, text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=head, subsequent_indent=" " * len(head))


def _print_errors(found: dict[str, object]) -> None:
    for prefix, what in (("", "answers"), ("rows_", "synthetic rows")):
        if f"{prefix}max_error" in found:
            figures = "  ".join(
                f"{name} {found[prefix + name]:.3g}"
                for name in ("max_error", "mean_error", "rmse", "mean_tvd")
                if found[prefix + name] is not None
            )
            print(f"  {what:15} {figures}")


def _print_future(found: dict[str, Any]) -> None:
    error = Mean(**found["future_error"])
    print(f"Future queries: {error.draws:,}, of which {found['unseen']:.1%} ask thresholds outside the workload.")
    lines = [
        ("present error", f"{found['present_error']:.5f}", "largest error over the release's workload"),
        ("present mean", f"{found['present_mean']:.5f}", "largest error on each of its thresholds, mean"),
        ("future error", error, "largest error on each future threshold, mean"),
        ("future mean", Mean(**found["future_mean_error"]), "mean error on each future threshold, mean"),
        ("largest error", f"{found['largest_error']:.5f}", "on any future threshold"),
    ]
    if found["unseen_error"] is not None:
        lines.insert(3, ("  outside", Mean(**found["unseen_error"]), "the same, outside the workload only"))
    for name, value, what in lines:
        print(f"  {name:15} {value!s:30}  {what}")
    print(
        f"  Intervals are Student's, with {error.confidence:.0%} confidence, over the draw of future queries; with the "
        f"same\n  confidence at most {found['above_at_most']:.1%} of further queries meet an error above the largest."
    )
