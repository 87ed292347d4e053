"""The client without a network: retries, words and connections, on the in-process carrier."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core.errors import (
    ConfigError,
    DeadlineError,
    ErrorCode,
    JobError,
    PsrtError,
    UnavailableError,
    WireError,
)
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import dialer
from psrt.rpc.error_text import describe
from psrt.rpc.hosts import host_id, join_endpoint, reachable, split_endpoint
from psrt.rpc.methods import Method
from psrt.rpc.recovering import SOON_S
from psrt.rpc.retry import REPORT_S, RetryPolicy
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.wire.frames import Message
from tests.support.clock import ManualClock
from tests.support.inproc import Fault, InprocServer

WAIT_S = 10.0
QUICK = RetryPolicy(initial_s=0.001, max_s=0.001)


class Recorder:
    """A pserver that notes the push key of every request it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def __call__(self, request: Message, peer: Peer) -> Message:
        header = request.header
        self.seen.append((Method(header.method).name, header.push_key.sequence))
        if header.method == Method.HELLO and header.hello.job_id == "other":
            raise WireError("Job other is not job ctr.", code=ErrorCode.JOB_MISMATCH)
        return Message(pb.Header())


@pytest.fixture
def pserver() -> Recorder:
    return Recorder()


@pytest.fixture
def line(pserver: Recorder) -> InprocServer:
    return InprocServer(pserver)


def make_client(line: InprocServer, job_id: str = "ctr") -> Client:
    hello = pb.Hello(job_id=job_id)
    return Client("ps0:6170", 1, 5, line, hello, retry=QUICK)


@pytest.fixture
def client(line: InprocServer) -> Iterator[Client]:
    built = make_client(line)
    yield built
    built.close()


def push(client: Client, timeout_s: float = WAIT_S) -> Message:
    header = pb.Header(push_key=client.next_push_key())
    return client.call(Method.PUSH, header=header, timeout_s=timeout_s)


def test_push_keys_count_from_one_and_carry_the_incarnation(client: Client) -> None:
    keys = [client.next_push_key() for _ in range(3)]

    assert [(key.incarnation, key.sequence) for key in keys] == [(5, 1), (5, 2), (5, 3)]


@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER])
def test_broken_connection_is_followed_by_a_retry_with_the_same_key(
    client: Client, line: InprocServer, pserver: Recorder, fault: Fault
) -> None:
    line.faults.script(fault, Method.PUSH, times=2)

    push(client)

    pushes = [sequence for name, sequence in pserver.seen if name == "PUSH"]
    assert set(pushes) == {1}
    assert len(pushes) == (1 if fault is Fault.RESET_BEFORE else 3)


class Recovered(Recorder):
    """A pserver that was killed and went on with its tables: HELLO names another process."""

    process = 1

    def __call__(self, request: Message, peer: Peer) -> Message:
        super().__call__(request, peer)
        hello = pb.HelloReply(incarnation=11, process=self.process)
        return Message(pb.Header(hello_reply=hello))


def test_a_recovered_pserver_is_sent_what_it_has_lost_before_the_call_goes_on() -> None:
    pserver = Recovered()
    line = InprocServer(pserver)
    client = make_client(line)
    client.recovers_by(lambda: client.call(Method.REGISTER, timeout_s=WAIT_S))
    client.connect(WAIT_S)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    pserver.process = 2

    push(client)

    calls = [name for name, _ in pserver.seen if name != "HELLO"]
    assert calls == ["REGISTER", "PUSH"]


def test_the_time_in_which_a_pserver_recovers_is_not_that_of_the_call() -> None:
    pserver, clock = Recovered(), ManualClock()
    line = InprocServer(pserver)
    client = Client("ps0:6170", 1, 5, line, pb.Hello(), retry=QUICK, clock=clock)
    client.connect(WAIT_S)

    def send_again() -> None:
        clock.advance(50 * WAIT_S)  # and the connection of the call ends meanwhile
        client.call(Method.REGISTER, timeout_s=WAIT_S)
        line.faults.script(Fault.RESET_BEFORE, Method.PUSH)

    client.recovers_by(send_again)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    pserver.process = 2

    push(client)

    assert [name for name, _ in pserver.seen if name != "HELLO"] == ["REGISTER", "PUSH"]


