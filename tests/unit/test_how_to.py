"""How-to pages: their code runs as it stands, from top to bottom, and so do the tests in it."""

from __future__ import annotations

import inspect
import re
import sys
import types
from pathlib import Path

import pytest

from bonny_dev.lines import code_lines

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = (
    "add-a-version",
    "check-permissions",
    "external-systems",
    "grant-permissions",
    "manage-many-children",
    "port-a-kopf-operator",
    "port-a-kubebuilder-operator",
    "port-a-metacontroller",
    "port-an-elixir-operator",
    "port-an-operator-sdk-operator",
    "set-up-in-stages",
    "test-a-controller",
    "write-a-webhook",
)


def code(page: str) -> str:
    """The Python of a page, each line where it stands there."""
    text = (HOW_TO / f"{page}.md").read_text("utf-8")
    shown, lines = False, []
    for line in text.splitlines():
        if line.startswith("```"):
            shown = line == "```python"
            lines.append("")
        else:
            lines.append(line if shown else "")
    return "\n".join(lines)


def test_the_cron_job_is_as_short_as_the_comparison_says() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (HOW_TO / "manage-many-children.md").read_text("utf-8"), re.M | re.S)
    _, controller, tests = map(code_lines, blocks)
    comparison = (HOW_TO.parent / "comparison.md").read_text("utf-8")
    assert f"[{controller} lines of controller](how-to/manage-many-children.md), {tests} of unit tests" in comparison
    assert controller < 90
    assert tests < 60


@pytest.mark.parametrize("page", PAGES)
async def test_what_a_page_shows_is_so(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"how_to_{page.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code(page), HOW_TO / f"{page}.md", "exec"), vars(module))
    ran = []
    for name, test in list(vars(module).items()):
        # A test with arguments needs a server: a file in tests/integration runs it.
        if name.startswith("test_") and not inspect.signature(test).parameters:
            result = test()
            if inspect.isawaitable(result):
                await result
            ran.append(name)
    assert ran == re.findall(r"^(?:async )?def (test_\w+)\(\)", code(page), re.MULTILINE) != []
