"""`psrt pserver` and `psrt trainer` started by the variables of a launcher alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import psrt
from tests.support.scripts import endpoints
from tests.support.small_job import BATCH, lines, write_files


def newer(endpoint: str) -> tuple[dict[str, str], dict[str, str]]:
    host, port = endpoint.split(":")
    common = {"PADDLE_PSERVERS_IP_PORT_LIST": endpoint, "PADDLE_TRAINERS_NUM": "1"}
    pserver = {"TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port}
    return common | pserver, common | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}


def older(endpoint: str) -> tuple[dict[str, str], dict[str, str]]:
    host, port = endpoint.split(":")
    common = {"PADDLE_PSERVER_IPS": host, "PADDLE_PSERVER_PORT": port, "PADDLE_TRAINERS": "1"}
    pserver = {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_IP": host}
    return common | pserver, common | {"PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}


@pytest.mark.parametrize("names", [newer, older])
def test_the_environment_alone_starts_a_job(
    tmp_path: Path, names: Callable[[str], tuple[dict[str, str], dict[str, str]]]
) -> None:
    (endpoint,) = endpoints(1)
    for_pserver, for_trainer = names(endpoint)
    job = write_files(tmp_path, [lines(4 * BATCH, seed=1)])

    with (
        psrt(tmp_path / "pserver.log", "pserver", **for_pserver) as pserver,
        psrt(tmp_path / "trainer.log", "trainer", str(job), **for_trainer) as trainer,
    ):
        codes = trainer.exit_code(), pserver.exit_code()

        assert codes == (0, 0), trainer.output + pserver.output
        assert f"ready on {endpoint}" in pserver.output


def test_a_command_of_the_other_role_says_so_and_goes_on(tmp_path: Path) -> None:
    (endpoint,) = endpoints(1)
    _, for_trainer = newer(endpoint)
    _, port = endpoint.split(":")

    with psrt(tmp_path / "log", "pserver", "--port", port, **for_trainer) as pserver:
        pserver.wait_for(f"ready on {endpoint}")

        assert "TRAINING_ROLE is TRAINER, but this is the command of a PSERVER" in pserver.output
