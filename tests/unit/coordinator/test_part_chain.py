"""The cut that a part continues: complete, given up and unknown cuts, new tables, lengths."""

from __future__ import annotations

import random

import pytest

from psrt.coordinator.part_chain import Continuation, PartChain, PartOutcome

COMPLETE, GIVEN_UP, UNKNOWN = PartOutcome
TABLES = ("w", "emb")
FULL = Continuation()


def continuing(base: int, *tables: str) -> Continuation:
    return Continuation(base, frozenset(tables or TABLES))


def test_a_chain_is_as_long_as_the_setting_says() -> None:
    chain = PartChain(3)
    found = []
    for number in range(1, 8):
        found.append(chain.begin(number, TABLES).base)
        chain.end(number, COMPLETE)

    assert found == [0, 1, 2, 0, 4, 5, 0]


def test_one_means_that_every_part_is_full() -> None:
    chain = PartChain(1)
    chain.begin(1, TABLES)
    chain.end(1, COMPLETE)

    assert not chain.has_deltas
    assert chain.begin(2, TABLES) == FULL


def test_the_next_part_continues_the_last_complete_cut_when_one_was_given_up() -> None:
    chain = PartChain(8)
    chain.begin(1, TABLES)
    chain.end(1, COMPLETE)
    assert chain.begin(2, TABLES) == continuing(1)
    chain.end(2, GIVEN_UP)

    assert chain.begin(3, TABLES) == continuing(1)


def test_a_first_cut_that_is_given_up_leaves_nothing_to_continue() -> None:
    chain = PartChain(8)
    chain.begin(1, TABLES)
    chain.end(1, GIVEN_UP)

    assert chain.begin(2, TABLES) == FULL


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_part_behind_one_of_unknown_end_is_full(is_answered: bool) -> None:
    chain = PartChain(8)
    chain.begin(1, TABLES)
    chain.end(1, COMPLETE)
    chain.begin(2, TABLES)
    if is_answered:
        chain.end(2, UNKNOWN)

    assert chain.begin(3, TABLES) == FULL
    chain.end(2, COMPLETE)  # too late
    chain.end(3, GIVEN_UP)
    assert chain.begin(4, TABLES) == FULL


def test_a_new_table_is_whole_in_its_first_part_and_the_others_go_on() -> None:
    chain = PartChain(8)
    chain.begin(1, ["w"])
    chain.end(1, COMPLETE)

    assert chain.begin(2, TABLES) == continuing(1, "w")
    chain.end(2, COMPLETE)
    assert chain.begin(3, TABLES) == continuing(2)


def test_without_a_common_table_a_part_continues_nothing() -> None:
    chain = PartChain(8)
    chain.begin(1, [])
    chain.end(1, COMPLETE)

    assert chain.begin(2, TABLES) == FULL


@pytest.mark.parametrize("seed", range(200))
def test_a_base_is_always_the_newest_complete_cut(seed: int) -> None:
    """Parts of several pservers in one job, whose cuts end in every way."""
    draw = random.Random(seed)
    full_every = draw.randint(1, 5)
    chains = [PartChain(full_every) for _ in range(3)]
    lengths, newest_complete = [0, 0, 0], 0
    for number in range(1, 40):
        is_complete = draw.random() < 0.7
        for at, chain in enumerate(chains):
            base = chain.begin(number, TABLES).base
            assert base in (0, newest_complete)
            if is_complete:
                lengths[at] = lengths[at] + 1 if base else 1
            assert lengths[at] <= full_every
            end = COMPLETE if is_complete else GIVEN_UP
            if (outcome := draw.choice([end, end, end, UNKNOWN, None])) is not None:
                chain.end(number, outcome)
        newest_complete = number if is_complete else newest_complete
