"""The role of a process, from its environment alone."""

from __future__ import annotations

from typing import Any

import pytest

from psrt.config.load import load
from psrt.config.older_variables import endpoints_on, with_derived
from psrt.config.roles import ClusterRole, cloud_role, contradiction, mpi_rank, mpi_role
from psrt.config.sections import PserverConfig, TrainerConfig
from psrt.core.errors import ConfigError

PSERVERS = "10.0.0.1:6170,10.0.0.2:6171"
TRAINER = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_PSERVERS_IP_PORT_LIST": PSERVERS,
    "PADDLE_TRAINERS_NUM": "3",
    "PADDLE_TRAINER_ID": "2",
}
PSERVER = {
    "TRAINING_ROLE": "PSERVER",
    "PADDLE_PSERVERS_IP_PORT_LIST": PSERVERS,
    "PADDLE_TRAINERS_NUM": "3",
    "POD_IP": "10.0.0.2",
    "PADDLE_PORT": "6171",
}
ENDPOINTS = ("10.0.0.1:6170", "10.0.0.2:6171")


# --- PaddlePaddle's launchers ---------------------------------------------------------------------


def test_a_trainer_knows_its_number_and_all_pservers() -> None:
    assert cloud_role(TRAINER) == ClusterRole(False, 2, 3, ENDPOINTS)


def test_a_pserver_finds_itself_in_the_list_by_its_address() -> None:
    role = cloud_role(PSERVER)

    assert role == ClusterRole(True, 1, 3, ENDPOINTS)
    assert role.current_endpoint == "10.0.0.2:6171"


def test_a_pserver_may_be_told_its_number_instead() -> None:
    known = {k: v for k, v in PSERVER.items() if k not in ("POD_IP", "PADDLE_PORT")}

    assert cloud_role({**known, "PADDLE_PSERVER_ID": "0"}).index == 0


def test_a_pserver_may_be_told_its_endpoint_in_one_variable() -> None:
    known = {k: v for k, v in PSERVER.items() if k not in ("POD_IP", "PADDLE_PORT")}

    assert cloud_role({**known, "PADDLE_CURRENT_ENDPOINT": "10.0.0.1:6170"}).index == 0


def test_endpoints_of_trainers_are_kept_when_told() -> None:
    role = cloud_role({**TRAINER, "PADDLE_TRAINER_ENDPOINTS": "a:1, b:1,c:1"})

    assert role.trainer_endpoints == ("a:1", "b:1", "c:1")


@pytest.mark.parametrize("environment", [TRAINER, PSERVER], ids=["trainer", "pserver"])
def test_every_missing_variable_is_named(environment: dict[str, str]) -> None:
    for name in environment:
        for left in ({k: v for k, v in environment.items() if k != name}, environment | {name: ""}):
            with pytest.raises(ConfigError, match=rf"Can not find {name} in the environment\."):
                cloud_role(left)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"TRAINING_ROLE": "WORKER"}, "TRAINING_ROLE is 'WORKER'"),
        ({"PADDLE_TRAINERS_NUM": "two"}, "PADDLE_TRAINERS_NUM is 'two', expected a number"),
        ({"PADDLE_TRAINERS_NUM": "²"}, "PADDLE_TRAINERS_NUM is '²', expected a number"),
        ({"PADDLE_PSERVERS_IP_PORT_LIST": "a:²"}, "the endpoint 'a:²' is not host:port"),
        ({"PADDLE_TRAINERS_NUM": "0"}, "a cluster of 0 trainers"),
        ({"PADDLE_TRAINER_ID": "3"}, "this process is trainer 3, but the cluster has 3"),
        ({"PADDLE_PSERVERS_IP_PORT_LIST": "a:1,b"}, "the endpoint 'b' is not host:port"),
        ({"PADDLE_PSERVERS_IP_PORT_LIST": "a:1,a:1"}, "the endpoint a:1 is listed more than once"),
        ({"PADDLE_PSERVERS_IP_PORT_LIST": ","}, "no pservers were named"),
    ],
)
def test_what_cannot_be_is_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cloud_role(TRAINER | variables)


@pytest.mark.parametrize(("index", "trainers"), [("0", 2), (0.0, 2), (0, "2"), (0, 2.5)])
def test_a_number_of_a_role_is_an_integer(index: Any, trainers: Any) -> None:
    with pytest.raises(ConfigError, match="expected an integer"):
        ClusterRole(False, index, trainers, ENDPOINTS)


def test_a_pserver_that_is_not_in_the_list_is_refused_with_both() -> None:
    with pytest.raises(ConfigError, match=r"this pserver is 10.0.0.2:1, which is not among") as no:
        cloud_role({**PSERVER, "PADDLE_PORT": "1"})

    assert PSERVERS in str(no.value)


# --- older scripts --------------------------------------------------------------------------------


def test_older_variables_of_a_pserver_mean_the_same() -> None:
    older = {
        "PADDLE_TRAINING_ROLE": "PSERVER",
        "PADDLE_PSERVER_IPS": "10.0.0.1,10.0.0.2",
        "PADDLE_PSERVER_PORT": "6174",
        "PADDLE_CURRENT_IP": "10.0.0.2",
        "PADDLE_TRAINERS": "2",
    }

    assert cloud_role(older) == ClusterRole(True, 1, 2, ("10.0.0.1:6174", "10.0.0.2:6174"))


