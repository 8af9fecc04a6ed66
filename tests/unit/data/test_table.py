from __future__ import annotations

import gzip
import subprocess
import sys
import traceback
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.data.table import Table, read
from discreet.errors import BadData, BadWorkload, UnknownAttribute
from discreet.progress import Progress

CANARY = "canary-7f3a"
SCHEMA = {
    "attributes": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "min": 0, "max": 9},
    ]
}
FRAME = pa.table({"age": ["3", "4", "3"], "extra": ["x", "y", "z"], "sex": ["M", "F", "M"]})
OLD_IBIS = pytest.mark.filterwarnings("ignore:fetch_.* is deprecated:DeprecationWarning:ibis")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def to_csv(path: Path) -> Path:
    return write(path / "t.csv", "age,extra,sex\n3,x,M\n4,y,F\n3,z,M\n")


def to_tsv(path: Path) -> Path:
    return write(path / "t.TSV", "\ufeffage\textra\tsex\r\n 3\tx\tM \r\n4\ty\tF\r\n3.0\tz\tM\r\n")


def to_zipped(path: Path) -> Path:
    with gzip.open(path / "t.csv.gz", "wt") as file:
        file.write('"age",extra,sex\n3,"x\nx",M\n4,"y,y",F\n3,"z""",M')
    return path / "t.csv.gz"


def to_parquet(path: Path) -> Path:
    pq.write_table(FRAME, path / "it's.parquet")
    return path / "it's.parquet"


def to_database(path: Path) -> Path:
    with duckdb.connect(path / "t.duckdb") as engine:
        engine.execute("create table \"odd \"\"name\" as select 3 age, 'M' sex union all values (4, 'F'), (3, 'M')")
    return path / "t.duckdb"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": to_csv,
    "tsv": to_tsv,
    "gzip": to_zipped,
    "parquet": to_parquet,
    "duckdb": to_database,
    "path as text": lambda path: str(to_csv(path)),
    "arrow": lambda _: FRAME,
    "pandas": lambda _: FRAME.to_pandas(),
    "pandas, typed": lambda _: pd.DataFrame({"sex": ["M", "F", "M"], "age": [3.0, 4.0, 3.0]}, index=[7, 8, 9]),
    "pandas, numbered column": lambda _: FRAME.to_pandas().rename(columns={"extra": 0}),
    "polars": lambda _: pl.DataFrame({"sex": ["M", "F", "M"], "age": [3, 4, 3]}),
    "polars, categories": lambda _: pl.DataFrame({"sex": ["M", "F", "M"], "age": [3, 4, 3]}).cast(
        {"sex": pl.Categorical}
    ),
    "polars, lazy": lambda _: pl.LazyFrame({"sex": ["M", "F", "M"], "age": [3, 4, 3]}),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
def test_every_source_gives_the_same_codes(make: Callable[[Path], Any], tmp_path: Path) -> None:
    table = read(make(tmp_path), schema=SCHEMA)
    assert sorted(table.codes().tolist()) == [[0, 4], [1, 3], [1, 3]]
    assert table.rows() == 3


@OLD_IBIS
def test_ibis_tables_are_coded_by_their_own_engine(tmp_path: Path) -> None:
    engine = ibis.duckdb.connect(to_database(tmp_path), read_only=True)
    rows = engine.table('odd "name').filter(ibis._.age == 3)
    assert read(rows, schema=SCHEMA).codes().tolist() == [[1, 3], [1, 3]]


@OLD_IBIS
def test_long_categories_of_ibis_tables() -> None:
    values = [f"v{n}" for n in range(100)]
    schema = {"attributes": [{"name": "x", "type": "categorical", "values": values}]}
    rows = pa.table({"x": values})
    for source in (ibis.memtable(rows), ibis.polars.connect({"t": pl.from_arrow(rows)}).table("t")):
        assert sorted(read(source, schema=schema).codes()[:, 0].tolist()) == list(range(100))


def test_other_engines_in_this_process_are_read_as_frames() -> None:
    engine = ibis.polars.connect({"t": pl.DataFrame({"sex": [" M", "F", "M"], "age": ["3", "4.0", "3"]})})
    assert read(engine.table("t"), schema=SCHEMA).codes().tolist() == [[1, 3], [0, 4], [1, 3]]


