"""Reports of `psrt status --watch`, drawn by rich on a terminal and as text elsewhere."""

from __future__ import annotations

import io
from typing import Any

import pytest

from psrt.cli.operating import watching
from psrt.status import StatusReport

REPORT = StatusReport(
    "job ctr (Sync)",
    [("a:6170", "round 7", "1,200", "3 MiB", "4,000", "25", "60", "0")],
    ["trainers: 2 running"],
    ["a:6170: trainer 0 in round 7 has waited 8.5 s for trainer 1"],
    ["b:6170: [bold]Refused.[/bold]"],
    [],
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of the standard output; not as a fixture, which pytest would undo."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    return terminal


def test_rich_draws_all_that_the_text_has_and_no_markup_of_the_job() -> None:
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    out = io.StringIO()

    console.Console(file=out, width=120).print(watching.drawing_of(REPORT))

    drawn = out.getvalue()
    assert "[bold]Refused.[/bold]" in drawn
    for words in (REPORT.title, *REPORT.rows[0], *REPORT.summary, *REPORT.waits):
        assert words in drawn


def test_without_waits_rich_says_so() -> None:
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    out = io.StringIO()
    quiet = StatusReport(REPORT.title, REPORT.rows, [], [], [], [])

    console.Console(file=out, width=120).print(watching.drawing_of(quiet))

    assert "nobody waits for long" in out.getvalue()


def test_a_report_is_drawn_in_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich.live", reason="rich is not installed")
    monkeypatch.setenv("TERM", "xterm")
    terminal = on_terminal(monkeypatch)
    with watching.watching(is_drawn=True) as show:
        show(REPORT)
        show(REPORT)

    assert terminal.getvalue().count("job ctr (Sync)") >= 2
    assert "\x1b[" in terminal.getvalue()  # the cursor goes up between them


def test_without_rich_a_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "found", lambda module: None)
    cleared: list[Any] = []
    monkeypatch.setattr("click.clear", lambda: cleared.append(1))
    terminal = on_terminal(monkeypatch)
    with watching.watching(is_drawn=True) as show:
        show(REPORT)

    assert cleared == [1]
    assert terminal.getvalue() == "\n".join(REPORT.lines()) + "\n"


def test_a_file_gets_one_report_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    with watching.watching(is_drawn=True) as show:
        show(REPORT)
        show(REPORT)

    assert capsys.readouterr().out == 2 * ("\n".join(REPORT.lines()) + "\n")
