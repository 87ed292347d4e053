"""data: files in reading order.

options   What `psrt data` commands share: options, and what those that write files say at the
          end
check     `psrt data split` and `check`: before a job reads its files
public    `psrt data avazu`, `imikolov`, `movielens` and `synth-text`: rows that Python makes
stat      `psrt data stat`: what is in data files, slot by slot
commands  `psrt data`: make the files a job trains on, and say what to do with them
"""

from __future__ import annotations

__all__ = []
