"""A runner as its launcher has it: greetings before it, and nothing sent after its end."""

from __future__ import annotations

import pytest

from psrt.launch.runners import RunnerConnection, packed


class FakeLink:
    """A link with bytes to receive; it refuses to send once it has been ended, as a pipe does."""

    def __init__(self, *chunks: bytes | None) -> None:
        self._chunks = list(chunks)
        self._has_ended = False

    def send(self, raw: bytes) -> None:
        if self._has_ended:
            raise ValueError("write to closed file")

    def receive(self) -> bytes | None:
        return self._chunks.pop(0)

    def end(self) -> None:
        self._has_ended = True

    def last_words(self) -> str:
        return "sshd says goodbye"


def test_a_beat_that_is_due_while_a_runner_ends_is_not_sent() -> None:
    connection = RunnerConnection("a", FakeLink())

    connection.end()
    connection.send("beat")

    assert connection.lost == ""


@pytest.mark.parametrize("greeting", [b"", b"Welcome to a\n", b"{not json\n"])
def test_greetings_of_a_shell_before_the_runner_are_passed_over(greeting: bytes) -> None:
    here = packed("here", host="a", address="10.0.0.1")
    connection = RunnerConnection("a", FakeLink(greeting + here[:5], here[5:]))

    connection.receive()
    connection.receive()

    assert (connection.is_here, connection.address) == (True, "10.0.0.1")


def test_anything_else_from_a_runner_loses_its_host() -> None:
    here = packed("here", host="a", address="10.0.0.1")
    connection = RunnerConnection("a", FakeLink(here + b"Segmentation fault\n"))

    connection.receive()

    assert "host a was lost: not a message" in connection.lost


def test_the_end_of_a_link_loses_the_host_with_its_last_words() -> None:
    connection = RunnerConnection("a", FakeLink(None))

    connection.receive()

    assert connection.lost == "host a was lost: the connection ended\nsshd says goodbye"
