"""Distributed training, v2: files are dealt to trainers by the number in their names.

`/train_data/` is a directory of the test; `os.listdir` is replaced to read it.
"""

# --- left out by the document
from unittest import mock

TRAINER_COUNT, TRAINER_ID = 2, 1
names = [f"train.txt-{number:05d}" for number in range(5)]
listed = mock.patch("os.listdir", {"/train_data/": names}.__getitem__)
listed.start()
# --- the document
import os
train_list = []
flist = os.listdir("/train_data/")
for f in flist:
  suffix = int(f.split("-")[1])
  if suffix % TRAINER_COUNT == TRAINER_ID:
# --- left out by the document
    train_list.append(f)
listed.stop()
