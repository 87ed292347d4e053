"""Typical mistakes of a first day: each message has what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.cli import main
from psrt.core.errors import ConfigError, ErrorCode, ProgramError, UnknownNameError, WireError
from psrt.core.specs import Sync, plan_differences, text_of
from psrt.kernels import jit
from psrt.partition.plan import build_plan
from psrt.pserver.decisions import PserverState
from psrt.pserver.decisions.job_identity import JobIdentity
from tests.support.mistaken_job import ROWS, Mistake, arguments, write

PY, TOML = "program.py", "job.toml"


def program(old: str, new: str, what: str, where: str, to_do: str) -> Mistake:
    return Mistake(what, where, to_do, {PY: (old, new)})


def settings(old: str, new: str, what: str, where: str, to_do: str) -> Mistake:
    return Mistake(what, where, to_do, {TOML: (old, new)})


def data(text: str, what: str, where: str, to_do: str, command: str = "") -> Mistake:
    files = {"train.txt": text, "new.txt": text}
    return Mistake(what, where, to_do, files=files, command=command or "trainer --local {job}")


def command(line: str, what: str, where: str, to_do: str) -> Mistake:
    return Mistake(what, where, to_do, command=line)


IN_DATA = ("[data]\n", "batch_size = 4\n")

MISTAKES = {
    "a layer's name": program(
        "layers.slot_embeddings",
        "layers.slot_embedings",
        "psrt.layers has no layer slot_embedings",
        "program.py:9",
        "Did you mean slot_embeddings?",
    ),
    "an optimizer's name": program(
        "optimizer.Adagrad",
        "optimizer.AdaGrad",
        "psrt.optimizer has no optimizer or schedule AdaGrad",
        "program.py:17",
        "Did you mean Adagrad?",
    ),
    "a schedule's name": program(
        "Adagrad(learning_rate)",
        "Adagrad(psrt.optimizer.CosinDecay(0.1, 10, 2))",
        "no optimizer or schedule CosinDecay",
        "program.py:17",
        "Did you mean CosineDecay?",
    ),
    "a public name": program(
        "return psrt.Model",
        "return psrt.Modell",
        "psrt has no name Modell",
        "program.py:13",
        "Did you mean Model?",
    ),
    "an initializer's name": program(
        "(50, 4))",
        "(50, 4), param=psrt.Param(initializer=psrt.initializer.normal()))",
        "psrt.initializer has no initializer normal",
        "program.py:9",
        "Did you mean Normal?",
    ),
    "an argument of a layer": program(
        'act="relu"',
        'activation="relu"',
        "fc() got an unexpected keyword argument 'activation'",
        "program.py:10",
        "psrt.layers.fc takes input, size, act,",
    ),
    "an argument of Model": program(
        "optimizer=psrt",
        "optimiser=psrt",
        "unexpected keyword argument 'optimiser'",
        "program.py:13",
        "Did you mean optimizer?",
    ),
    "an activation": program(
        'act="relu"',
        'act="rellu"',
        "argument act is 'rellu', no activation",
        "layers.fc (fc_0) at program.py:10",
        "Did you mean relu?",
    ),
    "an optimizer that was not called": program(
        "Adagrad(learning_rate)",
        "Adagrad",
        "was given <function Adagrad",
        "psrt.Model at program.py:13",
        "optimizer=psrt.optimizer.Adagrad(learning_rate=…)",
    ),
    "a learning rate in quotes": program(
        "Adagrad(learning_rate)",
        'Adagrad("0.1")',
        "learning rate '0.1' is not usable",
        "program.py:17",
        "Give a number, without quotes: learning_rate=0.1",
    ),
    "no optimizer": program(
        "        optimizer=psrt.optimizer.Adagrad(learning_rate),\n",
        "",
        "trains nothing",
        "job small, program.py",
        "Add optimizer=psrt.optimizer.Adagrad(0.05), or another, to psrt.Model.",
    ),
    "a loss of each example": program(
        "layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))",
        "layers.sigmoid_cross_entropy_with_logits(logit, click)",
        "has shape (-1, 1), so it has no single gradient",
        "minimized at program.py:13",
        "Reduce it with layers.mean",
    ),
    "a metric by name": program(
        "label=click,",
        'label=click, metrics={"error": "loss"},',
        "was given 'loss' as metrics['error']",
        "psrt.Model at program.py:13",
        "Give what a layer returned",
    ),
    "a metric of each example": program(
        "label=click,",
        'label=click, metrics={"error": logit},',
        "metrics['error'] has shape (-1, 1)",
        "psrt.Model at program.py:13",
        "Reduce it with layers.mean",
    ),
    "no return": program(
        "return psrt.Model(", "psrt.Model(", "returned NoneType", PY, "return psrt.Model(loss=..."
    ),
    "no build": program(
        "def build", "def make", "has no function build()", PY, "Define `def build"
    ),
    "a module that is nowhere": program(
        "import psrt\n",
        "import psrt\nimport my_features\n",
        "No module named 'my_features'",
        "program.py:2",
        "put my_features.py into the folder of the job's program",
    ),
    "an error of the program's own": program(
        "    row =", "    1 / 0\n    row =", "ZeroDivisionError", "program.py:9", "--debug"
    ),
    "shapes that do not fit": program(
        "layers.concat([x, row], axis=1)",
        "layers.elementwise_add(x, row)",
        "does not broadcast",
        "at program.py:10",
        "docs/reference/layers.md",
    ),
    "floats as ids": program(
        "([item]",
        "([x]",
        "must hold int64 ids",
        "layers.slot_embeddings",
        "docs/reference/layers.md",
    ),
    "a number in place of a var": program(
        "layers.fc(hidden, 1)",
        "layers.fc(1.0, 1)",
        "argument input must be a var, not 1.0",
        "at program.py:11",
        "layers.data for data, layers.fill_constant for a constant",
    ),
    "a program that is nowhere": settings(
        '"program.py"', '"model.py"', "is not a file", TOML, "relative to the TOML file"
    ),
    "a setting's name": settings(
        "batch_size",
        "batchsize",
        "unknown key 'batchsize'",
        "job.toml",
        "Did you mean 'batch_size'?",
    ),
    "a section's name": settings(
        "[data]", "[dataa]", "unknown section [dataa]", "job.toml", "Did you mean 'data'?"
    ),
    "a number in quotes": settings(
        "= 4", '= "4"', "data.batch_size is '4'", "job.toml", "expected an integer, at least 1"
    ),
    "text without quotes": settings(
        'name = "small"', "name = small", "not a TOML file", "line 2", 'name = "text"'
    ),
    "a parameter of build": settings(
        "[data]",
        "[job.params]\nlearning_rat = 0.1\n[data]",
        "unexpected keyword argument 'learning_rat'",
        "[job.params] does not fit build() of",
        "Did you mean learning_rate?",
    ),
    "a mode": settings(
        "[data]",
        '[communication]\nmode = "synch"\n[data]',
        "communication.mode is 'synch'",
        "job.toml",
        "expected one of sync, async",
    ),
    "columns without a format": settings(
        IN_DATA[1],
        'batch_size = 4\n[data.columns]\nx = ["a", "b", "c"]\n',
        "[data.columns] is given, but data.format is 'multislot'",
        "job.toml",
        'Add format = "csv" to [data]',
    ),
    "a format without columns": settings(
        IN_DATA[1],
        'batch_size = 4\nformat = "csv"\n',
        "expected 3 columns",
        "data.columns.x",
        'Add x = ["first", "second", …] to [data.columns]',
    ),
    "an option of a format": settings(
        IN_DATA[1],
        'batch_size = 4\nformat = "csv"\n[data.options]\ndelimitter = ";"\n',
        "format csv has no option 'delimitter'",
        "job.toml",
        "Did you mean delimiter?",
    ),
    "a table's name": settings(
        "[data]",
        "[tables.embedding.lifecycle]\nttl_days = 3\n[data]",
        "embedding",
        "job.toml",
        "slot_embeddings_0.w_0",
    ),
    "a file that is nowhere": settings(
        "train.txt", "trian.txt", "does not exist", "trian.txt", "relative to the file that lists"
    ),
    "a line with a slot of another width": data(
        ROWS + "4 0.1 0.2 0.3 0.4 1 5 1 1\n",
        "expected the number of values, which is 3, found '4'",
        "train.txt, line 17, column 1, slot 'x'",
        "x (float × 3), item (uint64 × 1), click (float × 1)",
    ),
    "CSV in place of MultiSlot": data(
        "a,b,c,item,click\n0.1,0.2,0.3,7,1\n",
        "found 'a,b,c,item,click'",
        "train.txt, line 1",
        "`n v1 … vn`",
    ),
    "lines without labels": data(
        "3 0.1 0.2 0.3 1 5\n",
        "expected",
        "new.txt, line 1",
        "If the lines have no click, add --slots x,item.",
        "predict {model} {folder}/new.txt",
    ),
    "a fetch's name": command(
        "predict {model} --fetch fc_1.ou {folder}/train.txt",
        "fc_1.ou",
        "program",
        "Did you mean fc_1.out?",
    ),
    "a model of another width": Mistake(
        "has shape (7, 8) for parameter fc_0.w_0",
        "manifest.json",
        "the same values in [job.params]",
        {TOML: ("[data]", "[job.params]\nwidth = 9\n[data]")},
        command="trainer --evaluate {model} {job}",
    ),
    "a model that is nowhere": command(
        "trainer --evaluate {folder}/modell {job}", "is not a directory", "modell", "--save DIR"
    ),
    "no pservers": command(
        "trainer {job}", "no pservers were named", "", "Give --endpoints host:port"
    ),
    "a job file that is nowhere": command(
        "trainer --local {folder}/jobb.toml", "cannot be read", "jobb.toml", "Check the path"
    ),
    "a command": command("tainer {job}", "no command 'tainer'", "psrt", "Did you mean trainer?"),
    "a flag": command("trainer --lcal {job}", "No such option", "--lcal", "--local"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the job without a mistake has saved."""
    jit.warm_up()
    folder = tmp_path_factory.mktemp("right")
    write(folder, Mistake("", "", ""))
    saved = folder / "model"
    assert main.run(["trainer", "--local", "--save", str(saved), str(folder / "job.toml")]) == 0
    return saved


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_by_what_where_and_what_to_do(
    name: str, tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    write(tmp_path, mistake)

    code = main.run(arguments(mistake, tmp_path, model))

    message = capsys.readouterr().err
    assert code not in (0, ErrorCode.INTERNAL), message
    assert "Traceback" not in message
    assert mistake.what in message
    assert mistake.where in message
    assert mistake.to_do in message


def test_there_are_more_than_thirty() -> None:
    assert len(MISTAKES) > 30


def test_a_program_imports_the_files_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sibling = Mistake(
        "",
        "",
        "",
        {PY: ("import psrt\n", "import psrt\nfrom sibling_of_a_test import RATE as RATE\n")},
        {"sibling_of_a_test.py": "RATE = 0.1\n"},
    )
    write(tmp_path, sibling)

    code = main.run(arguments(sibling, tmp_path, tmp_path))

    assert code == 0, capsys.readouterr().err


def test_an_unknown_name_is_an_attribute_error_too() -> None:
    assert not hasattr(layers, "embeding")
    assert not hasattr(psrt, "Modell")
    with pytest.raises(UnknownNameError, match=r"test_typical_mistakes.py:\d+ uses"):
        layers.embeding  # type: ignore[attr-defined]  # noqa: B018


def test_updates_that_no_minimize_has_appended_are_not_skipped_in_silence() -> None:
    with psrt.program() as built:
        x = layers.data("x", shape=(2,))
        loss = layers.mean(layers.fc(x, 1))
    scope = psrt.Scope()
    scope.init_parameters(built)
    executor = psrt.Executor(built, scope)

    with pytest.raises(ProgramError, match="nothing would be trained") as refused:
        executor.run({"x": np.zeros((1, 2), np.float32)}, [loss], roles=("forward", "optimize"))

    assert "Call minimize of an optimizer" in refused.value.hint


def test_a_fetch_that_is_misspelt_names_the_nearest() -> None:
    with psrt.program() as built:
        layers.fc(layers.data("x", shape=(2,)), 1)
    scope = psrt.Scope()
    scope.init_parameters(built)

    with pytest.raises(ProgramError, match=r"no var fc_0.ou to fetch. Did you mean fc_0.out"):
        psrt.Executor(built, scope).run({"x": np.zeros((1, 2), np.float32)}, ["fc_0.ou"])


def plan_text(
    rate: float = 0.1, seed: int = 0, width: int = 2, endpoints: str = "a:1,b:1", least: int = 8192
) -> str:
    with psrt.program(seed) as built:
        loss = layers.mean(layers.fc(layers.data("x", shape=(width,)), 8))
        psrt.optimizer.Adagrad(rate).minimize(loss)
    plan = build_plan(built.parameters.values(), endpoints.split(","), min_block_size=least)
    return text_of(plan.to_json(), seed)


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (
            plan_text(rate=0.2),
            "learning_rate of fc_0.b_0 and 1 others is 0.2 at the trainer and 0.1",
        ),
        (plan_text(seed=3), "the seed ([job] seed, or psrt.program) is 3 at the trainer and 0"),
        (plan_text(width=3), "shape of fc_0.w_0 is [3, 8] at the trainer and [2, 8] at this"),
        (plan_text(endpoints="a:1,c:1"), "endpoints is a:1,c:1 at the trainer and a:1,b:1"),
        (plan_text(least=4), "the placement of fc_0.b_0 (settings of [partition]) is 2 blocks on"),
    ],
)
def test_a_trainer_of_another_plan_is_refused_by_the_setting_and_both_values(
    theirs: str, words: str
) -> None:
    state = PserverState(wait_timeout_s=10.0)
    state.hello(0, 7, JobIdentity("clicks", "one", 2, Sync(), plan_text()), 0.0)

    with pytest.raises(WireError) as refused:
        state.hello(1, 8, JobIdentity("clicks", "two", 2, Sync(), theirs), 0.0)

    assert refused.value.code is ErrorCode.JOB_MISMATCH
    assert words in refused.value.message


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan":{},"seed":1}', "[" * 100_000])
def test_a_text_that_is_no_plan_has_no_differences_to_report(text: str) -> None:
    assert plan_differences(text, plan_text()) == ""


def test_a_number_that_the_formula_does_not_allow_names_the_line() -> None:
    with pytest.raises(ConfigError, match=r"test_typical_mistakes.py:\d+: optimizer .*beta1"):
        psrt.optimizer.Adam(0.1, beta1=2.0)
