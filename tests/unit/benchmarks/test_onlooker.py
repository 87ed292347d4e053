"""The reader of pages in benchmarks counts those that it has got."""

from __future__ import annotations

from benchmarks.measuring import onlooker
from benchmarks.measuring.onlooker import Onlooker, free_addresses
from psrt.core.threads import CrashReport
from psrt.observe.http_server import HttpPage, HttpServer
from tests.support.carriers import eventually


def test_pages_of_all_processes_are_read_and_a_dead_one_is_left_out() -> None:
    (dead,) = free_addresses(1)
    pages = {path: lambda accept: HttpPage(b"found") for path in onlooker.PAGES}
    server = HttpServer("127.0.0.1:0", pages, CrashReport())
    try:
        with Onlooker([server.endpoint, dead], every_s=0.001) as looked:
            eventually(lambda: looked.pages >= 3, "three pages")
    finally:
        server.close()

    assert looked.pages >= 3


def test_free_addresses_differ() -> None:
    assert len(set(free_addresses(5))) == 5
