"""The page of a real job in a browser: it names who is waited for, by eye, keyboard and phone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from psrt.core.specs import Sync, to_json
from psrt.rpc import pb
from psrt.rpc.client import Client
from tests.support.browser import chromium
from tests.support.processes import DEADLINE_S
from tests.support.pserver import CALL_TIMEOUT_S, TABLE, daemon, register
from tests.support.small_job import lines, write_files
from tests.support.watched_job import WatchedJob, watched_job

SOON_MS = DEADLINE_S * 1000
LEAST_CONTRAST = 4.5
REACHED = "document.activeElement.ariaLabel || document.activeElement.textContent"
OUTLINE = "getComputedStyle(document.activeElement).outlineStyle + document.activeElement.hash"
CONTRASTS = (Path(__file__).parent / "contrasts.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def job(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedJob]:
    folder = tmp_path_factory.mktemp("job")
    data = [lines(3200, seed=trainer) for trainer in (0, 1)]
    written = write_files(folder / "job", data, epochs=100_000)
    with watched_job(folder, written) as running:
        yield running


@contextlib.contextmanager
def opened(browser: Any, job: WatchedJob, **options: Any) -> Iterator[Any]:
    """The page with its first view; fails on errors of its script."""
    page = browser.new_page(**options)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: line.type == "error" and problems.append(line.text))
    try:
        page.goto(job.url)
        page.wait_for_function("document.querySelector('#trainer-table tbody')", timeout=SOON_MS)
        yield page
    finally:
        page.close()
    assert problems == []


def await_waits(page: Any) -> None:
    page.wait_for_selector("#verdict.wait", timeout=SOON_MS)


def test_a_stopped_trainer_is_named_with_those_that_wait_for_it(
    browser: Any, job: WatchedJob
) -> None:
    with opened(browser, job) as page:
        hosts = set[str]()
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.wait_for_selector("#verdict.ok", timeout=SOON_MS)
        with job.stopped(1):
            await_waits(page)
            said = page.inner_text("#verdict .said")
            advice = page.inner_text("#verdict .detail")
            picture = page.get_attribute(".topology", "aria-label")
            listed = page.inner_text("#wait-list li")
            boxes = page.locator(".topology .culprit").all_text_contents()
        page.wait_for_selector("#verdict.ok", timeout=SOON_MS)
        page.reload()
        page.wait_for_selector("#trainer-table tbody", timeout=SOON_MS)

    assert said.startswith("Trainer 0 in round")
    assert said.endswith("waits for trainer 1.")
    assert advice.startswith("For ")
    assert "See the log of trainer 1" in advice
    assert "trainer 0 waits for trainer 1" in picture
    assert "waits for trainer 1" in listed
    assert all(endpoint in listed for endpoint in job.endpoints)
    assert [text.startswith("trainer 1") for text in boxes] == [True]
    assert hosts == {urlsplit(job.url).netloc}


def test_names_that_look_like_html_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    name = '<img src="x" onerror="document.title=1">'
    with daemon(tmp_path, "--metrics", "127.0.0.1:0") as pserver:
        spec = replace(TABLE, name=name, parameter=name)
        hello = pb.Hello(job_id=name, plan_hash="p", trainers=1, mode=to_json(Sync("wait")))
        with contextlib.closing(Client(pserver.endpoint, 0, 7, "stream", hello)) as client:
            client.connect(CALL_TIMEOUT_S)
            register(client, spec)
            job = WatchedJob(pserver, [pserver.endpoint], f"http://{pserver.facts['metrics']}/")
            with opened(browser, job) as page:
                page.wait_for_selector("#memory-map .row", timeout=SOON_MS)
                shown = page.inner_text("#job"), page.inner_text("#memory-map .row .label span")
                images = page.locator("main img").count()

    assert shown == (name, name)
    assert images == 0


def test_all_that_acts_is_reached_by_the_keyboard(browser: Any, job: WatchedJob) -> None:
    with opened(browser, job) as page:
        reached = []
        for _ in range(12):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(REACHED))
            if reached[-1] == "Errors":
                outlined = page.evaluate(OUTLINE)
        page.focus("#pause")
        page.keyboard.press("Space")
        paused = page.get_attribute("#pause", "aria-pressed"), page.inner_text("#state")
        page.keyboard.press("Enter")
        page.wait_for_selector("#state.on", timeout=SOON_MS)
        page.focus(".skip")
        page.keyboard.press("Enter")
        place = page.evaluate("location.hash")

    sections = ["Waits", "Trainers", "Pservers", "Tables", "Hot ids", "Cuts", "Errors"]
    regions = ["Table of trainers", "Table of pservers", "Ids pulled most"]  # that may scroll
    assert reached == ["Skip to the waits", "Pause", *sections, *regions]
    assert outlined == "solid#errors"
    assert paused == ("true", "paused")
    assert place == "#waits"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_texts_contrast_with_what_is_behind_them(
    browser: Any, job: WatchedJob, scheme: str
) -> None:
    with opened(browser, job, color_scheme=scheme) as page, job.stopped(1):
        await_waits(page)
        found = page.evaluate(CONTRASTS)

    poor = [each for each in found if each["contrast"] < LEAST_CONTRAST]
    assert len(found) > 40
    assert poor == []


def test_a_phone_shows_everything_without_scrolling_aside(browser: Any, job: WatchedJob) -> None:
    screen = {"width": 360, "height": 740}
    with opened(browser, job, viewport=screen, has_touch=True) as page, job.stopped(1):
        await_waits(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        beyond = page.evaluate(
            "[...document.querySelectorAll('main *')].filter((element) => "
            "element.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML)"
        )
        titles = page.locator("h2").all_inner_texts()

    assert width <= 360
    assert [text for text in beyond if not text.startswith(("<thead", "<th ", "<tr>"))] == []
    assert "Who waits for whom" in titles
