"""The command line: arguments and their help. What the commands do is in `commands.py` and the files beside it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import discreet
from discreet.apps import examples
from discreet.data.shown import masked, parts, shown
from discreet.errors import DiscreetError

_DESCRIPTION = (
    "Answer millions of queries about a sensitive table, and publish synthetic rows, under differential privacy."
)

_DATA = "CSV, Parquet or DuckDB file, or a duckdb://, postgres:// or spark:// address"


def run() -> NoReturn:
    """The program. Ctrl-C ends it at once: unwinding through compiled code that is still at work may crash."""
    parsed = _parse(None)

    def stop(number: int, _: object) -> None:
        told = getattr(sys.modules.get("discreet.apps.commands"), "interrupted", None)  # it may still be loading
        print(told(parsed) if told else "\nInterrupted. Nothing was spent.", file=sys.stderr, flush=True)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    sys.exit(_carry_out(parsed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command from Python; returns the exit status."""
    return _carry_out(_parse(arguments))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = build_parser()
    parsed, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(parsed, "queries") or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(map(shown, rest))}")
    if rest:  # queries that stand behind an option
        parsed.queries += rest
    _refuse_stray_addresses(parser, parsed)
    return parsed


def _refuse_stray_addresses(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """Refuse an address where a file or a name belongs: later messages would show it, and a password may be in it."""
    takes = {"experiment": ()}.get(parsed.command, ("data", "file"))
    for name, value in vars(parsed).items():
        if name not in takes and isinstance(value, str) and parts(value):
            parser.error(f"{shown(value)} is an address, which only DATA can be, and not {name.upper()}")


def _carry_out(parsed: argparse.Namespace) -> int:
    module, _, name = parsed.command.rpartition(".")
    try:
        getattr(import_module(f"discreet.apps.{module or 'commands'}"), name)(parsed)  # loads what --help does not need
    except DiscreetError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 141
    return 0


class _Parser(argparse.ArgumentParser):
    """Errors that say where help is."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {masked(message)}\n  See `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog="discreet",
        description=_DESCRIPTION,
        epilog=examples.WHOLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"discreet {discreet.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _demo(commands)
    _schema(commands)
    _plan(commands)
    _release(commands)
    _answer(commands)
    _evaluate(commands)
    _report_and_ledger(commands)
    _experiment(commands)
    return parser


Commands = argparse._SubParsersAction  # the public name of this type does not exist


def _add(commands: Commands[_Parser], name: str, summary: str, command: str, epilog: str = "") -> _Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command)
    return parser


def _demo(commands: Commands[_Parser]) -> None:
    parser = _add(commands, "demo", "release all 3-way marginals of an invented population at epsilon 1", "demo")
    parser.add_argument("--out", default="demo-release", metavar="DIR", help="folder to write (%(default)s)")
    parser.add_argument("--rows", type=int, default=50_000, metavar="N", help="people to invent (%(default)s)")
    parser.add_argument("--seed", type=int, metavar="N", help="make the run repeatable (the noise then is not secret)")


def _schema(commands: Commands[_Parser]) -> None:
    parser = commands.add_parser("schema", help="draft or check the public description of a table")
    inner = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    draft = _add(
        inner,
        "draft",
        "propose a schema by looking at the values, so the file must be public or the result reviewed",
        "schema_draft",
    )
    draft.add_argument("file", metavar="DATA", help=_DATA)
    draft.add_argument("-o", "--output", required=True, metavar="schema.json", help="where to write it")
    draft.add_argument("--table", metavar="NAME", help="which table of a database")
    check = _add(inner, "check", "check that every row of a file fits a schema", "schema_check")
    check.add_argument("file", metavar="DATA", help=_DATA)
    check.add_argument("--schema", required=True, metavar="schema.json")
    _table(check)


def _plan(commands: Commands[_Parser]) -> None:
    parser = _add(
        commands,
        "plan",
        "say what each mechanism would take and how far it would err, before anything is spent",
        "planning.plan",
        examples.PLAN,
    )
    parser.add_argument("data", metavar="DATA", help=f"{_DATA}: private; only its rows are counted")
    parser.add_argument("--schema", required=True, metavar="S", help="public description of the table (JSON)")
    _asked(parser)
    parser.add_argument("--epsilon", required=True, type=float, metavar="E", help="privacy loss that may be spent")
    parser.add_argument("--delta", type=float, metavar="D", help="default: 1/n^2; required under add-remove")
    parser.add_argument(
        "--people",
        type=int,
        metavar="N",
        help="rows to plan for, a guess; the table is then not read (required under add-remove)",
    )
    parser.add_argument(
        "--mechanism", action="append", default=[], metavar="NAME", help="only this one (again for more; default: all)"
    )
    _settings(parser)
    parser.add_argument("--public", metavar="FILE", help="public table of the same schema, if there is one")
    _protection(parser)
    parser.add_argument(
        "--workload-seed", type=int, default=0, metavar="N", help="for random:k:m and --augment (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    _table(parser)


def _release(commands: Commands[_Parser]) -> None:
    parser = _add(commands, "release", "answer a workload and publish synthetic rows", "release", examples.RELEASE)
    parser.add_argument("data", metavar="DATA", help=f"{_DATA}: private")
    parser.add_argument("--schema", required=True, metavar="S", help="public description of the table (JSON)")
    _asked(parser)
    parser.add_argument("--epsilon", required=True, type=float, metavar="E", help="privacy loss to spend")
    parser.add_argument("--delta", type=float, metavar="D", help="default: 1/n^2; required under add-remove")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write; must not hold anything")
    _table(parser)
    how = parser.add_argument_group("mechanism")
    how.add_argument(
        "--mechanism",
        default="auto",
        metavar="NAME",
        help="auto (default), rap, rap-paper, rap-softmax, rap-search, gem, gem-pub, mwem, pep, pmw-pub, pep-pub, "
        "dualquery, fem, mst, aim, residual-planner, gaussian, gaussian-paper or all-zero",
    )
    how.add_argument(
        "--public",
        metavar="FILE",
        help="public table of the same schema to start from, for pmw-pub, pep-pub and gem-pub",
    )
    _settings(how)
    how.add_argument("--oversample", type=int, metavar="S", help="synthetic rows drawn from each relaxed row")
    privacy = _protection(parser)
    privacy.add_argument("--ledger", metavar="FILE", help="shared by all releases of one table; budgets add up")
    privacy.add_argument(
        "--ledger-epsilon",
        type=float,
        metavar="E",
        help="limit for the whole ledger at the delta of the run that creates it, which fixes both",
    )
    seeds = parser.add_argument_group("seeds")
    seeds.add_argument("--seed", type=int, metavar="N", help="repeatable noise, for tests and experiments only")
    seeds.add_argument(
        "--workload-seed", type=int, default=0, metavar="N", help="for random:k:m and --augment (%(default)s)"
    )


def _answer(commands: Commands[_Parser]) -> None:
    parser = _add(commands, "answer", "answer queries from a release, free of charge", "asking.answer", examples.ANSWER)
    parser.add_argument("dir", metavar="DIR", help="a release folder")
    parser.add_argument("queries", nargs="*", metavar="QUERY", help='such as "age=39, sex=Male"')
    parser.add_argument("--workload", metavar="W", help="answer a whole workload")
    parser.add_argument("--workload-seed", type=int, default=0, metavar="N", help="for random:k:m (%(default)s)")
    parser.add_argument("-o", "--output", metavar="answers.parquet", help="where to write a workload's answers")
    parser.add_argument(
        "--bootstrap",
        type=int,
        metavar="N",
        help="error bars by N runs on the release's own rows (default: 1 where a query has no other; 0: none)",
    )
    parser.add_argument(
        "--public", metavar="FILE", help="the public table that the release was started from, for such error bars"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _evaluate(commands: Commands[_Parser]) -> None:
    parser = _add(
        commands,
        "evaluate",
        "compare a release with the true table (the output is NOT private)",
        "evaluate",
        examples.EVALUATE,
    )
    parser.add_argument("dir", metavar="DIR", help="a release folder")
    parser.add_argument("--data", required=True, metavar="DATA", help=f"the true table: {_DATA}")
    parser.add_argument("--workload", metavar="W", help="default: the release's own")
    parser.add_argument(
        "--future", metavar="FILE", help="queries asked since (JSON, as for --history): their error too"
    )
    parser.add_argument(
        "--predict",
        metavar="ATTRIBUTE",
        help="what a classifier is trained to predict (default: the last attribute of 2 to 10 values; none: no such "
        "comparison)",
    )
    parser.add_argument(
        "--holdout", metavar="FILE", help="true rows the release was not made from, to test it on (default: a quarter)"
    )
    parser.add_argument("--workload-seed", type=int, default=0, metavar="N", help="for random:k:m (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _table(parser)


def _report_and_ledger(commands: Commands[_Parser]) -> None:
    report = _add(commands, "report", "write report.html anew and say what a release holds", "report")
    report.add_argument("dir", metavar="DIR", help="a release folder")
    ledger = _add(commands, "ledger", "what was charged: by a release, or in a shared ledger", "ledger")
    ledger.add_argument("dir", metavar="DIR", help="a release folder, finished or not, or a ledger file")
    ledger.add_argument("--json", action="store_true", help="print JSON")


def _experiment(commands: Commands[_Parser]) -> None:
    parser = _add(
        commands,
        "experiment",
        "run an experiment of the papers again (the output is NOT private)",
        "experiment",
        examples.EXPERIMENT,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one; see --list")
    parser.add_argument("--list", action="store_true", help="say which experiments there are")
    parser.add_argument("--data", metavar="DIR", help="folder with the public tables they run on")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", dest="size", const="quick", help="a small grid, in minutes")
    size.add_argument("--full", action="store_const", dest="size", const="full", help="the papers' whole grid")
    parser.set_defaults(size="default")
    parser.add_argument("--seeds", type=int, metavar="N", help="repetitions (2; 5 if full)")
    parser.add_argument(
        "--dataset",
        action="append",
        default=[],
        metavar="NAME",
        help="run on this table instead (again for more tables)",
    )
    parser.add_argument("--out", metavar="DIR", help="folder to write (experiment-NAME)")
    parser.add_argument("--resume", action="store_true", help="go on with a run of the same grid in that folder")
    parser.add_argument(
        "--report-only", action="store_true", help="write pictures and claim.md anew from its results.jsonl"
    )


def _asked(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--workload", metavar="W", help="which queries matter; see below")
    asked.add_argument(
        "--history",
        metavar="FILE",
        help="past queries (JSON) to learn them from; public, so it must not depend on the data",
    )
    parser.add_argument(
        "--augment",
        type=int,
        default=0,
        metavar="N",
        help="with --history: add N random thresholds of the same kinds (%(default)s)",
    )


def _settings(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--rounds", type=int, metavar="T", help="rounds of select, measure, fit")
    parser.add_argument("--per-round", type=int, metavar="K", help="queries selected in each round")
    parser.add_argument("--rows", type=int, metavar="N'", help="relaxed rows of the model (1000)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="key=value", help="further settings of the mechanism"
    )


def _protection(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    privacy = parser.add_argument_group("privacy")
    privacy.add_argument("--neighbours", default="replace-one", metavar="R", help="replace-one (default) or add-remove")
    privacy.add_argument(
        "--rows-per-person",
        type=int,
        default=1,
        metavar="C",
        help="most rows that one person has (%(default)s)",
    )
    privacy.add_argument(
        "--certificate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="share of the budget that measures the largest error; 0 to skip (%(default)s)",
    )
    privacy.add_argument("--conversion", metavar="C", help="tight or closed-form; default: the mechanism's own")
    return privacy


def _table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", metavar="NAME", help="which table of a database, such as people or clinic.people")
    parser.add_argument("--memory", default="2GB", metavar="SIZE", help="for reading and counting (%(default)s)")
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="where codes and counts go that exceed it, in a private folder; an interrupted count goes on there",
    )
