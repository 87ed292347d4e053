"""gRPC, imported so that it speaks TLS 1.3 alone, as ports and as a caller.

It has no setting for the least version, only a variable for its cipher suites of TLS 1.2, which it
reads once, when it is imported. So all modules of psrt import gRPC from here.
"""

from __future__ import annotations

import sys

from psrt.config.load import variable
from psrt.core.errors import ConfigError
from psrt.rpc.tls import CIPHERS_VARIABLE, NO_OLDER_TLS

_is_first = "grpc" not in sys.modules
with variable(CIPHERS_VARIABLE, NO_OLDER_TLS):
    import grpc

__all__ = ["check_newest_only", "grpc"]


def check_newest_only() -> None:
    """Raise `ConfigError` if a port of this process would accept older versions of TLS."""
    if not _is_first:
        raise ConfigError(
            "An encrypted port was not opened: gRPC was imported before psrt, so it would accept "
            "TLS 1.2.",
            hint="Import psrt.rpc, or psrt.fluid, before grpc.",
        )
