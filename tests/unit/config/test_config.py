"""Origins of the values of settings, and values that are refused."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from psrt.config import render
from psrt.config.load import load, load_job
from psrt.config.sections import (
    FREE_TABLES,
    SECTIONS,
    DataConfig,
    JobConfig,
    LaunchConfig,
    PartitionConfig,
    PserverConfig,
    TrainerConfig,
    communication,
)
from psrt.config.settings import settings_of
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.precision import WirePrecision
from psrt.core.specs import MODES, Async, Geo, Sync

ROOT = Path(__file__).parents[3]
EMPTY: dict[str, str] = {}


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    return tmp_path / "job.toml"


def write(path: Path, text: str) -> str:
    path.write_text('[job]\nprogram = "train.py"\n' + text)
    return str(path)


# --- precedence -----------------------------------------------------------------------------------


def test_an_untouched_setting_has_its_default() -> None:
    loaded = load(PserverConfig, environ=EMPTY)

    assert loaded.config == PserverConfig()
    assert set(loaded.origins.values()) == {"default"}


def test_flag_beats_variable_beats_role_variable_beats_file_beats_default(job_file: Path) -> None:
    file = write(job_file, "[pserver]\nport = 1\n")
    role = {"PADDLE_PORT": "2"}
    own = {**role, "PSRT_PSERVER_PORT": "3"}

    from_file = load(PserverConfig, file=file, environ=EMPTY)
    from_role = load(PserverConfig, file=file, environ=role)
    from_own = load(PserverConfig, file=file, environ=own)
    from_flag = load(PserverConfig, file=file, environ=own, flags={"port": "4"})

    loaded = (from_file, from_role, from_own, from_flag)
    assert [each.config.port for each in loaded] == [1, 2, 3, 4]
    assert [each.origins["pserver.port"] for each in loaded] == [
        file,
        "PADDLE_PORT",
        "PSRT_PSERVER_PORT",
        "flag --port",
    ]


def test_flags_that_were_not_given_hide_nothing() -> None:
    loaded = load(PserverConfig, flags={"port": None}, environ={"PADDLE_PORT": "7"})

    assert loaded.config.port == 7


def test_an_empty_variable_counts_as_unset() -> None:
    loaded = load(PserverConfig, environ={"PSRT_PSERVER_PORT": "", "POD_IP": ""})

    assert loaded.config == PserverConfig()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PADDLE_PSERVERS_IP_PORT_LIST": "a:1, b:2"}, {"endpoints": ("a:1", "b:2")}),
        ({"PADDLE_TRAINERS_NUM": "4", "PADDLE_TRAINER_ID": "3"}, {"trainers": 4, "trainer_id": 3}),
        ({"OMPI_COMM_WORLD_RANK": "0"}, {"trainer_id": 0}),
        ({"SLURM_PROCID": "1", "PADDLE_TRAINERS_NUM": "2"}, {"trainer_id": 1, "trainers": 2}),
    ],
)
def test_variables_of_other_launchers_set_a_trainers_role(
    variables: dict[str, str], expected: dict[str, object]
) -> None:
    config = load(TrainerConfig, environ=variables).config

    assert config == dataclasses.replace(TrainerConfig(), **expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("ON", True)])
def test_text_becomes_a_boolean(text: str, value: bool) -> None:
    config = load(PserverConfig, environ={"PSRT_PSERVER_STAY": text}).config

    assert config.stay is value


def test_an_integer_may_stand_for_a_number(job_file: Path) -> None:
    config = load(PserverConfig, file=write(job_file, "[pserver]\nwait_timeout_s = 5\n")).config

    assert config.wait_timeout_s == 5.0
    assert isinstance(config.wait_timeout_s, float)


# --- refusals -------------------------------------------------------------------------------------


PORT = "an integer, at least 0, at most 65535"


@pytest.mark.parametrize(
    ("line", "value", "expected"),
    [
        ('port = "6170"', "'6170'", PORT),
        ("port = true", "True", PORT),
        ("port = -1", "-1", PORT),
        ("port = 99999", "99999", PORT),
        ("wait_timeout_s = inf", "inf", "a number, at least 0.001"),
        ("host = 1", "1", "a string"),
        ('log_level = "loud"', "'loud'", "one of debug, info, warning, error"),
    ],
)
def test_a_wrong_value_in_a_file_names_file_key_value_and_what_is_expected(
    job_file: Path, line: str, value: str, expected: str
) -> None:
    file = write(job_file, f"[pserver]\n{line}\n")

    with pytest.raises(ConfigError) as refusal:
        load(PserverConfig, file=file, environ=EMPTY)

    key = line.split()[0]
    assert refusal.value.message == f"{file}: pserver.{key} is {value}, expected {expected}."


@pytest.mark.parametrize(
    ("flags", "environ", "origin"),
    [
        ({"port": "http"}, EMPTY, "flag --port"),
        ({}, {"PSRT_PSERVER_PORT": "http"}, "PSRT_PSERVER_PORT"),
        ({}, {"PADDLE_PORT": "http"}, "PADDLE_PORT"),
    ],
)
def test_a_wrong_flag_or_variable_is_named(
    flags: dict[str, str], environ: dict[str, str], origin: str
) -> None:
    with pytest.raises(
        ConfigError, match=f"^{origin}: pserver.port is 'http', expected an integer"
    ):
        load(PserverConfig, flags=flags, environ=environ)


@pytest.mark.parametrize(
    ("text", "named", "nearest"),
    [
        ("[data]\nbatchsize = 8\n", "key 'batchsize' in [data]", "'batch_size'"),
        ("[dta]\n", "section [dta]", "'data'"),
        ("[communication]\nmod = 1\n", "key 'mod' in [communication]", "'mode'"),
        ("[trainer]\njob = 'x'\n", "key 'job' in [trainer]", "Known: "),
    ],
)
def test_an_unknown_key_names_file_key_and_the_nearest_key(
    job_file: Path, text: str, named: str, nearest: str
) -> None:
    file = write(job_file, text)

    with pytest.raises(ConfigError) as refusal:
        load_job(file, environ=EMPTY)

    assert refusal.value.code is ErrorCode.CONFIG_UNKNOWN_KEY
    assert refusal.value.message == f"{file}: unknown {named}."
    assert nearest in refusal.value.hint


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("PSRT_TRAINER_ENDPOINT", "PSRT_TRAINER_ENDPOINTS"),
        ("PSRT_TRAINR_CPU_NUM", "PSRT_TRAINER_CPU_NUM"),
    ],
)
def test_an_unknown_variable_of_psrt_is_refused_with_the_nearest_one(
    name: str, nearest: str
) -> None:
    with pytest.raises(ConfigError, match=f"unknown variable {name}") as refusal:
        load(PserverConfig, environ={name: "1"})

    assert repr(nearest) in refusal.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PSRT_HOME",
        "PSRT_BENCH_TORCH_PYTHON",
        "PSRT_SERVICE_HOST",
        "PSRT_A_PORT_6170_TCP_ADDR",
    ],
)
def test_variables_that_others_read_are_nobodys_business(name: str) -> None:
    assert load(PserverConfig, environ={name: "/x"}).config


@pytest.mark.parametrize("name", ["PSRT_FOO_PORT", "PSRT_PSERVER_PORT"])
def test_a_link_to_a_service_of_kubernetes_is_no_setting(name: str) -> None:
    heard = load(PserverConfig, environ={name: "tcp://10.0.0.1:6170"}).config

    assert heard == load(PserverConfig, environ=EMPTY).config


def test_a_trainer_id_beyond_the_number_of_trainers_is_refused() -> None:
    with pytest.raises(ConfigError, match="trainer_id is 2, but the job has 2"):
        load(TrainerConfig, flags={"trainers": "2", "trainer_id": "2"}, environ=EMPTY)


@pytest.mark.parametrize("endpoint", ["6170", ":6170", "host", "host:", "host:http"])
def test_an_endpoint_that_is_not_host_and_port_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError, match=f"endpoints has '{endpoint}', which is not host:port"):
        load(TrainerConfig, flags={"endpoints": f"a:1,{endpoint}"}, environ=EMPTY)


@pytest.mark.parametrize("content", [b"[job\n", b"\xff\xfe"], ids=["syntax", "encoding"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match=r"broken\.toml: not a TOML file"):
        load_job(str(file), environ=EMPTY)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read"):
        load_job(str(tmp_path / "nowhere.toml"), environ=EMPTY)


# --- jobs -----------------------------------------------------------------------------------------


def test_a_job_is_read_whole(job_file: Path) -> None:
    file = write(
        job_file,
        'name = "ctr"\n[job.params]\nwidth = 16\nlayers = [4, 2]\n'
        '[data]\ntrain = ["train/*.gz"]\nbatch_size = 8\n'
        '[communication]\nmode = "async"\nsend_queue_size = 9\n'
        "[partition]\nslice_var_up = false\n",
    )

    job = load_job(file, environ=EMPTY).config

    assert job == JobConfig(
        name="ctr",
        program="train.py",
        params={"width": 16, "layers": [4, 2]},
        data=DataConfig(train=("train/*.gz",), batch_size=8),
        communication=Async(send_queue_size=9),
        partition=PartitionConfig(slice_var_up=False),
        path=str(job_file),
    )
    assert job.mode == "async"
    assert job.program_path == job_file.parent / "train.py"
    assert job.resolve("/data/x") == Path("/data/x")


def test_a_job_without_a_name_is_called_after_its_file(job_file: Path) -> None:
    assert load_job(write(job_file, ""), environ=EMPTY).config.name == "job"


def test_a_job_needs_a_program_that_exists(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text("")
    with pytest.raises(ConfigError, match="names no program"):
        load_job(str(file), environ=EMPTY)

    file.write_text('[job]\nprogram = "gone.py"\n')
    with pytest.raises(ConfigError, match=r"job\.program is 'gone\.py', but .* is not a file"):
        load_job(str(file), environ=EMPTY)


def test_a_key_of_another_mode_is_refused_and_says_whose_it_is(job_file: Path) -> None:
    file = write(job_file, '[communication]\nmode = "geo"\nsend_queue_size = 4\n')

    with pytest.raises(ConfigError, match="send_queue_size means nothing in mode 'geo'") as refusal:
        load_job(file, environ=EMPTY)

    assert "It belongs to async; geo has: update_frequency, on_trainer_loss." in refusal.value.hint


def test_a_mode_from_the_environment_replaces_the_files_mode_and_its_keys(job_file: Path) -> None:
    file = write(job_file, '[communication]\nmode = "async"\nmax_merge_var_num = 7\n')
    variables = {"PSRT_COMMUNICATION_MODE": "geo", "PSRT_COMMUNICATION_UPDATE_FREQUENCY": "400"}

    loaded = load_job(file, environ=variables)
    same_mode = load_job(file, environ={"PSRT_COMMUNICATION_MODE": "async"})

    assert loaded.config.communication == Geo(update_frequency=400)
    assert loaded.origins["communication.mode"] == "PSRT_COMMUNICATION_MODE"
    assert same_mode.config.communication == Async(max_merge_var_num=7)


def test_a_sender_may_be_told_not_to_wait_for_more_gradients(job_file: Path) -> None:
    file = write(job_file, '[communication]\nmode = "async"\nsend_wait_times = 0\n')

    assert load_job(file, environ=EMPTY).config.communication == Async(send_wait_times=0)


def test_a_job_is_synchronous_unless_it_says_otherwise(job_file: Path) -> None:
    assert load_job(write(job_file, ""), environ=EMPTY).config.communication == Sync()


def test_the_wire_is_float32_unless_the_job_or_a_variable_says_otherwise(job_file: Path) -> None:
    silent = load_job(write(job_file, ""), environ=EMPTY)
    file = write(
        job_file,
        '[communication]\nmode = "async"\nwire = "float16"\nwire_tables = { emb = "int8" }\n',
    )

    told = load_job(file, environ={"PSRT_COMMUNICATION_MODE": "sync"})
    again = load_job(file, environ={"PSRT_COMMUNICATION_WIRE": "bfloat16"})

    assert silent.config.wire == WirePrecision()
    assert told.config.wire == WirePrecision("float16", {"emb": "int8"})
    assert again.config.wire == WirePrecision("bfloat16", {"emb": "int8"})
    assert again.origins["communication.wire"] == "PSRT_COMMUNICATION_WIRE"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('wire = "float8"', "communication.wire is 'float8', expected one of float32, float16"),
        ('wire_tables = "int8"', "communication.wire_tables is 'int8', expected a table"),
        ('wire_tables = { emb = "int4" }', "is 'int4', expected one of float32"),
    ],
)
def test_a_precision_that_does_not_exist_is_refused(
    job_file: Path, line: str, complaint: str
) -> None:
    file = write(job_file, f"[communication]\n{line}\n")

    with pytest.raises(ConfigError, match=complaint):
        load_job(file, environ=EMPTY)


# --- the schema itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_has_a_help_sentence_and_a_legal_default(section: str) -> None:
    for setting in settings_of(section, SECTIONS[section]):
        assert setting.help.endswith("."), setting.key
        assert setting.accept(setting.default, "default") == setting.default


@pytest.mark.parametrize("mode", MODES)
def test_every_field_of_a_mode_has_a_help_sentence_and_a_legal_default(mode: str) -> None:
    for setting in communication.settings_of_mode(mode):
        assert setting.help.endswith("."), setting.key
        assert setting.accept(setting.default, "default") == setting.default


def test_no_two_settings_of_a_process_share_a_role_variable() -> None:
    for section, cls in SECTIONS.items():
        names = [name for setting in settings_of(section, cls) for name in setting.role_variables]
        assert len(names) == len(set(names))


def test_the_reference_file_is_up_to_date() -> None:
    written = (ROOT / "configs" / "reference.toml").read_text(encoding="utf-8")

    assert written == render.reference(), "run: psrt config reference > configs/reference.toml"


def test_the_reference_has_every_setting_at_its_default(tmp_path: Path) -> None:
    tables = tomllib.loads(render.reference())

    for section, cls in SECTIONS.items():
        expected = [s for s in settings_of(section, cls) if not s.positional]
        assert {s.name for s in expected} == set(tables[section]) - set(
            FREE_TABLES.get(section, ())
        )
        assert [s.accept(tables[section][s.name], "toml") for s in expected] == [
            s.default for s in expected
        ]


def test_what_show_prints_is_a_file_that_loads_to_the_same_settings(job_file: Path) -> None:
    file = write(
        job_file, '[job.params]\n"odd key" = {a = [1.5, "x"]}\n[communication]\nmode="geo"\n'
    )
    job = load_job(file, environ=EMPTY)
    pserver = load(PserverConfig, flags={"port": 0}, environ=EMPTY)
    values = render.job_values(job.config) | render.section_values("pserver", pserver.config)

    job_file.write_text(render.show(values, job.origins | pserver.origins))

    assert load_job(file, environ=EMPTY).config == job.config
    assert load(PserverConfig, file=file, environ=EMPTY).config == pserver.config


def test_launch_declares_the_size_of_the_cluster() -> None:
    config = load(LaunchConfig, flags={"pservers": "3"}, environ=EMPTY).config

    assert (config.pservers, config.trainers) == (3, 2)


def test_a_value_that_is_no_choice_names_the_nearest_one() -> None:
    declared = next(s for s in settings_of("pserver", SECTIONS["pserver"]) if s.choices)

    for value, hint in [
        (declared.choices[0][:-1], f"Did you mean {declared.choices[0]}?"),
        ("nothing-like-it", declared.help),
    ]:
        with pytest.raises(ConfigError) as caught:
            declared.parse(value, "flag")
        assert caught.value.hint == hint
