"""Pictures of figures: well-formed, with every point and label where it belongs."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.pictures import drawing
from benchmarks.pictures.svg_chart import Line, chart, linear, logarithmic, short

SVG = "{http://www.w3.org/2000/svg}"
CURVE = [float(100 + value) for value in range(99)]
MEASURED = {
    "rows_by_size": {
        "axes": {
            "batch": {"100": {"rows_per_s": 60_000}, "1000": {"rows_per_s": 400_000}},
            "trainers": {"1": {"rows_per_s": {"min": 1e6, "median": 2e6, "max": 3e6}}},
        }
    },
    "latency": {"load_trainers": 4, "alone": {"curve": CURVE}, "loaded": {"curve": CURVE}},
}


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_axis_and_the_latency_get_a_picture(tmp_path: Path) -> None:
    paths = drawing.draw(MEASURED, tmp_path / "pictures")

    names = [path.name for path in paths]
    assert names == ["rows_by_batch.svg", "rows_by_trainers.svg", "latency.svg"]
    for path in paths:
        ElementTree.parse(path)


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    assert drawing.draw({"limits": {}}, tmp_path) == []


def test_a_point_lies_at_its_share_of_both_axes() -> None:
    x, y = logarithmic("x", [1, 100], at_values=True), linear("y", 4.0)

    root = ElementTree.fromstring(chart("t", x, y, [Line("", [(1, 0), (10, 4), (100, 2)])]))

    places = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter(f"{SVG}circle")]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 == pytest.approx((x0 + x2) / 2)
    assert y2 == pytest.approx((y0 + y1) / 2)
    assert y1 < y0


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (4.0, [0, 1, 2, 3, 4]),
        (0.9, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (11.0, [0, 2.5, 5, 7.5, 10, 12.5]),
    ],
)
def test_linear_axes_reach_a_round_number(highest: float, ticks: list[float]) -> None:
    assert linear("", highest).ticks == pytest.approx(ticks)


def test_logarithmic_axes_have_powers_of_ten_around_the_values() -> None:
    assert logarithmic("", [150, 7_000]).ticks == (100, 1_000, 10_000)
    assert logarithmic("", [5, 5]).ticks == (1, 10)


def test_labels_are_escaped_and_lines_are_named_if_there_are_two() -> None:
    x, y = linear("<x>", 1), linear("y", 1)
    one, two = Line("first", [(0, 0), (1, 1)]), Line("a & b", [(0, 1), (1, 0)])

    assert "first" not in texts(chart("t", x, y, [one]))
    assert {"first", "a & b", "<x>"} <= set(texts(chart("t", x, y, [one, two])))


def test_numbers_are_short() -> None:
    assert [short(n) for n in (50e6, 13_312, 100, 0.5)] == ["50M", "13.3k", "100", "0.5"]