def test_a_database_is_released_and_unchanged(tmp_path: Path) -> None:
    path = to_database(tmp_path)
    before = path.read_bytes()
    read(path, schema=SCHEMA)
    assert path.read_bytes() == before
    with duckdb.connect(path) as engine:
        engine.execute("create table second as select 1 age, 'F' sex")
        engine.execute("create view third as select 2 age, 'F' sex")
    with pytest.raises(BadData, match=r"Say which table.*second"):
        read(path, schema=SCHEMA)
    with pytest.raises(BadData, match="no table 'fourth'"):
        read(path, schema=SCHEMA, table="fourth")
    assert read(path, schema=SCHEMA, table="second").codes().tolist() == [[0, 1]]
    assert read(path, schema=SCHEMA, table="third").codes().tolist() == [[0, 2]]


def small() -> Table:
    return read(FRAME, schema=SCHEMA)


def test_only_the_domain_is_printed() -> None:
    assert repr(small()) == str(small()) == "Table(Domain(sex: 2, age: 10))"


def test_counts_of_marginals() -> None:
    table = small()
    total, both, turned = table.counts([(), ("sex", "age"), ("age", "sex")])
    assert (total.cells.tolist(), total.values.tolist()) == ([0], [3])
    assert (both.cells.tolist(), both.values.tolist()) == ([4, 13], [1, 2])
    assert (turned.cells.tolist(), turned.values.tolist()) == ([7, 8], [2, 1])
    assert table.count(["sex"]).dense(2).tolist() == [1, 2]
    assert both.cells.dtype == both.values.dtype == np.int64
    assert table.counts([]) == []


def test_many_marginals_report_progress() -> None:
    class Heard(Progress):
        calls: ClassVar[list[int]] = []

        def stage(self, name: str, steps: int = 0) -> None:
            self.calls.append(steps)

        def step(self, done: int, note: str = "") -> None:
            self.calls.append(done)

    names = [f"x{n}" for n in range(9)]
    codes = np.random.default_rng(0).integers(0, 3, (50, 9))
    table = read(pa.table(dict(zip(names, codes.T, strict=True))), schema=dict.fromkeys(names, 3))
    sets = list(combinations(names, 2))
    found = table.counts(sets, progress=Heard())
    assert Heard.calls == [36, 26, 36]
    assert all(one.values.sum() == 50 for one in found)


def test_unknown_attributes_and_too_many_cells() -> None:
    with pytest.raises(UnknownAttribute):
        small().count(["z"])
    schema = dict.fromkeys("abc", 2**30)
    table = read(pa.table({name: [2**30 - 1] for name in "abc"}), schema=schema)
    assert table.count("ab").cells.tolist() == [2**60 - 1]
    with pytest.raises(BadWorkload, match="2\\^63"):
        table.count("abc")


def test_odd_and_similar_names() -> None:
    names = ["income>50K", "in/out 'of' \"bed\"", "é", "e\u0301", "a", "A", "c0", "value of c0", "--;"]
    frame = pa.table({name: [place] for place, name in enumerate(names)})
    table = read(frame, schema=dict.fromkeys(names, 9))
    assert table.codes().tolist() == [list(range(9))]
    assert [table.count([name]).cells.tolist() for name in names] == [[n] for n in range(9)]


