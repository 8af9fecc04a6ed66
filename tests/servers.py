"""Real engines for tests: a PostgreSQL server of our own, and one Spark session.

Where `DISCREET_ENGINES=all` is set, as in `.ci/run`, an engine that is not there is a failure; elsewhere its tests are
skipped, and say why.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

PASSWORD = "s3cret-pa55/word@?"
USER = "owner_of_rows"


def unavailable(reason: str) -> NoReturn:
    """Skip what needs an engine, or fail where every engine must be there."""
    if os.environ.get("DISCREET_ENGINES") == "all":
        pytest.fail(f"DISCREET_ENGINES=all, but {reason}")
    pytest.skip(reason)


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    folder: Path
    port: int
    binaries: Path
    account: str | None

    @property
    def url(self) -> str:
        """How to connect, password included."""
        return (
            f"postgres://{USER}:{PASSWORD.replace('/', '%2F').replace('@', '%40').replace('?', '%3F')}@{self.address}"
        )

    @property
    def address(self) -> str:
        """Host, port and database."""
        return f"127.0.0.1:{self.port}/postgres"

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def run(self, *words: str) -> None:
        """Run one of the server's own programs under the account it needs."""
        command = [str(self.binaries / words[0]), *words[1:]]
        group = pwd.getpwnam(self.account).pw_gid if self.account else None
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, user=self.account, group=group
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=20"
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-o", settings, "-l", f"{self.folder}/log", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A fresh server on a free port, removed at the end."""
    if find_spec("psycopg") is None:
        unavailable("psycopg is not installed: pip install 'discreet[postgres]'")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = str(found[-1]) if found else shutil.which("initdb")
    if program is None:
        unavailable("there is no PostgreSQL server here: apt-get install postgresql")
    account = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        (folder / "password").write_text(PASSWORD + "\n")
        if account:
            for path in (folder, folder / "password"):
                shutil.chown(path, account)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = Postgres(folder, port, Path(program).parent, account)
        words = ["-D", f"{folder}/data", "-U", USER, "-A", "scram-sha-256", f"--pwfile={folder}/password"]
        server.run("initdb", *words, "-E", "UTF8", "--locale=C", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spark() -> Iterator[Any]:
    """A local Spark session with one or two threads and no web page."""
    if find_spec("pyspark") is None:
        unavailable("pyspark is not installed: pip install 'discreet[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        unavailable("there is no Java here: apt-get install default-jre-headless")
    from discreet.data.connect import spark_session

    session = spark_session("local[2]")
    try:
        yield session
    finally:
        session.stop()