def test_a_client_that_may_go_on_with_a_recovered_pserver_tries_ten_times_a_second_and_longer() -> (
    None
):
    client = Client("inproc", 0, 1, InprocServer(Recovered()), pb.Hello())
    lost = UnavailableError("it is gone")
    before = client._retry.next_delay(20, 0.0, lost, lambda: 0.0)
    assert client._retry.next_delay(900, 60.0, lost, lambda: 0.0) is None

    client.recovers_by(lambda: None)

    assert before == 0.5
    assert client._retry.next_delay(20, 0.0, lost, lambda: 0.0) == SOON_S == 0.1
    assert client._retry.next_delay(900, 60.0, lost, lambda: 0.0) == SOON_S
    assert client._retry.next_delay(2700, 180.0, lost, lambda: 0.0) is None


def test_a_pserver_that_is_killed_in_its_recovery_is_sent_everything_once_more() -> None:
    pserver = Recovered()
    line = InprocServer(pserver)
    client = make_client(line)
    client.connect(WAIT_S)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    pserver.process = 2

    def send_again() -> None:
        client.call(Method.REGISTER, timeout_s=WAIT_S)
        if pserver.process == 2:
            pserver.process = 3
            line.faults.script(Fault.RESET_BEFORE, Method.SHRINK)
        client.call(Method.SHRINK, timeout_s=WAIT_S)

    client.recovers_by(send_again)
    push(client)

    calls = [name for name, _ in pserver.seen if name != "HELLO"]
    assert calls == ["REGISTER", "SHRINK", "REGISTER", "SHRINK", "PUSH"]


def test_a_recovered_pserver_ends_the_call_of_a_trainer_that_has_kept_no_pushes() -> None:
    pserver = Recovered()
    line = InprocServer(pserver)
    client = make_client(line)
    client.connect(WAIT_S)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    pserver.process = 2

    with pytest.raises(JobError, match="was started again"):
        push(client)


def test_a_call_is_tried_again_while_a_pserver_waits_for_other_trainers() -> None:
    errors = iter([ErrorCode.RECOVERING, ErrorCode.RECOVERING])

    def pserver(request: Message, peer: Peer) -> Message:
        if request.header.method == Method.PULL and (code := next(errors, None)):
            raise UnavailableError("waits for trainer 1.", code=code)
        return Message(pb.Header())

    client = make_client(InprocServer(pserver))

    client.call(Method.PULL, timeout_s=WAIT_S)

    assert next(errors, None) is None


def test_pserver_that_was_started_again_ends_the_call_and_says_what_is_lost() -> None:
    incarnations = iter([11, 12])

    def pserver(request: Message, peer: Peer) -> Message:
        if request.header.method == Method.HELLO:
            return Message(pb.Header(hello_reply=pb.HelloReply(incarnation=next(incarnations))))
        return Message(pb.Header())

    line = InprocServer(pserver)
    client = make_client(line)
    client.connect(WAIT_S)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)

    with pytest.raises(JobError, match=r"ps0:6170 was started again; .* are lost"):
        push(client)


def test_client_in_a_hurry_gives_a_lost_pserver_up_before_its_usual_budget(
    line: InprocServer,
) -> None:
    clock = ManualClock()
    patient = RetryPolicy(initial_s=100.0, max_s=100.0, jitter=0.0, budget_s=1000.0)
    client = Client("ps0:6170", 1, 5, line, pb.Hello(), retry=patient, clock=clock)
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH, times=5)

    client.hurry()

    with pytest.raises(UnavailableError, match="failed after 1 attempt"):
        push(client, timeout_s=5000.0)


def test_duplicated_request_reaches_the_handler_twice_with_one_key(
    client: Client, line: InprocServer, pserver: Recorder
) -> None:
    line.faults.script(Fault.DUPLICATE, Method.PUSH)

    push(client)

    assert [entry for entry in pserver.seen if entry[0] == "PUSH"] == [("PUSH", 1)] * 2


