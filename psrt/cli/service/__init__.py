"""psrt as a service of systemd. In reading order:

running     a running service: notices to its manager, and SIGHUP
units       files of systemd: templates of services, their target, user and directories, and
            examples of settings
rendering   templates as files of one host: paths, and services of a user
installing  files written and removed, and the commands of systemd that follow
commands    `psrt service install | uninstall | status`
"""

from psrt.cli.service.commands import service
from psrt.cli.service.running import reporter_of

__all__ = ["reporter_of", "service"]
