"""An invented population for demonstrations and tests: nobody in it exists.

Attributes are drawn one after another, each given some of those before, as in a Bayesian network. The tables
below hold weights, which need not add up to one; given several attributes, a value's weight is the product of
its weights given each. Zeros are structural: such people never occur.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet._check import whole

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Chance = np.random.Generator
Columns = Mapping[str, tuple[Any, ...]]

_STAGES = (0, 10, 15, 20, 25, 35, 50, 65, 80)  # the ages at which a stage of life begins
_CLASSES = (8_000, 18_000, 32_000, 55_000)  # the incomes between five classes
_REGIONS: Columns = {  # how urban, how many people
    "Harbour City": (1.0, 34),
    "Kingsmead": (0.8, 18),
    "Lowfields": (0.4, 12),
    "Millbrook": (0.5, 9),
    "Eastmoor": (0.3, 8),
    "Westvale": (0.5, 6),
    "Stonecoast": (0.6, 5),
    "Highlands": (0.1, 4),
    "Riverland": (0.2, 3),
    "Far Isles": (0.0, 1),
}
_AGES = (50, 52, 54, 55, 60, 66, 70, 70, 66, 63, 64, 66, 62, 54, 46, 38, 28, 17, 8, 3)  # by five years
_FEMALE = (0.49, 0.49, 0.49, 0.49, 0.5, 0.5, 0.51, 0.53, 0.62)  # share by stage
_EDUCATION: Columns = {  # how urban, by stage
    "none": (0, (100, 60, 3, 2, 2, 3, 4, 8, 15)),
    "primary": (0, (0, 40, 62, 8, 6, 9, 16, 30, 42)),
    "secondary": (0, (0, 0, 33, 52, 26, 28, 31, 28, 23)),
    "vocational": (0, (0, 0, 2, 22, 26, 29, 31, 24, 14)),
    "bachelor": (1.0, (0, 0, 0, 16, 26, 20, 12, 7, 4)),
    "master": (1.5, (0, 0, 0, 0, 14, 11, 6, 3, 2)),
}
_EMPLOYED = (0, 0, 14, 52, 82, 85, 68, 8, 1)  # in any job, by stage; more with education
_JOBLESS: Columns = {  # income, by stage
    "none": (7_500, (100, 100, 6, 10, 12, 13, 15, 3, 2)),
    "student": (5_000, (0, 0, 80, 38, 6, 1, 0, 0, 0)),
    "retired": (17_000, (0, 0, 0, 0, 0, 1, 17, 89, 97)),
}
_JOBS: Columns = {  # income, hours, how urban, by education; the last four are manual
    "manager": (62_000, 45, 0.6, (0, 2, 6, 8, 16, 20)),
    "professional": (48_000, 40, 0.8, (0, 0, 2, 5, 50, 66)),
    "technician": (38_000, 39, 0.2, (0, 3, 10, 22, 18, 9)),
    "clerk": (29_000, 37, 0.4, (1, 8, 24, 14, 9, 3)),
    "service": (22_000, 34, 0.0, (14, 26, 28, 17, 4, 1)),
    "agriculture": (20_000, 48, -4.0, (20, 12, 5, 6, 1, 0.5)),
    "craft": (30_000, 41, -0.6, (10, 16, 10, 22, 1, 0.3)),
    "operator": (27_000, 41, -0.6, (20, 18, 9, 5, 0.5, 0)),
    "elementary": (18_500, 32, 0.0, (35, 15, 6, 1, 0.5, 0.2)),
}
_PART_TIME = (0, 0, 0.7, 0.35, 0.15, 0.22, 0.22, 0.6, 0.8)  # share by stage
_CAREER = (0, 0, 0.65, 0.78, 0.92, 1.1, 1.15, 1, 0.92)  # factor of income by stage
_MARITAL: Columns = {  # by sex (women outlive men), by size of household, by stage
    "single": ((1, 1), (2, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8), (1, 1, 99.5, 92, 60, 28, 14, 6, 4)),
    "married": ((1, 1), (0, 1.2, 1, 1, 1, 1, 1, 1), (0, 0, 0.5, 7.5, 36, 58, 62, 60, 36)),
    "divorced": ((1, 1), (2, 1, 0.6, 0.4, 0.3, 0.2, 0.1, 0.1), (0, 0, 0, 0.5, 4, 13, 19, 14, 7)),
    "widowed": ((1.5, 0.6), (2.4, 0.5, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3), (0, 0, 0, 0, 0, 1, 5, 20, 53)),
}
_HOUSEHOLDS: Columns = {  # by stage
    "1": ((0, 0, 4, 22, 24, 14, 20, 28, 42),),
    "2": ((6, 8, 12, 24, 30, 18, 38, 58, 46),),
    "3": ((24, 22, 24, 22, 20, 22, 21, 9, 7),),
    "4": ((38, 36, 33, 18, 16, 29, 14, 3, 3),),
    "5": ((18, 20, 16, 8, 6, 11, 4, 1, 1),),
    "6": ((8, 8, 7, 4, 2, 4, 2, 0.6, 0.5),),
    "7": ((4, 4, 3, 1, 1, 1, 0.6, 0.3, 0.3),),
    "8": ((2, 2, 1, 1, 1, 1, 0.4, 0.1, 0.2),),
}
_TENURES: Columns = {  # how urban, by class, by stage
    "owned": (-1.6, (0.5, 0.8, 1, 1.2, 1.6), (14, 17, 20, 10, 8, 18, 42, 68, 66)),
    "mortgaged": (-0.4, (0.2, 0.6, 1, 1.6, 1.9), (44, 45, 40, 14, 36, 46, 28, 7, 1)),
    "rented": (1.6, (1.1, 1.1, 1, 0.8, 0.6), (26, 22, 22, 52, 42, 24, 17, 11, 12)),
    "social": (1.0, (2.6, 1.6, 1, 0.15, 0), (14, 14, 14, 14, 12, 11, 12, 12, 14)),
    "rent-free": (-0.6, (2, 1.2, 1, 0.5, 0.3), (2, 2, 4, 10, 2, 1, 1, 2, 7)),
}
_INSURANCE: Columns = {  # visits, by class, by stage
    "public": (1.0, (80, 76, 62, 40, 18), (1, 1, 1, 1, 1, 1, 1, 1.2, 1.3)),
    "supplemented": (1.1, (6, 14, 28, 40, 40), (1, 1, 0.8, 0.5, 0.7, 1, 1.2, 1.4, 1.2)),
    "private": (1.25, (2, 4, 8, 19, 42), (1, 1, 1, 0.8, 0.8, 1, 1.1, 0.6, 0.4)),
    "none": (0.5, (12, 6, 2, 1, 0), (0, 0, 1, 2, 2, 1.2, 1, 0, 0)),
}
_CONDITIONS: Columns = {  # visits, by manual work, by stage
    "none": (1.2, (1, 1), (93, 90, 90, 89, 85, 74, 52, 30, 18)),
    "asthma": (3.5, (1, 1.2), (6.5, 9, 8, 7, 7, 6, 5, 4, 3)),
    "diabetes": (5, (1, 1), (0.5, 1, 1, 1, 2, 5, 10, 14, 13)),
    "hypertension": (4, (1, 1.2), (0, 0, 0.5, 1.5, 3.5, 9, 19, 26, 27)),
    "heart": (7, (1, 1.3), (0, 0, 0, 0.2, 0.5, 1.5, 4, 10, 19)),
    "arthritis": (5, (1, 2.5), (0, 0, 0.5, 1, 1.5, 3.5, 7, 11, 14)),
    "cancer": (10, (1, 1), (0, 0, 0, 0.3, 0.5, 1, 3, 5, 6)),
}
_FRAILTY = (1.9, 1, 0.9, 0.9, 1, 1, 1.1, 1.4, 1.8)  # factor of visits by stage
_GROWTH = (2, 0, 1, 3, 3, 0, -1.5, -3, -4)  # of registrations over the years, by stage

_INCOMES = [0, 1, *range(5_000, 30_000, 5_000), 30_000, 40_000, 50_000, 65_000, 80_000, 120_000, 500_000]
_TIME = {"start": "2020-01-01", "end": "2024-12-31", "period": "quarter"}

SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "region", "type": "categorical", "values": [*_REGIONS]},
        {"name": "age", "type": "integer", "min": 0, "max": 99, "width": 5, "outside": "clip"},
        {"name": "sex", "type": "categorical", "values": ["female", "male"]},
        {"name": "education", "type": "categorical", "values": [*_EDUCATION]},
        {"name": "occupation", "type": "categorical", "values": [*_JOBLESS, *_JOBS]},
        {"name": "hours", "type": "numeric", "edges": [0, 1, 16, 25, 35, 40, 45, 55, 80], "outside": "clip"},
        {"name": "income", "type": "numeric", "edges": _INCOMES, "outside": "clip", "missing": True},
        {"name": "marital", "type": "categorical", "values": [*_MARITAL]},
        {"name": "household", "type": "integer", "min": 1, "max": 8, "outside": "clip"},
        {"name": "tenure", "type": "categorical", "values": [*_TENURES], "missing": True},
        {"name": "insurance", "type": "categorical", "values": [*_INSURANCE]},
        {"name": "condition", "type": "categorical", "values": [*_CONDITIONS]},
        {"name": "visits", "type": "numeric", "edges": [0, 1, 2, 3, 4, 6, 9, 14, 21, 60], "outside": "clip"},
        {"name": "registered", "type": "date", **_TIME},
    ]
}
"""What `draw` returns, for `Schema.load`: people registered with a group of clinics, at the end of 2024."""


def draw(rows: int = 50_000, *, seed: int = 0) -> pa.Table:
    """Draw people independently of each other.

    Args:
        rows: How many people.
        seed: The same seed gives the same table, as long as numpy keeps its generator.

    Raises:
        BadSetting: `rows` is below 1 or `seed` below 0.

    Example:
        >>> draw(100, seed=7).shape
        (100, 14)
    """
    whole("rows", rows)
    whole("seed", seed, least=0)
    chance = np.random.default_rng(seed)

    region = _pick(chance, (_column(_REGIONS)[None], np.zeros(rows, dtype=np.int64)))
    age = 5 * _pick(chance, (_lean(-np.arange(20) / 10) * _AGES, region)) + chance.integers(5, size=rows)
    stage = np.searchsorted(_STAGES, age, side="right") - 1
    sex = (chance.random(rows) >= np.take(_FEMALE, stage)).astype(np.int64)

    education = _pick(chance, (_column(_EDUCATION), stage), (_lean(_column(_EDUCATION, 0)), region))
    occupation = _occupation(chance, stage=stage, education=education, region=region)
    hours = _hours(chance, stage=stage, occupation=occupation)
    income = _income(chance, stage=stage, education=education, occupation=occupation, hours=hours)
    rank = np.where(age < 20, 2, np.searchsorted(_CLASSES, income))  # the young count as middle class

    marital = _pick(chance, (_column(_MARITAL), stage), (_column(_MARITAL, 0), sex))
    household = 1 + _pick(chance, (_column(_HOUSEHOLDS), stage), (_column(_MARITAL, 1).T, marital))
    by_region = _lean(_column(_TENURES, 0))
    tenure = _pick(chance, (_column(_TENURES), stage), (_column(_TENURES, 1), rank), (by_region, region))

    insurance = _pick(chance, (_column(_INSURANCE), stage), (_column(_INSURANCE, 1), rank))
    manual = (occupation >= len(_JOBLESS) + len(_JOBS) - 4).astype(np.int64)
    condition = _pick(chance, (_column(_CONDITIONS), stage), (_column(_CONDITIONS, 1), manual))
    often = np.take(_FRAILTY, stage) * _column(_CONDITIONS, 0)[condition] * _column(_INSURANCE, 0)[insurance]
    visits = chance.poisson(often * chance.gamma(1.5, 1 / 1.5, size=rows)).clip(max=59)
    trend = np.exp(np.outer(_GROWTH, np.arange(20) / 20))
    registered = _day(chance, age, _pick(chance, (trend, stage), (_lean(np.arange(20) / 5), region)))

    secret = chance.random(rows) < np.where(income > 65_000, 0.12, 0.03) * (age >= 15)
    unknown = chance.random(rows) < 0.02
    person = (region, age, sex, education, occupation, hours, income)
    home, health = (marital, household, tenure), (insurance, condition, visits, registered)
    return _to_arrow([*person, *home, *health], missing={"income": secret, "tenure": unknown})


def _column(table: Columns, position: int = -1) -> Floats:
    """One column of a table; where it holds weights given something, as an array with the values last."""
    return np.array([row[position] for row in table.values()], dtype=np.float64).T


def _lean(how_urban: Floats) -> Floats:
    """Weights by region, of values that are the more common in towns the larger the given numbers."""
    return np.exp(np.outer(_column(_REGIONS, 0) - 0.5, how_urban))


def _pick(chance: Chance, *factors: tuple[Floats, Ints]) -> Ints:
    """Draw a code for each row. A factor holds weights, groups x codes, and the group of each row."""
    weights = np.ones(1)
    for table, _ in factors:
        weights = weights[..., None, :] * table
    below = weights.cumsum(axis=-1)
    below /= below[..., -1:]
    group = np.ravel_multi_index([groups for _, groups in factors], weights.shape[:-1])
    uniform = chance.random(len(group))
    codes = np.zeros(len(group), dtype=np.int64)
    for bound in below.reshape(-1, weights.shape[-1]).T[:-1]:
        codes += uniform >= bound[group]
    return codes


def _occupation(chance: Chance, *, stage: Ints, education: Ints, region: Ints) -> Ints:
    """What people do; education makes a job likelier and, with the region, decides which."""
    jobs = _column(_JOBS) * (np.linspace(0.5, 1.3, len(_EDUCATION)) / _column(_JOBS).sum(axis=1))[:, None]
    by_stage = np.hstack([_column(_JOBLESS), np.outer(_EMPLOYED, np.ones(len(_JOBS)))])
    by_education = np.hstack([np.ones((len(_EDUCATION), len(_JOBLESS))), jobs])
    by_region = _lean(np.append(np.zeros(len(_JOBLESS)), _column(_JOBS, 2)))
    return _pick(chance, (by_stage, stage), (by_education, education), (by_region, region))


def _hours(chance: Chance, *, stage: Ints, occupation: Ints) -> Ints:
    """Weekly hours: as usual in the job, or about half, or 0 without one."""
    usual = np.append(np.zeros(len(_JOBLESS)), _column(_JOBS, 1))[occupation]
    part_time = chance.random(len(stage)) < np.take(_PART_TIME, stage)
    worked = np.rint(chance.normal(np.where(part_time, 20, usual), 5)).clip(1, 79)
    return np.where(usual > 0, worked, 0).astype(np.int64)


def _income(chance: Chance, *, stage: Ints, education: Ints, occupation: Ints, hours: Ints) -> Ints:
    """Yearly income, log-Laplace for its power-law tail; 0 for children and for many without work."""
    usual = np.append(_column(_JOBLESS, 0), _column(_JOBS, 0))[occupation] * np.take(_CAREER, stage)
    usual *= np.where(hours > 0, hours / 40, 1) * np.exp(0.08 * (education - 2))
    usual[(occupation < 2) & (chance.random(len(stage)) < 0.35)] = 0
    drawn: Floats = usual * np.exp(chance.laplace(0, 0.22, size=len(stage)))
    return np.rint(drawn / 100).clip(max=4_999).astype(np.int64) * 100


def _day(chance: Chance, age: Ints, quarter: Ints) -> NDArray[np.datetime64]:
    """A day of the quarter, but none before birth."""
    first = np.arange("2020-01", "2025-02", 3, dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)
    birth = first[-1] - 1 - (365 * (age + chance.random(len(age)))).astype(np.int64)
    days: Ints = np.maximum(chance.integers(first[quarter], first[quarter + 1]), birth)
    return days.astype("datetime64[D]")


def _to_arrow(people: list[NDArray[Any]], *, missing: dict[str, NDArray[np.bool_]]) -> pa.Table:
    """Columns in the order of the schema, categories as texts."""
    import pyarrow as pa  # slow to import

    columns = {}
    for entry, drawn in zip(SCHEMA["attributes"], people, strict=True):
        column = pa.array(drawn, mask=missing.get(entry["name"]))
        columns[entry["name"]] = pa.array(entry["values"]).take(column) if "values" in entry else column
    return pa.table(columns)
