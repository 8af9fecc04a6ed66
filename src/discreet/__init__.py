"""Answer millions of queries about a sensitive table, and publish synthetic rows, under differential privacy.

table = discreet.read("people.csv", schema="schema.json")
discreet.plan(table, "all:3", epsilon=1.0)
release = discreet.release(table, "all:3", epsilon=1.0)
release.answer("age=39, sex=Male")
release.rows()
release.save("release")
discreet.Release.open("release")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "DiscreetError",
    "Domain",
    "Forecast",
    "History",
    "Query",
    "Release",
    "Schema",
    "Table",
    "Threshold",
    "Workload",
    "evaluate",
    "plan",
    "read",
    "release",
]

if TYPE_CHECKING:
    from discreet.compare.errors import evaluate
    from discreet.data.domain import Domain
    from discreet.data.schema import Schema
    from discreet.data.table import Table, read
    from discreet.errors import DiscreetError
    from discreet.publish.make import release
    from discreet.publish.planning import Forecast, plan
    from discreet.publish.release import Release
    from discreet.queries.history import History
    from discreet.queries.threshold import Query, Threshold
    from discreet.queries.workload import Workload

_HOMES = {
    "DiscreetError": "discreet.errors",
    "Domain": "discreet.data.domain",
    "Forecast": "discreet.publish.planning",
    "History": "discreet.queries.history",
    "Query": "discreet.queries.threshold",
    "Release": "discreet.publish.release",
    "Schema": "discreet.data.schema",
    "Table": "discreet.data.table",
    "Threshold": "discreet.queries.threshold",
    "Workload": "discreet.queries.workload",
    "evaluate": "discreet.compare.errors",
    "plan": "discreet.publish.planning",
    "read": "discreet.data.table",
    "release": "discreet.publish.make",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
