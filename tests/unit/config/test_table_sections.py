"""`[tables.NAME]` of a job file: said there, it counts instead of what the program says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from psrt.cli import main
from psrt.config import render
from psrt.config.load import load_job as read_job
from psrt.config.sections import JobConfig
from psrt.config.sections.tables import PARTS, TableConfig, forms_of
from psrt.core import specs
from psrt.core.errors import ConfigError, ErrorCode
from psrt.graph.program import Parameter
from psrt.trainer.inputs.job import load_job
from tests.support.pages import page

EXAMPLE = re.findall(r"```toml\n(.*?)```", page("reference/tables.md"), re.S)[0]
PROGRAM = """
import psrt
from psrt import layers, tables

def build():
    ids = layers.data("ids", (1,), "int64", ragged=True)
    y = layers.data("y", (1,))
    said = psrt.Param(
        "features",
        learning_rate=2.0,
        optimizer=psrt.optimizer.Adam(0.1),
        table=tables.TableOptions(
            admission=tables.Probability(0.5), growth=tables.Growth(2), storage="bfloat16"
        ),
    )
    rows = layers.embedding(ids, (1, 9), is_distributed=True, param=said)
    fixed = psrt.Param("fixed", trainable=False)
    more = layers.embedding(ids, (1, 9), is_sparse=True, param=fixed)
    both = layers.concat([layers.sequence_pool(rows, "sum"), layers.sequence_pool(more, "sum")], 1)
    loss = layers.mean(layers.square_error_cost(layers.fc(both, 1), y))
    return psrt.Model(loss, optimizer=psrt.optimizer.Sgd(0.5))
