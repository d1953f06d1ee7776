"""Port: the classes for a definition, and how the definition made of them differs from it.

You need it to write the modules of a kind that exists: `port(crd, group="example.com")`.
Elsewhere: the definition is read (`reading`), the files of a repository are planned (`tasks.port_crd`).
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bonny.api import Version
from bonny.errors import OptionError, UsageError
from bonny.resource import Resource

from ..crd import schema_of
from ..crd.definition import crds
from ..naming import snake_case
from .compare import differences
from .definition_checks import has_fields
from .source import version_source


@dataclass(frozen=True, kw_only=True)
class Port:
    """The modules by version, the version that controllers work with, its class, and the differences."""

    modules: Mapping[str, str]
    schemas: Mapping[str, Resource]
    """The schemas in a file beside a module, by version."""

    hub: str
    hub_class: type[Version]
    differences: Sequence[str]


def port(crd: Resource, *, group: str, version: str = "", formatted: Callable[[str], str] = str) -> Port:
    """Classes for every version of `crd`, or for `version` alone. `group` is the operator's.

    A version whose schema has no fields is left out, and named among the differences.
    Raises: `UsageError` when the versions cannot be declared together, or a name cannot be that of a class.
    """
    all_versions = [each for each in crd["spec"]["versions"] if has_fields(each)]
    chosen = [each for each in all_versions if version in ("", each["name"])]
    if not chosen:
        names = ", ".join(each["name"] for each in all_versions)
        raise UsageError(f"{crd['metadata']['name']} has no version {version}: name one of {names}")
    alone = len(chosen) == 1
    hub = max(chosen, key=lambda each: (each["served"], each["storage"]))["name"]
    kind = crd["spec"]["names"]["kind"]
    modules: dict[str, str] = {}
    schemas: dict[str, Resource] = {}
    origins: dict[tuple[str, str], str] = {}
    try:
        for each in sorted(chosen, key=lambda each: each["name"] != hub):
            name = each["name"]
            source = version_source(crd, each, group=group, hub=name == hub, alone=alone)
            # Versions of equal fields share the models of the first one.
            origin = origins.setdefault((source.models, json.dumps(source.schemas)), name)
            shared = f"..{origin}.{snake_case(kind)}" if origin != name and source.models.strip() else ""
            modules[name] = formatted(source.module(shared))
            schemas |= {name: source.schemas} if source.schemas and not shared else {}
        classes = _loaded(modules, schemas, kind)
        (ours,) = crds(classes.values(), group)
    except RecursionError:
        raise UsageError(
            f"{kind} cannot be declared: its fields are nested too deep for classes, about 30 levels: make them flatter"
        ) from None
    except (OptionError, ValidationError) as error:
        why = " ".join(str(error).split())
        if not version and not alone:
            raise UsageError(
                f"the versions of {kind} cannot be declared together ({why}): take one with --version, such as "
                f"--version {hub}"
            ) from error
        raise UsageError(f"{kind} cannot be declared: {why}") from error
    return Port(modules=modules, schemas=schemas, hub=hub, hub_class=classes[hub], differences=differences(crd, ours))


def beside(schemas: Resource) -> str:
    """The text of the file with the schemas of a module."""
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"


def _loaded(modules: Mapping[str, str], schemas: Mapping[str, Resource], kind: str) -> dict[str, type[Version]]:
    """The version classes in some modules, imported from a package of their own."""
    with tempfile.TemporaryDirectory(prefix="bonny_port_") as folder:
        for name, source in modules.items():
            path = Path(folder) / name / f"{snake_case(kind)}.py"
            path.parent.mkdir()
            path.write_text(source, encoding="utf-8")
            if name in schemas:
                path.with_suffix(".json").write_text(beside(schemas[name]), encoding="utf-8")
        package = Path(folder).name
        sys.path.insert(0, str(Path(folder).parent))
        importlib.invalidate_caches()
        try:
            imported = {name: importlib.import_module(f"{package}.{name}.{snake_case(kind)}") for name in modules}
            classes: dict[str, type[Version]] = {name: getattr(module, kind) for name, module in imported.items()}
            for each in classes.values():
                schema_of(each)  # resolves its annotations while the module is there
        finally:
            sys.path.remove(str(Path(folder).parent))
            for name in [name for name in sys.modules if name.partition(".")[0] == package]:
                del sys.modules[name]
    return classes
