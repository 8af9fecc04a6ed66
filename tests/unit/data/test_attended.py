"""A Spark cluster without workers, as an invented one: Spark waits for ever, and we must not."""

from __future__ import annotations

from threading import Event
from unittest.mock import MagicMock

import pytest

from discreet.data import attended as module
from discreet.data.attended import attended


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)


def session(workers: int, master: str = "spark://host:7077") -> tuple[MagicMock, Event]:
    """As much of a Spark session as is looked at, and whether its jobs were cancelled."""
    made, cancelled = MagicMock(), Event()
    context = made.sparkContext
    context.master = master
    context._jsc.sc().getExecutorMemoryStatus().size.return_value = workers + 1
    context.cancelJobsWithTag.side_effect = lambda tag: cancelled.set()
    return made, cancelled


def test_a_query_that_no_worker_takes_is_cancelled() -> None:
    spark, cancelled = session(workers=0)
    with attended(spark):
        assert cancelled.wait(30)
    (tag,) = spark.sparkContext.addJobTag.call_args.args
    spark.sparkContext.cancelJobsWithTag.assert_called_with(tag)
    spark.sparkContext.removeJobTag.assert_called_once_with(tag)


@pytest.mark.parametrize(("workers", "master"), [(1, "spark://host:7077"), (0, "local[2]")])
def test_a_query_that_is_worked_on_may_take_its_time(workers: int, master: str) -> None:
    spark, cancelled = session(workers, master)
    with attended(spark):
        assert not cancelled.wait(1)


def test_an_error_passes_and_a_spark_that_is_gone_is_no_further_trouble() -> None:
    spark, _ = session(workers=0)
    spark.sparkContext._jsc.sc.side_effect = spark.sparkContext.removeJobTag.side_effect = ConnectionError
    with pytest.raises(ValueError, match="what was asked"), attended(spark):
        raise ValueError("what was asked")