@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_REPLY])
def test_silence_is_a_deadline_and_not_retried(
    client: Client, line: InprocServer, pserver: Recorder, fault: Fault
) -> None:
    line.faults.script(fault, Method.PUSH)

    with pytest.raises(DeadlineError, match="PUSH to pserver ps0:6170 got no reply"):
        push(client)

    pushes = [entry for entry in pserver.seen if entry[0] == "PUSH"]
    assert len(pushes) == (0 if fault is Fault.DROP_REQUEST else 1)


def test_delayed_request_is_carried_out_when_its_gate_opens(
    client: Client, line: InprocServer
) -> None:
    gate = threading.Event()
    line.faults.script(Fault.DELAY, Method.PUSH, gate=gate)

    with pytest.raises(DeadlineError):
        push(client, timeout_s=0.01)
    line.faults.script(Fault.DELAY, Method.PUSH, gate=gate)
    gate.set()

    assert push(client).header.reply


def test_faults_spare_the_calls_before_and_other_methods(
    client: Client, line: InprocServer
) -> None:
    line.faults.script(Fault.DROP_REPLY, Method.PUSH, after=1)

    push(client)
    client.call(Method.PULL, timeout_s=WAIT_S)

    with pytest.raises(DeadlineError):
        push(client)


def test_pserver_that_stays_away_is_told_with_attempts_and_cause(
    client: Client, line: InprocServer
) -> None:
    line.stop()

    with pytest.raises(UnavailableError) as caught:
        push(client, timeout_s=0.05)

    assert "PUSH to pserver ps0:6170 failed after" in caught.value.message
    assert "attempts" in caught.value.message
    assert "Cannot connect to ps0:6170" in caught.value.message


