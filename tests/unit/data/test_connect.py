"""Addresses of databases: what is refused, what is never shown, and databases that go away."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pytest
from tests.servers import PASSWORD, USER, Postgres, postgres

from discreet.apps.cli import main
from discreet.data.draft import draft
from discreet.data.shown import parts, shown
from discreet.data.table import read
from discreet.errors import BadData, BadSetting
from discreet.publish.make import release

SCHEMA = {"sex": 2, "age": 4}
CANARY = "canary-7f3a"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        with started.connect() as connection:
            connection.execute("create table people as select i % 2 sex, i % 4 age from generate_series(0, 99) i")
            connection.execute("create schema clinic")
            connection.execute("create table clinic.people as select 1 sex, 3 age")
            connection.execute(f"create table \"{CANARY}.x\" as select 1 sex, 2 age, '{CANARY}' note")
            connection.execute(f"create role poor login password '{PASSWORD}'")
            connection.execute("grant select on people to poor")
            connection.execute(f"create role stranger login password '{PASSWORD}'")
            connection.execute("revoke temporary on database postgres from public")
        yield started


def secret(text: str) -> bool:
    return any(word in text for word in (PASSWORD, quote(PASSWORD, safe=""), USER, "s3cret"))


def refusal(source: str, kind: type[Exception] = BadData, **more: Any) -> str:
    with pytest.raises(kind) as caught:
        read(source, schema=SCHEMA, **more)
    assert not secret("".join(traceback.format_exception(caught.value)))
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, ImportError)
    return str(caught.value)


def test_what_is_an_address() -> None:
    assert parts("postgres://x") == ("postgres", "x")
    assert parts("people.csv") is None and parts("/a/b.csv") is None and parts("c:/x.csv") is None
    assert shown("POSTGRES://me:secret@host/db") == "postgres://..."
    assert shown("people.csv") == "people.csv"


@pytest.mark.parametrize(
    "typed",
    [
        "postgres:/me:hunter2@db/x",
        " postgres://me:hunter2@db/x",
        "jdbc:postgresql://me:hunter2@db/x",
        "host=db user=me password=hunter2 dbname=x",
        "postgres://me:hun ter2@db/x",
    ],
)
def test_a_mistyped_address_is_not_echoed(typed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"sex": 2, "age": 4}')
    assert main(["schema", "check", typed, "--schema", str(schema)]) == 2
    needed = ["--schema", str(schema), "--epsilon", "1", "--workload", "all:1", "--out", "x"]
    with pytest.raises(SystemExit):
        main(["release", "a.csv", typed, *needed])
    with pytest.raises((BadData, BadSetting)) as caught:
        read(typed, schema=SCHEMA)
    printed = capsys.readouterr()
    assert "unrecognized arguments: " in printed.err and "BadSchema" not in printed.err
    assert "ter2" not in printed.out + printed.err + str(caught.value)


def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    assert "mysql:// is not a kind" in refusal(f"mysql://{USER}:{quote(PASSWORD)}@host/db")
    assert "does not exist" in refusal(f"duckdb://{tmp_path}/none.duckdb")
    assert "cannot be reached" in refusal(f"postgres://{USER}:s3cret@127.0.0.1:1/db?connect_timeout=2")
    assert "not understood" in refusal(f"postgres://{USER}:s3cret@[::1/db")
    assert "not understood" in refusal(f"postgres://{USER}@host/db?s3cret={PASSWORD}")
    for master in ("", "host", "host:port", "local[0]", "local[x]", f"{USER}:s3cret@host"):
        assert "not understood" in refusal(f"spark://{master}/tmp")
    assert "does not exist" in refusal(f"spark://local{tmp_path}/none.parquet")
    assert "leave out either" in refusal(f"spark://local{tmp_path}/none.parquet", BadSetting, table="people")
    (tmp_path / "some.csv").write_text("sex\n")
    assert "leave it out" in refusal(str(tmp_path / "some.csv"), BadSetting, table="people")


def test_a_duckdb_address(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "odd.csv") as database:
        database.execute("create table t as select 1 sex, 3 age")
    assert read(f"duckdb://{tmp_path}/odd.csv", schema=SCHEMA).codes().tolist() == [[1, 3]]


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "discreet[postgres]" in refusal(f"postgres://{USER}@host/db", BadSetting)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql.pandas", None)
    assert "discreet[spark]" in refusal(f"spark://local{__file__}", BadSetting)


def test_tables_are_found_by_name(server: Postgres) -> None:
    assert read(server.url, schema=SCHEMA, table="clinic.people").codes().tolist() == [[1, 3]]
    assert read(server.url, schema=SCHEMA, table=f"{CANARY}.x").codes().tolist() == [[1, 2]]
    assert "Say which table" in refusal(server.url)
    assert "no table 'clinic.nobody'" in refusal(server.url, table="clinic.nobody")
    assert "no table 'nobody'" in refusal(server.url, table="nobody")
    assert "cannot be reached" in refusal(server.url.replace("s3cret", "s3cret-wrong"), table="people")
    drafted, _ = draft(server.url, table="people")
    assert [one["name"] for one in drafted["attributes"]] == ["sex", "age"]


def test_the_password_may_come_from_the_environment(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert read(f"postgres://{USER}@{server.address}", schema=SCHEMA, table="people").rows() == 100


def test_an_account_without_temporary_tables_is_told_so(server: Postgres) -> None:
    source = server.url.replace(USER, "poor")
    assert "make temporary tables" in refusal(source, table="people")
    source = server.url.replace(USER, "stranger")
    assert "shows this account: none" in refusal(source, table="people")


def test_a_server_that_goes_away_and_comes_back(server: Postgres, tmp_path: Path) -> None:
    table = read(server.url, schema=SCHEMA, table="people")
    ledger = tmp_path / "ledger"
    settings: dict[str, Any] = {"epsilon": 1.0, "mechanism": "gaussian", "ledger": ledger, "delta": 1e-6}
    assert table.count(["sex"]).values.tolist() == [50, 50]
    server.stop()
    with pytest.raises(BadData, match="stopped answering") as caught:
        release(table, "all:1", **settings)
    assert not secret("".join(traceback.format_exception(caught.value)))
    server.start()
    charged = len(ledger.read_text().splitlines())
    assert charged == 2  # the head and one charge, which stays: its result was lost
    table.close()
    release(read(server.url, schema=SCHEMA, table="people"), "all:1", **settings)
    assert len(ledger.read_text().splitlines()) == charged + 2  # measurement and certificate, each once


def test_no_command_prints_an_address(server: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, out = tmp_path / "schema.json", tmp_path / "release"
    schema.write_text('{"sex": 2, "age": 4}')
    common = ["--schema", str(schema), "--table", "people"]
    assert main(["schema", "check", server.url, *common]) == 0
    words = ["--workload", "all:2", "--epsilon", "1", "--mechanism", "gaussian", "--out", str(out)]
    assert main(["release", server.url, *common, *words]) == 0
    assert main(["evaluate", str(out), "--data", server.url, "--table", "people"]) == 0
    assert main(["release", server.url + "x", *common, *words]) == 2
    printed = capsys.readouterr()
    assert "postgres://... fits" in printed.out
    assert not secret(printed.out + printed.err)
    for file in out.iterdir():
        assert not secret(file.read_bytes().decode("utf-8", errors="replace"))


URL = f"postgres://{USER}:s3cret@host/db"


@pytest.mark.parametrize(
    "words",
    [
        [URL],
        ["answer", URL, "sex=1"],
        ["report", URL],
        ["ledger", URL],
        ["experiment", URL],
        ["experiment", "drift", "--data", URL],
        ["evaluate", URL, "--data", "people.csv"],
        ["release", "people.csv", URL],
        *(
            [
                "release",
                "people.csv",
                "--schema",
                "s",
                "--workload",
                "all:1",
                "--epsilon",
                "1",
                "--out",
                "o",
                option,
                URL,
            ]
            for option in (
                "--schema",
                "--workload",
                "--out",
                "--table",
                "--ledger",
                "--scratch",
                "--memory",
                "--epsilon",
            )
        ),
    ],
)
def test_an_address_in_the_wrong_place_is_not_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert not secret(printed)


def test_scratch_inside_the_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--schema", "s.json", "--workload", "all:1", "--epsilon", "1", "--out", str(tmp_path / "out")]
    assert main(["release", "t.csv", *words, "--scratch", str(tmp_path / "out" / "inside")]) == 2
    assert "must not be inside --out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_frames_still_are_frames() -> None:
    assert read(pa.table({"sex": [1], "age": [2]}), schema=SCHEMA).rows() == 1
