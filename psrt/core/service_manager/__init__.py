"""Notices to the service manager (systemd) that started this process, and its requests.

notices        the notices of a process: decisions of (event, now) → lines
notify_socket  the socket that lines are sent to
reporter       the thread that sends them, and SIGHUP
"""

from psrt.core.service_manager.notices import ServiceNotices
from psrt.core.service_manager.notify_socket import NotifySocket
from psrt.core.service_manager.reporter import ServiceReporter, reporter_for

__all__ = ["NotifySocket", "ServiceNotices", "ServiceReporter", "reporter_for"]
