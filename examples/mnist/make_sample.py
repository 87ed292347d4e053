"""Writes 1,000 images in the files of MNIST, to try the commands with: `python make_sample.py DIR`.

Images and labels are DIR/images-idx3-ubyte and DIR/labels-idx1-ubyte. Digit d is a bright disc at
one of ten places on a circle, or a little beside it, under noise.
"""

from __future__ import annotations

import math
import random
import struct
import sys
from pathlib import Path

IMAGES, SIDE, RADIUS = 1000, 28, 9.0


def image(digit: int, draw: random.Random) -> bytes:
    angle = 2 * math.pi * digit / 10
    x, y = (SIDE / 2 + RADIUS * turn(angle) + draw.gauss(0, 0.7) for turn in (math.cos, math.sin))
    brightness = (
        255 * math.exp(-((column - x) ** 2 + (row - y) ** 2) / 6) + draw.uniform(0, 60)
        for row in range(SIDE)
        for column in range(SIDE)
    )
    return bytes(min(255, int(value)) for value in brightness)


def main(directory: Path) -> None:
    draw = random.Random(1)
    digits = [draw.randrange(10) for _ in range(IMAGES)]
    directory.mkdir(parents=True, exist_ok=True)
    head = b"\0\0\x08\x03" + struct.pack(">III", IMAGES, SIDE, SIDE)
    pixels = b"".join(image(digit, draw) for digit in digits)
    (directory / "images-idx3-ubyte").write_bytes(head + pixels)
    head = b"\0\0\x08\x01" + struct.pack(">I", IMAGES)
    (directory / "labels-idx1-ubyte").write_bytes(head + bytes(digits))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
