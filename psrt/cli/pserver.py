"""`psrt pserver`: settings in, a daemon that runs until its trainers completed or a signal."""

from __future__ import annotations

import logging
from typing import Any

import click

from psrt.cli.options import options_of
from psrt.config import roles
from psrt.config.load import environment, load
from psrt.config.schema import PserverConfig
from psrt.core import log

_EPILOG = """\b
Examples:
  psrt pserver                                  on 127.0.0.1:6170
  psrt pserver --host 0.0.0.0 --port 6171       for trainers on other hosts
  psrt pserver --port 0 --ready-file ready.json any free port, told in ready.json
  POD_IP=10.0.0.1 PADDLE_PORT=6170 psrt pserver as launchers of PaddlePaddle start it
"""


@click.command(epilog=_EPILOG)
@click.option("--config", metavar="FILE", default="", help="TOML file; its [pserver] is read.")
@options_of(PserverConfig)
def pserver(config: str, **flags: Any) -> int:
    """Run one pserver.

    It starts empty: trainers tell it which tables to hold. It ends when all of them completed
    (unless --stay), or on SIGTERM or SIGINT after the requests it has accepted.
    """
    settings = load(PserverConfig, flags=flags, file=config).config
    log.configure("pserver", settings.log_level)
    if said := roles.contradiction(environment(), roles.PSERVER):
        logging.getLogger("psrt.cli").warning("%s; the command decides.", said)
    from psrt.pserver.serving import daemon

    return daemon.run(settings)
