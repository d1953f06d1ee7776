"""Port: the classes for a definition, and how the definition made of them differs from it.

You need it to write the modules of a kind that exists: `port(crd, group="example.com")`.
Elsewhere: the definition is read (`reading`), the files of a repository are planned (`tasks.port`).
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bonny.api import Version
from bonny.errors import OptionError, UsageError
from bonny.resource import Resource

from ..crd.definition import crds
from .compare import differences
from .source import module_source


@dataclass(frozen=True, kw_only=True)
class Port:
    """The modules by version, the version that controllers work with, its class, and the differences."""

    modules: Mapping[str, str]
    hub: str
    hub_class: type[Version]
    differences: Sequence[str]


def port(crd: Resource, *, group: str, version: str = "", formatted: Callable[[str], str] = str) -> Port:
    """Classes for every version of `crd`, or for `version` alone. `group` is the operator's.

    Raises: `UsageError` when the versions cannot be declared together, or a name cannot be that of a class.
    """
    all_versions = crd["spec"]["versions"]
    chosen = [each for each in all_versions if version in ("", each["name"])]
    if not chosen:
        names = ", ".join(each["name"] for each in all_versions)
        raise UsageError(f"{crd['metadata']['name']} has no version {version}: name one of {names}")
    alone = len(chosen) == 1
    hub = max(chosen, key=lambda each: (each["served"], each["storage"]))["name"]
    modules = {
        each["name"]: formatted(module_source(crd, each, group=group, hub=each["name"] == hub, alone=alone))
        for each in chosen
    }
    kind = crd["spec"]["names"]["kind"]
    try:
        classes = {name: _loaded(source, kind, f"{kind.lower()}_{name}") for name, source in modules.items()}
        (ours,) = crds(classes.values(), group)
    except OptionError as error:
        if not version and not alone:
            raise UsageError(
                f"the versions of {kind} cannot be declared together ({error}): take one with --version, such as "
                f"--version {hub}"
            ) from error
        raise UsageError(f"{kind} cannot be declared: {error}") from error
    return Port(modules=modules, hub=hub, hub_class=classes[hub], differences=differences(crd, ours))


def _loaded(source: str, kind: str, name: str) -> type[Version]:
    """The version class in a module, imported under a `name` of its own."""
    with tempfile.TemporaryDirectory(prefix="bonny-port-") as folder:
        (Path(folder) / f"{name}.py").write_text(source, encoding="utf-8")
        sys.path.insert(0, folder)
        try:
            loaded: type[Version] = getattr(importlib.import_module(name), kind)
            loaded.schema()  # resolves its annotations while the module is there
        finally:
            sys.path.remove(folder)
            sys.modules.pop(name, None)
    return loaded
