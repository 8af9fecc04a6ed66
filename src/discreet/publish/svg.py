"""Small pictures as SVG text: no dependency, no script, legible in light, in dark and on paper.

Every chart returns one inline `<svg class="plot">`. Its colours come from STYLE, which the page that holds it
includes once; `standalone` makes a file of it that carries them along, for a README or a benchmark.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Size = tuple[int, int]

_LIGHT = {"paper": "#fff", "ink": "#1c2330", "soft": "#596273", "grid": "#e4e7ec"}
_DARK = {"paper": "#14181f", "ink": "#e8ebf0", "soft": "#a3acba", "grid": "#2c333f"}
_LIGHT_SERIES = ("#3f74bd", "#d9701e", "#16907a", "#8b5fbf", "#c43a4b", "#8d96a3")
_DARK_SERIES = ("#6f9fe3", "#f2a057", "#4cc7ab", "#bd9cec", "#f2808c", "#8a93a1")
COLOURS = len(_LIGHT_SERIES)
"""Colours that charts can name by number: blue, orange, green, violet, red, grey."""


def _variables(named: dict[str, str], series: Sequence[str]) -> str:
    every = named | {f"c{number}": colour for number, colour in enumerate(series)}
    return ":root{" + ";".join(f"--{name}:{colour}" for name, colour in every.items()) + "}"


STYLE = "\n".join(
    [
        _variables(_LIGHT, _LIGHT_SERIES),
        "@media screen and (prefers-color-scheme:dark){" + _variables(_DARK, _DARK_SERIES) + "}",
        ".plot{max-width:100%;height:auto}",
        ".plot text{font:11.5px system-ui,'Segoe UI',Roboto,Arial,sans-serif;fill:var(--soft)}",
        ".plot .name{font-size:13.5px;font-weight:600;fill:var(--ink)}",
        ".plot path{fill:none} .plot .grid{stroke:var(--grid)} .plot .axis{stroke:var(--soft)}",
        ".plot .ink{stroke:var(--ink)} .plot .mark{stroke:var(--c4);stroke-dasharray:5 3}",
        ".plot .dots{stroke-linecap:round} .plot .paper{stroke:var(--paper)} .plot .back{fill:var(--paper)}",
        *(f".plot .f{n}{{fill:var(--c{n})}} .plot .s{n}{{stroke:var(--c{n})}}" for n in range(COLOURS)),
    ]
)
"""Rules that colour every chart."""

# What XML cannot hold, and marks that would turn the direction of the text around them.
_UNPRINTABLE = re.compile("[^\t\n\r -~\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHARACTER = 6.8


def escape(text: object) -> str:
    """Text that is safe inside an element or an attribute of HTML and SVG."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", str(text)))


def shorten(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def ticks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Round numbers inside a range, with their texts."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(number * step, f"{number * step:,.{digits}f}") for number in numbers]


def log_ticks(low: float, high: float, most: int = 7) -> list[tuple[float, str]]:
    """Powers of ten inside a range, with steps of 2 and 5 where there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    stride = max(1, -(-(last - first) // most))
    values = [factor * 10.0**power for power in range(first, last + 1, stride) for factor in factors]
    inside = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    return [(value, f"{value:,.0f}" if 1 <= value < 1e6 else f"{value:g}") for value in inside]


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` as pixels from `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    @staticmethod
    def around(values: Iterable[float], start: float, stop: float, *, log: bool = False) -> Axis:
        """An axis with a little room on both sides."""
        kept = [value for value in values if _drawable(value, log)] or [1.0]
        low, high = min(kept), max(kept)
        if log:
            return Axis(low / 1.15, high * 1.15, start, stop, log=True)
        room = (high - low) * 0.03 or abs(high) * 0.5 or 0.5
        return Axis(low - room, high + room, start, stop)

    def at(self, value: float) -> float:
        """Where a value goes; values beyond the ends stay at the ends."""
        low, high, inside = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, inside = math.log10(low), math.log10(high), math.log10(inside)
        return self.start + (inside - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values with their texts."""
        room = max(5, round(abs(self.stop - self.start) / 70))
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high, room)


@dataclass(frozen=True)
class Words:
    """The texts of a chart: shown above it, told to people who cannot see it, and the names of its axes."""

    title: str
    about: str
    x: str = ""
    y: str = ""


@dataclass(frozen=True)
class Row:
    """One horizontal bar: a label, its length, a note behind it, the number of its colour."""

    label: str
    value: float
    note: str = ""
    colour: int = 0


