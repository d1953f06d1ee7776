"""Each public name of both packages has a docstring.

Public are modules, classes, functions, methods and properties whose names, and those of all that they are in, do not
begin with `_`. Exempt are methods that a documented method explains: of a base class, or of a Protocol of the packages
whose methods the class has, all of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

import bonny
import bonny_dev

FOR_TYPE_CHECKERS = ("bonny.types",)


def modules() -> Iterator[ModuleType]:
    """All public modules of both packages."""
    for package in (bonny, bonny_dev):
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in FOR_TYPE_CHECKERS and not is_private(module.name):
                yield importlib.import_module(module.name)


def is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def defined_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public classes and functions that a module defines, and does not import."""
    for name, value in vars(module).items():
        ours = getattr(value, "__module__", None) == module.__name__
        if ours and isinstance(value, type | FunctionType) and not name.startswith("_") and value.__name__ == name:
            yield name, value


def members_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods, properties and classes that a class itself defines."""
    kinds: tuple[type[Any], ...] = (FunctionType, classmethod, staticmethod, property, cached_property, type)
    for name, value in vars(cls).items():
        if isinstance(value, kinds) and not name.startswith("_"):
            yield name, value


def documented(value: Any) -> bool:
    return bool((getattr(value, "__doc__", None) or "").strip())


def protocols() -> list[type]:
    classes = (each for module in modules() for _, each in defined_in(module) if isinstance(each, type))
    return [each for each in classes if getattr(each, "_is_protocol", False)]


def explained(cls: type, name: str, known: list[type]) -> bool:
    """Whether a base class, or a Protocol that `cls` fulfils, documents the method."""
    fulfilled = [
        each for each in known if all(hasattr(cls, method) for base in each.__mro__ for method, _ in members_of(base))
    ]
    return any(documented(vars(base).get(name)) for base in (*cls.__mro__[1:], *fulfilled))


def without_docstring(module: ModuleType, known: list[type]) -> Iterator[str]:
    """The public names of a module that lack one."""
    if not documented(module):
        yield module.__name__
    for name, value in defined_in(module):
        if not has_own_doc(value):
            yield f"{module.__name__}.{name}"
        if isinstance(value, type):
            for member, method in members_of(value):
                if not documented(method) and not explained(value, member, known):
                    yield f"{module.__name__}.{name}.{member}"


def has_own_doc(value: Any) -> bool:
    """Whether the docstring was written, not inherited nor made by `dataclass`."""
    text = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return bool(text) and not str(text).startswith(f"{value.__name__}(")


def test_every_public_name_has_a_docstring() -> None:
    known = protocols()
    assert [name for module in modules() for name in without_docstring(module, known)] == []
