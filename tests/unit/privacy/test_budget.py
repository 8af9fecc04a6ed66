import json
import multiprocessing
import os
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import pytest

from discreet.errors import BadLedger, BudgetExceeded
from discreet.privacy import event as events
from discreet.privacy import ledger as ledger_file
from discreet.privacy.budget import Budget
from discreet.privacy.event import DrawsEvent, Event, GaussianEvent, LaplaceEvent, SelectionEvent
from discreet.privacy.ledger import Ledger, Limit, read_file
from discreet.privacy.neighbours import Neighbours

WHOSE = Neighbours()
EVENTS: list[Event] = [
    GaussianEvent(Fraction(1, 7)),
    LaplaceEvent(Fraction(1, 3)),
    SelectionEvent(4, Fraction(1, 9)),
    DrawsEvent(4, Fraction(1, 9)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_events_round_trip_and_keep_their_cost(event: Event) -> None:
    back = events.from_json(json.loads(json.dumps(events.to_json(event))))
    assert back == event
    assert back.rho == event.rho


def test_costs_of_events() -> None:
    assert GaussianEvent(Fraction(1, 7)).rho == Fraction(1, 14)
    assert LaplaceEvent(Fraction(1, 3)).rho == Fraction(1, 18)
    assert SelectionEvent(4, Fraction(1, 9)).rho == Fraction(4, 8 * 81)


@pytest.mark.parametrize("entry", [{}, {"event": "magic"}, {"event": "gaussian"}, {"event": "laplace", "epsilon": "x"}])
def test_unknown_or_damaged_events_are_refused(entry: dict[str, str]) -> None:
    with pytest.raises(BadLedger):
        events.from_json(entry)


def test_a_budget_charges_exactly_and_refuses_beyond() -> None:
    budget = Budget(Fraction(1, 2))
    for _ in range(7):
        budget.charge(GaussianEvent(Fraction(1, 7)), "seventh")
    assert budget.remaining == 0
    with pytest.raises(BudgetExceeded, match=r"'more' needs rho .*, but 0 of 0\.5 remains"):
        budget.charge(GaussianEvent(Fraction(1, 10**9)), "more")
    assert budget.spent == Fraction(1, 2)
    assert len(budget.charges) == 7


def test_a_refusal_says_what_was_spent_and_changes_nothing() -> None:
    ledger = Ledger(WHOSE)
    budget = Budget(Fraction(1, 10), [ledger])
    budget.charge(GaussianEvent(Fraction(1, 10)), "first")
    with pytest.raises(BudgetExceeded, match=r"0\.05 on 'first'"):
        budget.charge(GaussianEvent(Fraction(1, 5)), "second")
    assert ledger.total == Fraction(1, 20)


LIMIT = Limit(epsilon=1.0, delta=1e-9)


def test_releases_of_one_table_add_up_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    first = Ledger(WHOSE, path=path, limit=LIMIT, run="one")
    second = Ledger(WHOSE, path=path, run="two")
    first.record(GaussianEvent(LIMIT.rho), "a")
    second.record(GaussianEvent(LIMIT.rho / 2), "b")
    assert second.total == LIMIT.rho * Fraction(3, 4)
    with pytest.raises(BudgetExceeded, match=r"ask for at most epsilon 0\.\d+"):
        first.record(GaussianEvent(LIMIT.rho), "c")
    book = read_file(path)
    assert book.limit == LIMIT
    assert [(charge.run, charge.label) for charge in book.charges] == [("one", "a"), ("two", "b")]


def test_the_shared_ledger_refuses_before_the_runs_own_is_written(tmp_path: Path) -> None:
    shared = Ledger(WHOSE, path=tmp_path / "shared", limit=LIMIT)
    own = Ledger(WHOSE, path=tmp_path / "own")
    budget = Budget(Fraction(1), [shared, own])
    with pytest.raises(BudgetExceeded):
        budget.charge(GaussianEvent(Fraction(1)), "too much")
    assert budget.spent == shared.total == own.total == 0


def _charge_many(path: Path) -> None:
    ledger = Ledger(WHOSE, path=path)
    for _ in range(20):
        ledger.record(GaussianEvent(Fraction(1, 100)), "parallel")


def test_a_charge_that_one_ledger_cannot_take_is_in_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared = Ledger(Neighbours(), path=tmp_path / "own"), Ledger(Neighbours(), path=tmp_path / "shared")
    budget = Budget(Fraction(1), [own, shared])
    budget.charge(SelectionEvent(1, Fraction(1, 4)), "first")
    before = [path.read_bytes() for path in (tmp_path / "own", tmp_path / "shared")]
    append = ledger_file._append

    def full(file: IO[str], entry: dict[str, Any]) -> None:
        if file.name.endswith("shared"):
            raise BadLedger("full")
        append(file, entry)

    monkeypatch.setattr(ledger_file, "_append", full)
    with pytest.raises(BadLedger):
        budget.charge(SelectionEvent(1, Fraction(1, 4)), "second")
    assert [path.read_bytes() for path in (tmp_path / "own", tmp_path / "shared")] == before
    assert (len(own.charges), len(shared.charges), len(budget.charges)) == (1, 1, 1)


def test_a_charge_is_taken_back_only_while_it_is_the_last(tmp_path: Path) -> None:
    one, other = Ledger(WHOSE, path=tmp_path / "shared"), Ledger(WHOSE, path=tmp_path / "shared")
    charge = one.record(GaussianEvent(Fraction(1, 100)), "mine")
    other.record(GaussianEvent(Fraction(1, 100)), "theirs")
    one.take_back(charge)
    assert [kept.label for kept in read_file(tmp_path / "shared").charges] == ["mine", "theirs"]
    assert charge in one.charges
    last = other.record(GaussianEvent(Fraction(1, 100)), "last")
    other.take_back(last)
    assert [kept.label for kept in read_file(tmp_path / "shared").charges] == ["mine", "theirs"]
    assert last not in other.charges


def test_parallel_runs_lose_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_charge_many, args=(path,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read_file(path).charges) == 60


def test_a_ledger_kept_for_other_neighbours_is_refused(tmp_path: Path) -> None:
    Ledger(WHOSE, path=tmp_path / "ledger")
    for other in (Neighbours("add-remove"), Neighbours(rows_per_person=2)):
        with pytest.raises(BadLedger, match="would not add up"):
            Ledger(other, path=tmp_path / "ledger")


def test_a_limit_is_fixed_when_the_ledger_is_created(tmp_path: Path) -> None:
    Ledger(WHOSE, path=tmp_path / "free")
    with pytest.raises(BadLedger, match="created with no limit"):
        Ledger(WHOSE, path=tmp_path / "free", limit=LIMIT)
    Ledger(WHOSE, path=tmp_path / "limited", limit=LIMIT)
    with pytest.raises(BadLedger, match="a limit of epsilon 1 at delta"):
        Ledger(WHOSE, path=tmp_path / "limited", limit=Limit(2.0, 1e-9))
    assert Ledger(WHOSE, path=tmp_path / "limited", limit=LIMIT).limit == LIMIT
    assert Ledger(WHOSE, path=tmp_path / "limited").limit == LIMIT


def test_a_limit_at_a_larger_delta_is_not_the_one_asked_for(tmp_path: Path) -> None:
    """At a larger delta the same epsilon buys more: what was asked for would be gone beyond."""
    Ledger(WHOSE, path=tmp_path / "lax", limit=Limit(1.0, 1e-2))
    with pytest.raises(
        BadLedger, match=r"epsilon 1 at delta 0\.01, which stays; this run asked for epsilon 1 at delta 1e-09"
    ):
        Ledger(WHOSE, path=tmp_path / "lax", limit=Limit(1.0, 1e-9))
    strict = Ledger(WHOSE, path=tmp_path / "strict", limit=Limit(1.0, 1e-9))
    assert Ledger(WHOSE, path=tmp_path / "strict", limit=Limit(1.0, 1e-2)).limit == strict.limit


def test_damaged_ledgers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(WHOSE, path=path).record(GaussianEvent(Fraction(1)), "a")
    whole = path.read_text()
    path.write_text(whole[:-10])
    for opened in (lambda: Ledger(WHOSE, path=path), lambda: read_file(path)):
        with pytest.raises(BadLedger, match="ends in the middle of a line"):
            opened()
    path.write_text("name,age\n")
    with pytest.raises(BadLedger, match="not a ledger"):
        Ledger(WHOSE, path=path)
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadLedger, match="not a ledger"):
        Ledger(WHOSE, path=path)
    with pytest.raises(BadLedger, match="it is a folder"):
        Ledger(WHOSE, path=tmp_path)
    with pytest.raises(BadLedger, match="cannot be written"):
        Ledger(WHOSE, path=tmp_path / "no" / "such" / "folder")
    with pytest.raises(BadLedger, match="cannot be read"):
        read_file(tmp_path / "nothing")


def test_a_charge_is_on_disk_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(WHOSE, path=path)
    ledger.record(GaussianEvent(Fraction(1)), "a")
    whole, pwrite = path.read_bytes(), os.pwrite
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda file, line, at: pwrite(file, line[: len(line) // 2], at))
        with pytest.raises(BadLedger, match=r"No space left on device.* not read"):
            ledger.record(GaussianEvent(Fraction(1)), "b")
    assert path.read_bytes() == whole
    ledger.record(GaussianEvent(Fraction(1)), "c")
    assert [charge.label for charge in read_file(path).charges] == ["a", "c"]
    path.unlink()
    with pytest.raises(BadLedger, match="cannot be written"):
        ledger.record(GaussianEvent(Fraction(1)), "d")
