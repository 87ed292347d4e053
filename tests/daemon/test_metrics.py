"""A running pserver and trainer, looked into over HTTP."""

from __future__ import annotations

import http.client
import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from psrt.core.errors import CATALOGUE, ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.methods import Method
from tests.support.carriers import eventually
from tests.support.processes import psrt
from tests.support.pserver import CALL_TIMEOUT_S, daemon, exchange, joined
from tests.support.small_job import BATCH, lines, write_files

WAITS = {"data", "pservers", "queue"}
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def get(endpoint: str, path: str, accept: str = OPEN_METRICS) -> tuple[int, str, str]:
    """Status, type and text of a page."""
    with closing(http.client.HTTPConnection(endpoint, timeout=60)) as connection:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def samples(endpoint: str) -> dict[tuple[str, ...], float]:
    """Name and label values → value."""
    families = text_string_to_metric_families(get(endpoint, "/metrics")[2])
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_a_pserver_shows_its_calls_rounds_and_tables(tmp_path: Path) -> None:
    with daemon(tmp_path, "--metrics", "127.0.0.1:0") as pserver:
        where = pserver.facts["metrics"]
        client = joined(pserver.endpoint)
        for _ in range(3):
            exchange(client)
        with pytest.raises(WireError):
            client.call(Method.PUSH, header=pb.Header(step=1), timeout_s=CALL_TIMEOUT_S)
        found = samples(where)
        health, ready = get(where, "/healthz"), get(where, "/readyz")
        status = json.loads(get(where, "/status.json")[2])
        classic = get(where, "/metrics", "text/plain")
        client.close()

    calls = "psrt_pserver_call_duration_seconds_count"
    assert found[calls, "EXCHANGE"] == 3
    assert found["psrt_pserver_rounds_total",] == 3
    assert found["psrt_pserver_round",] == 3
    assert found["psrt_pserver_round_wait_seconds_count", "0"] == 3
    assert found["psrt_pserver_trainers", "running"] == 1
    assert found["psrt_pserver_tables", "dense"] == 1
    assert found["psrt_pserver_info", "job", "Sync"] == 1
    assert sum(value for key, value in found.items() if key[0] == "psrt_rejected_total") == 1
    assert found["process_resident_memory_bytes",] < found["psrt_process_memory_limit_bytes",]
    assert health[::2] == (200, "ok\n")
    assert ready[::2] == (200, "ready\n")
    assert status["job_id"] == "job"
    assert classic[1].startswith("text/plain; version=0.0.4")


def test_a_trainer_shows_its_steps_waits_and_calls(tmp_path: Path) -> None:
    job = write_files(tmp_path / "job", [lines(4 * BATCH, seed=1)], mode="async", epochs=100_000)
    with daemon(tmp_path) as pserver:
        flags = "--endpoints", pserver.endpoint, "--metrics", "127.0.0.1:0", str(job)
        with psrt(tmp_path / "trainer.log", "trainer", *flags) as trainer:
            trainer.wait_for("epoch")
            where = re.search(r"metrics on http://(\S+)/metrics", trainer.output)[1]
            eventually(lambda: samples(where)["psrt_trainer_steps_total",] >= 20, "twenty steps")
            eventually(lambda: ("psrt_trainer_loss",) in samples(where), "a line of progress")
            found, ready = samples(where), get(where, "/readyz")
            status = json.loads(get(where, "/status.json")[2])
            trainer.process.terminate()
            trainer.exit_code()

    steps = found["psrt_trainer_steps_total",]
    assert found["psrt_trainer_info", "small", "async", "0"] == 1
    assert found["psrt_trainer_examples_total",] == pytest.approx(steps * BATCH, abs=BATCH)
    assert found["psrt_trainer_step_duration_seconds_count",] == pytest.approx(steps, abs=2)
    assert 0 < found["psrt_trainer_loss",] < 1
    assert found["psrt_trainer_epoch",] >= 5
    assert found["psrt_trainer_call_duration_seconds_count", "pull_rows"] >= 20
    assert found["psrt_trainer_pushed_bytes_total",] > 0
    assert {key[1] for key in found if key[0] == "psrt_trainer_wait_seconds_total"} == WAITS
    assert found["psrt_trainer_staleness_steps",] >= 0
    assert found["psrt_trainer_durable_lag_pushes",] == 0
    assert found["psrt_process_gil_probes_total",] >= 0
    assert ready[::2] == (200, "ready\n")
    assert (status["job"], status["trainer"], status["ready"]) == ("small", 0, True)
    assert status["counters"]["push_bytes"] > 0


SCRIPT = """
import pathlib, sys
import numpy as np
import psrt
from psrt import layers
from psrt.core.specs import Sync
from psrt.partition.transpiler import DistributeTranspiler
from psrt.trainer.training.connected import ConnectedExecutor

with psrt.program(seed=3) as made:
    ids = layers.data("ids", shape=(1,), dtype="int64")
    row = layers.embedding(ids, (100, 4), is_sparse=True, is_distributed=True)
    psrt.optimizer.Adagrad(0.1).minimize(layers.mean(layers.fc(layers.flatten(row), 2)))
transpiler = DistributeTranspiler()
transpiler.transpile(made, 0, [sys.argv[1]], 1, Sync())
with ConnectedExecutor(transpiler.get_trainer_program()) as executor:
    while not pathlib.Path(sys.argv[2]).exists():
        executor.run({"ids": np.array([[7], [8]], np.int64)})
"""


def test_a_script_shows_the_steps_of_its_executor(tmp_path: Path) -> None:
    script, end = tmp_path / "train.py", tmp_path / "end"
    script.write_text(SCRIPT)
    with daemon(tmp_path) as pserver:
        flags = "--metrics", "127.0.0.1:0", "--log-level", "info", str(script)
        arguments = "--", pserver.endpoint, str(end)
        with psrt(tmp_path / "trainer.log", "trainer", *flags, *arguments) as trainer:
            trainer.wait_for("/metrics")
            where = re.search(r"metrics on http://(\S+)/metrics", trainer.output)[1]
            eventually(lambda: steps_at(where) >= 5, "five steps", logs=[trainer.log])
            found = samples(where)
            end.touch()
            assert trainer.exit_code() == 0, trainer.output

    assert found["psrt_trainer_examples_total",] >= 10
    assert found["psrt_trainer_step_duration_seconds_count",] >= 4
    assert {key[2] for key in found if key[0] == "psrt_trainer_info"} == {"sync"}
    assert ("psrt_trainer_loss",) not in found


def steps_at(where: str) -> float:
    return samples(where).get(("psrt_trainer_steps_total",), 0.0)


def test_an_address_for_metrics_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with psrt(log, "pserver", "--port", "0", "--metrics", "9170") as pserver:
        code = pserver.exit_code()
        output = pserver.output

    assert code == CATALOGUE[ErrorCode.CONFIG_INVALID].exit_code
    assert "which is not host:port" in output
