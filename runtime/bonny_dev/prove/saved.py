"""Saved: a finding as a test of the user's repository, which fails until the bug is fixed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .. import files
from .findings import Finding, Report
from .plans import Fault
from .points import Point

WIDTH: Final = 100
TEST: Final = '''"""Found by `invoke prove`; the test fails until it is fixed."""

from pathlib import Path

from bonny_dev import prove
from bonny_dev.sandbox import Sandbox
{constants}

def test_{name}(sandbox: Sandbox) -> None:
    """[{classes}]

{sentence}
    """
    options = prove.Options({options})
    prove.check(Path(__file__).parents[1], options, sandbox=sandbox)
'''


def save(root: Path, report: Report) -> Iterator[str]:
    """Write a test for each group of findings into tests/ of the repository at `root`, never over a file.

    Returns: a line about each.
    """
    folder = root / "tests"
    folder.mkdir(exist_ok=True)
    for first, *_ in report.groups():
        path = folder / f"test_prove_{name_of(first)}.py"
        if path.exists():
            yield f"tests/{path.name} is there, and was left as it is"
        else:
            files.write(path, text_of(first, seed=report.seed), mode=0o644)
            yield f"wrote tests/{path.name}"


def name_of(finding: Finding) -> str:
    """The name of a life, as a part of a Python name."""
    return re.sub(r"\W+", "_", finding.plan.name).strip("_").lower()


def text_of(finding: Finding, *, seed: int) -> str:
    """The test. It names all requests of a chapter: a fix may remove the request that failed."""
    plan = finding.plan
    constants, options = [""], []
    if plan.fault is not Fault.PERMISSIONS:
        only = f"{plan.sample}/{plan.fault}/{plan.at.chapter}/*" if isinstance(plan.at, Point) else plan.name
        constants.append(f"ONLY = {_quoted(only)}")
        options.append("only=[ONLY]")
    options.append(f"seed={seed}")
    if finding.smallest:
        constants.append(f"SAMPLE = {_quoted(finding.smallest)}")
        name = "forms" if plan.fault is Fault.FUZZ else "samples"
        options.append(f"{name}={{{_quoted(plan.sample)}: SAMPLE}}")
    sentence = textwrap.fill(finding.sentence, WIDTH, break_long_words=False, break_on_hyphens=False)
    return TEST.format(
        constants="\n".join(constants) + "\n" if constants[1:] else "",
        name=name_of(finding),
        classes=finding.classes,
        sentence=textwrap.indent(_escaped(sentence), "    "),
        options=", ".join(options),
    )


def _quoted(text: str) -> str:
    return f'"""{_escaped(text)}"""' if "\n" in text else f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
