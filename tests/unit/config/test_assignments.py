"""`--set section.key=value` and its short forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.assignments import PARAMS, assigned, plain_value
from psrt.config.load import load_job
from psrt.core.errors import ConfigError


def values(*words: str, **short: str | None) -> dict[str, str]:
    return {name: given.text for name, given in assigned(words, short).items()}


def test_each_word_sets_the_variable_of_its_setting() -> None:
    found = values("data.epochs=3", "trainer.on_nan=skip", "communication.mode=async")

    assert found == {
        "PSRT_DATA_EPOCHS": "3",
        "PSRT_TRAINER_ON_NAN": "skip",
        "PSRT_COMMUNICATION_MODE": "async",
    }


def test_short_flags_stand_for_settings_of_the_data() -> None:
    assert values(epochs="2", batch_size=None) == {"PSRT_DATA_EPOCHS": "2"}
    assert assigned((), {"batch_size": "64"})["PSRT_DATA_BATCH_SIZE"].origin == "flag --batch-size"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("data.epochs", "--set data.epochs has no value"),
        ("data.epoch=3", "did you mean|data.epochs"),
        ("epochs=3", "setting epochs"),
    ],
)
def test_a_word_that_sets_nothing_is_refused(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        values(word)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", 0.1), ("true", True), ("[64, 32]", [64, 32]), ("relu", "relu"), ("", "")],
)
def test_arguments_of_build_are_values_of_toml_or_texts(text: str, value: object) -> None:
    assert plain_value(text) == value


def test_arguments_of_build_replace_those_of_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    job = tmp_path / "job.toml"
    job.write_text('[job]\nprogram = "train.py"\n[job.params]\nrate = 1.0\nwidth = 8\n')
    given = values("job.params.rate=0.5", "job.params.act=relu")

    config = load_job(str(job), environ=given).config

    assert config.params == {"rate": 0.5, "width": 8, "act": "relu"}
    with pytest.raises(ConfigError, match="expected a JSON object"):
        load_job(str(job), environ={PARAMS: "[1]"})
