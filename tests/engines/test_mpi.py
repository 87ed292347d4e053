"""The engine `mpi`: the line of `mpirun` for Open MPI and MPICH, and what goes wrong."""

from __future__ import annotations

import pytest

from psrt.core.errors import ConfigError, JobError
from psrt.launch.engines.mpi import Flavour, mpirun_line
from psrt.launch.plan import Plan
from tests.support.launched_job import PROGRAM, Job
from tests.support.mpi_flags import mpi_flags

OPEN_MPI = (
    "mpirun --tag-output --map-by node"
    " --host a:2,b -x _PSRT_RUNNER_KEY -n 2 python3 -m psrt.launch.runners a:1"
    " : --host a:2,b -x _PSRT_RUNNER_KEY -n 3 python3 -m psrt.launch.runners a:1"
)
HYDRA = (
    "mpirun --tag-output -hosts a:2,b -genvlist _PSRT_RUNNER_KEY"
    " -n 2 python3 -m psrt.launch.runners a:1 : -n 3 python3 -m psrt.launch.runners a:1"
)


@pytest.mark.parametrize(
    ("flavour", "line"), [(Flavour.OPEN_MPI, OPEN_MPI), (Flavour.HYDRA, HYDRA)]
)
def test_one_line_of_mpirun_has_pservers_and_trainers(
    flavour: Flavour, line: str, job: Job
) -> None:
    flags = {"mpirun": "mpirun --tag-output", "hosts": "a:2,b", "python": "python3"}
    plan = Plan(job.loaded(on="mpi", trainers=3, **flags), {}, PROGRAM)

    assert " ".join(mpirun_line(plan, flavour, "a:1")) == line


def test_a_dry_run_prints_the_line_and_what_each_rank_runs(job: Job) -> None:
    assert job.launch(dry_run=True, **mpi_flags()) == 0

    text = job.output
    assert "-n 2 " in text.splitlines()[1]
    assert " 127.0.0.1:PORT_OF_LAUNCHER : " in text.splitlines()[1]
    assert "# pserver.1 on HOST_OF_RANK_1," in text
    assert "# trainer.1 on HOST_OF_RANK_3," in text
    assert not job.logs.exists()


def test_a_command_that_is_not_there_is_named_before_anything_starts(job: Job) -> None:
    with pytest.raises(ConfigError, match="cannot run 'no-mpirun'"):
        job.launch(on="mpi", mpirun="no-mpirun")


def test_an_mpirun_that_refuses_fails_the_launch_in_its_own_words(job: Job) -> None:
    job.behave()
    flags = mpi_flags()

    with pytest.raises(JobError, match="no-such-flag") as failure:
        job.launch(**{**flags, "mpirun": f"{flags['mpirun']} --no-such-flag"})

    assert "psrt started nothing" in str(failure.value)


def test_mpich_runs_a_job(job: Job) -> None:
    job.behave()

    assert job.launch(**mpi_flags("mpirun.mpich")) == 0

    assert "trainer 1 trained" in (job.logs / "trainer.1.log").read_text()
