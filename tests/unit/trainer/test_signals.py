"""A signal ends training after the step, anything else at once; handlers come back."""

from __future__ import annotations

import signal
import threading

import pytest

from psrt.trainer.sessions.signals import Interrupted, StopSignals


def test_within_quietly_a_signal_only_calls_back() -> None:
    stop = threading.Event()

    with StopSignals() as signals, signals.quietly(stop.set):
        signal.raise_signal(signal.SIGTERM)

    assert stop.is_set()
    assert (signals.received, signals.exit_code) == (signal.SIGTERM, 143)


def test_elsewhere_a_signal_interrupts() -> None:
    with StopSignals() as signals, pytest.raises(Interrupted):
        signal.raise_signal(signal.SIGINT)

    assert signals.exit_code == 130


def test_an_interrupt_nobody_caught_ends_the_block() -> None:
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGTERM)

    assert signals.exit_code == 143


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before

    assert signal.getsignal(signal.SIGTERM) is before


def test_no_signal_is_exit_code_0() -> None:
    with StopSignals() as signals:
        pass

    assert signals.exit_code == 0


def test_a_signal_is_handled_although_the_main_thread_blocks_and_another_thread_took_it() -> None:
    stopped = threading.Event()

    def take_it() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with StopSignals() as signals, signals.quietly(stopped.set):
        thread = threading.Thread(target=take_it)
        thread.start()
        in_time = stopped.wait(30.0)
        thread.join()

    assert in_time
    assert signals.received == signal.SIGTERM
