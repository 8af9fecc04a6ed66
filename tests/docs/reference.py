"""The command-line reference, made from --help. `make docs` writes it; a test compares it."""

from __future__ import annotations

import argparse
import os
import sys

os.environ["COLUMNS"] = "110"

COMMANDS: tuple[list[str], ...] = (
    [],
    ["demo"],
    ["schema", "draft"],
    ["schema", "check"],
    ["plan"],
    ["release"],
    ["answer"],
    ["evaluate"],
    ["report"],
    ["ledger"],
    ["experiment"],
)


def reference() -> str:
    """docs/cli.md, whole."""
    from discreet.apps.cli import build_parser

    parts = ["# Command line\n\nMade from `--help` by `make docs`.\n"]
    for words in COMMANDS:
        parser = build_parser()
        for word in words:
            (choices,) = [
                action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)
            ]
            parser = choices[word]
        parts.append(f"## {' '.join(['discreet', *words])}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