@dataclass(frozen=True)
class Series:
    """One named line: its points, and for each the ends of an error bar, if there are any."""

    name: str
    points: Sequence[Point]
    spread: Sequence[Point] = ()


def standalone(picture: str) -> str:
    """A chart as a file of its own, with namespace, colours and background."""
    head, body = picture.removeprefix("<svg").split(">", 1)
    back = f'<style>{STYLE}</style><rect class="back" width="100%" height="100%"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg"{head}>{back}{body}\n'


def histogram(
    edges: Sequence[float],
    heights: Sequence[float],
    words: Words,
    *,
    curve: Sequence[Point] = (),
    names: tuple[str, str] = ("", ""),
    marks: Sequence[tuple[float, str]] = (),
    log: bool = False,
    size: Size = (520, 300),
) -> str:
    """Bars between edges, under a curve and named vertical marks; `names` explain bars and curve."""
    key, top = _legend([("bar", names[0], 0), ("line", names[1], 1)][: 1 + bool(curve)], 58, size[0])
    tallest = max([1e-9, *heights, *(tall for _, tall in curve)])
    reach = (0.5, max(1.0, tallest * 2)) if log else (0.0, tallest * 1.08)
    y = Axis(*reach, size[1] - 44, top + 22, log)
    x = Axis(edges[0], edges[-1], _gutter(y), size[0] - 14)
    columns = [
        f"M{x.at(left):.1f} {y.start:.1f}V{y.at(tall):.1f}H{x.at(right):.1f}V{y.start:.1f}Z"
        for left, right, tall in zip(edges[:-1], edges[1:], heights, strict=True)
        if tall > 0
    ]
    over = _path("s1", [_line(x, y, curve)], 'stroke-width="2"')
    body = [*_frame(x, y, words), key, _path("f0", columns, 'opacity=".75"'), over]
    for value, name in marks:
        here, after = x.at(value), value < (x.low + x.high) / 2
        body.append(_path("mark", [f"M{here:.1f} {y.start:.1f}V{top + 4:.1f}"], 'stroke-width="1.6"'))
        body.append(_text(here + (5 if after else -5), top + 12, name, "start" if after else "end"))
    return _picture(body, words, size)


def bars(
    values: Sequence[float],
    words: Words,
    *,
    labels: Sequence[str],
    dots: Sequence[float] = (),
    whiskers: Sequence[tuple[float, float, float]] = (),
    size: Size = (360, 230),
) -> str:
    """Upright bars, with dots and (low, middle, high) whiskers beside their centres.

    There is one label for each bar, or two: for the first and the last bar only. Slanted ones add height.
    """
    reached = [0.0, *values, *dots, *(end for whisker in whiskers for end in whisker)]
    room = (max(reached) - min(reached)) * 0.06 or 1.0
    y = Axis(min(reached) - room * (min(reached) < 0), max(reached) + room, size[1] - 26, 50)
    each, short = len(labels) == len(values), [shorten(label, 14) for label in labels]
    longest = max(map(len, short)) * _CHARACTER
    left, right = _gutter(y), size[0] - 12
    slanted = each and longest > (right - left) / len(values) - 4
    left = max(left, longest * 0.72 - 4) if slanted else left
    slot = (right - left) / len(values)
    aside, wing, thick = min(slot * 0.17, 10), min(slot * 0.2, 4), max(0.5, min(slot * 0.78, 64))
    body, zero, under = _frame(Axis(0, 1, left, right), y, Words("", "", y=words.y)), y.at(0), y.start + 15
    centres = [left + slot * (position + 0.5) for position in range(len(values))]
    for position, (centre, value) in enumerate(zip(centres, values, strict=True)):
        top, tall = min(zero, y.at(value)), abs(y.at(value) - zero)
        hover = f"{labels[position]}: {value:.3g}" if each else ""
        body.append(_rect(centre - thick / 2, top, (thick, tall), 0, hover))
    if each:
        anchor = "end" if slanted else "middle"
        body += [_text(at, under, text, anchor, slanted) for at, text in zip(centres, short, strict=True)]
    else:
        body += [_text(left, under, short[0]), _text(right, under, short[-1], "end")]
    stems = [
        f"M{at:.1f} {y.at(low):.1f}V{y.at(high):.1f}M{at - wing:.1f} {y.at(middle):.1f}h{2 * wing:.1f}"
        for at, (low, middle, high) in zip((at - aside for at in centres), whiskers, strict=False)
    ]
    thin = f'stroke-width="{min(1.4, slot / 4):.2f}"'
    body += [_path("axis", [f"M{left:.1f} {zero:.1f}H{right}"]), _path("ink", stems, thin)]
    spots = [(at + aside, y.at(value)) for at, value in zip(centres, dots, strict=False)]
    body.append(_dots(spots, 1, max(2.5, min(7.0, slot * 0.5))))
    return _picture(body, words, (size[0], size[1] + (longest * 0.72 - 8 if slanted else 0)))


