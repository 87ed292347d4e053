"""gRPC, imported with the three settings that it reads once, when it is imported.

All modules of psrt import it from here. It speaks TLS 1.3 alone, as a port and as a caller: it has
no setting for the least version, only a variable for its cipher suites of TLS 1.2. It leaves forks
alone: its handlers start threads in the child, which abort when that child closes the descriptors
under them on its way to another program, as those of `psrt launch` do. And it looks up names as all
other sockets of psrt do, by the system: its own resolver asks the servers of /etc/resolv.conf, also
for names in /etc/hosts, and waits too long for one that does not answer, as those of a pod may.
"""

from __future__ import annotations

import sys

from psrt.config.load import variable
from psrt.core.errors import ConfigError
from psrt.rpc.tls import CIPHERS_VARIABLE, NO_OLDER_TLS

_is_first = "grpc" not in sys.modules
with (
    variable(CIPHERS_VARIABLE, NO_OLDER_TLS),
    variable("GRPC_ENABLE_FORK_SUPPORT", "0"),
    variable("GRPC_DNS_RESOLVER", "native"),
):
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
