"""`psrt pserver` as v2's flags start it: how many ports it opens, which trainers it accepts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.processes import psrt


def test_ports_for_sparse_are_as_many_more_data_ports(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    flags = "--port=0", "--ports_num=2", "--ports_num_for_sparse=3", f"--ready_file={ready}"

    with psrt(tmp_path / "pserver.log", "pserver", *flags) as pserver:
        pserver.wait_for("psrt pserver ready on 127.0.0.1:")
        facts = json.loads(ready.read_text())

    endpoints = {facts["endpoint"], *facts["data_endpoints"]}
    assert len(facts["data_endpoints"]) == 5
    assert len(endpoints) == 6


def test_a_pserver_that_insists_on_a_number_of_trainers_refuses_another(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_TWO_TRAINERS)
    ready = tmp_path / "ready.json"
    flags = "--port=0", "--num_gradient_servers=1", f"--ready_file={ready}"

    with psrt(tmp_path / "pserver.log", "pserver", *flags) as pserver:
        pserver.wait_for("psrt pserver ready on 127.0.0.1:")
        endpoint = json.loads(ready.read_text())["endpoint"]
        role = f"--endpoints={endpoint}", "--trainers=2"
        with psrt(tmp_path / "trainer.log", "trainer", *role, str(script)) as trainer:
            code = trainer.exit_code()

    assert code == 35  # JOB_MISMATCH
    assert "num_gradient_servers" in trainer.output


_TWO_TRAINERS = """
import psrt
from psrt import layers

role = psrt.init()
with psrt.program() as program:
    loss = layers.mean(layers.fc(layers.data("x", shape=(2,)), 1))
    psrt.optimizer.Sgd(0.1).minimize(loss)
transpiler = psrt.DistributeTranspiler()
transpiler.transpile(program, role.index, role.endpoints, role.trainers)
psrt.ConnectedExecutor(transpiler.get_trainer_program()).start()
"""
