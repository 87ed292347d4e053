"""A line chart as SVG text, without dependencies; equal numbers give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 58, 52
COLOURS = ("#1f6feb", "#d1495b", "#2a9d5c", "#8250df")


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with `ticks`; a logarithmic one needs numbers above 0."""

    label: str
    ticks: tuple[float, ...]
    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """The position of `value` between the ends, 0 to 1."""
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Line:
    """Points (x, y), and optionally the least and the largest y of several runs at each x."""

    label: str
    points: Sequence[tuple[float, float]]
    spreads: Sequence[tuple[float, float]] = ()


def linear(label: str, highest: float) -> Axis:
    """An axis from 0 to a round number at or above `highest`, in four to eight steps."""
    rough = max(highest, 1e-9) / 5
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 2.5, 5, 10) if unit * n >= rough)
    count = math.ceil(round(highest / step, 9)) or 1
    return Axis(label, tuple(step * i for i in range(count + 1)), 0.0, step * count)


def logarithmic(label: str, values: Sequence[float], at_values: bool = False) -> Axis:
    """A logarithmic axis with a tick at each value, or at powers of ten around them."""
    low, high = min(values), max(values)
    if at_values:
        ticks = tuple(sorted(set(values)))
        return Axis(label, ticks, low, high if high > low else low * 2, True)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    ticks = tuple(10.0**power for power in range(first, last + 1))
    return Axis(label, ticks, ticks[0], ticks[-1], True)


def chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """The text of the SVG file."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 24, title, "start", size=15),
        *_grid(x, y),
    ]
    for number, line in enumerate(lines):
        parts += _drawn(line, x, y, COLOURS[number % len(COLOURS)])
    if len(lines) > 1:
        parts += _legend(lines)
    return "\n".join([*parts, "</svg>", ""])


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def _grid(x: Axis, y: Axis) -> list[str]:
    parts = []
    for tick in y.ticks:
        at = _y(y, tick)
        parts.append(_stroke(LEFT, at, WIDTH - RIGHT, at, "#d8dee4"))
        parts.append(_text(LEFT - 8, at + 4, short(tick), "end"))
    for tick in x.ticks:
        at = _x(x, tick)
        parts.append(_stroke(at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 5, "#57606a"))
        parts.append(_text(at, HEIGHT - BOTTOM + 20, short(tick), "middle"))
    parts.append(_stroke(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "#57606a"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x.label, "middle"))
    parts.append(_text(LEFT, TOP - 6, y.label, "start"))
    return parts


def _drawn(line: Line, x: Axis, y: Axis, colour: str) -> list[str]:
    places = [(_x(x, at), _y(y, value)) for at, value in line.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    if len(places) <= 12:
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
    for (at, _), (least, most) in zip(places, line.spreads, strict=False):
        parts.append(_stroke(at, _y(y, least), at, _y(y, most), colour))
    return parts


def _legend(lines: Sequence[Line]) -> list[str]:
    parts = []
    for number, line in enumerate(lines):
        at = TOP + 16 + 18 * number
        colour = COLOURS[number % len(COLOURS)]
        parts.append(_stroke(LEFT + 14, at - 4, LEFT + 38, at - 4, colour))
        parts.append(_text(LEFT + 44, at, line.label, "start"))
    return parts


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 13) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="#24292f">{escape(text)}</text>'


def short(value: float) -> str:
    """Three digits and a unit: 50,000,000 is 50M, 13,312 is 13.3k, 0.5 is 0.5."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"