def horizontal(rows: Sequence[Row], words: Words, *, width: int = 720) -> str:
    """Bars lying on their side, one below the other, each with its label before and its note behind."""
    left = 12 + _CHARACTER * max(min(34, len(row.label)) for row in rows)
    right = 16 + _CHARACTER * max(len(row.note) for row in rows)
    x = Axis(0, max(row.value for row in rows) or 1.0, left + 8, width - right)
    body = []
    for number, row in enumerate(rows):
        top, length = 36 + 24 * number, x.at(row.value) - x.start
        body.append(_text(left, top + 12, shorten(row.label, 34), "end"))
        body.append(_rect(x.start, top, (max(1.0, length), 16), row.colour, f"{row.label}: {row.note}"))
        body.append(_text(x.start + length + 7, top + 12, row.note))
    return _picture(body, words, (width, 42 + 24 * len(rows)))


def lines(
    series: Sequence[Series], words: Words, *, log_x: bool = False, log_y: bool = False, size: Size = (720, 420)
) -> str:
    """Named lines with dots and optional error bars; what an axis cannot show (NaN, log of 0) is left out."""
    kept = [[(a, b) for a, b in one.points if _drawable(a, log_x) and _drawable(b, log_y)] for one in series]
    ends = [end for one in series for pair in one.spread for end in pair]
    key, top = _legend([("line", one.name, number) for number, one in enumerate(series)], 58, size[0])
    y = Axis.around([*ends, *(b for line in kept for _, b in line)], size[1] - 48, top + 18, log=log_y)
    x = Axis.around([a for line in kept for a, _ in line], _gutter(y), size[0] - 16, log=log_x)
    body = [*_frame(x, y, words), key]
    for number, (one, line) in enumerate(zip(series, kept, strict=True)):
        colour = number % COLOURS
        stems = [
            f"M{x.at(at) - 4:.1f} {y.at(low):.1f}h8m-4 0V{y.at(high):.1f}m-4 0h8"
            for (at, _), (low, high) in zip(one.points, one.spread, strict=False)
            if _drawable(at, log_x) and math.isfinite(low) and math.isfinite(high)
        ]
        body.append(_path(f"s{colour}", stems, 'stroke-width="1.2" opacity=".7"'))
        body.append(_path(f"s{colour}", [_line(x, y, line)], 'stroke-width="2"'))
        body.append(_dots([(x.at(a), y.at(b)) for a, b in line], colour, 6.5))
    return _picture(body, words, size)


def heat(
    table: Sequence[Sequence[float]], words: Words, *, across: Sequence[str], down: Sequence[str], cell: Size = (84, 38)
) -> str:
    """A table of numbers, each on a colour as strong as its logarithm is large; what is no number stays empty."""
    found = [value for line in table for value in line if _drawable(value, True)]
    shade = Axis.around(found, 0.08, 0.6, log=True)
    left = 18 + _CHARACTER * max(map(len, down))
    body = [_text(12, 36, words.y)]
    for row, (name, line) in enumerate(zip(down, table, strict=True)):
        top = 46 + row * cell[1]
        body.append(_text(left - 6, top + cell[1] / 2 + 4, name, "end"))
        for column, value in enumerate(line):
            if not math.isfinite(value):
                continue
            x, strength = left + column * cell[0], shade.at(value) if value > 0 else 0.08
            place = f'x="{x:.1f}" y="{top:.1f}" width="{cell[0] - 2}" height="{cell[1] - 2}"'
            body.append(f'<rect class="f1" opacity="{strength:.2f}" {place}/>')
            body.append(_text(x + cell[0] / 2 - 1, top + cell[1] / 2 + 3, f"{value:.4g}", "middle"))
    under = 46 + len(table) * cell[1] + 14
    body += [_text(left + (at + 0.5) * cell[0] - 1, under, name, "middle") for at, name in enumerate(across)]
    right = left + len(across) * cell[0]
    body.append(_text((left + right) / 2, under + 20, words.x, "middle"))
    return _picture(body, words, (max(560.0, right + 14), under + 32))


