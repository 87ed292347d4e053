"""Whole programs in Fluid style on 2 pservers and 2 trainers, with roles from variables alone.

Real processes, started as the documents' shell lines do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from psrt.data.convert.sharded import Destination
from psrt.data.convert.synthetic import Planted, generate
from tests.support.processes import ROOT
from tests.support.scripts import Ended, check_all_succeeded, cluster_variables, endpoints, run_all

SCRIPTS = ROOT / "examples" / "fluid"


@pytest.mark.parametrize(
    "mode",
    [
        "sync",
        "geo",
        *(pytest.param(mode, marks=pytest.mark.long) for mode in ("half_async", "async")),
    ],
)
@pytest.mark.slow
def test_ctr_dnn_trains_in_every_mode(tmp_path: Path, clicks: Path, mode: str) -> None:
    variables = cluster_variables(endpoints(2), trainers=2)

    ended = run_all(tmp_path, [str(SCRIPTS / "ctr_dnn.py"), str(clicks), mode], variables)

    check_all_succeeded(ended)
    assert max(last_losses(ended)) < 0.53, "a quarter are clicks: knowing only that costs 0.562"


@pytest.mark.slow
def test_word2vec_trains_with_two_replicas_a_trainer(tmp_path: Path) -> None:
    variables = cluster_variables(endpoints(2), trainers=2)
    replicas = {name: {**own, "CPU_NUM": "2"} for name, own in variables.items()}

    ended = run_all(tmp_path, [str(SCRIPTS / "word2vec.py"), "half_async"], replicas)

    check_all_succeeded(ended)
    assert max(last_losses(ended)) < 1.2, "log 16 = 2.77 untrained; kinds of words alone give 1.05"


@pytest.mark.slow
def test_fit_a_line_trains_by_the_transpiler_with_older_variables(tmp_path: Path) -> None:
    pservers = endpoints(2)
    common = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(pservers), "PADDLE_TRAINERS": "2"}
    variables = {
        f"pserver-{number}": {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_ENDPOINT": own}
        for number, own in enumerate(pservers)
    }
    variables |= {
        f"trainer-{number}": {"PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)}
        for number in range(2)
    }

    ended = run_all(
        tmp_path,
        [str(SCRIPTS / "fit_a_line.py"), "async"],
        {name: common | own for name, own in variables.items()},
    )

    check_all_succeeded(ended)
    assert max(last_losses(ended)) < 0.5, "13.3 untrained; 0.12 for a trainer that ran all alone"


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clicks")
    generate(Planted(rows=4000, test_rows=4, ids_per_slot=50), Destination(directory, files=4))
    return directory


def last_losses(ended: Mapping[str, Ended]) -> list[float]:
    """Of each trainer the mean loss of its last epoch."""
    trainers = [process for name, process in ended.items() if name.startswith("trainer")]
    losses = [re.findall(r"^epoch 2 loss (\S+)$", process.output, re.M) for process in trainers]
    assert [len(lines) for lines in losses] == [1, 1]
    return [float(loss) for (loss,) in losses]
