"""psrt leaves the state of `random` and `numpy.random` to the program: users seed it.

A draw of a thread of psrt would change what a seeded program draws after it, by its timing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house import PACKAGE, dotted, imported_names, tree

MEANT = {"data/python/decorators.py", "fluid/running/lod_tensor.py"}
"""Files that draw from it in the thread of the caller, as PaddlePaddle's functions do."""


def draws(tree: ast.AST) -> Iterator[int]:
    """Lines that refer to a function of the state that modules share, not to a class."""
    nodes = tuple(ast.walk(tree))
    imported = dict(imported_names(nodes))
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            room, _, name = dotted(node, imported).rpartition(".")
            if room in ("random", "numpy.random") and name.islower() and name != "default_rng":
                yield node.lineno


def test_only_what_users_call_draws_from_the_state_that_users_seed() -> None:
    found = {
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if any(draws(tree(path)))
    }

    assert found == MEANT


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrandom.random()",
        "import random\nretried(random.random)",
        "import random as r\nr.getrandbits(63)",
        "from random import choice\nchoice([1, 2])",
        "import numpy as np\nnp.random.rand(3)",
        "from numpy import random\nrandom.seed(1)",
    ],
)
def test_every_way_to_draw_from_it_is_found(source: str) -> None:
    assert list(draws(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrandom.Random(1).shuffle([1, 2])",
        "from random import SystemRandom\nSystemRandom().random()",
        "import numpy as np\nnp.random.default_rng(1).random(3)",
        "import numpy as np\ndef f(generator: np.random.Generator) -> None: ...",
    ],
)
def test_generators_of_their_own_are_allowed(source: str) -> None:
    assert not list(draws(ast.parse(source)))
