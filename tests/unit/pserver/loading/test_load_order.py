"""The order in which tables are filled, in every order in which threads may end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from psrt.pserver.loading.load_order import LoadOrder, NextPage

TABLES = {"dense": ([1], True), "large": ([3, 1, 1], False), "small": ([0, 2], False)}
Taken = list[NextPage]


def order_of(tables: dict[str, tuple[list[int], bool]]) -> LoadOrder:
    order = LoadOrder()
    for name, (pages, is_dense) in tables.items():
        assert not order.add(name, pages, is_dense)
    return order


def replayed(choices: list[int], threads: int) -> tuple[LoadOrder, Taken, list[str], int]:
    """Threads take pages until all are busy or none is left, then the chosen one ends, and so on.

    Returns the order, pages in the order of taking, complete tables, and how many are still busy.
    """
    order, taken, complete, busy = order_of(TABLES), Taken(), list[str](), Taken()

    def take() -> None:
        while len(busy) < threads and (page := order.take()) is not None:
            for done in taken:  # of another stage: all of it is put
                assert done not in busy or done.table != page.table or done.stage == page.stage
            taken.append(page)
            busy.append(page)

    take()
    for choice in choices:
        page = busy.pop(choice)
        if order.put(page):
            complete.append(page.table)
        take()
    return order, taken, complete, len(busy)


def all_choices(threads: int) -> Iterator[list[int]]:
    """Every order in which pages under way may end."""
    open_ends: list[list[int]] = [[]]
    while open_ends:
        choices = open_ends.pop()
        *_, busy = replayed(choices, threads)
        if not busy:
            yield choices
        open_ends += [[*choices, choice] for choice in range(busy)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_page_is_put_once_and_stages_follow_each_other(threads: int) -> None:
    count = 0
    for choices in all_choices(threads):
        order, taken, complete, _ = replayed(choices, threads)
        count += 1
        assert sorted(taken) == [
            NextPage(name, stage, number)
            for name, (pages, _) in sorted(TABLES.items())
            for stage, size in enumerate(pages)
            for number in range(size)
        ]
        assert sorted(complete) == sorted(TABLES)
        assert order.percents == {}
        assert order.take() is None
    assert count >= threads


def test_dense_tables_come_first_then_those_with_few_pages() -> None:
    _, taken, complete, _ = replayed([0] * 8, 1)

    assert complete == ["dense", "small", "large"]
    assert taken[0].table == "dense"


def test_a_table_that_is_asked_for_comes_next_in_the_order_of_asking() -> None:
    order = order_of({name: ([2], False) for name in "abcd"})
    first = order.take()
    order.ask(["c"])
    order.ask(["b", "c"])

    assert first is not None
    found = [page.table for page in iter(order.take, None)]
    assert [first.table, *found] == ["a", "c", "c", "b", "b", "a", "d", "d"]


def test_a_table_may_be_asked_for_before_it_is_added() -> None:
    order = order_of({"a": ([1], True)})
    order.ask(["b"])
    order.add("b", [1], False)

    assert [page.table for page in iter(order.take, None)] == ["b", "a"]


def test_a_table_without_pages_is_complete_at_once() -> None:
    assert LoadOrder().add("new", [], False)
    assert LoadOrder().add("empty", [0, 0], False)


def test_percents_count_pages_of_all_stages() -> None:
    order = order_of({"a": ([3, 1], False)})
    found = []
    for page in iter(order.take, None):
        found.append(order.percents)
        order.put(page)

    assert found == [{"a": percent} for percent in (0, 25, 50, 75)]
