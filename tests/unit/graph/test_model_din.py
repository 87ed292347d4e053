"""Deep Interest Network: attention of a candidate over what a user did before.

Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction": each behaviour h is
scored against the candidate c by a small network over (h, c, h − c, h · c), and the behaviours are
added up by these scores. The variant with a softmax over each user's scores is built here, because
it uses every ragged op there is.
"""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Model, Ragged, Scope, layers, optimizer, program
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

ITEMS, WIDTH, STEPS = 12, 3, 60
ALL = ("forward", "backward", "optimize")


def interest(history: Var, candidate: Var) -> Var:
    """Behaviours, ragged rows (n, d), added up by their relevance to the candidate (rows, d)."""
    query = layers.sequence_expand(candidate, history)
    features = layers.concat(
        [
            history,
            query,
            layers.elementwise_sub(history, query),
            layers.elementwise_mul(history, query),
        ]
    )
    hidden = layers.fc(features, 4, act="sigmoid")
    relevance = layers.sequence_softmax(layers.fc(hidden, 1))
    return layers.sequence_pool(layers.elementwise_mul(history, relevance))


def din(is_sparse: bool = False) -> Var:
    """The mean loss of predicting whether the candidate is clicked."""
    behaviours = layers.data("behaviours", dtype="int64", ragged=True)
    size = (ITEMS, WIDTH)
    history = layers.embedding(behaviours, size, is_sparse, param="items")
    asked = layers.embedding(layers.data("item", (1,), "int64"), size, is_sparse, param="items")
    candidate = layers.flatten(asked)
    user = interest(history, candidate)
    joined = layers.concat([user, candidate, layers.elementwise_mul(user, candidate)])
    logit = layers.fc(layers.fc(joined, 5, act="relu"), 1)
    label = layers.data("label")
    return layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))


def batch(examples: int) -> dict[str, Array | Ragged]:
    """A click is a candidate that the user met before; some users have no history at all."""
    rng = np.random.default_rng(examples)
    histories = [list(rng.integers(0, ITEMS, rng.integers(0, 5))) for _ in range(examples)]
    item = rng.integers(0, ITEMS, (examples, 1))
    label = np.array([[item[i, 0] in row] for i, row in enumerate(histories)], np.float32)
    return {"behaviours": Ragged.of(histories), "item": item, "label": label}


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gradients_of_din(is_sparse: bool) -> None:
    check_gradients(lambda: din(is_sparse), batch(6), spread=0.7)


def test_gradients_of_din_over_users_without_history() -> None:
    nothing = batch(3) | {"behaviours": Ragged.of([[], [], []])}

    def build() -> Var:
        return din()

    check_gradients(build, nothing)


def test_din_learns_one_batch() -> None:
    with program() as p:
        loss = din()
        Model(loss, optimizer=optimizer.Adam(0.05))
    scope = Scope()
    scope.init_parameters(p)
    executor, feed = Executor(p, scope), batch(48)

    losses = [float(executor.run(feed, [loss], roles=ALL)[0]) for _ in range(STEPS)]  # type: ignore[arg-type]

    assert losses[-1] < 0.5 * losses[0]
