"""The paths of the page of a job.

The headers allow the page its own files and nothing else, so that nothing it shows, such as the
name of a table, can load or run anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import resources

from psrt.observe.http_server import HttpPage, HttpStream, MakePage
from psrt.status.facts import ClusterFacts
from psrt.status.page.feed import Feed

_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ("Cache-Control", "no-store"),
)
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


class JobPage:
    """The page of the job that `gather` asks about; `close` ends its streams."""

    def __init__(self, gather: Callable[[], ClusterFacts]) -> None:
        self._feed = Feed(gather)

    def pages(self) -> dict[str, MakePage]:
        """Path → the function that makes its answer."""
        files = {path: partial(_file, *facts) for path, facts in _FILES.items()}
        return {**files, "/view.json": self._view, "/events": self._events}

    def close(self) -> None:
        self._feed.close()

    def _view(self, accept: str) -> HttpPage:
        return HttpPage(self._feed.view(), "application/json", headers=_HEADERS)

    def _events(self, accept: str) -> HttpStream:
        return HttpStream(self._feed.events, headers=_HEADERS)


def _file(name: str, content_type: str, accept: str) -> HttpPage:
    body = resources.files(__package__).joinpath("static", name).read_bytes()
    return HttpPage(body, content_type, headers=_HEADERS)
