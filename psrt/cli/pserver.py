"""`psrt pserver`: a daemon that runs until its trainers have completed, or until a signal."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from psrt.cli.options import options_of
from psrt.cli.service import reporter_of
from psrt.config import roles
from psrt.config.load import environment, load
from psrt.config.sections import PserverConfig
from psrt.core import failpoints, log
from psrt.core.process import write_stacks_on_request
from psrt.observe.traces import traces

_EPILOG = """\b
Examples:
  psrt pserver                                  on 127.0.0.1:6170
  psrt pserver --host 0.0.0.0 --tls-cert a.pem --tls-key a.key --tls-ca ca.pem
                                                for trainers on other hosts
  psrt pserver --port 0 --ready-file ready.json any free port, written to ready.json
  POD_IP=10.0.0.1 PADDLE_PORT=6170 psrt pserver as launchers of PaddlePaddle start it
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    metavar="FILE",
    default="",
    help="TOML file with a section [pserver], in place of those of the host (/etc/psrt).",
)
@click.option(
    "--standby",
    is_flag=True,
    help="Load all but tables, then wait for a line on standard input that names the killed "
    "pserver to go on for; psrt launch does so.",
)
@options_of(PserverConfig)
def pserver(config: str, standby: bool, **flags: Any) -> int:
    """Run one pserver.

    A pserver starts empty: trainers register its tables. It ends when all trainers have completed
    (unless --stay), or on SIGTERM or SIGINT once accepted requests are done.
    """

    def read() -> PserverConfig:
        return load(PserverConfig, flags=flags, file=config, with_host=not config).config

    settings = read()
    write_stacks_on_request()
    log.configure("pserver", settings.log_level, form=settings.log_format)
    if standby:
        return _stand_by(settings)
    failpoints.arm(environment().get(failpoints.VARIABLE, ""))
    if warning := roles.contradiction(environment(), roles.PSERVER):
        logging.getLogger("psrt.cli").warning("%s; the command decides.", warning)
    from psrt.pserver.process import daemon

    traced = traces("pserver", settings.traces, environment())
    with traced, reporter_of("pserver", "pserver", settings, read) as reporter:
        return daemon.run(settings, reporter)


def _stand_by(settings: PserverConfig) -> int:
    """Wait to become another pserver, and be it; returns the exit code."""
    from psrt.pserver.process import wait_to_take_over

    arguments = wait_to_take_over(settings, sys.stdin)
    if arguments is None:
        return 0
    return int(pserver.main(list(arguments), standalone_mode=False) or 0)
