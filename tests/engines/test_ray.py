"""The engine `ray` with two nodes: pservers that outlive, trainers that are placed again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from psrt.core.errors import ConfigError, JobError
from psrt.launch.engines.ray import NAMESPACE
from tests.support.launched_job import FAKE, Job
from tests.support.ray_cluster import NODES

WAIT_S = 60.0
WAITING = (
    '[job]\nname = "{name}"\nprogram = "train.py"\n[communication]\non_trainer_loss = "wait"\n'
)
LAUNCHER = """
import json, sys
from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.launch import launching
flags, fake = json.loads(sys.argv[1]), sys.argv[2]
loaded = load(LaunchConfig, flags=flags, file=flags["job"])
launching.run(loaded, say=print, program=(sys.executable, fake))
"""


def launched_once_free(job: Job, **flags: str) -> int:
    """Launch once psrt takes the launcher before for dead."""
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        with suppress(ConfigError):
            return job.launch(**flags)
    pytest.fail("the launcher before is not taken for dead")


def test_pservers_of_a_killed_launcher_go_on_in_the_next_launch(
    ray_flags: dict[str, str], job: Job
) -> None:
    job.write(WAITING.format(name="outlive"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        port = listener.getsockname()[1]
        job.behave(
            pserver_0="outlive", pserver_1="outlive", trainer_0="hold", trainer_1="hold", port=port
        )
        flags = {"job": str(job.path), "log_dir": str(job.logs), **ray_flags}
        launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, json.dumps(flags), str(FAKE)])
        held = [listener.accept()[0] for _ in range(2)]
        before = [json.loads((job.logs / f"pserver.{n}.ready.json").read_text()) for n in range(2)]
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(WAIT_S)
        for connection in held:
            connection.settimeout(WAIT_S)
            assert connection.recv(1) == b""
            connection.close()
    job.behave(pserver_0="crash", pserver_1="crash")

    code = launched_once_free(job, **ray_flags)

    assert code == 0
    assert "pserver.0 of an earlier launch goes on" in job.said
    assert [
        json.loads((job.logs / f"pserver.{n}.ready.json").read_text()) for n in range(2)
    ] == before
    assert "trainer 0 trained" in job.said


def test_a_trainer_whose_actor_is_lost_is_placed_again(ray_flags: dict[str, str], job: Job) -> None:
    job.write(WAITING.format(name="orphan"))
    job.behave(trainer_1="orphan", trainers=3)  # connections, to a pserver of this test

    code = job.launch(restarts="1", **ray_flags)

    assert code == 0
    assert any(line.startswith("trainer.1 was killed and is started again") for line in job.said)
    log = (job.logs / "trainer.1.log").read_text()
    assert "its actor was lost" in log
    assert "trainer 1 trained" in log


def test_nothing_of_a_launch_stays_in_the_cluster(ray_flags: dict[str, str], job: Job) -> None:
    import ray

    job.write(WAITING.format(name="clean"))
    job.behave(trainer_0="wait", trainer_1="interrupt")

    assert job.launch(**ray_flags) == 130

    ray.init(ray_flags["ray_address"], namespace=NAMESPACE, log_to_driver=False)
    try:
        with pytest.raises(ValueError, match="Failed to look up actor"):
            ray.get_actor("psrt-clean-pserver.0", namespace=NAMESPACE)
        groups = ray.util.placement_group_table().values()
        assert {each["state"] for each in groups if "clean" in each["name"]} == {"REMOVED"}
    finally:
        ray.shutdown()


def test_pservers_are_spread_over_the_nodes(ray_flags: dict[str, str], job: Job) -> None:
    job.write(WAITING.format(name="spread"))
    job.behave()

    job.launch(**ray_flags)

    (line,) = [each for each in job.said if each.startswith("pservers serve on")]
    assert all(f"{node}:" in line for node in NODES)


def test_a_cluster_that_is_not_there_is_named(ray_flags: dict[str, str], job: Job) -> None:
    job.behave()

    with pytest.raises(JobError, match=r"found no cluster at '127.0.0.1:1'"):
        job.launch(**{**ray_flags, "ray_address": "127.0.0.1:1"})
