"""A trainer that joins its resumed job late, after a pserver of it was killed and has recovered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from psrt.core.specs import Async, CommunicationMode, Geo
from psrt.pserver.checkpoints import find_cut, served_job
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.carriers import eventually
from tests.unit.pserver.test_resizes import NAME, WAIT_S, Job, TakingPart, job_in


def make_cut(job: Job, number: int, clients: Sequence[Client]) -> None:
    """Take part in the cut that a durable job asks for at its beginning.

    Its end is that of the pserver, which writes once more after the manifest: its served file. One
    that is stopped before would write that over the file of the process after it.
    """
    cuts = job.service._cuts
    eventually(lambda: cuts.proposed == number, "a proposal", WAIT_S)
    calls = [TakingPart(each, number, 0, f"at {each.trainer}") for each in clients]
    for call in calls:
        call.join(WAIT_S)
        assert call.error is None
    for each in clients if isinstance(job.mode, Geo) else ():
        sent = pb.StatePage(cut=number, meta=f'{{"of": {each.trainer}}}', last=True)
        each.call(Method.KEEP_STATE, header=pb.Header(state_page=sent), timeout_s=WAIT_S)
    eventually(lambda: cuts.newest_complete == number, "a complete cut", WAIT_S)


def state_of(client: Client) -> str:
    """The state that a trainer goes on from, as text; empty for none."""
    header = pb.Header(state_page=pb.StatePage(trainer=client.trainer))
    reply = client.call(Method.READ_STATE, header=header, timeout_s=WAIT_S)
    return reply.header.state_page.meta


def serve(job: Job) -> None:
    job.durability = "cut"
    job.service.serves_as(NAME)


def recover(job: Job) -> None:
    """Kill the pserver, and let another process go on; the first one writes nothing any more.

    It has all flags of the first one: `--resume auto` then names the newest cut.
    """
    found = served_job.take_over(job.directory, NAME)
    assert found is not None
    job.serve(found, find_cut(job.directory, "latest"))
    job.service.serves_as(NAME)


def resend(client: Client, complete: int) -> None:
    """Tell a recovered pserver that nothing is to be sent again behind a complete cut."""
    cut = pb.Cut(number=complete, complete=complete)
    client.call(Method.RESENT, header=pb.Header(cut=cut), timeout_s=WAIT_S)


@pytest.mark.parametrize("mode", [Async(), Geo()])
def test_it_begins_where_the_resumed_cut_has_left_it(
    tmp_path: Path, mode: CommunicationMode
) -> None:
    with job_in(tmp_path, mode) as first:
        serve(first)
        make_cut(first, 1, [first.join(trainer, 2) for trainer in range(2)])
    with job_in(tmp_path, mode, find_cut(first.directory, "1")) as job:
        serve(job)
        make_cut(job, 2, [job.join(1, 2)])
        for _ in range(2):
            recover(job)

            late = job.join(0, 2)

            assert (job.beginning.number, job.beginning.position) == (1, "at 0")
            assert state_of(late) == ('{"of": 0}' if isinstance(mode, Geo) else "")


def test_a_state_is_handed_out_once_though_its_pserver_has_recovered(tmp_path: Path) -> None:
    with job_in(tmp_path, Geo()) as first:
        serve(first)
        make_cut(first, 1, [first.join(0, 1)])
    with job_in(tmp_path, Geo(), find_cut(first.directory, "1")) as job:
        serve(job)
        client = job.join(0, 1)
        assert state_of(client) == '{"of": 0}'
        make_cut(job, 2, [client])
        recover(job)
        assert state_of(job.join(0, 1)) == '{"of": 0}', "the same process, which asks again"
        recover(job)
        resend(job.join(0, 1), complete=2)

        assert state_of(job.join(0, 1, incarnation=99)) == ""


def test_a_job_that_began_anew_has_no_state_to_go_on_from_though_a_pserver_recovered(
    tmp_path: Path,
) -> None:
    with job_in(tmp_path, Geo()) as job:
        serve(job)
        make_cut(job, 1, [job.join(0, 1)])
        recover(job)
        resend(job.join(0, 1), complete=1)

        newcomer = job.join(0, 1, incarnation=99)

        assert (job.beginning.number, state_of(newcomer)) == (0, "")
