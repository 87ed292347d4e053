"""Role makers: the role of a process by Fluid's names; variables are read in test_roles."""

from __future__ import annotations

import importlib

import pytest

import psrt.fluid as fluid
from psrt.config.load import environment
from psrt.core.errors import ConfigError, ProgramError
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.base.role_maker import Role
from psrt.fluid.incubate.fleet.collective import CollectiveOptimizer
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    DistributedTranspiler,
    TranspilerOptimizer,
)
from psrt.fluid.transpiler import DistributeTranspilerConfig

PSERVERS = ["127.0.0.1:6170", "127.0.0.1:6171"]
PREFIXES = ("TRAINING_ROLE", "PADDLE_", "POD_IP", "OMPI_", "PMI_", "SLURM_")


@pytest.fixture(autouse=True)
def no_role(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment():
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)


def export(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_the_cloud_role_maker_answers_for_a_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    export(
        monkeypatch,
        TRAINING_ROLE="TRAINER",
        PADDLE_PSERVERS_IP_PORT_LIST=",".join(PSERVERS),
        PADDLE_TRAINERS_NUM="3",
        PADDLE_TRAINER_ID="0",
    )
    role = role_maker.PaddleCloudRoleMaker()

    role.generate_role()

    assert role.is_worker()
    assert role.is_first_worker()
    assert not role.is_server()
    assert (role.worker_index(), role.worker_num(), role.server_num()) == (0, 3, 2)
    assert role.get_pserver_endpoints() == PSERVERS
    assert role.to_string() == "worker 0, 3 workers, servers 127.0.0.1:6170,127.0.0.1:6171"


def test_the_cloud_role_maker_answers_for_a_pserver(monkeypatch: pytest.MonkeyPatch) -> None:
    export(
        monkeypatch,
        TRAINING_ROLE="PSERVER",
        PADDLE_PSERVERS_IP_PORT_LIST=",".join(PSERVERS),
        PADDLE_TRAINERS_NUM="3",
        POD_IP="127.0.0.1",
        PADDLE_PORT="6171",
    )
    role = role_maker.PaddleCloudRoleMaker()

    assert role.is_server()
    assert not role.is_worker()
    assert not role.is_first_worker()
    assert (role.server_index(), role.role_id()) == (1, 1)


def test_an_environment_without_a_role_is_told_what_it_lacks() -> None:
    role = role_maker.PaddleCloudRoleMaker()

    with pytest.raises(ConfigError, match="Can not find TRAINING_ROLE in the environment"):
        role.generate_role()


@pytest.mark.parametrize(
    "make", [role_maker.MPISymetricRoleMaker, role_maker.MPIRoleMaker], ids=lambda m: m.__name__
)
def test_ranks_of_mpi_are_pservers_and_trainers_in_turn(
    monkeypatch: pytest.MonkeyPatch, make: type[role_maker.RoleMakerBase]
) -> None:
    export(monkeypatch, OMPI_COMM_WORLD_SIZE="4", PADDLE_PSERVERS_IP_PORT_LIST=",".join(PSERVERS))
    seen = []
    for rank in range(4):
        export(monkeypatch, OMPI_COMM_WORLD_RANK=str(rank))
        role = make()
        seen.append((role.is_server(), role.role_id(), role.worker_num()))

    assert seen == [(True, 0, 2), (False, 0, 2), (True, 1, 2), (False, 1, 2)]


@pytest.mark.parametrize(("kind", "is_server"), [(Role.WORKER, False), (Role.SERVER, True)])
def test_a_role_may_be_given_by_arguments(kind: Role, is_server: bool) -> None:
    role = role_maker.UserDefinedRoleMaker(1, kind, worker_num=2, server_endpoints=PSERVERS)

    assert role.is_server() is is_server
    assert (role.role_id(), role.worker_num()) == (1, 2)
    assert role.get_pserver_endpoints() == PSERVERS


def test_the_number_of_workers_may_be_said_by_their_endpoints() -> None:
    role = role_maker.UserDefinedRoleMaker(
        server_endpoints=PSERVERS, worker_endpoints=["a:1", "b:1"]
    )

    assert role.worker_num() == 2
    assert role.get_trainer_endpoints() == ["a:1", "b:1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"worker_num": 0}, "a cluster of 0 trainers"),
        ({"current_id": 2}, "this process is trainer 2, but the cluster has 2"),
        ({"role": "TRAINER"}, "role is 'TRAINER', which is not a role"),
        ({"server_endpoints": None}, "no pservers were named"),
        ({"server_endpoints": "a:1,b:1"}, "expected a list"),
    ],
)
def test_arguments_that_make_no_role_are_refused(
    arguments: dict[str, object], message: str
) -> None:
    whole = {"worker_num": 2, "server_endpoints": PSERVERS, **arguments}

    with pytest.raises(ConfigError, match=message):
        role_maker.UserDefinedRoleMaker(**whole)  # type: ignore[arg-type]


