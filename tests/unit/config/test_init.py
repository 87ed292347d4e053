"""`psrt.init`: what it overrides, what it leaves to the environment, what it refuses."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

import psrt
from psrt.config import overrides
from psrt.config.init import InitArguments
from psrt.config.load import cpu_num, environment, load
from psrt.config.overrides import GivenValue, ProcessOverrides, Variables
from psrt.config.roles import ClusterRole
from psrt.config.sections import PserverConfig, TrainerConfig
from psrt.core.errors import ConfigError, ErrorCode
from psrt.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker

NEWER = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "e:1,f:1",
    "PADDLE_TRAINERS_NUM": "8",
    "PADDLE_TRAINER_ID": "7",
    "CPU_NUM": "6",
}
OLDER = {
    "PADDLE_INIT_PSERVERS": "e,f",
    "PADDLE_INIT_PORT": "1",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS": "8",
    "PADDLE_INIT_TRAINER_ID": "7",
    "PADDLE_INIT_TRAINER_COUNT": "6",
}
OWN = {
    "PSRT_TRAINER_ENDPOINTS": "e:1,f:1",
    "PSRT_TRAINER_TRAINERS": "8",
    "PSRT_TRAINER_TRAINER_ID": "7",
    "PSRT_TRAINER_CPU_NUM": "6",
}
ROLES = ("PSRT_", "PADDLE_", "TRAINING_ROLE", "CPU_NUM", "OMPI_", "SLURM_", "PMI_", "POD_IP")


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has no overrides."""
    monkeypatch.setattr(overrides, "OVERRIDES", ProcessOverrides())
    for name in environment():
        if name.startswith(ROLES):
            monkeypatch.delenv(name)


