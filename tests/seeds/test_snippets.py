"""Every snippet of the documents runs as written, with its documented effect."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.config.load import environment
from psrt.core.specs import Async, Collective, Sync
from psrt.executor.strategies import ReduceStrategy
from tests.support.scripts import check_all_succeeded, cluster_variables, endpoints, run_all

SNIPPETS = Path(__file__).parent / "snippets"
LEFT_OUT, DOCUMENT = "# --- left out by the document", "# --- the document"
LAUNCHERS = ("PADDLE_", "TRAINING_ROLE", "POD_IP", "OMPI_", "PMI_", "SLURM_", "CPU_NUM")


@pytest.fixture(autouse=True)
def no_role(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment():
        if name.startswith(LAUNCHERS):
            monkeypatch.delenv(name)


def run(name: str) -> dict[str, Any]:
    """The names a snippet has defined when it ends."""
    return runpy.run_path(str(SNIPPETS / name))


def parameters() -> dict[str, Any]:
    return fluid.default_main_program().graph.parameters


@pytest.mark.parametrize("path", sorted(SNIPPETS.glob("*.py")), ids=lambda path: path.stem)
def test_every_snippet_says_which_lines_are_the_documents(path: Path) -> None:
    lines = path.read_text().splitlines()
    parts = [line for line in lines if line.startswith("# ---")]

    assert set(parts) == {LEFT_OUT, DOCUMENT}
    assert all(one != other for one, other in itertools.pairwise(parts))


# --- parallel executors ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["000_parallel_executor.py", "001_parallel_executor.py"])
@pytest.mark.parametrize(
    ("cpu_num", "reduce"), [("1", ReduceStrategy.AllReduce), ("2", ReduceStrategy.Reduce)]
)
def test_a_parallel_executor_trains_by_as_many_replicas_as_cpu_num(
    monkeypatch: pytest.MonkeyPatch, name: str, cpu_num: str, reduce: ReduceStrategy
) -> None:
    monkeypatch.setenv("CPU_NUM", cpu_num)

    made = run(name)

    assert made["pe"].device_count == int(cpu_num)
    assert made["exec_strategy"].num_threads == 8
    assert made["build_strategy"].reduce_strategy is reduce
    assert made["losses"][-1] < 0.9 * made["losses"][0]


def test_a_test_executor_sees_what_the_training_executor_has_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPU_NUM", "2")

    trained, tested = np.transpose(run("004_parallel_executor.py")["losses"])

    assert trained[-1] < 0.9 * trained[0]
    np.testing.assert_allclose(tested[:-1], trained[1:], rtol=1e-5)


# --- tables and data ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["000_sparse_embedding.py", "001_sparse_embedding.py"])
def test_an_embedding_may_have_sparse_updates(name: str) -> None:
    made = run(name)

    (table,) = parameters().values()
    assert (table.sparse, table.shape) == (True, (made["dict_size"], 16))
    assert made["fc"].shape == (-1, 16)


def test_a_distributed_table_may_have_more_ids_than_any_host_could_hold() -> None:
    made = run("002_distributed_embedding.py")

    (table,) = parameters().values()
    assert (table.distributed, table.sparse) == (True, True)
    assert table.shape == (1 << 40, 8)
    assert made["emb"].shape == (-1, 8)


def test_a_dataset_feeds_training_from_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "part-0"
    file.write_text("2 3 5 1 1\n1 4 1 0\n" * 64)
    monkeypatch.setenv("FILE", str(file))

    made = run("000_dataset.py")

    feed = {"ids": fluid.create_lod_tensor([[3, 5], [4]], [[2, 1]]), "click": [[1.0], [0.0]]}
    test = fluid.default_main_program().clone(for_test=True)
    (logits,) = made["exe"].run(test, feed, [made["logit"]])
    assert logits[0] > 0.1 > -0.1 > logits[1]


# --- strategies and the transpiler ----------------------------------------------------------------


def test_details_of_a_strategy_may_be_changed_in_three_ways() -> None:
    made = run("000_program_config.py")

    assert (made["in_place"], made["replaced"], made["by_dict"]) == (81920,) * 3


def test_sync_mode_false_is_asynchronous() -> None:
    made = run("002_async.py")

    job = made["t"].get_trainer_program().job
    assert job.mode == Async()
    assert (job.trainer_id, job.trainers) == (0, 4)


def test_parameters_are_whole_without_slice_var_up() -> None:
    plan = run("002_slice_var_up.py")["t"].get_trainer_program().job.plan

    assert sorted(block.spec.name for block in plan.blocks) == sorted(parameters())


def test_memory_is_optimized_before_the_transpiler() -> None:
    program = run("002_memory_optimize.py")["trainer_program"]

    assert program.memory.skip_grads
    assert program.job.mode == Sync()


def test_nccl2_makes_a_trainer_without_pservers() -> None:
    job = run("002_nccl2.py")["t"].get_trainer_program().job

    assert (job.mode, job.trainer_id, job.trainers) == (Collective(), 0, 2)


# --- files and ranks ------------------------------------------------------------------------------


def test_files_are_dealt_by_the_number_in_their_names() -> None:
    assert run("003_files_of_a_trainer.py")["train_list"] == ["train.txt-00001", "train.txt-00003"]


def test_a_rank_of_mpi_is_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "3", "SIZE": "4", "LOCAL_SIZE": "4"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)

    made = run("003_rank.py")

    assert made["node_id"] == "3"
    assert made["role"].to_string() == (
        "worker 1, 2 workers, servers 127.0.0.1:6170,127.0.0.1:6171"
    )


def test_a_missing_rank_is_an_error() -> None:
    with pytest.raises(EnvironmentError, match="OMPI_COMM_WORLD_RANK"):
        run("003_rank.py")


# --- real clusters --------------------------------------------------------------------------------


def test_a_fleet_trains_with_the_documents_lines(tmp_path: Path) -> None:
    variables = cluster_variables(endpoints(1), trainers=2)

    ended = run_all(
        tmp_path,
        [str(SNIPPETS / "000_strategies.py")],
        {name: {**own, "MODE": "geo"} for name, own in variables.items()},
    )

    check_all_succeeded(ended)


def test_a_compiled_program_trains_with_its_strategys_parts(tmp_path: Path) -> None:
    variables = cluster_variables(endpoints(1), trainers=1)

    ended = run_all(
        tmp_path,
        [str(SNIPPETS / "000_compiled_program.py")],
        {name: {**own, "CPU_NUM": "2"} for name, own in variables.items()},
    )

    check_all_succeeded(ended)


def test_one_script_transpiles_to_two_roles(tmp_path: Path) -> None:
    (pserver,) = endpoints(1)
    common = {"PSERVERS": pserver, "ENDPOINT": pserver, "TRAINERS": "1", "TRAINER_ID": "0"}
    roles = {"pserver": "PSERVER", "trainer": "TRAINER"}

    ended = run_all(
        tmp_path,
        [str(SNIPPETS / "002_transpile.py")],
        {name: {**common, "ROLE": role} for name, role in roles.items()},
    )

    check_all_succeeded(ended)
