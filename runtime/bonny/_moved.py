"""Moved: parts of `bonny` that are in `bonny_dev` now. Their former names work for one release.

`bonny.manifest`, `bonny.sandbox`, `bonny.tasks` and `bonny.testing` call `forward`. Nothing of a running operator does.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MISSING: Final = "vendor/bonny_dev is missing: run `invoke update-runtime`, which adds it and edits tasks.py for it"

_forwarded: Final[set[str]] = set()


class _Forwarder(MetaPathFinder, Loader):
    """Finds `bonny.testing.plugin` as `bonny_dev.testing.plugin`: the same module, not a second copy of it."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        parent = fullname.rpartition(".")[0]
        return ModuleSpec(fullname, self) if ".".join(parent.split(".")[:2]) in _forwarded else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(_new_name(module.__name__))


def forward(name: str) -> None:
    """Let `name`, which is `bonny.X`, be `bonny_dev.X`, with all modules below it. Called by the module `name` itself.

    Raises: `ModuleNotFoundError` when vendor/bonny_dev is missing.
    """
    new_name = _new_name(name)
    try:
        module = importlib.import_module(new_name)
    except ModuleNotFoundError as error:
        if error.name != "bonny_dev":
            raise
        raise ModuleNotFoundError(f"{name} is {new_name} now, and {MISSING}", name="bonny_dev") from None
    if not _forwarded:
        sys.meta_path.insert(0, _Forwarder())
    _forwarded.add(name)
    with suppress(DeprecationWarning):  # where warnings are errors, tests go on as before
        text = f"{name} is {new_name} now: import that, or run `invoke update-runtime`; the next release has no {name}"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
    sys.modules[name] = module


def _new_name(name: str) -> str:
    return name.replace("bonny.", "bonny_dev.", 1)
