"""psrt as a service of systemd. In reading order:

running   a running service: notices to its manager, and SIGHUP
"""

from psrt.cli.service.running import reporter_of

__all__ = ["reporter_of"]