def test_calls_to_one_pserver_that_fail_in_a_row_are_logged_once(
    client: Client, line: InprocServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Trainers call idle pservers four times a second: one that is down must not fill the log."""
    for fails in (True, True, False, True):
        if fails:
            line.faults.script(Fault.RESET_BEFORE, Method.ATTEND)
            line.faults.script(Fault.RESET_BEFORE, Method.ATTEND)
            line.faults.script(Fault.DROP_REQUEST, Method.ATTEND)
        with contextlib.suppress(PsrtError):
            client.call(Method.ATTEND, timeout_s=0.05)

    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if line.startswith("ATTEND to pserver ps0:6170")]) == 2


def test_a_call_that_waits_for_other_trainers_is_logged_now_and_then_with_its_attempts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Other calls to the pserver are answered meanwhile, as those four times a second are."""
    clock, left = ManualClock(), iter(range(240))

    def pserver(request: Message, peer: Peer) -> Message:
        clock.advance(0.05)
        if request.header.method == Method.PULL and next(left, None) is not None:
            waiting.call(Method.ATTEND, timeout_s=WAIT_S)
            raise UnavailableError("waits for trainer 1.", code=ErrorCode.RECOVERING)
        return Message(pb.Header())

    waiting = Client(
        *("ps0:6170", 1, 5, InprocServer(pserver), pb.Hello()),
        retry=RetryPolicy(initial_s=0.0, budget_s=100.0),
        clock=clock,
    )

    waiting.call(Method.PULL, timeout_s=100.0)

    lines = [record.getMessage() for record in caplog.records]
    waits = "PULL to pserver ps0:6170 failed: waits for trainer 1. Trying again"
    first, second, *others = (line for line in lines if line.startswith("PULL"))
    assert first == f"{waits}."
    assert re.fullmatch(rf"{re.escape(waits)} after \d+ attempts\.", second)
    assert 1 <= len(others) <= clock.now() / REPORT_S


def test_retry_that_runs_out_of_time_tells_the_failure_that_made_it_necessary(
    client: Client, line: InprocServer
) -> None:
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    line.faults.script(Fault.DROP_REQUEST, Method.PUSH)

    with pytest.raises(UnavailableError, match=r"after 2 attempts .* connection to ps0:6170"):
        push(client)


def test_closed_client_does_not_retry(client: Client, line: InprocServer) -> None:
    line.faults.script(Fault.RESET_BEFORE, Method.PUSH)
    client.close()

    with pytest.raises(UnavailableError, match="after 1 attempt in"):
        push(client)


def test_connect_waits_for_a_pserver_that_is_not_up_yet_and_says_so(line: InprocServer) -> None:
    said: list[str] = []
    line.faults.script(Fault.RESET_BEFORE, Method.HELLO, times=2)

    make_client(line).connect(WAIT_S, said.append)

    assert said == ["waiting for pserver ps0:6170 (0 of 10 s)"]


def test_connect_gives_up_in_time_and_names_the_endpoint(line: InprocServer) -> None:
    line.stop()

    with pytest.raises(UnavailableError, match="Pserver ps0:6170 was not reached in") as caught:
        make_client(line).connect(0.1, lambda text: None)

    assert "Check that it runs" in caught.value.hint


def test_silent_pserver_counts_as_not_up_yet(line: InprocServer) -> None:
    line.faults.script(Fault.DROP_REPLY, Method.HELLO)

    make_client(line).connect(WAIT_S, lambda text: None)


def test_refused_hello_is_raised_at_once_with_both_sides(
    line: InprocServer, pserver: Recorder
) -> None:
    with pytest.raises(WireError, match=r"HELLO to pserver ps0:6170 .* Job other") as caught:
        make_client(line, job_id="other").connect(WAIT_S)

    assert caught.value.code == ErrorCode.JOB_MISMATCH
    assert len(pserver.seen) == 1


# --- places ---------------------------------------------------------------------------------------


def test_same_host_takes_the_unix_socket_and_another_host_tcp(pserver: Recorder) -> None:
    server = Server(pserver, unix_dir="")
    server.start()
    here = pb.HelloReply(
        data_endpoints=server.data_endpoints, unix_path=server.unix_path, host_id=host_id()
    )
    there, gone = pb.HelloReply(), pb.HelloReply()
    there.CopyFrom(here)
    there.host_id = "another"
    gone.CopyFrom(here)
    gone.unix_path = "/nonexistent/psrt.sock"
    dial = dialer("stream", server.endpoint)

    connections = [dial(reply, WAIT_S) for reply in (here, there, gone)]
    for connection in connections:
        connection.close()
    server.stop(0.0)

    tcp = server.data_endpoints[0]
    assert [connection.where for connection in connections] == [server.unix_path, tcp, tcp]


def test_connections_spread_over_the_data_ports_beginning_at_the_trainer(pserver: Recorder) -> None:
    server = Server(pserver, ports_num=2)
    server.start()
    reply = pb.HelloReply(data_endpoints=server.data_endpoints)
    dial = dialer("stream", server.endpoint, spread=3)

    connections = [dial(reply, WAIT_S) for _ in range(3)]
    for connection in connections:
        connection.close()
    server.stop(0.0)

    first, second = server.data_endpoints
    assert [connection.where for connection in connections] == [second, first, second]


@pytest.mark.parametrize("advertised", ["0.0.0.0:7", "[::]:7", ":7"])
def test_data_port_on_all_interfaces_is_reached_at_the_endpoints_host(advertised: str) -> None:
    assert reachable(advertised, "ps3.cluster:6170") == "ps3.cluster:7"
    assert reachable("10.0.0.3:7", "ps3.cluster:6170") == "10.0.0.3:7"


@pytest.mark.parametrize("host", ["ps3.cluster", "10.0.0.3", "::1"])
def test_endpoints_are_split_into_what_they_were_joined_from(host: str) -> None:
    assert split_endpoint(join_endpoint(host, 6170)) == (host, 6170)


def test_text_that_is_no_endpoint_is_a_config_error_that_says_how_to_write_one() -> None:
    with pytest.raises(ConfigError, match="'ps3' is not an endpoint") as caught:
        split_endpoint("ps3")

    assert caught.value.hint == "Write it as host:port, with a port of at most 65535."


def test_call_is_described_by_method_round_and_tables() -> None:
    parts = [pb.Part(table=name) for name in ("a", "b", "a", "c", "d")]
    header = pb.Header(method=Method.EXCHANGE, round=7, parts=parts)

    assert describe(header, "ps0:1") == "EXCHANGE of round 7 (a, b, c and 1 more) to pserver ps0:1"
    assert describe(pb.Header(method=Method.STATUS), "ps0:1") == "STATUS to pserver ps0:1"


def test_tensors_may_be_any_sequence(client: Client) -> None:
    reply = client.call(Method.PULL, tensors=(np.ones(1),), timeout_s=WAIT_S)

    assert reply.tensors == []