@pytest.mark.parametrize(
    "trainers",
    [
        {"PADDLE_TRAINERS": "10.1.0.1,10.1.0.2"},
        {"PADDLE_TRAINERS": "2"},
        {"PADDLE_NUM_TRAINERS": "2"},
    ],
)
def test_older_names_of_the_number_of_trainers_mean_the_same(trainers: dict[str, str]) -> None:
    older = {
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_PSERVER_IPS": "10.0.0.1",
        "PADDLE_TRAINER_ID": "1",
    }

    assert cloud_role(older | trainers) == ClusterRole(False, 1, 2, ("10.0.0.1:6170",))


def test_a_newer_variable_wins_over_an_older_one() -> None:
    both = with_derived({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINING_ROLE": "PSERVER"})

    assert both["TRAINING_ROLE"] == "TRAINER"


def test_pservers_on_one_host_take_ports_in_a_row() -> None:
    assert endpoints_on(["a", "b", "a", "a"], 7) == ("a:7", "b:7", "a:8", "a:9")


# --- MPI and Slurm --------------------------------------------------------------------------------

LISTED = {"PADDLE_PSERVERS_IP_PORT_LIST": PSERVERS}


def ranks(rank: str, size: str) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size}


@pytest.mark.parametrize(
    ("rank", "role"), [("0", (True, 0)), ("1", (False, 0)), ("2", (True, 1)), ("3", (False, 1))]
)
def test_even_ranks_are_pservers_and_odd_ones_trainers(rank: str, role: tuple[bool, int]) -> None:
    assert mpi_role(ranks(rank, "4") | LISTED) == ClusterRole(*role, 2, ENDPOINTS)


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"},
        {"PMI_RANK": "3", "PMI_SIZE": "4"},
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
    ],
)
def test_every_launcher_of_ranks_is_understood(variables: dict[str, str]) -> None:
    assert mpi_rank(variables) == (3, 4)


@pytest.mark.parametrize(
    ("variables", "endpoints"),
    [
        ({"PADDLE_PSERVER_IPS": "a,b"}, ("a:6170", "b:6170")),
        ({"PADDLE_PSERVER_IPS": "a,a", "PADDLE_PSERVER_PORT": "9"}, ("a:9", "a:10")),
        ({"PADDLE_PSERVER_IPS": "a"}, ("a:6170", "a:6171")),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, ("127.0.0.1:6170", "127.0.0.1:6171")),
        ({"PADDLE_PSERVER_IPS": "a", **LISTED}, ENDPOINTS),
    ],
    ids=["a host each", "a host twice", "one host for all", "all ranks on one host", "a list"],
)
def test_endpoints_of_ranks_follow_from_hosts_and_a_port(
    variables: dict[str, str], endpoints: tuple[str, ...]
) -> None:
    assert mpi_role(ranks("1", "4") | variables).endpoints == endpoints


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "Can not find the rank of this process"),
        (ranks("0", "3"), "3 MPI ranks cannot be halved"),
        (ranks("0", "4"), "Can not find PADDLE_PSERVERS_IP_PORT_LIST"),
        (ranks("0", "6") | LISTED, "6 MPI ranks are 3 pservers, but 2 are named"),
    ],
)
def test_ranks_that_make_no_cluster_are_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mpi_role(variables)


# --- psrt's own commands --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variables",
    [
        {"POD_IP": "10.0.0.2", "PADDLE_PORT": "6171"},
        {"PADDLE_CURRENT_ENDPOINT": "10.0.0.2:6171"},
        {"PADDLE_CURRENT_IP": "10.0.0.2", "PADDLE_PSERVER_PORT": "6171"},
    ],
)
def test_psrt_pserver_listens_where_the_environment_says(variables: dict[str, str]) -> None:
    config = load(PserverConfig, environ=variables).config

    assert (config.host, config.port) == ("10.0.0.2", 6171)


@pytest.mark.parametrize(
    "variables",
    [
        {"PADDLE_PSERVERS_IP_PORT_LIST": "a:1,b:1", "PADDLE_TRAINERS_NUM": "2"},
        {"PADDLE_PSERVER_IPS": "a,b", "PADDLE_PSERVER_PORT": "1", "PADDLE_TRAINERS": "2"},
    ],
)
def test_psrt_trainer_finds_its_pservers_in_the_environment(variables: dict[str, str]) -> None:
    config = load(TrainerConfig, environ={**variables, "PADDLE_TRAINER_ID": "1"}).config

    assert (config.endpoints, config.trainers, config.trainer_id) == (("a:1", "b:1"), 2, 1)


@pytest.mark.parametrize("name", ["TRAINING_ROLE", "PADDLE_TRAINING_ROLE"])
def test_a_command_notices_that_the_environment_names_the_other_role(name: str) -> None:
    said = contradiction({name: "TRAINER"}, "PSERVER")

    assert said == "TRAINING_ROLE is TRAINER, but this is the command of a PSERVER"
    assert contradiction({name: "PSERVER"}, "PSERVER") == ""
    assert contradiction({}, "PSERVER") == ""
