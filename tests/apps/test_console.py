"""Progress on a terminal and in a log."""

import io

import pytest

from discreet.apps.console import Console


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("discreet.apps.console.time.monotonic", lambda: now[0])
    return now


def test_a_log_gets_sparse_lines_with_the_time_left(clock: list[float]) -> None:
    log = io.StringIO()
    progress = Console(log)
    progress.stage("fit", 100)
    for second in range(0, 60, 5):
        clock[0] = 100.0 + second  # the first step came after a long set-up, which must not count
        progress.step(second + 1, "going well")
    lines = log.getvalue().splitlines()
    assert lines[0].startswith("fit: 1 of 100 (1 %), going well")
    assert lines[1] == "fit: 11 of 100 (11 %, at most 1 min 29 s left), going well"
    assert len(lines) == 6


def test_a_terminal_gets_one_line_that_is_cleaned_up(clock: list[float]) -> None:
    screen = Screen()
    progress = Console(screen)
    progress.stage("counting", 10)
    clock[0] = 5.0
    progress.step(3)
    progress.close()
    assert "\n" not in screen.getvalue()
    assert "counting: 3 of 10" in screen.getvalue()


def test_short_stages_say_nothing(clock: list[float]) -> None:
    log = io.StringIO()
    progress = Console(log)
    progress.stage("quick", 3)
    clock[0] = 1.0
    progress.step(3)
    assert log.getvalue() == ""
