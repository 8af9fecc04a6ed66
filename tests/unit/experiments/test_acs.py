"""Excerpts of a survey: a schema from the dictionary alone, and tables that are told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.tables import write_excerpts

from discreet.errors import BadData
from discreet.experiments import acs, runner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_excerpts(tmp_path)
    return tmp_path


def test_the_schema_follows_from_the_dictionary(folder: Path) -> None:
    table = runner.read_dataset(folder, acs.DATASET)
    assert table.domain.attributes == (acs.EXCERPT, *acs.COLUMNS)
    assert table.domain.size_of("AGEP") == 10
    assert table.domain.size_of("NOC") == 21
    assert [table.schema["NOC"].label(code) for code in (0, 1, 2, 20)] == ["N", "0", "1", "19"]


def test_excerpts_share_a_domain_and_no_rows(folder: Path) -> None:
    table = acs.read_all(folder)
    parts = [acs.excerpt(table, which) for which in acs.EXCERPTS]
    assert sum(part.rows() for part in parts) == table.rows()
    assert all(part.domain == table.domain.project(acs.COLUMNS) for part in parts)
    codes = table.codes()
    first = codes[codes[:, 0] == 0][:, 1:]
    assert np.array_equal(np.sort(parts[0].codes(), axis=0), np.sort(first, axis=0))


def test_an_excerpt_may_lack_attributes(folder: Path) -> None:
    less = acs.excerpt(acs.read_all(folder), "texas", without=("EDU", "SEX"))
    assert set(acs.COLUMNS) - set(less.domain) == {"EDU", "SEX"}


def test_missing_files_are_named(folder: Path, tmp_path: Path) -> None:
    acs.files(folder)[1].unlink()
    with pytest.raises(BadData, match=r"acs-data-dictionary\.json is not there"):
        runner.run("public", data=folder, out=tmp_path / "out", size="tiny")
