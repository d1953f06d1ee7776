"""Page code: the code that a page of the documentation shows, to run it."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a how-to page that are marked with `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```", (HOW_TO / f"{page}.md").read_text("utf-8"), re.M | re.S)


def shown(page: str) -> dict[str, Any]:
    """The names that the Python of a page defines, as one module."""
    module = types.ModuleType(f"shown_{page.replace('-', '_')}")
    sys.modules[module.__name__] = module
    exec(compile("\n".join(blocks(page, "python")), HOW_TO / f"{page}.md", "exec"), vars(module))
    return vars(module)
