"""HTML: a report as one page, light or dark as the reader's system is, which loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from .findings import Finding, Report
from .plans import meaning

LOG_LINES: Final = 40
STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --soft: light-dark(#f6f8fa, #151b23); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: light-dark(#1f2328, #f0f6fc); background: light-dark(#fff, #0d1117); }
section { border: 1px solid var(--line); border-radius: 6px; padding: 0 1rem 1rem; margin: 1rem 0; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; line-height: 1.4; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .75rem; font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; } code { overflow-wrap: anywhere; }
.sort { color: light-dark(#9a6700, #d29922); font-weight: 600; }
.missing { color: light-dark(#cf222e, #ff7b72); } .extra { color: light-dark(#953800, #ffa657); }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
@media (max-width: 40rem) { table { font-size: 13px; } td, th { padding: .2rem .3rem; } }
.count { text-align: right; font-variant-numeric: tabular-nums; }
.wrong { color: light-dark(#cf222e, #ff7b72); font-weight: 600; }
"""


def page(report: Report) -> str:
    """The whole page."""
    title = f"prove: {escape(report.operator)}"
    sections = "\n".join(_section(number, group, report) for number, group in enumerate(report.groups(), start=1))
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.untried())
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
<p>{escape(report.summary())}, seed {report.seed}</p>
{f"<ul>{notes}</ul>" if notes else ""}
{sections}
<h2>Lives by fault</h2>
<table><tr><th>fault</th><th>in each life</th><th class="count">lives</th><th class="count">wrong</th></tr>
{"".join(_rows(report))}</table>
</body>
</html>
"""


def _section(number: int, group: list[Finding], report: Report) -> str:
    first = group[0]
    diff = "\n".join(_line(line) for line in first.shown)
    told = escape(report.smallest_told(first).capitalize())
    others = [f"<li><code>{escape(each.plan.name)}</code></li>" for each in group[1:]]
    more = "1 more life" if len(others) == 1 else f"{len(others)} more lives"
    log = escape("\n".join(first.log.splitlines()[-LOG_LINES:]))
    return f"""<section>
<h2>{number}. {escape(first.sentence)}</h2>
<p class="sort">{escape(first.classes)}</p>
<pre>{diff}</pre>
{f"<p>{told}:</p><pre>{escape(first.smallest)}</pre>" if first.smallest else ""}
<p>To repeat it:</p><pre>{escape(report.command(first))}</pre>
{f"<details><summary>{more} with the same end</summary><ul>{''.join(others)}</ul></details>" if others else ""}
<details><summary>The end of the operator's log</summary><pre>{log}</pre></details>
</section>"""


def _line(line: str) -> str:
    style = {"-": "missing", "+": "extra"}.get(line[:1], "")
    return f'<span class="{style}">{escape(line)}</span>'


def _rows(report: Report) -> Iterator[str]:
    found = [each.plan for each in report.findings]
    for fault in dict.fromkeys(plan.fault for plan in (*report.passed, *found)):
        lives = sum(plan.fault is fault for plan in (*report.passed, *found))
        wrong = sum(plan.fault is fault for plan in found)
        style = "count wrong" if wrong else "count"
        yield (
            f"<tr><td>{escape(fault)}</td><td>{escape(meaning(fault))}</td>"
            f'<td class="count">{lives}</td><td class="{style}">{wrong}</td></tr>'
        )