def export(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


# --- what it sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exported", [{}, NEWER, OLDER, OWN], ids=["", "newer", "older", "own"])
def test_arguments_count_over_every_variable(
    exported: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export(monkeypatch, exported)

    role = psrt.init(
        use_gpu=False,
        trainer_count=2,
        port=7200,
        num_gradient_servers=3,
        trainer_id=1,
        pservers="a,b",
    )

    assert role == ClusterRole(False, 1, 3, ("a:7200", "b:7200"))
    loaded = load(TrainerConfig)
    assert loaded.config.endpoints == ("a:7200", "b:7200")
    assert (loaded.config.trainers, loaded.config.trainer_id, loaded.config.cpu_num) == (3, 1, 2)
    names = ("endpoints", "trainers", "trainer_id", "cpu_num")
    assert {loaded.origins[f"trainer.{name}"] for name in names} == {"psrt.init"}
    assert cpu_num() == 2


@pytest.mark.parametrize("exported", [NEWER, OLDER], ids=["newer", "older"])
def test_what_is_not_given_is_what_the_environment_says(
    exported: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export(monkeypatch, exported)

    role = psrt.init(trainer_id=2)

    assert role == ClusterRole(False, 2, 8, ("e:1", "f:1"))
    assert cpu_num() == 6
    assert load(TrainerConfig).origins["trainer.trainers"] in exported


def test_what_nobody_says_is_one_trainer_and_a_pserver_on_this_host() -> None:
    assert psrt.init() == ClusterRole(False, 0, 1, ("127.0.0.1:7164",))
    assert load(TrainerConfig).origins["trainer.endpoints"] == "psrt.init"


def test_the_port_of_the_document_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_INIT_PORT", "7999")

    assert psrt.init().endpoints == ("127.0.0.1:7999",)


def test_one_half_of_an_endpoint_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PADDLE_INIT_PSERVERS", "a,b")

    assert psrt.init(port=9).endpoints == ("a:9", "b:9")
    monkeypatch.setenv("PADDLE_INIT_PORT", "5")
    assert psrt.init(pservers="c").endpoints == ("c:5",)


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
def test_a_rank_is_the_number_of_a_trainer_unless_it_is_given(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "3")

    assert psrt.init(num_gradient_servers=4).index == 3
    assert load(TrainerConfig).config.trainer_id == 3
    assert psrt.init(num_gradient_servers=4, trainer_id=1).index == 1


def test_role_makers_find_what_it_said() -> None:
    psrt.init(pservers="a:1,b:1", num_gradient_servers=2, trainer_id=1)

    maker = PaddleCloudRoleMaker()

    assert maker.is_worker()
    assert (maker.worker_index(), maker.worker_num()) == (1, 2)
    assert maker.get_pserver_endpoints() == ["a:1", "b:1"]


def test_a_pserver_in_a_script_of_both_roles_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"TRAINING_ROLE": "PSERVER", "POD_IP": "a", "PADDLE_PORT": "7164"}
    export(monkeypatch, own)

    assert psrt.init(pservers="a").is_pserver


def test_settings_of_a_pserver_in_this_process_are_told_too() -> None:
    psrt.init(ports_num=2, ports_num_for_sparse=3, num_gradient_servers=4, port=7200)

    config = load(PserverConfig).config

    assert (config.port, config.ports_num, config.ports_num_for_sparse) == (7200, 2, 3)
    assert config.num_gradient_servers == 4


def test_a_flag_counts_over_it() -> None:
    psrt.init(num_gradient_servers=4)

    loaded = load(TrainerConfig, flags={"trainers": "2"})

    assert loaded.config.trainers == 2
    assert loaded.origins["trainer.trainers"] == "flag --trainers"


def test_it_tells_nothing_to_who_brings_an_environment() -> None:
    psrt.init(num_gradient_servers=4)

    assert load(TrainerConfig, environ={}).config.trainers == 1


def test_numbers_may_be_text_and_pservers_a_list() -> None:
    settings: dict[str, Any] = {"num_gradient_servers": "2", "trainer_id": "1", "port": "8"}

    role = psrt.init(pservers=["a", "b"], **settings)

    assert role == ClusterRole(False, 1, 2, ("a:8", "b:8"))


def test_a_later_call_replaces_an_earlier_one_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    psrt.init(num_gradient_servers=4, trainer_id=3)
    psrt.init(num_gradient_servers=4, trainer_id=3)
    assert caplog.records == []

    with caplog.at_level(logging.WARNING, logger="psrt.config"):
        role = psrt.init(num_gradient_servers=2)

    assert (role.index, role.trainers) == (0, 2)
    assert "psrt.init was called again" in caplog.text


def test_it_loads_no_kernels() -> None:
    script = (
        "import sys, psrt; psrt.init(pservers='a');"
        "print([name for name in ('numba', 'grpc') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "[]\n", done.stderr


# --- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"use_gpu": True}, "use_gpu of psrt.init asks for a GPU", "CPU_NUM"),
        ({"trainer_idd": 1}, "psrt.init has no argument 'trainer_idd'", "'trainer_id'"),
        ({"log_period": 9}, "psrt.init has no argument 'log_period'", "--log-every-s"),
        ({"zz": 9}, "psrt.init has no argument 'zz'", "Known: use_gpu, "),
        ({"port": "http"}, "psrt.init: init.port is 'http', expected an integer", ""),
        ({"trainer_count": 0}, "init.trainer_count is 0, expected an integer, at least 1", ""),
        ({"trainer_id": 2, "num_gradient_servers": 2}, "trainer 2, but the cluster has 2", ""),
    ],
)
def test_what_no_job_can_have_is_refused_and_changes_nothing(
    arguments: dict[str, Any], message: str, hint: str
) -> None:
    psrt.init(num_gradient_servers=5)

    with pytest.raises(ConfigError, match=message) as refusal:
        psrt.init(**arguments)

    assert hint in refusal.value.hint
    assert load(TrainerConfig).config.trainers == 5


def test_an_unknown_argument_has_the_code_of_unknown_keys() -> None:
    with pytest.raises(ConfigError) as refusal:
        psrt.init(pserver="a")  # type: ignore[arg-type]

    assert refusal.value.code is ErrorCode.CONFIG_UNKNOWN_KEY


def test_an_argument_may_answer_a_variable_that_asks_for_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PADDLE_INIT_USE_GPU", "1")
    with pytest.raises(ConfigError, match="PADDLE_INIT_USE_GPU asks for a GPU"):
        psrt.init()

    assert psrt.init(use_gpu=False).trainers == 1


def test_its_arguments_are_the_declared_ones() -> None:
    declared = InitArguments.__dataclass_fields__

    assert set(psrt.init.__kwdefaults__) == set(declared)


# --- who is variables
# ---------------------------------------------------------------------------------


def test_of_two_that_speak_the_process_itself_is_heard_whatever_the_name() -> None:
    variables = Variables({"OLD": GivenValue("1", "psrt.init")}, {"NEW": GivenValue("2", "NEW")})

    assert variables.first(["NEW", "OLD"]) == GivenValue("1", "psrt.init")
    assert variables.first(["NEW"]) == GivenValue("2", "NEW")
    assert variables.first(["OTHER"]) is None


def test_flags_of_a_command_count_over_arguments() -> None:
    told = ProcessOverrides(
        {"PADDLE_TRAINER_ID": GivenValue("1", "flag")}, {"PADDLE_INIT_TRAINER_ID": "0"}
    )

    assert told.over({})["PADDLE_TRAINER_ID"] == GivenValue("1", "flag")
    assert told.environment({})["PADDLE_TRAINER_ID"] == "1"
