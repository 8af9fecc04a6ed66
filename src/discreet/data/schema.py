"""Schema: the public description of a table, as kept in a JSON file."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.data.attribute import Attribute, bad, finite, whole
from discreet.data.domain import Domain
from discreet.data.kind import Categorical, Codes, Date, Integer, Numeric
from discreet.errors import BadSchema

Source = str | os.PathLike[str] | Mapping[str, Any] | Domain
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Schema:
    """Which columns a table has and which values each can take. Never derived from private rows.

    Attributes:
        attributes: One per column, in order.
        drafted_from_data: Whether the file was proposed by `draft`, which looks at rows; such a schema is
            safe only if the table is public or someone has reviewed it.
        notes: Remarks carried along in the file.

    Example:
        >>> schema = Schema.load({"attributes": [
        ...     {"name": "sex", "type": "categorical", "values": ["Female", "Male"]},
        ...     {"name": "age", "type": "integer", "min": 0, "max": 120, "width": 5},
        ... ]})
        >>> schema.domain
        Domain(sex: 2, age: 25)
        >>> schema["age"].code_of("39"), schema["age"].label(7)
        (7, '35-39')
    """

    attributes: tuple[Attribute, ...]
    drafted_from_data: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.attributes:
            raise BadSchema("A schema needs at least one attribute.")
        _ = self.domain  # refuses repeated names

    @staticmethod
    def load(source: Source | Schema) -> Schema:
        """Read a schema from a JSON file, a dictionary or a domain; a Schema is passed through.

        Raises:
            BadSchema: With the attribute's name and what to change.
        """
        if isinstance(source, Schema):
            return source
        if isinstance(source, Domain):
            source = dict(zip(source.attributes, source.sizes, strict=True))
        return _parse(source if isinstance(source, Mapping) else _read_json(Path(source)))

    @cached_property
    def domain(self) -> Domain:
        """Names and sizes only."""
        return Domain([(attribute.name, attribute.size) for attribute in self.attributes])

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.domain.index(name)]

    def only(self, names: Collection[str]) -> Schema:
        """Those attributes that are among the names."""
        return replace(self, attributes=tuple(attribute for attribute in self if attribute.name in names))

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def to_json(self) -> dict[str, Any]:
        """The content of a schema file; `Schema.load` gives back an equal schema."""
        content: dict[str, Any] = {"attributes": [attribute.to_json() for attribute in self.attributes]}
        if self.drafted_from_data:
            content["drafted_from_data"] = True
        if self.notes:
            content["notes"] = list(self.notes)
        return content

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as a JSON file."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; repeated keys, NaN and infinities are refused."""
    try:
        content = json.loads(
            path.read_text(encoding="utf-8-sig"),
            object_pairs_hook=_distinct_keys,
            parse_constant=_refuse_constant,
        )
    except OSError as error:
        raise BadSchema(f"The schema file {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadSchema(f"The schema file {path} is not JSON: {error}.") from None
    if not isinstance(content, Mapping):
        raise BadSchema(f'The schema file {path} must hold a JSON object such as {{"age": 85, "sex": 2}}.')
    return content


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    if twice:
        raise BadSchema(f"The key {twice[0]!r} stands twice in one JSON object of the schema; keep one of them.")
    return dict(pairs)


def _refuse_constant(name: str) -> float:
    raise BadSchema(f"The schema holds {name}, which is not a number JSON knows; use finite numbers.")


def _parse(content: Mapping[str, Any]) -> Schema:
    if not isinstance(content.get("attributes"), list):
        return Schema(tuple(Codes(name=name, count=size) for name, size in content.items()))
    _require_keys(content, {"attributes"}, {"drafted_from_data", "notes"}, where="The schema")
    drafted, notes = content.get("drafted_from_data", False), content.get("notes", [])
    if not isinstance(drafted, bool):
        raise BadSchema(f'"drafted_from_data" must be true or false, not {drafted!r}.')
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise BadSchema('"notes" must be a list of texts.')
    return Schema(tuple(map(_parse_attribute, content["attributes"])), drafted, tuple(notes))


def _parse_attribute(entry: object) -> Attribute:
    if not isinstance(entry, Mapping):
        raise BadSchema(f'Each of "attributes" must be an object with "name" and "type", not {entry!r}.')
    name, kind = entry.get("name"), entry.get("type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise bad(name, f'"type" must be one of {", ".join(_READERS)}, not {kind!r}')
    common = {"name": name, "missing": _missing(entry), "outside": entry.get("outside", "refuse")}
    return _READERS[kind](entry, common)


def _missing(entry: Entry) -> tuple[str, ...] | None:
    value = entry.get("missing", False)
    if isinstance(value, bool):
        return () if value else None
    if not isinstance(value, list) or not value:
        raise bad(entry.get("name"), f'"missing" must be true, false or a list of texts, not {value!r}')
    return tuple(value)


def _categorical(entry: Entry, common: dict[str, Any]) -> Attribute:
    _require_own_keys(entry, {"values"})
    return Categorical(values=_list(entry, "values"), **common)


def _integer(entry: Entry, common: dict[str, Any]) -> Attribute:
    _require_own_keys(entry, {"min", "max"}, {"width"})
    return Integer(low=entry["min"], high=entry["max"], width=entry.get("width", 1), **common)


def _numeric(entry: Entry, common: dict[str, Any]) -> Attribute:
    if "edges" in entry:
        _require_own_keys(entry, {"edges"})
        return Numeric(edges=_list(entry, "edges"), **common)
    _require_own_keys(entry, {"min", "max", "bins"})
    return Numeric(edges=_equal_edges(entry), **common)


def _date(entry: Entry, common: dict[str, Any]) -> Attribute:
    _require_own_keys(entry, {"start", "end", "period"})
    return Date(start=_day(entry, "start"), end=_day(entry, "end"), period=entry["period"], **common)


def _codes(entry: Entry, common: dict[str, Any]) -> Attribute:
    _require_own_keys(entry, {"size"})
    return Codes(count=entry["size"], **common)


_READERS: dict[str, Callable[[Entry, dict[str, Any]], Attribute]] = {
    "categorical": _categorical,
    "integer": _integer,
    "numeric": _numeric,
    "date": _date,
    "codes": _codes,
}


def _list(entry: Entry, key: str) -> tuple[Any, ...]:
    if not isinstance(entry[key], list):
        raise bad(entry.get("name"), f'"{key}" must be a list, not {entry[key]!r}')
    return tuple(entry[key])


def _day(entry: Entry, key: str) -> date:
    try:
        return date.fromisoformat(str(entry[key]))
    except ValueError:
        complaint = f'"{key}" must be a date such as "2025-12-31", not {entry[key]!r}'
        raise bad(entry.get("name"), complaint) from None


def _equal_edges(entry: Entry) -> tuple[float, ...]:
    """Edges of bins of equal width; too narrow for floating point, they do not increase and are refused."""
    name = entry.get("name")
    low, high = finite(name, "min", entry["min"]), finite(name, "max", entry["max"])
    bins = whole(name, "bins", entry["bins"], least=1)
    if low >= high:
        raise bad(name, f'"min" {entry["min"]} must be below "max" {entry["max"]}')
    return (*(low * (1 - step / bins) + high * (step / bins) for step in range(bins)), high)


def _require_own_keys(entry: Entry, needed: set[str], optional: set[str] | None = None) -> None:
    """Check the keys of an attribute, besides those every kind has."""
    shared = {"missing", "outside"} | (optional or set())
    _require_keys(entry, {"name", "type"} | needed, shared, where=f"Attribute {entry.get('name')!r}")


def _require_keys(entry: Entry, needed: set[str], optional: set[str], *, where: str) -> None:
    """Refuse an object that lacks a key or has one nobody reads."""
    lacking, unknown = sorted(needed - entry.keys()), sorted(entry.keys() - needed - optional)
    if lacking:
        raise BadSchema(f"{where} lacks the key {', '.join(map(repr, lacking))}.")
    if unknown:
        known = ", ".join(map(repr, sorted(needed | optional)))
        raise BadSchema(f"{where} has the unknown key {', '.join(map(repr, unknown))}; it may have {known}.")
