"""`psrt trainer train.py`: what a script is told, and how its end is the command's."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from psrt.cli import main
from psrt.config.load import environment
from psrt.core import log
from psrt.core.errors import DeadlineError

Run = Callable[..., int]
ROLES = ("PSRT_", "PADDLE_", "TRAINING_ROLE", "CPU_NUM", "OMPI_", "SLURM_", "PMI_", "POD_IP")
EXPORTED = ("TRAINING_ROLE", "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "CPU_NUM")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`psrt trainer FLAGS train.py -- ARGUMENTS` with the lines of a script; its exit code."""
    for name in environment():
        if name.startswith(ROLES):
            monkeypatch.delenv(name)

    def run(script: str, *flags: str, arguments: tuple[str, ...] = ()) -> int:
        path = tmp_path / "train.py"
        path.write_text(script)
        return main.run(["trainer", *flags, str(path), "--", *arguments])

    return run


ROLE = """
import psrt
from psrt.config.load import cpu_num, load
from psrt.config.sections import TrainerConfig
from psrt.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
maker = PaddleCloudRoleMaker()
print(maker.worker_index(), maker.worker_num(), *maker.get_pserver_endpoints(), cpu_num())
role = psrt.init(trainer_id=0, trainer_count=9, pservers="c")
print(role.index, role.trainers, *role.endpoints, cpu_num())
print(load(TrainerConfig).origins["trainer.trainer_id"])
"""
FLAGS = "--endpoints=a:1,b:1", "--trainers=3", "--trainer_id=2", "--cpu-num=4"


def test_role_makers_and_init_of_a_script_know_the_flags(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(ROLE, *FLAGS)

    assert code == 0
    told = "2 3 a:1 b:1 4"
    assert capsys.readouterr().out.splitlines() == [told, told, "flag --trainer-id"]


def test_a_script_finds_the_flags_in_its_environment(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"import os\nprint(*map(os.environ.get, {EXPORTED}))"

    assert run(script, *FLAGS) == 0
    assert capsys.readouterr().out == "TRAINER a:1,b:1 3 4\n"


def test_what_no_flag_says_is_left_to_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PADDLE_INIT_PSERVERS", "a,b")
    monkeypatch.setenv("PADDLE_INIT_NUM_GRADIENT_SERVERS", "3")

    code = run("import psrt\nrole = psrt.init()\nprint(role.index, *role.endpoints)", FLAGS[2])

    assert code == 0
    assert capsys.readouterr().out == "2 a:7164 b:7164\n"


def test_a_script_is_run_as_python_runs_it(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_lib.py").write_text("ANSWER = 42")
    argv, path = sys.argv, list(sys.path)

    code = run(
        "import sys, my_lib\nprint(__name__, sys.argv[1:], my_lib.ANSWER)",
        arguments=("--epochs", "3"),
    )

    sys.modules.pop("my_lib")
    assert code == 0
    assert capsys.readouterr().out == "__main__ ['--epochs', '3'] 42\n"
    assert (sys.argv, sys.path) == (argv, path)


def test_the_exit_code_is_the_scripts(run: Run) -> None:
    with pytest.raises(SystemExit) as ended:
        run("import sys\nsys.exit(7)")

    assert ended.value.code == 7


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("raise ValueError('no data')", ValueError),
        ("raise KeyboardInterrupt", KeyboardInterrupt),
        ("raise SystemExit(3)", SystemExit),
        ("raise SystemExit(0)", None),
        ("", None),
    ],
)
def test_those_called_at_exit_know_of_an_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, script: str, told: type | None
) -> None:
    monkeypatch.setattr(sys, "last_value", None, raising=False)

    with contextlib.suppress(SystemExit):
        run(script)

    assert (sys.last_value and type(sys.last_value)) is told


def test_an_error_of_a_script_is_shown_from_its_own_line_on(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("def learn():\n    raise ValueError('no data')\nlearn()")

    errors = capsys.readouterr().err
    assert code == 1
    assert errors.endswith("ValueError: no data\n")
    assert "train.py" in errors.splitlines()[1]


def test_an_error_of_psrt_gives_its_own_code(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    script = "from psrt.core.errors import DeadlineError\nraise DeadlineError('nobody came.')"

    assert run(script) == DeadlineError("").spec.exit_code
    assert "nobody came." in capsys.readouterr().err


def test_a_script_that_python_cannot_read_is_shown(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("def :") == 1
    assert "SyntaxError" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--save=x", "--report=x", "--local", "--carrier=grpc"])
def test_a_flag_that_means_nothing_for_a_script_is_refused_by_name(
    run: Run, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("", flag) == 2
    assert f"{flag.partition('=')[0]} has no effect on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [(["--trainer-id=3"], "the job has 1 trainer"), (["--endpoints=a"], "not host:port")],
)
def test_wrong_flags_are_told_before_the_script_runs(
    run: Run, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("print('ran')", *flags) == 2

    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


def test_a_script_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["trainer", "gone.py"]) == 2
    assert "gone.py is not a file." in capsys.readouterr().err


def test_a_job_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["trainer", "job.toml", "--", "more"]) == 2
    assert "job.toml takes no arguments: more" in capsys.readouterr().err


def test_blas_has_as_many_threads_as_the_flag_says(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "import numpy, threadpoolctl\n"
        "print({p['num_threads'] for p in threadpoolctl.threadpool_info()"
        " if p['user_api'] == 'blas'})"
    )

    assert run(script, "--cpu-threads=1") == 0
    assert capsys.readouterr().out == "{1}\n"


def test_logs_are_set_up_only_for_who_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(log, "configure", lambda *given, form: asked.append((*given, form)))

    run("")
    run("", "--log-level=error", "--trainers=2", "--trainer-id=1")

    assert asked == [("trainer-1", "error", "text")]
