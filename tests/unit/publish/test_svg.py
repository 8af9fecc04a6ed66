from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from discreet.publish import svg
from discreet.publish.svg import Axis, Row, Series, Words

HOSTILE = "<script>alert('x')</script> & \"quotes\" \x00\x1f\ud800\u202e ]]> 年齢"
WORDS = Words(HOSTILE, HOSTILE, HOSTILE, HOSTILE)

PICTURES = {
    "histogram": svg.histogram([0, 1, 2], [3, 5], WORDS, names=(HOSTILE, HOSTILE), curve=[(0, 1), (2, 4)]),
    "marked": svg.histogram([-1, 0, 1], [3, 5], WORDS, marks=[(-0.5, HOSTILE), (0.5, "bound")]),
    "logarithmic": svg.histogram([0, 1, 2], [0, 5e6], WORDS, curve=[(0, 0.0), (2, 1e-9)], log=True),
    "empty histogram": svg.histogram([0, 1], [0], WORDS),
    "bars": svg.bars([3, -1], WORDS, labels=[HOSTILE, "b"], dots=[2, 1], whiskers=[(1, 2, 3), (-3, -2, 0)]),
    "one bar": svg.bars([1], WORDS, labels=["only"]),
    "flat bars": svg.bars([0, 0, 0], WORDS, labels=["a", "b", "c"], dots=[0, 0, 0]),
    "many bars": svg.bars([1] * 200, WORDS, labels=["first", "last"], dots=[1] * 200, whiskers=[(0, 1, 2)] * 200),
    "slanted": svg.bars([1] * 30, WORDS, labels=[f"a rather long label {n}" for n in range(30)]),
    "horizontal": svg.horizontal([Row(HOSTILE, 1, HOSTILE), Row("nothing", 0, "0 %", 5)], WORDS),
    "lines": svg.lines([Series(HOSTILE, [(1, 2), (2, 3)], [(1, 3), (2, 4)]), Series("b", [(1, 1)])], WORDS),
    "log lines": svg.lines([Series("a", [(0, 1), (1, 0), (10, 5)], [(0, 1)] * 3)], WORDS, log_x=True, log_y=True),
    "gaps": svg.lines([Series("a", [(0, math.nan), (1, math.inf), (2, 1)], [(math.nan, 1)] * 3)], WORDS),
    "no lines": svg.lines([Series("a", [])], WORDS, log_x=True),
    "many lines": svg.lines([Series(f"series {n}", [(0, n), (1, n)]) for n in range(20)], WORDS),
    "heat": svg.heat([[1e-4, 0.2, math.nan], [0, 1, 3]], WORDS, across=["4", HOSTILE, "64"], down=["1", HOSTILE]),
    "empty heat": svg.heat([[math.nan]], WORDS, across=["4"], down=["1"]),
    "legend": svg.legend([(kind, HOSTILE, 1) for kind in ("bar", "line", "dot", "whisker")]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_chart_is_xml_with_a_title_and_nothing_that_runs(name: str) -> None:
    root = ET.fromstring(PICTURES[name])
    tags = {element.tag for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "text", "path", "rect"}
    assert root.find("title") is not None and root.find("desc") is not None
    assert "nan" not in PICTURES[name] and "inf" not in PICTURES[name]


@pytest.mark.parametrize("name", PICTURES)
def test_everything_is_drawn_inside_the_picture(name: str) -> None:
    root = ET.fromstring(PICTURES[name])
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in root.iter():
        assert -1 <= float(element.get("x", 0)) <= width + 1 and -1 <= float(element.get("y", 0)) <= height + 1
        assert float(element.get("width", 1)) >= 0 and float(element.get("height", 1)) >= 0


@pytest.mark.parametrize("name", PICTURES)
def test_a_standalone_file_has_namespace_colours_and_background(name: str) -> None:
    root = ET.fromstring(svg.standalone(PICTURES[name]))
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    assert "prefers-color-scheme:dark" in (root.findtext(f"{space}style") or "")
    assert root.find(f"{space}rect") is not None


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 12_345, ["0", "5,000", "10,000"]),
        (-0.03, 0.03, ["-0.03", "-0.02", "-0.01", "0.00", "0.01", "0.02", "0.03"]),
        (3.7, 3.8, ["3.70", "3.72", "3.74", "3.76", "3.78", "3.80"]),
    ],
)
def test_ticks_are_round(low: float, high: float, texts: list[str]) -> None:
    assert [text for _, text in svg.ticks(low, high)] == texts


def test_logarithmic_ticks_are_powers_of_ten_or_finer() -> None:
    assert [text for _, text in svg.log_ticks(0.01, 10)] == ["0.01", "0.1", "1", "10"]
    assert [text for _, text in svg.log_ticks(1, 100)] == ["1", "2", "5", "10", "20", "50", "100"]
    assert len(svg.log_ticks(1e-12, 1e12)) <= 8


def test_an_axis_keeps_values_inside() -> None:
    axis = Axis(0, 10, 100, 200)
    assert [axis.at(value) for value in (-5, 0, 5, 10, 99)] == [100, 100, 150, 200, 200]
    assert Axis(1, 100, 0, 2, log=True).at(10) == pytest.approx(1)
    assert Axis.around([], 0, 1).low < Axis.around([], 0, 1).high


def test_higher_bars_reach_higher() -> None:
    root = ET.fromstring(svg.bars([1, 2, 4], Words("a", "b"), labels=["x", "y", "z"]))
    heights = [float(rect.attrib["height"]) for rect in root.iter("rect")]
    assert heights[2] == pytest.approx(2 * heights[1], abs=0.2) and heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert [rect.findtext("title") for rect in root.iter("rect")] == ["x: 1", "y: 2", "z: 4"]


def test_text_is_escaped_and_made_printable() -> None:
    assert svg.escape('<a href="x">\'&') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;"
    assert svg.escape("a\x00b\ud800\u202ec") == "a\ufffdb\ufffd\ufffdc"
    assert svg.escape("Zürich 年齢 😀\n") == "Zürich 年齢 😀\n"
    assert svg.shorten("abcdef", 4) == "abc…" and svg.shorten("abcd", 4) == "abcd"