"""


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path / "job.toml"


def config_of(job_file: Path, text: str) -> JobConfig:
    job_file.write_text(f'[job]\nprogram = "train.py"\n{text}')
    return read_job(str(job_file), environ={}).config


def features(job_file: Path, text: str) -> Parameter:
    return load_job(config_of(job_file, text)).program.parameters["features"]


def refusal(job_file: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        load_job(config_of(job_file, text))
    assert str(job_file) in refused.value.message
    return refused.value


# --- what counts ----------------------------------------------------------------------------------


def test_the_example_in_the_docs_counts_instead_of_the_program(job_file: Path) -> None:
    parameter = features(job_file, EXAMPLE)

    assert parameter.options == specs.TableOptions(
        admission=specs.CountFilter(3),
        lifecycle=specs.Lifecycle(ttl_days=14.0, max_bytes=8 << 30),
        growth=specs.Growth(2),  # as the program says
        storage="float16",
    )
    assert parameter.optimizer == specs.Adagrad(initial_accumulator=0.1)
    assert parameter.learning_rate == specs.ConstantRate(0.04)  # the Param doubles it


def test_what_the_file_leaves_out_stays_as_the_program_says(job_file: Path) -> None:
    silent = features(job_file, "")

    told = features(job_file, "[tables.features]\nscore = { click_coeff = 2 }\n")

    assert told == replace(silent, options=replace(silent.options, score=specs.Score(0.1, 2.0)))


def test_a_rate_alone_leaves_the_optimizer_as_it_is(job_file: Path) -> None:
    parameter = features(job_file, "[tables.features]\nlearning_rate = 1\n")

    assert parameter.optimizer == specs.Adam()
    assert parameter.learning_rate == specs.ConstantRate(2.0)


def test_a_table_that_is_not_trained_has_options_as_well(job_file: Path) -> None:
    job = load_job(config_of(job_file, '[tables.fixed]\nstorage = "float16"\n'))

    assert job.program.parameters["fixed"].options.storage == "float16"


def test_pservers_are_told_what_the_file_says(job_file: Path) -> None:
    plan = load_job(config_of(job_file, EXAMPLE)).plan(["a:1", "b:2"])

    (table,) = (spec for spec in plan.sparse if spec.name == "features")
    assert table.admission == specs.CountFilter(3)
    assert (table.storage, table.optimizer) == ("float16", specs.Adagrad(initial_accumulator=0.1))


@pytest.mark.parametrize(
    ("option", "number"),
    [(option, number) for option, part in PARTS.items() for number in range(len(part.kinds))],
)
def test_every_form_of_the_reference_can_be_written(
    job_file: Path, option: str, number: int
) -> None:
    form = list(forms_of(PARTS[option]))[number]
    named = {name: value or "y" if value == "" else value for name, value in form.items()}

    config = config_of(job_file, f"[tables.features]\n{option} = {render.toml_value(named)}\n")

    kind = PARTS[option].kinds[number]
    made: Any = kind("y", "y") if kind is specs.ShowClick else kind()
    assert config.tables == {"features": TableConfig(**{option: made})}


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[tables.featurs]\nstorage = "float16"', "no sparse table 'featurs'", "'features'"),
        ('[tables."fc_0.w_0"]\nstorage = "float16"', r'tables."fc_0.w_0"\]: the program', "It has"),
        ("[tables.features]\nlifecicle = {}", "unknown key 'lifecicle' in", "'lifecycle'"),
        ("[tables.features.lifecycle]\nttl_day = 3", "unknown key 'ttl_day' in", "'ttl_days'"),
        ("[tables.features]\nscore = { kind = 'Score' }", "unknown key 'kind' in", "Known: "),
        (
            "[tables.features]\nadmission = {kind = 'CountFiler'}",
            "'CountFiler' of",
            "'CountFilter'",
        ),
        ("[tables.features]\noptimizer = {kind = 'Add'}", "unknown kind 'Add' of tables.f", ""),
        ("[tables.features]\nadmission = {count = 3}", "unknown kind '' of tables.f", "Known: "),
    ],
)
def test_what_does_not_exist_is_refused_with_the_nearest_that_does(
    job_file: Path, text: str, message: str, hint: str
) -> None:
    error = refusal(job_file, text)

    assert error.code is ErrorCode.CONFIG_UNKNOWN_KEY
    assert re.search(message, error.message)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tables]\nfeatures = 3", r"tables.features is 3, expected a section \[tables.features\]"),
        ("[tables.features]\nstorage = 'int8'", "tables.features.storage is 'int8', expected one"),
        ("[tables.features]\nlearning_rate = -1", "learning_rate is -1, expected a number, at"),
        ("[tables.features]\ngrowth = 3", "tables.features.growth is 3, expected a table"),
        (
            "[tables.features.growth]\nembed_width = 0",
            r"features\]: embed_width of its growth is 0",
        ),
        ("[tables.features.lifecycle]\ndecay = 2", r"decay of its lifecycle is 2.0, not in \["),
        ("[tables.features.lifecycle]\nttl_rounds = 1.5", "ttl_rounds is 1.5, expected an integer"),
        ("[tables.features]\nadmission = {kind='ShowClick', show='y'}", "admission has no click"),
        ("[tables.features]\noptimizer = {kind='Adam', beta1=1}", "beta1 of its optimizer is 1"),
        ("[tables.features]\noptimizer = {kind='Adam', lazy=1}", "lazy is 1, expected true or"),
        ("[tables.fixed]\nlearning_rate = 1", "sets learning_rate, but the program does not train"),
    ],
)
def test_what_makes_no_sense_is_refused_by_key_and_table(
    job_file: Path, text: str, message: str
) -> None:
    assert re.search(message, refusal(job_file, text).message)


def test_tables_must_be_sections(job_file: Path) -> None:
    job_file.write_text("tables = 3\n")

    with pytest.raises(ConfigError, match="tables is 3, expected a section"):
        read_job(str(job_file), environ={})


def test_a_variable_for_a_table_does_not_exist(job_file: Path) -> None:
    config_of(job_file, "")

    with pytest.raises(ConfigError, match="unknown variable PSRT_TABLES_FEATURES_STORAGE"):
        read_job(str(job_file), environ={"PSRT_TABLES_FEATURES_STORAGE": "float16"})


# --- what is shown --------------------------------------------------------------------------------


def test_show_prints_what_the_file_says_of_tables_and_where(
    job_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config_of(job_file, '[tables."emb.w_0"]\ngrowth = {}\n[tables.features]\nstorage = "float16"\n')

    assert main.run(["config", "show", "--origin", str(job_file)]) == 0

    shown = capsys.readouterr().out
    assert '[tables."emb.w_0"]\ngrowth = { embed_width = 1, embedx_threshold = 10.0 }' in shown
    assert re.search(rf'\[tables.features\]\nstorage = "float16" +# {job_file}\n', shown)


def test_what_is_shown_says_the_same_again(job_file: Path) -> None:
    config = config_of(job_file, EXAMPLE + '[tables."emb.w_0"]\nstorage = "float16"\n')

    job_file.write_text(render.show(render.job_values(config), {}))

    assert read_job(str(job_file), environ={}).config == config
