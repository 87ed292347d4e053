"""Loss scales of several PyTorch ranks, one of which finds an infinite gradient of its table."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="psrt.torch needs torch")

from tests.support.live_pservers import free_port
from tests.support.processes import DEADLINE_S, ROOT, clean_environment, exit_code

RANKS = 2


def run(directory: Path, kind: str) -> list[tuple[int, str]]:
    """Exit code and output of each rank."""
    port, logs = str(free_port()), [directory / f"rank-{rank}.log" for rank in range(RANKS)]
    command = [sys.executable, "-m", "tests.support.torch_scaled", kind]
    with contextlib.ExitStack() as stack:
        started = []
        for rank, log in enumerate(logs):
            role = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_PORT": port}
            where = clean_environment() | role | {"MASTER_ADDR": "127.0.0.1"}
            out = stack.enter_context(log.open("w"))
            process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, text=True, env=where
            )
            stack.callback(process.kill)
            started.append(process)
        codes = [
            exit_code(process, log, deadline_s=DEADLINE_S)
            for process, log in zip(started, logs, strict=True)
        ]
    return [(code, log.read_text()) for code, log in zip(codes, logs, strict=True)]


def test_ranks_that_agree_on_what_is_infinite_skip_together_and_keep_one_scale(
    tmp_path: Path,
) -> None:
    for code, output in run(tmp_path, "sharded"):
        assert code == 0, output
        printed = [json.loads(line) for line in output.splitlines() if line[1:2].isdigit()]
        assert printed == [[1024.0, 4], [512.0, 0], [512.0, 4]]


def test_ranks_that_do_not_agree_end_before_their_scales_differ(tmp_path: Path) -> None:
    ended = run(tmp_path, "plain")

    for rank, (code, output) in enumerate(ended):
        assert code == 1
        printed = [json.loads(line) for line in output.splitlines() if line[1:2].isdigit()]
        assert printed == [[1024.0, 4]]
        assert f"rank {rank} has {'' if rank else 'not '}found any" in output
        assert "Use torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler" in output