def test_similar_names_in_files(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,A\n0,1\n")
    assert read(path, schema={"A": 2, "a": 2}).codes().tolist() == [[1, 0]]
    pq.write_table(pa.table({"a": [0], "A": [1]}), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", schema={"A": 2, "a": 2}).codes().tolist() == [[1, 0]]


def test_no_rows_one_row_and_one_value(tmp_path: Path) -> None:
    for source in (write(tmp_path / "t.csv", "sex,age\n"), FRAME.slice(0, 0), FRAME.slice(0, 0).to_pandas()):
        table = read(source, schema=SCHEMA)
        assert table.rows() == 0
        assert table.codes().shape == (0, 2)
        assert [len(one.cells) for one in table.counts([(), ("sex",)])] == [0, 0]
    one = read(write(tmp_path / "one.csv", "x\n0"), schema={"x": 1})
    assert one.count(["x"]).dense(1).tolist() == [1]


@pytest.mark.parametrize("size", [1, 255, 256, 257, 65_536, 65_537, 2**33])
def test_codes_survive_the_smallest_type(size: int) -> None:
    table = read(pa.table({"x": [0, size - 1]}), schema={"x": size})
    assert table.codes().tolist() == [[0], [size - 1]]


def refusal(source: Any, schema: Any = SCHEMA, **more: Any) -> str:
    """The message of a refusal, after checking that no part of the error shows a row."""
    with pytest.raises(BadData) as caught:
        read(source, schema=schema, **more)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def test_rows_outside_the_schema_are_counted_and_not_shown() -> None:
    frame = pa.table({"sex": [CANARY, "M", "", None], "age": [CANARY, "77", "99" * 20, " "]})
    message = refusal(frame)
    assert "sex: 1 row outside the schema, 2 rows missing" in message
    assert "age: 3 rows outside the schema, 1 row missing" in message
    assert '"outside": "other"' in message and '"missing": true' in message


def test_missing_columns_are_named_and_found_ones_are_not() -> None:
    message = refusal(pa.table({CANARY: [1], "sex": ["F"]}))
    assert "no column 'age'" in message


BAD_FILES = {
    "empty.csv": b"",
    "blank.csv": b"\n\n",
    "ragged.csv": f"sex,age\nM,1\n{CANARY},2,{CANARY}\n".encode(),
    "short.csv": f"sex,age\nM,1\n{CANARY}\n".encode(),
    "latin.csv": f"sex,age\n{CANARY}\xe9,2\n".encode("latin-1"),
    "utf16.csv": "sex,age\nM,2\n".encode("utf-16"),
    "twice.csv": f"sex,age,{CANARY},{CANARY}\nM,1,2,3\n".encode(),
    "headless.csv": f"{CANARY},3\nM,1\n".encode(),
    "plain.csv.gz": b"sex,age\nM,1\n",
    "cut.csv.gz": gzip.compress(f"sex,age\n{CANARY},1\n".encode() * 999)[:-9],
    "fake.parquet": f"sex,age\n{CANARY},1\n".encode(),
    "fake.duckdb": f"sex,age\n{CANARY},1\n".encode(),
    "t.xlsx": b"x",
    "t.gz": b"x",
}


@pytest.mark.parametrize(("name", "content"), BAD_FILES.items(), ids=BAD_FILES.keys())
def test_files_that_are_not_what_they_should_be(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert len(refusal(tmp_path / name)) > 20


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    frame = pa.table({"sex": [CANARY] * 1000, "age": np.arange(1000)})
    pq.write_table(frame, tmp_path / "t.parquet", compression="none")
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    content[4:60] = b"\xff" * 56
    (tmp_path / "t.parquet").write_bytes(content)
    refusal(tmp_path / "t.parquet")


def test_columns_of_the_same_name_are_refused_by_place(tmp_path: Path) -> None:
    assert "column 3 repeats" in refusal(write(tmp_path / "t.csv", f"sex,age,sex\n{CANARY},1,M\n"))
    columns = [pa.array(["M"]), pa.array(["M"]), pa.array([1])]
    assert "column 2 repeats" in refusal(pa.Table.from_arrays(columns, names=["sex", "sex", "age"]))
    twice = pd.DataFrame([[CANARY, "M", 1]], columns=["sex", "sex", "age"])
    assert "column 2 repeats" in refusal(twice)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none.csv")
    assert "is a folder" in refusal(tmp_path)
    assert "not int" in refusal(3)


def test_a_pandas_column_of_several_types_is_refused_with_advice() -> None:
    assert "turn mixed columns into text" in refusal(pd.DataFrame({"sex": [CANARY, 3], "age": [1, 2]}))


def test_a_lazy_frame_that_fails_says_nothing_of_its_rows() -> None:
    lazy = pl.LazyFrame({"sex": [CANARY], "age": [CANARY]}).cast({"age": pl.Int64})
    refusal(lazy)


def test_importing_the_table_does_not_import_engines() -> None:
    heavy = ["duckdb", "ibis", "pandas", "polars", "pyarrow"]
    code = f"import sys, discreet.data.table; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["people[1]", "people*", "people?"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_path_is_never_a_pattern(tmp_path: Path, name: str, suffix: str) -> None:
    for file, value in ((name, 0), ("people1", 1)):
        frame = pa.table({"a": [value, value]})
        if suffix == ".csv":
            pa.csv.write_csv(frame, tmp_path / (file + suffix))
        else:
            pq.write_table(frame, tmp_path / (file + suffix))
    assert read(tmp_path / (name + suffix), schema={"a": 2}).count(["a"]).cells.tolist() == [0]
