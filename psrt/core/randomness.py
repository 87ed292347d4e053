"""Random numbers of psrt itself: identities of processes and pauses before attempts.

They come from the operating system, not from the state of the module `random`. So a program that
seeds `random` draws the same numbers with psrt and without it, whatever its threads wait for, and
processes that were forked or seeded alike have different identities.
"""

from __future__ import annotations

from random import SystemRandom

system_random = SystemRandom()
