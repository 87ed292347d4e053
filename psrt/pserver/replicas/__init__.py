"""Backups of parts: `durability = "replica"`.

In reading order:

    copy_state   a part that is copied, or served for its home: decisions
    ticks        local cuts as they travel to a backup
    kept_copy    the tables of a part, as of its last tick
    replicator   the stream of ticks to a backup
    once_later   one call, some time after it was asked for
    paired_part  a part that this process keeps a copy of, or serves
    home_part    the part that this process is the home of
    process_end  whether a process has anything left to serve or to back up: decisions
    part_host    the parts of one process, and calls by part
"""

from psrt.pserver.replicas.part_host import PartHost

__all__ = ["PartHost"]
