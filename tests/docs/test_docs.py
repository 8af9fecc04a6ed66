"""Documentation that is compared with what it documents."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from benchmarks import forecasts

from discreet.data import population
from discreet.data.table import read
from discreet.experiments import beside, record, runner
from discreet.experiments.chart import mean, where
from discreet.experiments.record import RESULTS
from discreet.mechanisms.catalogue import catalogue
from tests.docs import reproduction
from tests.docs.reference import reference

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse lays help out differently in other versions")
def test_the_command_line_reference_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference(), "run `make docs`"


@pytest.mark.parametrize("mechanism", catalogue())
def test_every_mechanism_and_setting_is_documented(mechanism: str) -> None:
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("rap.md", "family.md"))
    assert f"`{mechanism}`" in text
    (listed,) = re.findall(r"--mechanism NAME  +(auto .*?)\n  --", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL)
    assert mechanism in re.findall(r"[\w-]+", re.sub(r"-\n +", "-", listed))
    settings = catalogue()[mechanism].settings
    documented = "".join(each.__doc__ or "" for each in settings.__mro__)
    for field in fields(settings):
        assert f"    {field.name}: " in documented
        assert f"`{field.name}`" in text or f"`--{field.name.replace('_', '-')}`" in text, field.name


def test_the_page_of_findings_is_current(tmp_path: Path) -> None:
    """Pictures and claims follow from the committed results, and the page from those."""
    assert (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8") == reproduction.page(), "run `make docs`"
    for name in reproduction.finished():
        committed = ROOT / "docs" / "reproduction" / name
        (tmp_path / name).mkdir()
        shutil.copy(committed / RESULTS, tmp_path / name)
        runner.report(tmp_path / name, name=name)
        made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / name).iterdir()}
        assert made == {path.name: path.read_text(encoding="utf-8") for path in committed.iterdir()}, "run `make docs`"


_TABLES = {
    "nltcs": "NLTCS",
    "adult-reduced": "ADULT reduced",
    "adult-binned": "ADULT in bins",
    "adult": "ADULT",
    "loans": "LOANS",
    "acs-2019-excerpts": "ACS",
    "salary-coded": "SALARY",
}


def test_what_the_docs_say_of_the_family_is_what_was_found() -> None:
    """Where `auto` stands, line by line, and some of the errors."""
    rows = record.rows(record.load(ROOT / "docs" / "reproduction" / "family" / RESULTS))
    found = beside.standing(rows, "`auto`", ("max_error", "mean_error", "mean_tvd"), "dataset", "workload", "epsilon")
    told = (ROOT / "docs" / "auto.md").read_text(encoding="utf-8")
    for dataset, workload, epsilon in dict.fromkeys(one.where for one in found):
        here = where(rows, dataset=dataset, workload=workload, epsilon=epsilon)
        seeds = len(beside.named(here)["`auto`"])
        ratios = [f"{one.ratio:.2f} ({one.best})" for one in found if one.where == (dataset, workload, epsilon)]
        line = f"| {' | '.join([_TABLES[dataset], workload, f'{epsilon:g}', str(seeds), *ratios])} |"
        assert line in told, f"{line} is not in docs/auto.md"
    least = sum(one.ratio <= 1 for one in found)
    assert f"**{least} of {len(found)} figures are the least of all ({least / len(found):.0%})**" in told
    (head, row) = re.findall(
        r"\n(\| `auto` \| `rap` .*)\n\|[-|]+\n(\| .*)\n", (ROOT / "docs" / "family.md").read_text()
    )[0]
    ran = beside.named(where(rows, dataset="adult-reduced", epsilon=1.0))
    for title, figures in zip(head.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True):
        full = {"`residual-planner`, largest": "`residual-planner`, least largest"}.get(title, title)
        cells = ran[full.replace(", whole", ", whole marginals")]
        assert figures == f"{mean(cells, 'max_error'):.4f}, {mean(cells, 'mean_tvd'):.3f}", title


def test_what_the_readme_says_of_the_family_is_what_was_found() -> None:
    """Largest error and total variation of some mechanisms on ADULT, epsilon by epsilon."""
    rows = record.rows(record.load(ROOT / "docs" / "reproduction" / "family" / RESULTS))
    table = re.search(r"\| epsilon \| (`auto` .*) \|\n\|[-|]+\n((?:\|.*\n)+)", (ROOT / "README.md").read_text())
    assert table is not None
    for line in table[2].splitlines():
        epsilon, *told = line.strip("| ").split(" | ")
        ran = beside.named(where(rows, dataset="adult", workload="random:3:64", epsilon=float(epsilon)))
        for title, figures in zip(table[1].split(" | "), told, strict=True):
            assert figures == f"{mean(ran[title], 'max_error'):.4f}, {mean(ran[title], 'mean_tvd'):.3f}", title


def test_how_often_the_default_is_the_least_is_what_was_found() -> None:
    """The counts of README.md and docs/auto.md are those of the experiment's own report."""
    reported = (ROOT / "docs" / "reproduction" / "family" / "claim.md").read_text(encoding="utf-8")

    def counts(row: str) -> list[str]:
        (line,) = re.findall(rf"^\| {re.escape(row)}[^|]* \|(.*) \|$", reported, re.MULTILINE)
        return [one.strip() for one in line.split("|")]

    every, published, slow = map(counts, ("of all mechanisms", "but for `rap`", "of all, at epsilon 0.1 and 1"))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"in {every[0]} figures" in readme
    assert f"at once in {every[-2]} cases (table, workload, epsilon), and in {published[-2]} among" in readme
    assert f"where it is {slow[0]} figures" in readme
    auto = " ".join((ROOT / "docs" / "auto.md").read_text(encoding="utf-8").split())
    assert f"in {every[1]} (table, workload, epsilon), mean error and total variation in {every[2][:2]}" in auto
    assert f"all three at once in {every[-2][:2]}" in auto
    assert f"At these two it is {slow[0]}" in auto


def test_forecasts_were_compared_with_the_results_as_they_are() -> None:
    told = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
    results = forecasts.rows()
    counted = f"From {len(results):,} results, {len(forecasts.paced(results)):,} of them"
    assert counted in told, "run `python -m benchmarks forecasts`"


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_examples_about_past_queries_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JSON and the Python of docs/history.md, on a small invented table under the names they use."""
    import pyarrow.parquet as pq

    from discreet.data.domain import Domain
    from discreet.data.schema import Schema
    from discreet.queries.history import History

    text = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    (content,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert History.read(json.loads(content), Domain({"age": 85, "sex": 2, "race": 5})).size == 18
    monkeypatch.chdir(tmp_path)
    pq.write_table(population.draw(400, seed=0), "people.parquet")
    Schema.load(population.SCHEMA).save("schema.json")
    Path("past.json").write_text('["age=39, sex=female", "region, income"]')
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "history.md", "exec"), {})


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's Python block, on a small invented table under the names it uses."""
    import pyarrow.parquet as pq

    from discreet.data.schema import Schema

    monkeypatch.chdir(tmp_path)
    pq.write_table(population.draw(400, seed=0), "people.parquet")
    Schema.load(population.SCHEMA).save("schema.json")
    assert read("people.parquet", schema="schema.json").rows() == 400
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "release" / "report.html").is_file()
