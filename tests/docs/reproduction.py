"""docs/reproduction.md, and pictures and claims beside the results it is made from. `make docs` writes it."""

from __future__ import annotations

import re
from pathlib import Path

from discreet.experiments import claim, record, runner
from discreet.experiments.catalogue import NAMES, find
from discreet.experiments.record import RESULTS

DOCS = Path(__file__).parents[2] / "docs"

HEAD = """\
# The papers' findings, run again

Made by `make docs` from the results in `docs/reproduction/`; each section is an experiment that `discreet experiment
NAME --data DIR` runs. *The paper* is Avent and Korolova (2023), unless a section says Aydore et al. (2021); in `public`
it is Liu, Vietri and Wu (2021). `rap-paper` is the published recipe and `rap` is ours. A finding is *confirmed* or
*refuted* only where a 95 % interval, or a test, lies wholly on one side, and two seeds or more were run; otherwise it
is *undecided*. Errors here are against the truth, so none of this is private.

The committed results are of **quick** grids: few cells, few seeds, and for `rap-paper` fewer and larger steps and fewer
relaxed rows than published, as each claim says. They show directions, not the papers' digits. All ran on ADULT, but for
`intervals` (ADULT reduced to 7 attributes, and NLTCS; `--seeds 10`, which is 200 releases) and `public` (ACS; `--seeds
3`); those whose claims name it ran on LOANS too (`--quick --dataset loans`). Of the papers' grids these leave out
epsilon 0.01, workloads of 64 and 256 marginals (but for `rule`), most schedules (T, K), and Aydore et al.'s Figure
5(a). Without `--quick` there are more cells; `--full` has the papers' constants and their whole grid.

How these runs came about: `drift` was given 4 seeds, looked at, and then 8, so its intervals are a little optimistic.
`rap`'s cells on ADULT were run before its tiles were made lower, which changes nothing there but the draws; those of
`schedule` with several rounds, before marginals behind selected queries were measured only once. In `public`,
`intervals` and `family` the cells of `auto` ran after the others. Of `family` there are cells of the full grid, those
that time allowed: all of most mechanisms, and one to three seeds of those that take minutes; each had one core, and
what it says of time is of that (first seeds of `mst` on all of ADULT, of `rap-softmax`, `rap-paper` and `gem` with
whole marginals ran before those were made faster, and machines differ by a factor of three in speed: each result says
how slow its own was). Seconds of the other experiments were measured on a shared machine,
some runs were halted for minutes in between, and two ran at once: do not read them as speed.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, _table(), *(_section(name) for name in NAMES)])


def finished() -> list[str]:
    """Experiments that have results."""
    return [name for name in NAMES if (DOCS / "reproduction" / name / RESULTS).is_file()]


def _table() -> str:
    """Every finding in a line."""
    text = (
        "## In short\n\n| experiment | who says so | what | for | on | ratio or test | verdict |\n" + "|---" * 7 + "|\n"
    )
    for name in finished():
        experiment = find(name)
        entries = record.load(DOCS / "reproduction" / name / RESULTS)
        anchor = re.sub(r"[^\w -]", "", experiment.title.lower()).replace(" ", "-")
        for finding in claim.findings(experiment, record.rows(entries)):
            subject = re.search(r"`[\w-]+`", finding.ours)
            text += (
                f"| [{name}](#{anchor}) | {finding.whose.lower()} | {finding.paper} | "
                f"{subject[0] if subject else ''} | {finding.dataset} | {finding.figure} | **{finding.verdict}** |\n"
            )
    return text


def _section(name: str) -> str:
    experiment = find(name)
    heading = f"## {experiment.title}\n\n`{name}`: {experiment.source}.\n"
    if name not in finished():
        return f"{heading}\nNot run yet: `discreet experiment {name} --data DIR --quick`.\n"
    text = (DOCS / "reproduction" / name / "claim.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"\n\n(?=## )", text)
    picture = re.search(r"!\[(.*?)\]\((.*?)\)", text)
    shown = f"\n![{picture[1]}](reproduction/{name}/{picture[2]})\n" if picture else ""
    told = [part.strip().replace("## ", "### ", 1) for part in parts if part.startswith("## Finding")]
    more = f"Other pictures, why numbers differ and what was run: [claim.md](reproduction/{name}/claim.md)."
    return heading + shown + "\n" + "\n\n".join([*told, more]) + "\n"


if __name__ == "__main__":
    for each in finished():
        runner.report(DOCS / "reproduction" / each)
    (DOCS / "reproduction.md").write_text(page(), encoding="utf-8")
