"""Counts that exceed memory, are interrupted, or meet a disk or a table that changes."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from tests.tables import CodedTable

import discreet.data.table as table_module
from discreet.data import scratch, shelf
from discreet.data.engine import Portion
from discreet.data.shelf import TABLE
from discreet.data.sparse import Sparse
from discreet.data.table import Table, read
from discreet.errors import BadData, BadSetting

NAMES = [f"x{number}" for number in range(9)]
SIZES = dict.fromkeys(NAMES, 7)
SETS: list[tuple[str, ...]] = list(combinations(NAMES, 4))  # 126 marginals, five passes
ROWS = 500


def rows(seed: int = 0, number: int = ROWS) -> pa.Table:
    codes = np.random.default_rng(seed).integers(0, 7, (number, 9))
    return pa.table(dict(zip(NAMES, codes.T, strict=True)))


def expected(seed: int = 0) -> list[Sparse]:
    codes = np.column_stack([column.to_numpy() for column in rows(seed).columns])
    return CodedTable(read(rows(), schema=SIZES).domain, codes).counts(SETS)


def same(found: list[Sparse], wanted: list[Sparse]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(np.array_equal(a.cells, b.cells) and np.array_equal(a.values, b.values) for a, b in pairs)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files, for this test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(rows(), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


class Stops(Exception):
    """What a test interrupts a count with."""


class Stopping:
    """An engine that fails in a certain pass."""

    def __init__(self, table: Table, after: int) -> None:
        self.engine, self.left = table._engine, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def count(self, marginals: Any) -> Any:
        if not self.left:
            raise Stops
        self.left -= 1
        return self.engine.count(marginals)


def test_counts_beyond_the_limit_are_views_of_private_files(temporary: Path) -> None:
    table = read(rows(), schema=SIZES)
    table._shelf.limit = 16 * 30_000
    found = table.counts(SETS)
    kinds = {type(one.cells) for one in found}
    assert kinds == {np.ndarray, np.memmap}
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    assert same(found, expected())
    assert found[-1].times(3).values.sum() == 3 * ROWS
    assert same([found[-1].minus(found[-1])], [Sparse(np.zeros(0, np.int64), np.zeros(0, np.int64))])
    table.close()
    assert list(temporary.iterdir()) == []
    assert same(found, expected())


def test_what_was_counted_is_not_counted_again(temporary: Path) -> None:
    table = read(rows(), schema=SIZES)
    table._shelf.limit = 16 * 30_000
    first = table.counts(SETS)
    (folder,) = temporary.iterdir()
    files = sorted(folder.iterdir())
    object.__setattr__(table, "_engine", Stopping(table, after=0))
    assert all(one is two for one, two in zip(first, table.counts(SETS), strict=True))
    assert sorted(folder.iterdir()) == files


def test_a_table_that_is_dropped_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "BYTES_PER_HELD_ROW", 2**40)
    table = read(rows(), schema=SIZES)
    table._shelf.limit = 16
    table.counts(SETS[:3])
    assert len(list(temporary.iterdir())) == 2
    del table
    assert list(temporary.iterdir()) == []


def interrupt(path: Path, folder: Path, *, after: int) -> None:
    """A count that stops after so many passes, and leaves them in a scratch folder."""
    table = read(path, schema=SIZES, scratch=folder)
    object.__setattr__(table, "_engine", Stopping(table, after=after))
    with pytest.raises(Stops):
        table.counts(SETS)
    table.close()


def test_an_interrupted_count_goes_on(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    interrupt(path, folder, after=2)
    (kept,) = folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    with (kept / "passes.jsonl").open("a") as file:
        file.write('{"pass": 2, "sets": [["x')  # as if cut off
    table = read(path, schema=SIZES, scratch=folder)
    object.__setattr__(table, "_engine", Stopping(table, after=3))  # two of five passes were done
    assert same(table.counts(SETS), expected())
    table.close()
    assert list(folder.iterdir()) == []


def test_a_table_that_changed_is_noticed(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    interrupt(path, folder, after=1)
    pq.write_table(rows(seed=1), path)
    with pytest.raises(BadData, match=r"has changed since the count(.|\n)*remove that folder"):
        read(path, schema=SIZES, scratch=folder)
    pq.write_table(rows(), path)
    table = read(path, schema=SIZES, scratch=folder)
    assert len(table._shelf._found) == table_module.MARGINALS_PER_PASS
    assert same(table.counts(SETS), expected())


def test_marginals_that_do_not_add_up_are_refused() -> None:
    table = read(rows(), schema=SIZES)

    class Changing(Stopping):
        def count(self, marginals: Any) -> Any:
            stretches: list[Portion] = list(self.engine.count(marginals))
            return [(number, cells[1:], values[1:]) for number, cells, values in stretches]

    object.__setattr__(table, "_engine", Changing(table, after=0))
    with pytest.raises(BadData, match="changed while it was counted"):
        table.counts(SETS[:1])


def test_one_count_at_a_time_in_a_scratch_folder(path: Path, tmp_path: Path) -> None:
    table = read(path, schema=SIZES, scratch=tmp_path / "scratch")
    with pytest.raises(BadSetting, match="is in use"):
        read(path, schema=SIZES, scratch=tmp_path / "scratch")
    table.close()
    read(path, schema=SIZES, scratch=tmp_path / "scratch").close()


def test_a_scratch_folder_that_cannot_be_written(path: Path, tmp_path: Path) -> None:
    for place in (path, path / "below"):
        with pytest.raises(BadSetting, match="choose another place with --scratch"):
            read(path, schema=SIZES, scratch=place)
    table = read(path, schema=SIZES, scratch=tmp_path / "scratch")
    (folder,) = (tmp_path / "scratch").iterdir()
    table.close()
    folder.mkdir(mode=0o755)
    with pytest.raises(BadSetting, match="nobody else may read"):
        read(path, schema=SIZES, scratch=tmp_path / "scratch")


def test_what_a_killed_program_left_is_removed_by_the_next(temporary: Path) -> None:
    program = f"""
        import os, signal, tempfile
        tempfile.tempdir = {str(temporary)!r}
        from discreet.data import scratch
        scratch.make()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert len(list(temporary.iterdir())) == 1
    mine = scratch.make()
    assert list(temporary.iterdir()) == [mine.path]
    scratch.make().close()
    assert list(temporary.iterdir()) == [mine.path]
    scratch.clean_up()
    assert list(temporary.iterdir()) == []


