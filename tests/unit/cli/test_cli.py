"""The `psrt` command: what it lists, what it imports, how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from psrt.cli import main
from psrt.cli.checkpoint import checkpoint
from psrt.cli.config import config
from psrt.cli.data.commands import data
from psrt.cli.graph import graph
from psrt.cli.init import init
from psrt.cli.launch import launch
from psrt.cli.lazy import LazyGroup
from psrt.cli.models import export
from psrt.cli.options import options_of
from psrt.cli.predict import predict
from psrt.cli.pserver import pserver
from psrt.cli.trainer import trainer
from psrt.cli.version import version
from psrt.config.sections import SECTIONS, PserverConfig, TrainerConfig
from psrt.config.settings import settings_of
from psrt.core.errors import DataError, DeadlineError


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Run `psrt probe` with the given body and return its exit code."""

    def run(body: Callable[[], object]) -> int:
        probe = click.Command("probe", callback=body)
        monkeypatch.setattr(main.TopGroup, "get_command", lambda *_: probe)
        return main.run(["probe"])

    return run


# --- how a command ends ---------------------------------------------------------------------------


def test_a_psrt_error_is_told_on_stderr_and_gives_its_exit_code(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    code = command(raising(DeadlineError("trainer 1 is missing.", hint="Read its log.")))

    output = capsys.readouterr()
    assert code == 60
    assert output.out == ""
    assert output.err.startswith("error: trainer 1 is missing.\n  what you can do: Read its log.")


def test_a_command_may_return_its_exit_code(command: Callable[..., int]) -> None:
    assert command(lambda: 143) == 143
    assert command(lambda: None) == 0


def test_an_interrupt_gives_130(command: Callable[..., int]) -> None:
    assert command(raising(KeyboardInterrupt())) == 130


def test_an_unexpected_exception_is_shown_whole_and_gives_99(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    code = command(raising(ZeroDivisionError("oops")))

    errors = capsys.readouterr().err
    assert code == 99
    assert "Traceback" in errors
    assert "error: ZeroDivisionError: oops" in errors


def test_wrong_usage_gives_2_and_the_usage_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["pserver", "--prot", "1"])

    errors = capsys.readouterr().err
    assert code == 2
    assert "Usage: psrt pserver" in errors
    assert "--port" in errors


def test_a_wrong_value_is_reported_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main.run(["pserver", "--port", "http"])

    assert code == 2
    assert "flag --port: pserver.port is 'http'" in capsys.readouterr().err


# --- what it knows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "own",
    [
        *(init, pserver, trainer, launch, predict, export, graph, data, version),
        *config.commands.values(),
    ],
)
def test_every_command_teaches_with_an_example(own: click.Command) -> None:
    assert own.help
    assert f"psrt {own.name}" in (own.epilog or "") or f"psrt config {own.name}" in (
        own.epilog or ""
    )


@pytest.mark.parametrize("group", [main.psrt, checkpoint, data], ids=lambda group: group.name)
def test_the_line_that_help_shows_is_the_commands_own_first_line(group: LazyGroup) -> None:
    context = click.Context(group)
    own = {name: group.get_command(context, name) for name in group.list_commands(context)}

    assert {name: each.name for name, each in own.items()} == {name: name for name in own}
    shown = {name: each.help for name, each in group.subcommands.items()}
    assert {name: each.help.splitlines()[0] for name, each in own.items()} == shown


@pytest.mark.parametrize(
    ("cls", "own"),
    [(PserverConfig, pserver), (SECTIONS["launch"], launch), (SECTIONS["predict"], predict)],
)
def test_a_command_has_a_parameter_for_each_setting(cls: type, own: click.Command) -> None:
    section = next(name for name, known in SECTIONS.items() if known is cls)

    names = {parameter.name for parameter in own.params}

    assert {setting.name for setting in settings_of(section, cls)} <= names


def test_options_arrive_as_text_and_those_not_given_as_none() -> None:
    seen: dict[str, object] = {}

    @click.command()
    @options_of(TrainerConfig)
    def probe(**flags: object) -> None:
        seen.update(flags)

    probe.main(["--trainers", "3", "job.toml"], standalone_mode=False)

    assert seen.pop("job") == "job.toml"
    assert seen.pop("trainers") == "3"
    assert set(seen.values()) == {None}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--help"], "Run a job or a script on a cluster."),
        (["checkpoint", "--help"], "Show how parameters differ between two cuts."),
        (["data", "--help"], "Cut a text file into parts of consecutive lines"),
    ],
)
def test_help_of_a_group_imports_no_command(words: list[str], shown: str) -> None:
    script = (
        f"import sys; from psrt.cli.main import run; code = run({words});"
        "heavy = {'numba', 'grpc', 'psrt.trainer', 'psrt.pserver', 'psrt.launch'};"
        "loaded = heavy & set(sys.modules); sys.exit(f'imported {loaded}' if loaded else code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


# --- psrt config and psrt version -----------------------------------------------------------------


def test_config_show_tells_where_each_value_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("")
    job = tmp_path / "job.toml"
    job.write_text('[job]\nprogram = "train.py"\n[data]\nbatch_size = 64\n')
    monkeypatch.setenv("PSRT_LAUNCH_TRAINERS", "8")

    code = main.run(["config", "show", "--origin", str(job)])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert f"{'batch_size = 64':<44} # {job}" in lines
    assert f"{'trainers = 8':<44} # PSRT_LAUNCH_TRAINERS" in lines
    assert f"{'epochs = 1':<44} # default" in lines


def test_config_show_without_a_job_shows_the_processes_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main.run(["config", "show"])

    output = capsys.readouterr().out
    assert code == 0
    assert "[pserver]" in output
    assert "[job]" not in output
    assert "#" not in output


def test_config_reference_prints_the_reference_file(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["config", "reference"])

    reference = Path(__file__).parents[3] / "configs" / "reference.toml"
    assert capsys.readouterr().out == reference.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["config", "reference"], ["config", "show"], ["version"]])
def test_a_result_that_cannot_be_written_fails_the_command(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main.run(arguments) == 2
    assert "standard output cannot be written (No space left on device)" in capsys.readouterr().err

    monkeypatch.setattr(sys, "stdout", None)
    assert main.run(arguments) == 2
    assert "the standard output is closed" in capsys.readouterr().err


def test_a_data_error_of_a_command_keeps_its_exit_code(command: Callable[..., int]) -> None:
    assert command(raising(DataError("part-0, line 3: …"))) == 20
