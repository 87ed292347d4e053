"""`torch.compile` of a model with tables trains what the model trains without it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402

pytestmark = [  # of torch's compiler about itself
    pytest.mark.filterwarnings(r"ignore:The \.grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
WIDTH, BATCH, STEPS, DYNAMIC_FROM = 8, 16, 8, 3


class Ranker(torch.nn.Module):  # type: ignore[name-defined]
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        config, rule = pt.EmbeddingBagConfig, pt.optim.SGD(0.1)
        self.bags = pt.EmbeddingBagCollection(
            [config("users", WIDTH, optimizer=rule), config("items", WIDTH, optimizer=rule)]
        )
        self.words = pt.Embedding(WIDTH, "words", optimizer=rule)
        self.dense = torch.nn.Linear(2 * WIDTH, 1)

    def forward(self, features, words):
        pooled = self.bags(features)
        users = pooled["users"] + self.words(words).mean(1)
        return self.dense(torch.cat([users, pooled["items"]], 1)).squeeze(1)


def losses(compiled, after_step=lambda step: None):
    """Train batches of changing numbers of ids and rows; their losses."""
    with pt.local(seed=3):
        model = Ranker()
        tables, dense = pt.TableOptimizer(model), torch.optim.SGD(model.parameters(), 0.1)
        forward = compiled(model)
        torch.manual_seed(2)
        found = []
        for step in range(STEPS):
            shapes = {"users": (BATCH, 1), "items": (BATCH, 3 + step % 3)}
            features = {name: torch.randint(0, 50, shape) for name, shape in shapes.items()}
            scores = forward(features, torch.randint(0, 50, (BATCH, 2)))
            loss = torch.nn.functional.softplus(-scores).mean()
            loss.backward()
            for optimizer in (dense, tables):
                optimizer.step()
                optimizer.zero_grad()
            found.append(loss.item())
            after_step(step)
    return found


@pytest.fixture(autouse=True)
def forgotten():
    yield
    torch._dynamo.reset()


def test_a_compiled_model_trains_alike_and_other_numbers_of_rows_are_not_compiled_again():
    graphs, after = [], []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    found = losses(
        lambda model: torch.compile(model, backend=backend), lambda step: after.append(len(graphs))
    )

    assert found == losses(lambda model: model)
    assert len(graphs) > 0
    assert after[DYNAMIC_FROM:] == [after[-1]] * (STEPS - DYNAMIC_FROM)


@pytest.mark.long
def test_generated_code_trains_alike():
    found = losses(torch.compile)

    assert found == pytest.approx(losses(lambda model: model), abs=1e-6)


def test_a_whole_step_may_be_compiled_with_its_optimizer():
    def train(compiled):
        with pt.local(seed=3) as session:
            words = pt.Embedding(WIDTH, "words", optimizer=pt.optim.SGD(0.1))
            tables = pt.TableOptimizer(words)

            def step(ids):
                words(ids).sum().backward()
                tables.step()
                tables.zero_grad()

            run = compiled(step)
            for first in range(3):
                run(torch.arange(first, first + 5))
            return session.pull({"words": torch.arange(8).numpy()})["words"]

    compiled = train(lambda step: torch.compile(step, backend="eager"))

    assert (compiled == train(lambda step: step)).all()
