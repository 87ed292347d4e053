"""Last words of a trainer that a signal ends: where its parameters are."""

from __future__ import annotations

import signal

import pytest

from psrt.config.sections import TrainerConfig
from psrt.trainer.cuts.interruption import Interruption
from psrt.trainer.inputs.state import AT_THE_START


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (TrainerConfig(job="j.toml", local=True), "The parameters are lost."),
        (
            TrainerConfig(job="j.toml", local=True, state="run.json"),
            "run.json has all parameters and the position: go on with --resume run.json.",
        ),
        (TrainerConfig(job="j.toml"), "The parameters are lost when the pservers end."),
    ],
    ids=["local", "state", "pservers"],
)
def test_the_text_names_where_parameters_are(settings: TrainerConfig, said: str) -> None:
    text = Interruption(settings).text(signal.SIGINT, AT_THE_START)

    assert text.startswith("interrupted by SIGINT in epoch 1 after 0 steps")
    assert text.endswith(said)
