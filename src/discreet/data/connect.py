"""Connection strings: databases by address. What is in them is never shown, because passwords may be."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis

from discreet.data.attended import attended
from discreet.data.shown import parts
from discreet.data.source import Source, from_ibis, open_file, veiled
from discreet.errors import BadData, BadSetting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = re.compile(r"local(\[(\*|[1-9][0-9]{0,3})\])?|[^/\s]+:[0-9]{1,5}")
_CATALOG = (
    " Spark shows what other sessions saved only if it has a lasting catalog, such as a Hive metastore: see "
    "docs/engines.md. Without one, give a path that every machine of the cluster has, as in spark://HOST:PORT/FOLDER."
)

FORMS = "duckdb://FILE, postgres://USER@HOST:PORT/DATABASE or spark://local/FILE.parquet"


def open_address(source: str, table: str | None) -> Source:
    """Open the table that a connection string leads to.

    Raises:
        BadData: There is no such database or table.
        BadSetting: A library that is needed for it is not installed.
    """
    scheme, rest = parts(source) or ("", source)
    match scheme:
        case "duckdb":
            return open_file(Path(rest), table, database=True)
        case "postgres" | "postgresql":
            return _open_postgres("postgresql://" + rest, table)
        case "spark":
            return _open_spark(rest, table)
    raise BadData(f"{scheme}:// is not a kind of address that can be read; give {FORMS}, or a file.")


def _open_postgres(address: str, table: str | None) -> Source:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise BadSetting("Reading from PostgreSQL needs a driver: pip install 'discreet[postgres]'.") from None
    form = "postgres://USER@HOST:PORT/DATABASE, the password in PGPASSWORD or ~/.pgpass"
    settings = veiled(lambda: conninfo_to_dict(address), f"The address is not understood; it should look like {form}.")
    place = {key: str(settings.get(key, "")) for key in ("host", "port", "dbname")}
    connection = veiled(
        lambda: psycopg.connect(address, autocommit=True, application_name="discreet"),
        "The PostgreSQL server cannot be reached, or does not let this account in. Check that it runs, the address "
        f"({form}), and the password.",
    )
    backend = veiled(lambda: ibis.postgres.from_connection(connection), "The PostgreSQL server cannot be used.")
    try:
        rows, name = _find_table(backend, table)
    except BaseException:
        connection.close()
        raise
    return from_ibis(rows, identity={"postgres": place, "table": name}, close=connection.close)


def _find_table(backend: Any, table: str | None, advice: str = "") -> tuple[Any, str]:
    """A table by name, perhaps behind its schema's: `people` or `clinic.people`."""
    complaint = "The database does not tell which tables it has."
    known = sorted(veiled(backend.list_tables, complaint))
    if table is None and len(known) == 1:
        table = known[0]
    shows = f"the database shows this account: {', '.join(known) or 'none'}"
    if table is None:
        raise BadData(f"Say which table to read, with --table NAME; {shows}.{advice}")
    unreadable = "The table cannot be read; the account may lack permission for it."
    if table in known:
        return veiled(lambda: backend.table(table), unreadable), table
    inside, dot, name = table.partition(".")
    places = veiled(backend.list_databases, complaint) if dot else ()
    if inside in places and name in veiled(lambda: backend.list_tables(database=inside), complaint):
        return veiled(lambda: backend.table(name, database=inside), unreadable), table
    raise BadData(f"There is no table {table!r}; {shows}.{advice}")


def _open_spark(rest: str, table: str | None) -> Source:
    """`local`, `local[4]` or `HOST:PORT`, followed by the path of a Parquet file or to be used with a table's name."""
    master, slash, path = rest.partition("/")
    file = Path(slash + path)
    if not _MASTER.fullmatch(master):
        raise BadData(
            "The address is not understood; it should look like spark://local/FILE.parquet, or spark://HOST:PORT for a "
            "table of a cluster; local[4] instead of local takes four threads."
        )
    if path and table is not None:
        raise BadSetting(
            "--table names a table of Spark's catalog: leave out either it or the path behind the address."
        )
    if path and not file.exists():
        raise BadData(
            f"{file} does not exist; behind spark://local comes the absolute path of a Parquet file or folder."
        )
    session = spark_session(master if master.startswith("local") else f"spark://{master}")
    backend = veiled(lambda: ibis.pyspark.connect(session), "The Spark session cannot be used.")
    with attended(session):
        if not path:
            rows, name = _find_table(backend, table, _CATALOG)
            return from_ibis(rows, identity={"spark": master, "table": name})
        rows = veiled(lambda: backend.read_parquet(str(file)), f"{file} is not a sound Parquet file, or out of reach.")
    return from_ibis(rows, identity={"spark": master, "path": str(file.resolve())}, path=file)


def spark_session(master: str) -> SparkSession:
    """The Spark session of this process: the one it has, or a quiet new one.

    Args:
        master: `local` for every core of this machine, `local[2]` for two, or an address that Spark knows.

    Raises:
        BadSetting: pyspark or Java is missing, or Spark does not start.
    """
    try:
        with warnings.catch_warnings():  # about versions of pandas, which we do not use with Spark
            warnings.simplefilter("ignore")
            import pyspark.sql.pandas.types  # noqa: F401
            from ibis.backends import pyspark as _  # noqa: F401
            from pyspark.sql import SparkSession
    except ImportError:
        raise BadSetting("Reading through Spark needs pyspark: pip install 'discreet[spark]', and Java.") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        if _cluster(running.sparkContext.master or "") != _cluster(master):
            raise BadSetting(
                "Spark runs elsewhere for this process already, and it cannot do so twice. Stop that session, or read "
                "this table in a process of its own."
            )
        return running
    settings = {
        "spark.log.level": "OFF",  # its messages may quote rows and addresses
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    builder = SparkSession.builder.appName("discreet").master("local[*]" if master == "local" else master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():  # JAX warns of a fork, but this one starts Java and nothing else
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        session: SparkSession = veiled(
            builder.getOrCreate, "Spark does not start; check that Java 17 or later is installed, and the address."
        )
    return session


def _cluster(master: str) -> str:
    """Where a master is: threads of this machine are all one."""
    return "local" if master.startswith("local") else master
