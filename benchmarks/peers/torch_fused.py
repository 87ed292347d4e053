"""Steps of PyTorch's fused optimizers, one thread: the other side of W4.

    python benchmarks/peers/torch_fused.py ELEMENTS

W4 runs this program with a Python that has torch. It reads an optimizer's name per line, runs one
step over ELEMENTS float32, and prints its seconds. A new name allocates tensors, runs two untimed
steps, and releases the tensors of the name before.
"""

from __future__ import annotations

import sys
import time

import torch

MAKERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.01}),
    "momentum": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "adam": (torch.optim.Adam, {"lr": 1e-3}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-3}),
}


def made(name: str, elements: int) -> torch.optim.Optimizer:
    kind, numbers = MAKERS[name]
    parameter = torch.nn.Parameter(torch.randn(elements))
    parameter.grad = torch.randn(elements)
    optimizer = kind([parameter], fused=True, **numbers)
    optimizer.step()
    optimizer.step()
    return optimizer


def main() -> None:
    torch.set_num_threads(1)
    elements, current, optimizer = int(sys.argv[1]), "", None
    for line in sys.stdin:
        if line.strip() != current:
            optimizer = None
            current = line.strip()
            optimizer = made(current, elements)
        started = time.perf_counter()
        optimizer.step()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
