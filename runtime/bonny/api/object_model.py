"""Object model: the fields of whole objects, by the annotations of a version class. Internal."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pydantic import create_model

from ..errors import OptionError
from .model import Model
from .status import Spec, Status
from .stored import TAKEN


@dataclass(frozen=True, slots=True)
class ObjectModel:
    """The fields of one version."""

    model: type[Model]
    """Whole objects, without apiVersion, kind and metadata."""

    spec: type[Spec] | None
    """None without a spec, and for a spec without a schema."""

    status: type[Status] | None

    def given(self, name: str, resource: Mapping[str, Any]) -> Any:
        """The field `name` of an object, as on the wire; if it is left out, its default."""
        value = resource.get(name)
        default = self.model.model_fields[name].default if name in self.model.model_fields else None
        if value is None and isinstance(default, Model):
            return default.model_dump(mode="json", exclude_unset=True)
        return value


def object_model_of(version: type, options: Collection[str], rules: Any) -> ObjectModel:
    """The model of a version class; `options` are attributes that are not fields.

    Raises: `OptionError` naming the class.
    """
    where = f"class {version.__qualname__} in {version.__module__}"
    try:
        hints = get_type_hints(version, include_extras=True)
    except NameError as error:
        text = f"{where}: its annotations name {error.name!r}, which is not defined there: import it"
        raise OptionError(text) from None
    halves: dict[str, Any] = {name: hints[name] for name in ("spec", "status") if name in hints}
    beside = {
        name: hint
        for name, hint in hints.items()
        if name not in (*halves, *options) and name[0].islower() and get_origin(hint) is not ClassVar
    }
    for name, hint in beside.items():
        if isinstance(inner := _class_in(hint), type) and issubclass(inner, Spec | Status):
            raise OptionError(f"{where}: {name} is annotated with a Spec or a Status: call it spec or status")
    spec = _half(halves, "spec", Spec, where) if "spec" in halves or not (beside or halves) else None
    if getattr(version, "spec", ...) is ... and NoneType in get_args(halves.get("spec")):
        raise OptionError(f"{where}: write `spec: ... | None = None` if it may be left out, else without `| None`")
    fields: Any = {name: (hint, getattr(version, name, ...)) for name, hint in (halves | beside).items()}
    status = _half(halves, "status", Status, where) if "status" in halves else None
    if status is not None and not hasattr(version, "status"):
        fields["status"] = (halves["status"] | None, None)  # objects start without one
    # pydantic would search all frames for them.
    words = {"rules": rules, "use_attribute_docstrings": False}
    fields |= {"__doc__": version.__doc__, "__module__": version.__module__, "__cls_kwargs__": words}
    model: type[Model] = create_model(version.__qualname__, __base__=Model, **fields)
    for name, field in model.model_fields.items():
        if field.alias in TAKEN:
            raise OptionError(f"{where}: {name} is {field.alias} on the wire, which every object has: leave it out")
    return ObjectModel(model, spec, status)


def _half(hints: Mapping[str, Any], name: str, base: type[Any], where: str) -> Any:
    """The class that `spec` or `status` is annotated with; None for a spec without a schema."""
    inner = _class_in(hints.get(name))
    if isinstance(inner, type) and issubclass(inner, base):
        return inner
    if name == "spec" and dict in (inner, get_origin(inner)):
        return None
    like = f"{name}: Widget{base.__name__}"
    raise OptionError(f"{where}: annotate {name} with a class derived from {base.__name__}, for example `{like}`")


def _class_in(hint: Any) -> Any:
    """The type inside `Annotated` and `| None`."""
    while get_origin(hint) in (Annotated, Union, UnionType):
        hint = next(inner for inner in get_args(hint) if inner is not NoneType)
    return hint
