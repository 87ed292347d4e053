"""Two PyTorch trainers and two pservers, real processes: one process with the big batch."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

from tests.support.live_pservers import free_port  # noqa: E402
from tests.support.processes import DEADLINE_S, ROOT, clean_environment, exit_code  # noqa: E402
from tests.support.pserver import daemon, onlooker, status  # noqa: E402
from tests.support.torch_trainer import HEIGHT, OPTIMIZERS, SKIPPED, WIDTH  # noqa: E402
from tests.unit.pytorch.test_local import OPTIMIZERS as BOTH  # noqa: E402

STEPS, TRAINERS = 20, 2


def batches() -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.integers(0, HEIGHT, (STEPS + 1, TRAINERS, 8, 5))


def run_trainers(tmp_path: Path, endpoints: str, mode: str = "sync") -> dict[str, np.ndarray]:
    given, output, port = tmp_path / "batches.npy", tmp_path / "out.npz", free_port()
    np.save(given, batches())
    logs = [tmp_path / f"trainer-{rank}.log" for rank in range(TRAINERS)]
    with contextlib.ExitStack() as stack:
        started = []
        for rank, log in enumerate(logs):
            rendezvous = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            role = {"RANK": str(rank), "WORLD_SIZE": str(TRAINERS), **rendezvous}
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.support.torch_trainer"),
                    *(endpoints, "all", str(output), str(given), mode),
                ],
                stdout=stack.enter_context(log.open("w")),
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                text=True,
                env=clean_environment() | role,
            )
            stack.callback(process.kill)
            started.append(process)
        for process, log in zip(started, logs, strict=True):
            assert exit_code(process, log, deadline_s=DEADLINE_S) == 0, log.read_text()
    return dict(np.load(output))


def big_batch(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Torch's own modules, from the same first values."""
    torch.manual_seed(5)
    bags = {name: torch.nn.EmbeddingBag(HEIGHT, WIDTH, mode="mean") for name in OPTIMIZERS}
    dense = torch.nn.Linear(WIDTH, 1)
    steps = [torch.optim.SGD(dense.parameters(), 0.1)]
    for name, bag in bags.items():
        bag.weight.data = torch.from_numpy(found[f"first.{name}"].copy())
        steps.append(BOTH[name][1](bag.parameters()))
    first = {key: torch.from_numpy(found[f"first.{key}"]) for key in ("dense", "bias")}
    dense.load_state_dict({"weight": first["dense"], "bias": first["bias"]})
    for number, ids in enumerate(torch.from_numpy(batches())):
        if number == SKIPPED:
            continue
        for each in steps:
            each.zero_grad()
        both = ids.reshape(-1, 5)
        (dense(sum(bag(both) for bag in bags.values())).sigmoid().mean() * 10).backward()
        for each in steps:
            each.step()
    weights = {name: bag.weight.detach().numpy() for name, bag in bags.items()}
    return weights | {"dense": dense.weight.detach().numpy()}


@pytest.mark.long
def test_with_ddp_and_async_tables_ranks_have_equal_dense_parameters_and_each_push_counts(
    tmp_path: Path,
) -> None:
    with daemon(tmp_path, "--stay") as pserver:
        run_trainers(tmp_path, pserver.endpoint, "async")
        client = onlooker(pserver.endpoint)
        updates = {each["name"]: each["version"] for each in status(client)["tables"]}
        client.close()

    first, second = (np.load(tmp_path / f"out.npz.{rank}.npy") for rank in range(TRAINERS))
    np.testing.assert_array_equal(first, second)
    assert updates == dict.fromkeys(OPTIMIZERS, TRAINERS * STEPS)


def test_two_trainers_in_sync_equal_one_process_with_the_big_batch(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "other"]
    with contextlib.ExitStack() as stack:
        for place in places:
            place.mkdir()
        servers = [stack.enter_context(daemon(place)) for place in places]
        found = run_trainers(tmp_path, ",".join(each.endpoint for each in servers))

    for name, expected in big_batch(found).items():
        np.testing.assert_allclose(found[f"last.{name}"], expected, atol=1e-6, err_msg=name)