LAUNCHERS = {
    "paddle": {"PADDLE_TRAINER_ENDPOINTS": "a:1,b:1", "PADDLE_TRAINER_ID": "1"},
    "torchrun": {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
    "slurm": {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
    "mpi": {
        f"OMPI_COMM_WORLD_{n}": v
        for n, v in zip(("RANK", "SIZE", "LOCAL_SIZE"), "122", strict=True)
    },
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_gives_a_worker_its_number_among_workers_alone(
    launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LAUNCHERS[launcher].items():
        monkeypatch.setenv(name, value)
    role = role_maker.PaddleCloudRoleMaker(is_collective=True)

    assert (role.worker_index(), role.worker_num(), role.server_num()) == (1, 2, 0)
    assert role.get_trainer_endpoints()[0] == ("127.0.0.1:6170" if launcher == "mpi" else "a:1")


def test_a_worker_of_several_hosts_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NNODES": "2"}.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match="do not know where to meet"):
        role_maker.PaddleCloudRoleMaker(is_collective=True).generate_role()


def test_a_collective_role_maker_takes_its_endpoints_as_a_list() -> None:
    made = role_maker.UserDefinedCollectiveRoleMaker(1, ["a:1", "b:1"])

    assert (made.worker_index(), made.worker_num()) == (1, 2)
    with pytest.raises(ConfigError, match="expected a list"):
        role_maker.UserDefinedCollectiveRoleMaker(0, "a:1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "name", "hint"), [("fleet.parameter_server.pslib", "PSLib", "distribute_transpiler")]
)
def test_what_psrt_has_not_can_be_imported_and_is_refused_when_it_is_used(
    module: str, name: str, hint: str
) -> None:
    refuses = importlib.import_module(f"psrt.fluid.incubate.{module}")
    asks = (
        lambda: refuses.fleet.init(),
        lambda: getattr(refuses, name)(),
        lambda: refuses.TranspilerOptimizer,
    )

    for ask in asks:
        with pytest.raises(ConfigError, match=r"which psrt\.fluid does not have") as refusal:
            ask()
        assert hint in refusal.value.hint
    with pytest.raises(ImportError):  # as in Fluid, where a library is missing
        refuses.fleet.init()
    with pytest.raises(AttributeError, match="distributed_optimizer"):
        refuses.fleet.distributed_optimizer(None)


def test_a_role_that_is_none_is_a_value_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_ROLE", "TEST")

    with pytest.raises(ValueError, match="TRAINING_ROLE is 'TEST'") as refusal:
        role_maker.PaddleCloudRoleMaker(is_collective=False).generate_role()

    assert isinstance(refusal.value, ConfigError)


def test_a_role_maker_with_a_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="GeneralRoleMaker") as refusal:
        role_maker.GeneralRoleMaker(path="/tmp/store", init_timeout_seconds=3600)

    assert "PaddleCloudRoleMaker()" in refusal.value.hint


def test_the_name_of_no_role_maker_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"Did you mean PaddleCloudRoleMaker\?"):
        role_maker.PaddleCloudRolemaker  # noqa: B018


def test_an_optimizer_of_a_cluster_needs_a_role_to_minimize() -> None:
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))

    with pytest.raises(ConfigError, match=r"without a role.*distributed_optimizer"):
        TranspilerOptimizer(fluid.optimizer.Adam(0.1)).minimize(loss)
    with pytest.raises(ProgramError, match=r"before fleet.init"):
        CollectiveOptimizer(fluid.optimizer.Adam(0.1), strategy=None).minimize(loss)


def test_the_default_program_may_be_cut_by_another_config() -> None:
    made = DistributedTranspiler()
    with pytest.raises(ConfigError, match="'config', which is no config"):
        made._transpile("config")  # type: ignore[arg-type]
    made.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.SERVER, 2, PSERVERS))
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)

    made._transpile(DistributeTranspilerConfig())

    assert made.main_program.job is not None
