"""Four models with three optimizers against PyTorch: the same parameters after 20 steps.

Sizes are small, so that in float32 hardly a ReLU or a maximum is so near to a tie that rounding
decides it: from there on the two sides would go different ways. In float64, where psrt interprets
what it compiles for float32, sizes are smaller still, and Adam stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.peers.torch_models import ConvNet, DeepFm, Mlp, Model, Word2Vec  # noqa: E402
from benchmarks.peers.torch_sides import TWINS, PsrtSide, TorchSide, differences  # noqa: E402

STEPS = 20
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}

SMALL: dict[str, Model] = {
    "mlp": Mlp(hidden=(20, 20), batch=16),
    "deepfm": DeepFm(slots=6, numbers=4, rows=300, factors=4, hidden=(16, 8), batch=32),
    "word2vec": Word2Vec(vocabulary=300, width=8, batch=32),
    "conv": ConvNet(filters=(3, 4), side=16, batch=8),
}
SMALLER: dict[str, Model] = SMALL | {"conv": ConvNet(filters=(2, 3), side=16, batch=2)}
AGREEING = [name for name, twin in TWINS.items() if twin.must_agree]
CASES = [*((name, "float32") for name in AGREEING), ("adam", "float64")]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of torch would cost more than these small models take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# torch warns about its own sparse gradients.
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
@pytest.mark.parametrize(("optimizer", "dtype"), CASES)
@pytest.mark.parametrize("name", SMALL)
def test_parameters_after_twenty_steps_are_those_of_torch(
    name: str, optimizer: str, dtype: str
) -> None:
    model = (SMALL if dtype == "float32" else SMALLER)[name]
    ours = PsrtSide(model, TWINS[optimizer], STEPS, dtype)
    initial = ours.parameters()
    theirs = TorchSide(model, TWINS[optimizer], initial)

    losses = [(ours.step(feed), theirs.step(feed)) for feed in ours.feeds]

    mine, other = np.array(losses).T
    np.testing.assert_allclose(mine, other, rtol=TOLERANCE[dtype])
    away = differences(ours.parameters(), theirs.parameters())
    assert {n: x for n, x in away.items() if x > TOLERANCE[dtype]} == {}
    moved = differences(initial, ours.parameters())
    assert min(moved.values()) > 1e-3, "a parameter that stays agrees with everything"
