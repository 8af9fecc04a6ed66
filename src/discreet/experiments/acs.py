"""ACS: excerpts of the American Community Survey, one of them private and another public.

NIST's Diverse Communities Data Excerpts (2019, person records) come as one file: a nation-wide excerpt, one from Texas
and one from Massachusetts. The schema follows from their data dictionary alone, which is public: listed values as they
are listed, ages in tens. Columns are left out that differ by place (PUMA, DENSITY), that have hundreds of values or
more (INDP, PINCP, POVPIP) and that are weights of the sample (WGTP, PWGTP).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.schema import Schema
from discreet.data.table import Table, read

DATASET = "acs-2019-excerpts"
EXCERPT = "excerpt"
EXCERPTS = ("massachusetts", "national", "texas")
COLUMNS = (
    "AGEP",
    "SEX",
    "MSP",
    "HISP",
    "RAC1P",
    "NOC",
    "NPF",
    "HOUSING_TYPE",
    "OWN_RENT",
    "INDP_CAT",
    "EDU",
    "PINCP_DECILE",
    "DVET",
    "DREM",
    "DPHY",
    "DEYE",
    "DEAR",
)
_AGE, _YEARS = "AGEP", 10


def files(folder: Path) -> tuple[Path, Path]:
    """The rows, and the dictionary that describes their columns."""
    return folder / f"{DATASET}.parquet", folder / "acs-data-dictionary.json"


def read_all(folder: Path) -> Table:
    """All excerpts in one table; the attribute `excerpt` tells them apart."""
    rows, dictionary = files(folder)
    return read(rows, schema=schema(json.loads(dictionary.read_text(encoding="utf-8"))))


def schema(dictionary: Mapping[str, Any]) -> Schema:
    """From the data dictionary alone."""
    listed: list[dict[str, Any]] = [{"name": EXCERPT, "type": "categorical", "values": list(EXCERPTS)}]
    for name in COLUMNS:
        values = dictionary[name]["values"]
        if name == _AGE:
            listed.append(
                {"name": name, "type": "integer", "min": values["min"], "max": values["max"], "width": _YEARS}
            )
        else:
            listed.append({"name": name, "type": "categorical", "values": _values(values)})
    return Schema.load({"attributes": listed})


def excerpt(table: Table, which: str, *, without: Sequence[str] = ()) -> Table:
    """One excerpt as a table of codes, without `excerpt` and some further attributes."""
    codes, domain = table.codes(), table.domain
    kept = codes[codes[:, domain.index(EXCERPT)] == EXCERPTS.index(which)]
    names = [name for name in domain if name not in (EXCERPT, *without)]
    sizes = {name: domain.size_of(name) for name in names}
    return read(_arrow({name: kept[:, domain.index(name)] for name in names}), schema=sizes)


def _values(listed: Mapping[str, Any]) -> list[str]:
    """Values as texts, ranges written out."""
    single = [value for value in listed if value not in ("min", "max")]
    if "min" not in listed:
        return single
    return [*single, *(str(value) for value in range(listed["min"], listed["max"] + 1))]


def _arrow(columns: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    import pyarrow as pa  # slow to import

    return pa.table(dict(columns))
