"""Carried: the extras that this repository carries, of all in `extras.json`, and the way to load the package of one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from .errors import UsageError

PACKAGE: Final = Path(__file__).parent


class MissingExtra(UsageError):
    """The operator uses an extra that this repository does not carry."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra}, which is not in vendor/: run `invoke extras --add {extra}`")
        self.what, self.extra = what, extra


class Listed(msgspec.Struct, frozen=True):
    """An extra, as `extras.json` describes it; its purpose and its packages there are for the tools."""

    folders: tuple[str, ...] = ()
    """Packages below `bonny`, its own first."""

    option: str = ""
    """The attribute of `Operator` that is true for an operator that needs it, if its classes do not say so."""

    use: str = ""
    """That option, in messages."""

    variables: tuple[str, ...] = ()
    """Environment variables that it brings."""


@cache
def listed() -> Mapping[str, Listed]:
    """All extras by name."""
    return msgspec.json.decode((PACKAGE / "extras.json").read_bytes(), type=dict[str, Listed])


def package_of(name: str) -> str:
    """The package of an extra, below `bonny`; empty for none."""
    return listed()[name].folders[0] if listed()[name].folders else ""


def is_present(name: str) -> bool:
    """Whether this repository carries the extra."""
    return all((PACKAGE / folder / "__init__.py").is_file() for folder in listed()[name].folders)


def load(name: str, *, what: str) -> ModuleType:
    """The package of an extra, which `what` needs.

    Raises: `MissingExtra`; `ImportError` when a package that it imports is not installed.
    """
    if not is_present(name):
        raise MissingExtra(what, name)
    return importlib.import_module(f".{package_of(name)}", __package__)


def missing(error: ImportError) -> MissingExtra | None:
    """The error to show instead of `error`, if that is the import of an extra that is not present."""
    # Where a folder is imported by `from`, only the message names it.
    found = re.match(rf"cannot import name '(\w+)' from '{__package__}'", str(error))
    path = f"{__package__}.{found[1]}" if found else error.name or ""
    package, _, rest = path.partition(".")
    folder = rest.partition(".")[0]
    names = [name for name, extra in listed().items() if folder in extra.folders and not is_present(name)]
    return MissingExtra(f"`import {path}`", names[0]) if package == __package__ and names else None


def unused_variables(environ: Mapping[str, str]) -> Iterator[MissingExtra]:
    """An error for each variable in `environ` that has no effect, because its extra is not present."""
    given = {name for name, text in environ.items() if text not in ("", "none")}
    absent = ((name, extra) for name, extra in listed().items() if not is_present(name))
    return (MissingExtra(each, name) for name, extra in absent for each in extra.variables if each in given)


def of_tools(name: str) -> Any:
    """A function of the developer tools, by its entry point; None where they are not installed, as in an image."""
    return next((each.load() for each in entry_points(group="bonny.tools", name=name)), None)
