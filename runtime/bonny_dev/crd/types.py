"""Types: refuses fields whose models read otherwise than the API server checks.

Internal: `crds` calls `check_types` first. A schema does not show these types: a plain pydantic model, for
example, has the schema of a `Model`, but other names on the wire.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from types import UnionType
from typing import Annotated, Any, Final, NoReturn, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, StringConstraints, WrapValidator

from bonny.api.model import Model
from bonny.api.version import Version, object_model
from bonny.errors import OptionError

_VALIDATORS: Final = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)
_CHANGES: Final = ("strip_whitespace", "to_lower", "to_upper")
_INSTEAD: Final = {
    "timedelta": "Duration",
    "Decimal": "Quantity or IntOrString",
    "ByteSize": "Quantity",
    "bytes": "Base64",
    "AwareDatetime": "datetime",
    "NaiveDatetime": "datetime; times in Kubernetes have a zone",
    "SecretStr": "the name of a Secret, because anyone who may read the object reads the field, or str",
    "Json": "a Model, or Annotated[dict[str, Any], PreserveUnknown()]",
}


def check_types(version: type[Version]) -> None:
    """Raises: `OptionError` naming the path of the field, and the type to write instead."""
    _check_model(object_model(version).model, f"{version.kind} {version.version}:", ())


def _check_model(model: type[Model], where: str, inside: tuple[type[Model], ...]) -> None:
    found = model.__pydantic_decorators__
    for name in (*found.field_validators, *found.model_validators, *found.validators, *found.root_validators):
        _refuse_validator(where.removesuffix(":"), f"{name} of {model.__name__}")
    if model in inside:
        return  # the schema is refused
    model.model_rebuild(raise_errors=False)  # its types may be defined further down in the module
    for name, field in model.model_fields.items():
        above = f"{where} " if where.endswith(":") else f"{where}."
        _check(field.annotation, field.metadata, f"{above}{field.alias or name}", (*inside, model))


def _check(hint: Any, metadata: Any, where: str, inside: tuple[type[Model], ...]) -> None:
    for each in metadata:
        if isinstance(each, _VALIDATORS) and not str(getattr(each.func, "__module__", "")).startswith("bonny."):
            _refuse_validator(where, getattr(each.func, "__name__", "of an annotation"))
        if isinstance(each, StringConstraints) and any(getattr(each, name) for name in _CHANGES):
            _refuse(where, "its text is changed when it is read, and the API server keeps it: change it in the handler")
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        _check(inner[0], inner[1:], where, inside)
    elif origin in (Union, UnionType, list):
        for one in inner:
            _check(one, (), f"{where}[]" if origin is list else where, inside)
    elif origin is dict:
        if inner[0] is not str:
            _refuse(where, "the keys of a mapping are strings on the wire: write dict[str, ...]")
        _check(inner[1], (), f"{where}.*", inside)
    elif isinstance(hint, type):
        _check_class(hint, where, inside)


def _check_class(kind: type, where: str, inside: tuple[type[Model], ...]) -> None:
    if issubclass(kind, Model):
        _check_model(kind, where, inside)
    elif is_dataclass(kind) or (issubclass(kind, BaseModel | dict) and kind is not dict):
        _refuse(where, f"{kind.__name__} has no wire names and no strict types: derive it from Model")
    elif kind.__name__ in _INSTEAD or kind.__module__.startswith("pydantic"):
        instead = _INSTEAD.get(kind.__name__, 'str with a pattern, or with a Rule such as "isURL(self)"')
        _refuse(where, f"{kind.__name__} has another form than values in Kubernetes: use {instead}")


def _refuse_validator(where: str, name: str) -> NoReturn:
    _refuse(
        where,
        f"the validator {name} would refuse objects that the API server has stored: use limits in Field(...), or a "
        "Rule, which the API server checks",
    )


def _refuse(where: str, why: str) -> NoReturn:
    raise OptionError(f"{where}: {why}")
