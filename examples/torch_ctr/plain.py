"""A click model in plain PyTorch, in one process; `with_psrt.py` differs by four lines.

    python examples/torch_ctr/plain.py

The clicks are planted: a list is clicked more often, the higher the numbers of its items.
"""

import torch

ITEMS, WIDTH = 1_000_000, 16


class Ranker(torch.nn.Module):
    """Scores (n,) of lists of items (n, 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.items = torch.nn.EmbeddingBag(ITEMS, WIDTH, mode="mean", sparse=True)
        self.dense = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        return self.dense(self.items(items)).squeeze(1)


def clicks(examples: int) -> torch.utils.data.TensorDataset:
    """Items (n, 5) out of a hundred, and clicks (n,) of 0 or 1."""
    items = torch.randint(0, 100, (examples, 5)) * (ITEMS // 100)
    chance = (items.double().mean(1) / ITEMS - 0.5) * 12
    return torch.utils.data.TensorDataset(items, torch.bernoulli(chance.sigmoid()).float())


def main() -> None:
    torch.manual_seed(1)
    model = Ranker()
    dense = torch.optim.Adam(model.dense.parameters(), lr=0.01)
    tables = torch.optim.Adagrad(model.items.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(clicks(10_000), batch_size=256, shuffle=True)
    for epoch in range(2):
        losses = []
        for items, clicked in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(items), clicked)
            loss.backward()
            for optimizer in (dense, tables):
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}  loss {sum(losses) / len(losses):.3f}")


if __name__ == "__main__":
    main()
