"""The page about typed APIs names everything that there is, and its example works."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bonny import api
from bonny_dev.crd.definition import crds

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "api-markers.md"


def test_every_public_name_is_on_the_page() -> None:
    code = " ".join(re.findall(r"`[^`\n]+`", PAGE.read_text("utf-8")))

    public = [name for name, value in vars(api).items() if name[0] != "_" and not isinstance(value, ModuleType)]
    assert "Version" in public
    assert [name for name in public if not re.search(rf"\b{name}\b", code)] == []


def test_the_example_of_the_page_becomes_a_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    exec(compile(example, str(PAGE), "exec"), vars(module))

    (definition,) = crds([module.Widget], "example.com")
    assert definition["spec"]["versions"][0]["selectableFields"] == [{"jsonPath": ".spec.colour"}]
