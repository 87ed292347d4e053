"""Starts of PaddlePaddle v2 jobs, by the shell lines of its document.

The workspace is that of the document, made by `examples/word2vec_v2/prepare.py`.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.live_pservers import free_port
from tests.support.processes import ROOT

EXAMPLE = ROOT / "examples" / "word2vec_v2"
DEADLINE_S = 120.0
OF_THE_RIGHT_KIND = (3 * math.log(3) + math.log(4) + math.log(5)) / 6
"""The least loss: six words of a sentence are foretold, all of them from their kinds but "the"."""
_ROLES = ("PSRT_", "PADDLE_", "POD_IP", "TRAINING_ROLE", "OMPI_", "PMI_", "SLURM_", "CPU_NUM")

PSERVER = (
    "stdbuf -oL /usr/bin/nohup psrt pserver --port={port} --ports_num=1 --ports_num_for_sparse=1"
    " --num_gradient_servers={trainers} &> pserver.log &"
)
RANK = """\
    node_id = os.getenv("OMPI_COMM_WORLD_RANK")
    if not node_id:
        raise EnvironmentError("must provied OMPI_COMM_WORLD_RANK")
"""
TWO_TRAINERS = """\
{first} > trainer-0.log 2>&1 &
first=$!
{second} > trainer-1.log 2>&1
second=$?
wait $first
exit $(( $? + second ))
"""
VERSION_OF_V2 = """\
PaddlePaddle 0.10.0rc, compiled with
    with_avx: ON
    with_gpu: OFF
    with_double: OFF
    with_python: ON
    with_rdma: OFF
    with_timer: OFF
"""


def shell(
    directory: Path, lines: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`bash` over `lines` with the commands of this Python first; nothing it started is left."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ROLES)}
    own = {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        ["bash", "-c", lines],
        cwd=directory,
        env=kept | own | dict(variables or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=DEADLINE_S)
    finally:
        with contextlib.suppress(ProcessLookupError):  # when all of them have ended
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    return subprocess.CompletedProcess(lines, running.returncode, output)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, tmp_path)
    made = shell(tmp_path, "python prepare.py")
    assert made.returncode == 0, made.stdout
    return tmp_path


def story(workspace: Path, output: str = "") -> str:
    logs = [f"--- {log.name}\n{log.read_text()}" for log in sorted(workspace.glob("*.log"))]
    return "\n".join([output, *logs])


def test_prepare_lays_out_the_workspace_of_the_document(workspace: Path) -> None:
    names = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*-0*"))

    assert names == [
        *(f"test_data_dir/test.txt-0000{number}" for number in range(3)),
        *(f"train_data_dir/train.txt-0000{number}" for number in range(3)),
    ]
    assert (workspace / "word_dict.txt").read_text().splitlines()[-1] == "<unk>"


@pytest.mark.slow
def test_the_lines_of_the_document_train_with_one_pserver_and_one_trainer(workspace: Path) -> None:
    port = free_port()
    lines = [
        PSERVER.format(port=port, trainers=1),
        f"export PADDLE_INIT_PORT={port}",
        "python train.py",
        "trained=$?",
        "wait",
        "exit $trained",
    ]

    ended = shell(workspace, "\n".join(lines))

    assert ended.returncode == 0, story(workspace, ended.stdout)
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", ended.stdout)]
    assert losses[-1] < 1.1 * OF_THE_RIGHT_KIND
    assert "train.txt-00000 train_data_dir/train.txt-00001" in ended.stdout
    log = (workspace / "pserver.log").read_text()
    assert f"psrt pserver ready on 127.0.0.1:{port}" in log
    assert "all trainers completed" in log


def by_arguments(workspace: Path, port: int) -> list[str]:
    """The head that reads the rank, and arguments that contradict what is exported."""
    script = workspace / "train.py"
    asked = f'port={port}, num_gradient_servers=2, pservers="127.0.0.1"'
    call = f"{RANK}    role = psrt.init(use_gpu=False, trainer_id=int(node_id), {asked})\n"
    before = script.read_text()
    script.write_text(before.replace("    role = psrt.init(use_gpu=False)\n", call))
    assert script.read_text() != before
    wrong = "PADDLE_INIT_PORT=1 PADDLE_INIT_TRAINER_ID=9 PADDLE_INIT_PSERVERS=10.255.255.1"
    return [f"{wrong} OMPI_COMM_WORLD_RANK={rank} python train.py" for rank in range(2)]


def by_environment(workspace: Path, port: int) -> list[str]:
    same = f"PADDLE_INIT_PORT={port} PADDLE_INIT_NUM_GRADIENT_SERVERS=2 PADDLE_INIT_USE_GPU=False"
    return [f"{same} PADDLE_INIT_TRAINER_ID={number} python train.py" for number in range(2)]


def by_flags(workspace: Path, port: int) -> list[str]:
    same = f"psrt trainer --endpoints=127.0.0.1:{port} --trainers=2"
    return [f"{same} --trainer_id={number} train.py" for number in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "commands",
    [by_arguments, *(pytest.param(c, marks=pytest.mark.long) for c in (by_environment, by_flags))],
)
def test_two_trainers_share_the_files_however_they_are_told_their_part(
    commands: Callable[[Path, int], list[str]], workspace: Path
) -> None:
    port = free_port()
    first, second = commands(workspace, port)
    script = PSERVER.format(port=port, trainers=2) + "\n"
    script += TWO_TRAINERS.format(first=first, second=second)

    ended = shell(workspace, script)

    assert ended.returncode == 0, story(workspace, ended.stdout)
    logs = [(workspace / f"trainer-{number}.log").read_text() for number in range(2)]
    assert (
        "trainer 0 of 2: train_data_dir/train.txt-00000 train_data_dir/train.txt-00002" in logs[0]
    )
    assert "trainer 1 of 2: train_data_dir/train.txt-00001\n" in logs[1]
    assert float(re.findall(r"test: loss (\S+)", logs[0])[0]) < 1.1 * OF_THE_RIGHT_KIND


def test_a_script_started_without_its_rank_says_which_variable_is_missing(workspace: Path) -> None:
    by_arguments(workspace, 1)

    ended = shell(workspace, "python train.py")

    assert ended.returncode == 1
    assert ended.stdout.endswith("OSError: must provied OMPI_COMM_WORLD_RANK\n")


def test_version_has_every_line_of_the_document(tmp_path: Path) -> None:
    shown = shell(tmp_path, "psrt version")

    assert shown.returncode == 0
    asked = re.findall(r"^    with_\w+", VERSION_OF_V2, re.M)
    lines = shown.stdout.splitlines()
    assert lines[0] == "psrt 0.1.0"
    assert set(asked) <= {line.partition(":")[0] for line in lines}
