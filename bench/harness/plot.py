"""Plot: medians of a bench as bars, in one SVG for light pages and one for dark pages.

Each panel shows one measurement, where less is better: a bar for each contestant, on a scale of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from .contestants import BONNY, BONNY_UVLOOP, NAMES
from .report import Figures, number

__all__ = ["Medians", "Panel", "drawing", "write"]

Medians: TypeAlias = Mapping[str, Mapping[str, Figures]]
"""By workload and contestant."""


class Panel(NamedTuple):
    """A measurement of a workload, and its title in the picture."""

    workload: str
    metric: str
    title: str


class Theme(NamedTuple):
    """Colours of a page."""

    page: str
    text: str
    ours: str
    uvloop: str
    peer: str


# The colours of GitHub's pages.
THEMES: Final[Mapping[str, Theme]] = {
    "light": Theme(page="#ffffff", text="#1f2328", ours="#0969da", uvloop="#54aeff", peer="#afb8c1"),
    "dark": Theme(page="#0d1117", text="#e6edf3", ours="#388bfd", uvloop="#79c0ff", peer="#6e7681"),
}

COLUMNS: Final = 2
MARGIN: Final = 16
PANEL_WIDTH: Final = 400
TITLE_HEIGHT: Final = 28
ROW_HEIGHT: Final = 22
PANEL_GAP: Final = 18
NAME_WIDTH: Final = 130
VALUE_WIDTH: Final = 70
BAR_HEIGHT: Final = 14
LONGEST_BAR: Final = PANEL_WIDTH - NAME_WIDTH - VALUE_WIDTH
FONT: Final = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"


def write(stem: Path, about: str, panels: Sequence[Panel], medians: Medians) -> list[Path]:
    """Write `stem`-light.svg and `stem`-dark.svg; returns the paths, none if no panel has a measurement."""
    written = []
    for name in THEMES:
        picture = drawing(about, panels, medians, THEMES[name])
        if picture:
            path = stem.with_name(f"{stem.name}-{name}.svg")
            path.write_text(picture, "utf-8")
            written.append(path)
    return written


def drawing(about: str, panels: Sequence[Panel], medians: Medians, theme: Theme) -> str:
    """The picture. A panel without measurements is left out; without any panel the picture is empty."""
    shown = [(panel.title, bars) for panel in panels if (bars := _bars(panel, medians))]
    if not shown:
        return ""
    lines: list[str] = []
    top = MARGIN
    for first in range(0, len(shown), COLUMNS):
        row = shown[first : first + COLUMNS]
        for column, (title, bars) in enumerate(row):
            lines += _panel(title, bars, theme, left=MARGIN + column * (PANEL_WIDTH + PANEL_GAP), top=top)
        top += TITLE_HEIGHT + ROW_HEIGHT * max(len(bars) for _, bars in row) + PANEL_GAP
    width, height = 2 * MARGIN + COLUMNS * PANEL_WIDTH + PANEL_GAP, top - PANEL_GAP + MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(about)}</title>",
        f'<g font-family="{FONT}" font-size="13" fill="{theme.text}">',
        f'<rect width="{width}" height="{height}" fill="{theme.page}"/>',
    ]
    return "\n".join([*head, *lines, "</g>", "</svg>"]) + "\n"


def _bars(panel: Panel, medians: Medians) -> dict[str, float]:
    """The contestants that have the measurement, in the order of `NAMES`."""
    of_workload = medians.get(panel.workload, {})
    return {name: of_workload[name][panel.metric] for name in NAMES if panel.metric in of_workload.get(name, {})}


def _panel(title: str, bars: Mapping[str, float], theme: Theme, *, left: int, top: int) -> list[str]:
    colours = {BONNY: theme.ours, BONNY_UVLOOP: theme.uvloop}
    largest = max(bars.values()) or 1.0
    lines = [f'<text x="{left}" y="{top + 14}" font-weight="600">{escape(title)}</text>']
    for place, (name, value) in enumerate(bars.items()):
        y = top + TITLE_HEIGHT + place * ROW_HEIGHT
        x, length = left + NAME_WIDTH, max(round(value / largest * LONGEST_BAR), 1)
        colour = colours.get(name, theme.peer)
        lines += [
            f'<text x="{x - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{x}" y="{y}" width="{length}" height="{BAR_HEIGHT}" rx="2" fill="{colour}"/>',
            f'<text x="{x + length + 6}" y="{y + 12}">{number(value)}</text>',
        ]
    return lines