def legend(entries: Sequence[tuple[str, str, int]], *, width: int = 720) -> str:
    """A key of its own for several charts: (bar, line, dot or whisker; name; number of the colour)."""
    key, bottom = _legend(entries, 16, width)
    return _picture([key], Words("Legend", "What the charts show"), (width, bottom), heading=False)


def _drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _gutter(y: Axis) -> float:
    """Room for the texts beside the upright axis."""
    return 18 + _CHARACTER * max((len(text) for _, text in y.ticks()), default=1)


def _line(x: Axis, y: Axis, points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in points) if points else ""


def _path(kind: str, steps: Sequence[str], more: str = "") -> str:
    return f'<path class="{kind}" {more} d="{"".join(steps)}"/>' if any(steps) else ""


def _dots(spots: Sequence[Point], colour: int, across: float) -> str:
    """Dots with a rim of paper: strokes without length and with round ends."""
    steps, widths = [f"M{x:.1f} {y:.1f}h.01" for x, y in spots], {"paper": across + 2, f"s{colour}": across}
    return "".join(_path(f"dots {kind}", steps, f'stroke-width="{wide:.1f}"') for kind, wide in widths.items())


def _rect(x: float, y: float, size: Point, colour: int, hover: str = "") -> str:
    told = f"<title>{escape(hover)}</title>" if hover else ""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect class="f{colour}" opacity=".8" {place}>{told}</rect>'


def _text(x: float, y: float, text: str, anchor: str = "start", slanted: bool = False) -> str:
    turn = f' transform="rotate(-45 {x:.1f} {y - 4:.1f})"' if slanted else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>'


def _frame(x: Axis, y: Axis, words: Words) -> list[str]:
    """Grid, ticks and names of the axes; no ticks along the bottom without a name for it."""
    parts = [_text(12, 36, words.y)]
    for value, text in y.ticks():
        parts.append(_path("grid", [f"M{x.start:.1f} {y.at(value):.1f}H{x.stop:.1f}"]))
        parts.append(_text(x.start - 6, y.at(value) + 4, text, "end"))
    if not words.x:
        return parts
    for value, text in x.ticks():
        parts.append(_path("axis", [f"M{x.at(value):.1f} {y.start:.1f}v4"]))
        parts.append(_text(x.at(value), y.start + 17, text, "middle"))
    parts.append(_path("axis", [f"M{x.start:.1f} {y.start:.1f}H{x.stop:.1f}"]))
    return [*parts, _text((x.start + x.stop) / 2, y.start + 36, words.x, "middle")]


def _legend(entries: Sequence[tuple[str, str, int]], y: float, width: float) -> tuple[str, float]:
    """Entries in a row, wrapped, the first line of text at `y`; also says where they end."""
    parts, x = [], 12.0
    for kind, name, colour in entries:
        wide = 44 + _CHARACTER * len(name)
        if x > 12 and x + wide > width:
            x, y = 12.0, y + 18
        parts.append(_sample(kind, x, y - 4, colour) + _text(x + 22, y, name))
        x += wide
    return "".join(parts), y + 8


def _sample(kind: str, x: float, y: float, colour: int) -> str:
    """The small drawing before a name."""
    if kind == "bar":
        return _rect(x + 2, y - 5, (12, 10), colour)
    if kind == "whisker":
        return _path("ink", [f"M{x + 8:.1f} {y - 6:.1f}v12M{x + 4:.1f} {y:.1f}h8"])
    if kind == "dot":
        return _dots([(x + 8, y)], colour, 6.5)
    return _path(f"s{colour % COLOURS}", [f"M{x:.1f} {y:.1f}h16"], 'stroke-width="2"')


def _picture(body: Sequence[str], words: Words, size: Point, *, heading: bool = True) -> str:
    """The whole element."""
    width, height = f"{size[0]:.0f}", f"{size[1]:.0f}"
    seen = escape(shorten(words.title, int((size[0] - 24) / 7.2)))
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<title>{escape(words.title)}</title><desc>{escape(words.about)}</desc>"
        + (f'<text class="name" x="12" y="18">{seen}</text>' if heading else "")
        + f"{''.join(body)}</svg>"
    )
