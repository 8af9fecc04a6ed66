"""Attended: queries to a Spark cluster that end. Left alone, Spark waits for a worker for ever, and says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import Any
from uuid import uuid4

PATIENCE = 60.0
"""Seconds for which a cluster may have no worker for us."""


@contextmanager
def attended(session: Any) -> Iterator[None]:
    """Cancel what Spark is asked by this thread meanwhile, if its cluster has no worker for it for too long."""
    context = session.sparkContext
    if context.master.startswith("local"):
        yield
        return
    tag, done = f"discreet_{uuid4().hex}", Event()

    def attend() -> None:
        served = monotonic()
        with suppress(Exception):  # Spark is gone, which who asked hears too
            while not done.wait(PATIENCE / 60):
                if context._jsc.sc().getExecutorMemoryStatus().size() > 1:  # not only the one on this side
                    served = monotonic()
                elif monotonic() - served > PATIENCE:
                    context.cancelJobsWithTag(tag)

    attendant = Thread(target=attend, daemon=True)
    context.addJobTag(tag)
    attendant.start()
    try:
        yield
    finally:
        done.set()
        attendant.join()
        with suppress(Exception):
            context.removeJobTag(tag)
