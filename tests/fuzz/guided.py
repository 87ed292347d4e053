"""`python -m tests.fuzz.guided RUNS SEED CORPUS`: frames guided by the coverage of the parsers.

atheris (`pip install atheris`) counts the branches of psrt that a frame reaches; frames that reach
new ones are kept in the folder CORPUS and changed further, by libFuzzer and by
`tests.fuzz.mutate`. A defect ends it, with the frame in a file there.
"""

from __future__ import annotations

import importlib
import logging
import random
import sys

import atheris

from psrt.kernels.jit import warm_up

# Numba compiles kernels, which must stay as they are: they are imported before.
importlib.import_module("psrt.data.datasets")
warm_up(["pserver"])
with atheris.instrument_imports(include=["psrt"]):
    from tests.fuzz import parsers
    from tests.fuzz.mutate import mutated
    from tests.fuzz.seeds import frames

_OURS = 0.5


class Guided:
    """The target of libFuzzer; the first byte of its data selects one of ours."""

    def __init__(self) -> None:
        self._targets = parsers.Targets()
        self._names = list(self._targets.by_name)
        self._frames = frames()

    def one(self, data: bytes) -> None:
        if data:
            name = self._names[data[0] % len(self._names)]
            _, defect = parsers.run(self._targets.by_name[name], data[1:])
            if defect:
                raise AssertionError(f"{name} {data[1:].hex()}\n{defect}")

    def mutate(self, data: bytes, most_bytes: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if not data or draw.random() > _OURS:
            return bytes(atheris.Mutate(data, most_bytes))
        return (data[:1] + mutated(data[1:], draw, self._frames))[:most_bytes]


def main(runs: str, seed: str, corpus: str) -> None:
    logging.disable(logging.CRITICAL)
    guided = Guided()
    flags = f"-runs={runs}", f"-seed={seed}", "-max_len=65536", "-print_final_stats=1"
    place = f"-artifact_prefix={corpus}/defect-"
    atheris.Setup([sys.argv[0], *flags, place, corpus], guided.one, custom_mutator=guided.mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:4])
