"""Names of PaddlePaddle's v2: variables, flags with underscores, flags that psrt lacks."""

from __future__ import annotations

import pytest

from psrt.cli import main
from psrt.cli.pserver import pserver
from psrt.cli.trainer import trainer
from psrt.config.load import cpu_num, load
from psrt.config.older_flags import INSTEAD, instead_of
from psrt.config.older_variables import RULES, VariableRule, implied, origins, with_derived
from psrt.config.roles import ClusterRole, cloud_role, contradiction
from psrt.config.sections import SECTIONS, PserverConfig, TrainerConfig
from psrt.config.settings import settings_of
from psrt.core.errors import ConfigError

V2 = {
    "PADDLE_INIT_USE_GPU": "False",
    "PADDLE_INIT_TRAINER_COUNT": "4",
    "PADDLE_INIT_PORT": "7200",
    "PADDLE_INIT_PORTS_NUM": "2",
    "PADDLE_INIT_PORTS_NUM_FOR_SPARSE": "3",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS": "5",
    "PADDLE_INIT_TRAINER_ID": "1",
    "PADDLE_INIT_PSERVERS": "10.0.0.1,10.0.0.2",
}
ENDPOINTS = ("10.0.0.1:7200", "10.0.0.2:7200")


# --- variables ------------------------------------------------------------------------------------


def test_all_variables_of_v2_tell_a_trainer_its_part() -> None:
    config = load(TrainerConfig, environ=V2).config

    assert (config.endpoints, config.trainers, config.trainer_id) == (ENDPOINTS, 5, 1)
    assert config.cpu_num == cpu_num(V2) == 4


def test_all_variables_of_v2_tell_a_pserver_its_part() -> None:
    config = load(PserverConfig, environ=V2).config

    assert (config.port, config.ports_num, config.ports_num_for_sparse) == (7200, 2, 3)
    assert config.num_gradient_servers == 5


def test_who_knows_pservers_by_the_names_of_v2_is_a_trainer() -> None:
    assert cloud_role(V2) == ClusterRole(False, 1, 5, ENDPOINTS)
    assert contradiction(V2, "PSERVER") == ""  # the same may be exported on every host


@pytest.mark.parametrize(
    ("variables", "endpoints"),
    [
        ({"PADDLE_INIT_PSERVERS": "a"}, "a:7164"),
        ({"PADDLE_INIT_PSERVERS": "a, b", "PADDLE_INIT_PORT": "9"}, "a:9,b:9"),
        ({"PADDLE_INIT_PSERVERS": "a,a", "PADDLE_INIT_PORT": "9"}, "a:9,a:10"),
        ({"PADDLE_INIT_PSERVERS": "a:1,b", "PADDLE_INIT_PORT": "9"}, "a:1,b:9"),
        ({"PADDLE_PSERVERS": "a,b"}, "a:6170,b:6170"),
        ({"PADDLE_PSERVERS": "a,b", "PADDLE_PORT": "9"}, "a:9,b:9"),
        ({"PADDLE_PSERVERS": "a", "PADDLE_PORT": "8,9"}, "a:8,a:9"),
        ({"PADDLE_PSERVERS": "a,b", "PADDLE_PORT": "8,9"}, "a:8,b:9"),
    ],
    ids=[
        *("the port of v2", "one port for all", "two on a host", "a port of its own"),
        *("fleet without a port", "fleet, one port", "fleet, one host", "fleet, a port each"),
    ],
)
def test_hosts_and_a_port_are_endpoints(variables: dict[str, str], endpoints: str) -> None:
    assert with_derived(variables)["PADDLE_PSERVERS_IP_PORT_LIST"] == endpoints


def test_hosts_and_ports_of_different_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="PADDLE_PSERVERS has 3 hosts, and PADDLE_PORT 2 ports"):
        with_derived({"PADDLE_PSERVERS": "a,b,c", "PADDLE_PORT": "8,9"})


@pytest.mark.parametrize("role", ["TRAINER", "PSERVER"])
def test_a_role_has_the_hosts_of_pservers_and_their_port(role: str) -> None:
    fleet = {"PADDLE_PSERVERS": "127.0.0.1,127.0.0.2", "PADDLE_PORT": "36001"}
    own = {"TRAINING_ROLE": role, "PADDLE_TRAINER_ID": "1", "POD_IP": "127.0.0.2"}

    found = cloud_role({**fleet, **own, "PADDLE_TRAINERS_NUM": "2"})

    endpoints = ("127.0.0.1:36001", "127.0.0.2:36001")
    assert found == ClusterRole(role == "PSERVER", 1, 2, endpoints)


def test_a_port_alone_names_no_pservers() -> None:
    assert load(TrainerConfig, environ={"PADDLE_INIT_PORT": "7164"}).config.endpoints == ()


