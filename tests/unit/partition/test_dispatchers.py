"""Placing blocks on endpoints: known placements, stability between processes, refusals."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Sequence

import pytest

from psrt.core.errors import ConfigError
from psrt.partition.dispatchers import balanced, dispatch, dispatcher_named, hash_name, round_robin
from psrt.partition.slicing import Block

ENDPOINTS = ("ps0:6170", "ps1:6170", "ps2:6170")


def blocks_named(*names: str) -> list[Block]:
    return [Block(name, 0, 1, 0, 10) for name in names]


def test_round_robin_takes_endpoints_in_turn_over_all_parameters() -> None:
    blocks = [Block("w", i, 2, i * 10, 10) for i in range(2)] + blocks_named("x", "y")

    assert round_robin(blocks, ENDPOINTS) == ["ps0:6170", "ps1:6170", "ps2:6170", "ps0:6170"]


def test_round_robin_starts_at_the_first_endpoint_each_time() -> None:
    blocks = blocks_named("a")

    assert round_robin(blocks, ENDPOINTS) == round_robin(blocks, ENDPOINTS) == ["ps0:6170"]


def blocks_of(*sizes: int) -> list[Block]:
    return [Block(f"p{number}", 0, 1, 0, size) for number, size in enumerate(sizes)]


def test_balanced_gives_the_largest_block_first_to_the_emptiest_endpoint() -> None:
    placed = balanced(blocks_of(1, 100, 40, 60, 1), ("a", "b"))

    assert placed == ["a", "a", "b", "b", "b"]


def test_balanced_takes_equal_blocks_in_turn() -> None:
    assert balanced(blocks_of(5, 5, 5, 5), ENDPOINTS) == round_robin(
        blocks_of(5, 5, 5, 5), ENDPOINTS
    )


def test_weights_and_biases_do_not_leave_one_endpoint_with_all_weights() -> None:
    """Blocks of an MLP sorted by name alternate: bias, weights, bias, weights."""
    blocks = blocks_of(400, 5200, 400, 8000, 1, 400)

    def share_of_first(placed: Sequence[str]) -> float:
        return sum(b.size for b, at in zip(blocks, placed, strict=True) if at == "b") / 14_401

    assert share_of_first(round_robin(blocks, ("a", "b"))) > 0.9
    assert share_of_first(balanced(blocks, ("a", "b"))) < 0.56


def test_hash_name_places_by_crc32_of_the_block_name() -> None:
    blocks = blocks_named("fc_0.w_0", "fc_0.b_0", "emb")

    expected = [ENDPOINTS[zlib.crc32(block.name.encode()) % 3] for block in blocks]
    assert hash_name(blocks, ENDPOINTS) == expected


def test_hash_name_does_not_move_a_block_when_others_are_added() -> None:
    alone = hash_name(blocks_named("fc_0.w_0"), ENDPOINTS)

    assert hash_name(blocks_named("fc_9.w_0", "fc_0.w_0"), ENDPOINTS)[1:] == alone


def test_hash_name_agrees_between_processes_with_different_hash_seeds() -> None:
    script = (
        "from psrt.partition.dispatchers import hash_name\n"
        "from psrt.partition.slicing import Block\n"
        "print(hash_name([Block(n, 0, 1, 0, 1) for n in 'abcdefgh'], ['x', 'y', 'z']))"
    )

    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(answers) == 1


def test_any_callable_can_place_blocks() -> None:
    def all_on_the_last(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
        return [endpoints[-1]] * len(blocks)

    assert dispatch(all_on_the_last, blocks_named("a", "b"), ENDPOINTS) == ["ps2:6170"] * 2


def test_a_dispatcher_that_names_an_unknown_endpoint_is_refused() -> None:
    with pytest.raises(ConfigError, match="placed block a on 'elsewhere:1'"):
        dispatch(lambda blocks, endpoints: ["elsewhere:1"], blocks_named("a"), ENDPOINTS)


def test_a_dispatcher_that_forgets_a_block_is_refused() -> None:
    with pytest.raises(ConfigError, match="placed 1 of 2 blocks"):
        dispatch(lambda blocks, endpoints: [endpoints[0]], blocks_named("a", "b"), ENDPOINTS)


def test_the_configured_names_are_balanced_round_robin_and_hash_name() -> None:
    assert dispatcher_named("Balanced") is balanced
    assert dispatcher_named("RoundRobin") is round_robin
    assert dispatcher_named("HashName") is hash_name


def test_an_unknown_split_method_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="none of Balanced, RoundRobin, HashName"):
        dispatcher_named("Random")
