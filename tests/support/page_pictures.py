"""Pictures of the page of a job for the documentation: `python -m tests.support.page_pictures`.

Trains the job of `psrt init --example ctr_dnn` on 2 pservers and 4 trainers, stops a trainer, and
writes docs/pictures/page-*.png. It takes two minutes, Playwright and Chromium.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psrt.core.errors import PsrtError
from psrt.core.specs import Sync, to_json
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.status import Gatherer
from tests.support.browser import chromium
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, psrt
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S
from tests.support.watched_job import WatchedJob, watched_job

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SCREENS = {
    "light": {"viewport": {"width": 1160, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1160, "height": 800}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 360, "height": 780},
        "device_scale_factor": 2,
        "color_scheme": "light",
    },
}
RATES_S, WAIT_S = 30, 12


def main() -> None:
    with tempfile.TemporaryDirectory() as name, job_in(Path(name)) as job, chromium() as browser:
        opened = {screen: browser.new_page(**facts) for screen, facts in SCREENS.items()}
        for page in opened.values():
            page.goto(job.url)
        refuse_a_stranger(job)
        pause(opened, RATES_S)
        with job.stopped(2):
            pause(opened, WAIT_S)
            for screen, page in opened.items():
                page.wait_for_selector("#verdict.wait", timeout=1000 * DEADLINE_S)
                path = PICTURES / f"page-{screen}.png"
                page.screenshot(path=path, full_page=screen != "phone")
                print(f"wrote {path}")


def pause(opened: dict[str, Any], seconds: float) -> None:
    """Let the pages draw rates."""
    next(iter(opened.values())).wait_for_timeout(1000 * seconds)


@contextlib.contextmanager
def job_in(folder: Path) -> Iterator[WatchedJob]:
    """A job that trains for a long time, makes cuts, and has made the first of them."""
    job = folder / "job"
    run(folder, "init", str(job), "--example", "ctr_dnn")
    shape = "--rows", "60000", "--files", "4", "--ids-per-slot", "5000", "--skew", "1.6"
    run(folder, "data", "synth-ctr", "--out", str(job / "data"), *shape)
    flags = "--epochs", "1000", "--checkpoint-dir", str(folder / "cuts")
    of_pservers = "--checkpoint-every-s 15 --wait-timeout-s 600"
    path = job / "job.toml"
    with watched_job(folder, path, *flags, trainers=4, of_pservers=of_pservers) as running:
        with contextlib.closing(Gatherer(running.endpoints, CALL_TIMEOUT_S)) as gatherer:

            def has_a_cut() -> bool:
                cuts = [each.cuts for each in gatherer.gather().reached]
                return all(each is not None and each.newest for each in cuts)

            eventually(has_a_cut, "the first cut", DEADLINE_S)
        yield running


def run(folder: Path, *arguments: str) -> None:
    with psrt(folder / "command.log", *arguments) as command:
        assert command.exit_code() == 0, command.output


def refuse_a_stranger(job: WatchedJob) -> None:
    """Let a trainer of another job be refused, so that there is an error to show."""
    mode = to_json(Sync())
    hello = pb.Hello(job_id="other_job", plan_hash="other", trainers=4, mode=mode)
    for endpoint in job.endpoints:
        client = Client(endpoint, 1, 99, "grpc", hello, retry=AT_ONCE)
        with contextlib.closing(client), contextlib.suppress(PsrtError):
            client.call(Method.HELLO, header=pb.Header(hello=hello), timeout_s=CALL_TIMEOUT_S)


if __name__ == "__main__":
    main()
