"""bonny: Kubernetes operators in Python. `__init__.pyi` lists the names that a user needs, each with its module.

Type checkers read it, and so does this module, which loads each name on first use (PEP 562): `invoke --list` and other
light work does not pay for what it does not use.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_LIST = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: module for module, name in re.findall(r"^from (\.[\w.]+) import (\w+) as \2$", _LIST, re.MULTILINE)}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604  the same names twice would drift apart


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bonny' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
