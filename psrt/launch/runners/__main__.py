"""`python -m psrt.launch.runners [LAUNCHER]`: a runner, started by an engine of `psrt launch`.

With an endpoint it dials that launcher, else it talks over its standard streams.
"""

from __future__ import annotations

import sys

from psrt.config.load import environment
from psrt.config.roles import mpi_rank
from psrt.core.clock import MonotonicClock
from psrt.launch.runners.runner import Runner
from psrt.launch.runners.uplink import KEY_VARIABLE, dialed, own_streams


def main(arguments: list[str]) -> None:
    environ = environment()
    key = bytes.fromhex(environ.pop(KEY_VARIABLE, ""))
    uplink = dialed(arguments[0], key, mpi_rank(environ)[0]) if arguments else own_streams()
    Runner(uplink, environ, MonotonicClock()).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
