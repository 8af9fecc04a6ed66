"""Synthetic rows: those that are released, and further ones."""

from __future__ import annotations

import numpy as np

from discreet.errors import BadRelease
from discreet.models.relaxed import RelaxedRows
from discreet.models.rounded import Codes, RoundedRows
from discreet.models.weighted import WeightedRows
from discreet.queries.answers import Answers

MOST_ROWS = 1_000_000
"""Rows written with a release unless more are asked for."""


def released(answers: Answers, oversample: int | None, generator: np.random.Generator) -> Codes | None:
    """The rows of a release as codes (rows x attributes); None where answers are not made of rows.

    Rounded rows are released as they are. Relaxed rows are drawn from: `oversample` copies of each, or about as
    many rows as the table has. From weighted rows as many as the table has are drawn, `oversample` times.
    """
    usual = min(answers.total, MOST_ROWS)
    if isinstance(answers, RoundedRows):
        return answers.codes
    if isinstance(answers, WeightedRows):
        return answers.draw((oversample or 1) * usual, generator)
    if not isinstance(answers, RelaxedRows):
        return None
    copies = oversample or max(1, round(usual / answers.rows))
    return answers.sample(copies, generator)


def draw(answers: Answers, count: int, generator: np.random.Generator) -> Codes:
    """`count` synthetic rows as codes (rows x attributes)."""
    if isinstance(answers, RoundedRows | WeightedRows):
        return answers.draw(count, generator)
    if not isinstance(answers, RelaxedRows):
        raise BadRelease("This mechanism publishes answers only; release with --mechanism auto to have rows.")
    return answers.sample(-(-count // answers.rows), generator)[:count]
