"""A running service: notices to its manager, and SIGHUP, which reads its configuration again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from psrt.config.load import environment
from psrt.config.reload import reloaded
from psrt.core import log
from psrt.core.service_manager import ServiceReporter, reporter_for

events = logging.getLogger("psrt.service")


def reporter_of(section: str, role: str, running: Any, read: Callable[[], Any]) -> ServiceReporter:
    """The reporter of a process with the settings `running`, which `read` reads again."""
    return reporter_for(environment(), ConfigurationReload(section, role, running, read))


class ConfigurationReload:
    """Reads settings again; a call raises `ConfigError`, and changes nothing then."""

    def __init__(self, section: str, role: str, running: Any, read: Callable[[], Any]) -> None:
        self._section, self._role, self._running, self._read = section, role, running, read

    def __call__(self) -> None:
        found = reloaded(self._section, self._running, self._read())
        self._running = found.config
        log.configure(self._role, self._running.log_level, form=self._running.log_format)
        if self._running.token_file:
            from psrt.rpc.access import assume_token_of

            assume_token_of(self._running.token_file)
        events.info("the configuration was read again: %d changes", len(found.changed))
        for line in found.changed:
            events.info("%s", line)
        for line in found.kept:
            events.warning("%s", line)