def test_the_origin_of_a_value_is_what_was_really_exported() -> None:
    trainer_origins = load(TrainerConfig, environ=V2).origins

    assert trainer_origins["trainer.endpoints"] == "PADDLE_INIT_PSERVERS and PADDLE_INIT_PORT"
    assert trainer_origins["trainer.trainers"] == "PADDLE_INIT_NUM_GRADIENT_SERVERS"
    assert trainer_origins["trainer.cpu_num"] == "PADDLE_INIT_TRAINER_COUNT"


def test_a_wrong_value_is_told_by_the_variable_that_holds_it() -> None:
    with pytest.raises(ConfigError, match=r"^PADDLE_INIT_TRAINER_COUNT: trainer\.cpu_num is 'x'"):
        load(TrainerConfig, environ={"PADDLE_INIT_TRAINER_COUNT": "x"})

    with pytest.raises(ConfigError, match="PADDLE_INIT_PORT is 'http', expected a number"):
        load(TrainerConfig, environ={**V2, "PADDLE_INIT_PORT": "http"})


@pytest.mark.parametrize("asked", ["True", "1", "yes"])
def test_asking_for_a_gpu_is_refused_with_what_there_is(asked: str) -> None:
    with pytest.raises(ConfigError, match="PADDLE_INIT_USE_GPU asks for a GPU") as refusal:
        load(TrainerConfig, environ={"PADDLE_INIT_USE_GPU": asked})

    assert "CPU_NUM" in refusal.value.hint


def test_something_else_than_yes_or_no_for_a_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="use_gpu is '2', expected true or false"):
        cloud_role({"PADDLE_INIT_USE_GPU": "2"})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.sources[0]} for {rule.name}")
def test_a_newer_name_that_is_set_wins_over_every_older_one(rule: VariableRule) -> None:
    name, source = rule.name, rule.sources[0]
    environ = {source: "7:7", name: "own"}

    assert with_derived(environ)[name] == "own"
    assert origins(environ)[name] == name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.sources[0]} for {rule.name}")
def test_an_empty_variable_is_unset(rule: VariableRule) -> None:
    name, source = rule.name, rule.sources[0]

    assert name not in with_derived({source: "", name: ""})


def test_what_is_given_decides_all_names_that_depend_on_it_and_no_other() -> None:
    exported = {"PADDLE_INIT_PSERVERS": "a", "PADDLE_TRAINERS_NUM": "4"}

    assert implied({"PADDLE_INIT_PORT": "9"}, exported) == {
        "PADDLE_INIT_PORT": "9",
        "PADDLE_PSERVERS_IP_PORT_LIST": "a:9",
    }


# --- flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", ["pserver", "trainer", "launch", "predict"])
def test_every_flag_may_be_written_with_underscores(
    section: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for setting in settings_of(section, SECTIONS[section]):
        if "_" not in setting.name or setting.type is bool:
            continue
        code = main.run([section, f"--{setting.name}"])

        errors = capsys.readouterr().err
        assert code == 2
        assert f"Option '{setting.flag}' requires an argument." in errors


def test_commands_and_flags_that_take_no_value_may_have_underscores_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["data", "synth_ctr", "--help"]) == 0
    assert main.run(["predict", "--no_logits", "--help"]) == 0


def test_help_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["--help"])

    assert "written with underscores" in " ".join(capsys.readouterr().out.split())


def test_the_value_of_a_flag_keeps_its_underscores(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["pserver", "--ports_num=not_a_number"])

    assert "'not_a_number'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "flag", "instead"),
    [
        ("pserver", "--rdma_tcp=tcp", "talks TCP"),
        ("pserver", "--async_count=3", 'mode = "async"'),
        ("pserver", "--nics", "--host"),
        ("trainer", "--trainer_count=4", "--cpu-num"),
        ("trainer", "--pservers=a,b", "--endpoints"),
        ("trainer", "--log-period=10", "--log-every-s"),
    ],
)
def test_a_flag_of_v2_that_psrt_has_not_is_answered_with_what_there_is(
    command: str, flag: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run([command, flag, "job.toml"])

    errors = capsys.readouterr().err
    assert code == 2
    assert "is a flag of PaddlePaddle's v2" in errors
    assert instead in errors


def test_any_other_unknown_flag_gives_the_usage_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["pserver", "--ports_nmu=2"]) == 2
    assert "Usage: psrt pserver" in capsys.readouterr().err


def test_no_flag_that_both_processes_have_is_called_missing() -> None:
    own = [
        {option.lstrip("-").replace("-", "_") for p in command.params for option in p.opts}
        for command in (pserver, trainer)
    ]

    assert not own[0] & own[1] & set(INSTEAD)
    assert instead_of("--sock-send-buf-size") == INSTEAD["sock_send_buf_size"]
    assert instead_of("anything") == ""


def test_every_answer_that_names_a_flag_of_psrt_names_one_it_has() -> None:
    flags = {s.flag for section, cls in SECTIONS.items() for s in settings_of(section, cls)}

    for answer in INSTEAD.values():
        named = {word.strip(".,") for word in answer.split() if word.startswith("--")}
        assert named <= flags, answer
