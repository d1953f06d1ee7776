"""Source: the line of a repository in which a field, or the class that has it, is declared."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bonny.api.version import Version, object_model


def line_of(version: type[Version], path: str, root: Path) -> str:
    """`src/widgets_operator/api/v1/widget.py:12` for `spec.size`; of a field that is gone, the line of its class.

    Empty for code outside of `root`.
    """
    top, *steps = [step.removesuffix("[]") for step in path.split(".")]
    model = {"spec": object_model(version).spec, "status": version.status_model()}.get(top)
    if model is None:
        return _place(version, "", root)
    owner: type[BaseModel] = model
    field = ""
    for step in (step for step in steps if step != "*"):
        if field:
            inner = next(iter(_models(owner.model_fields[field].annotation)), None)
            if inner is None:
                break
            owner, field = inner, ""
        names = {each.alias or name: name for name, each in owner.model_fields.items()}
        if step not in names:
            break
        field = names[step]
    return _place(owner, field, root)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in typing.get_args(annotation):
        yield from _models(each)


def _place(owner: type[Any], field: str, root: Path) -> str:
    for each in _declaring(owner, field):
        try:
            lines, first = inspect.getsourcelines(each)
            path = Path(inspect.getfile(each)).resolve()
        except (OSError, TypeError):
            return ""
        pattern = re.compile(rf"\s+{re.escape(field)}\s*[:=]") if field else re.compile(r"\s*class ")
        number = next((number for number, line in enumerate(lines) if pattern.match(line)), 0)
        return f"{path.relative_to(root.resolve())}:{first + number}" if path.is_relative_to(root.resolve()) else ""
    return ""


def _declaring(owner: type[Any], field: str) -> Iterable[type[Any]]:
    """The class that declares the field itself, which may be a base of its owner."""
    return [each for each in owner.__mro__ if not field or field in vars(each).get("__annotations__", {})]