def test_a_forked_child_removes_nothing(temporary: Path) -> None:
    mine = scratch.make()
    mine._process += 1
    mine.close()
    assert mine.path.is_dir()


FULL_DISK = """
    import resource, signal, sys
    from discreet.data.table import read
    from discreet.errors import BadData
    from itertools import combinations
    from tests.unit.data.test_shelf import NAMES, SIZES
    table = read(sys.argv[1], schema=SIZES, scratch=sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        table.counts(list(combinations(NAMES, 4)))
    except BadData as error:
        print(error)
        sys.exit(7)
"""


def test_a_full_disk_is_said_and_the_count_goes_on_later(path: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: writing fails in the middle of a pass."""
    command = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(path), str(tmp_path / "scratch")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    ran = subprocess.run([*command, "50000"], capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 7, ran.stderr
    assert "is full, so counting stopped" in ran.stdout and "--scratch DIR" in ran.stdout
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    table = read(path, schema=SIZES, scratch=tmp_path / "scratch")
    assert same(table.counts(SETS), expected())


@pytest.mark.parametrize("left", [b"", b'{"rows": 50'])
def test_a_count_that_was_cut_off_as_it_began_begins_anew(path: Path, tmp_path: Path, left: bytes) -> None:
    scratch_folder = tmp_path / "scratch"
    table = read(path, schema=SIZES, scratch=scratch_folder)
    object.__setattr__(table, "_engine", Stopping(table, 1))
    with pytest.raises(Stops):
        table.counts(SETS)
    table.close()
    (folder,) = scratch_folder.iterdir()
    (folder / TABLE).write_bytes(left)
    again = read(path, schema=SIZES, scratch=scratch_folder)
    assert again._shelf.get(SETS[0]) is None
    assert same(again.counts(SETS), expected())


def test_a_disk_without_room_for_a_count_is_given_back(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(shelf, "_write_private", full)
        with pytest.raises(BadData, match="is full"):
            read(path, schema=SIZES, scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert same(read(path, schema=SIZES, scratch=tmp_path / "scratch").counts(SETS), expected())


def test_a_parquet_file_larger_than_the_memory(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "large.parquet"
    drawn = "select (i % 7)::tinyint a, (hash(i) % 11)::tinyint b, hash(i, 1) x, hash(i, 2) y from range(5000000) t(i)"
    with duckdb.connect() as database:
        database.execute(f"copy ({drawn}) to '{path}' (format parquet, compression uncompressed)")
        pairs = database.execute(f"select a * 11 + b c, count(*) k from '{path}' group by c order by c").fetchnumpy()
    assert path.stat().st_size > 64 * 2**20
    table = read(path, schema={"a": 7, "b": 11}, memory="64MB")
    assert type(table._engine).__name__ == "Stored"
    both, total = table.counts([("a", "b"), ()])
    assert np.array_equal(both.cells, pairs["c"]) and np.array_equal(both.values, pairs["k"])
    assert total.values.tolist() == [table.rows()] == [5_000_000]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_larger_than_the_memory_of_which_every_column_is_needed(kind: str, tmp_path: Path) -> None:
    path, many = tmp_path / f"wide.{kind}", 1_000_000 if kind == "parquet" else 2_000_000
    drawn = np.random.default_rng(0).integers(0, 50, (12, many))
    wide = pa.table({f"a{place}": column for place, column in enumerate(drawn)})
    if kind == "parquet":
        pq.write_table(wide, path, compression="none", use_dictionary=False, row_group_size=200_000)
    else:
        csv.write_csv(wide, path)
    assert path.stat().st_size > 64 * 2**20
    table = read(path, schema={f"a{place}": 50 for place in range(12)}, memory="64MB")
    found = table.count(("a3", "a7"))
    assert np.array_equal(found.dense(2500), np.bincount(drawn[3] * 50 + drawn[7], minlength=2500))


def test_too_little_memory_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from discreet.data import source

    def starving() -> None:
        raise duckdb.OutOfMemoryException("canary")

    with pytest.raises(BadData, match="give more with --memory"):
        source.veiled(starving, "The rows cannot be read.")


@pytest.mark.parametrize("wrong", ["lots", "10MB", "", -3, 0, True, "2 GB GB", 2.5])
def test_sizes_of_memory_that_are_refused(wrong: Any) -> None:
    with pytest.raises(BadSetting, match="memory must be a size"):
        read(rows(), schema=SIZES, memory=wrong)


def test_sizes_of_memory() -> None:
    from discreet._check import size

    assert size("memory", "2GB") == size("memory", " 2 gib ") == size("memory", 2**31) == 2**31
    assert size("memory", "1.5g") == 3 * 2**29
    assert size("memory", "64MB") == 2**26


def test_a_file_that_changes_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = table_module._engine

    def slow(*given: Any, **more: Any) -> Any:
        engine = original(*given, **more)
        os.utime(path, ns=(1, 1))
        return engine

    monkeypatch.setattr(table_module, "_engine", slow)
    with pytest.raises(BadData, match="changed while it was read"):
        read(path, schema=SIZES)


def test_the_list_of_passes_holds_names_and_lengths_only(path: Path, tmp_path: Path) -> None:
    table = read(path, schema=SIZES, scratch=tmp_path / "scratch")
    table.counts(SETS[:2])
    (folder,) = (tmp_path / "scratch").iterdir()
    (line,) = (folder / "passes.jsonl").read_text().splitlines()
    assert set(json.loads(line)) == {"pass", "sets", "lengths"}
