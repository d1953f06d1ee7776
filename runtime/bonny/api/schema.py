"""Schema: structural OpenAPI schemas, by which the API server checks objects, made from pydantic models.

You need it to see the checks of the API server: `structural(WidgetSpec, where="Widget.spec")`.
You do not need it to read objects: see `bonny.api.reading`.

Pydantic writes JSON Schema; this module converts it to the subset that a CustomResourceDefinition allows, and refuses
the rest with the path of the field, so that nothing is dropped silently:

- References are inlined; recursive models are refused.
- `X | None = None` is an optional field, and null counts as left out. `X | None` without a default, or with another
  one, becomes `nullable`: null is a value.
- A default becomes a default of the schema, so the API server fills it in; `default_factory` stays on the Python side.
- `Any` and untyped mappings are refused unless marked with `PreserveUnknown`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, NoReturn

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import PydanticJsonSchemaWarning

from ..errors import OptionError
from ..resource import Resource, has_all_of
from .markers import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE_UNKNOWN
from .rules import RULES
from .validation import FORMATS, as_stored

_COMMON: Final = ("type", "format", "description", "nullable", "default", "enum")
_LIMITS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_SIZES: Final = ("minLength", "maxLength", "pattern", "minItems", "maxItems", "minProperties", "maxProperties")
_EXTENSIONS: Final = (LIST_TYPE, LIST_KEYS, MAP_TYPE, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN, RULES)
_CONTENT: Final = ("required", "properties", "additionalProperties", "items", "anyOf")
# In the order of a manifest.
_KEPT: Final = (*_COMMON, *_LIMITS, *_SIZES, *_EXTENSIONS, *_CONTENT)
_DROPPED: Final = frozenset(("title", "examples", "$defs"))
_FORMATS: Final = {"string": frozenset(FORMATS), "integer": frozenset(("int32", "int64"))}
_UNION: Final = (
    "a structural schema cannot have a union of types: choose one type, IntOrString, or one field for each with "
    "`rules=union(...)`"
)
_REFUSED: Final = {
    "anyOf": _UNION,
    "oneOf": _UNION,
    "uniqueItems": "the API server refuses schemas with unique items: use a list instead of a set",
    "prefixItems": "a structural schema cannot have a tuple: use a list of one type, or an object",
    "propertyNames": "the API server cannot check keys: use dict[str, ...]",
    "patternProperties": "the API server cannot check keys: use dict[str, ...]",
}

_Definitions = Mapping[str, Resource]


def structural(model: type[BaseModel], *, where: str) -> Resource:
    """The schema of `model`, the same bytes every time; `where` begins the paths in messages.

    Raises: `OptionError` naming the field that a CustomResourceDefinition cannot express.
    """
    return deepcopy(_structural(model, where))


@cache
def _structural(model: type[BaseModel], where: str) -> Resource:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PydanticJsonSchemaWarning)  # of a default that JSON cannot hold
            document = model.model_json_schema(mode="validation", by_alias=True)
    except (PydanticUserError, PydanticJsonSchemaWarning) as error:
        raise OptionError(f"{where} ({model.__name__}) cannot become a schema: {str(error).splitlines()[0]}") from None
    return _convert(document, document.get("$defs", {}), where, ())


def _convert(node: Resource, definitions: _Definitions, where: str, inside: tuple[str, ...]) -> Resource:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name in inside:
            _refuse(where, f"{name} contains itself, and a schema cannot: limit the depth, or use PreserveUnknown")
        return _convert(_merged(definitions[name], node, but="$ref"), definitions, where, (*inside, name))
    optional = _non_null(node)
    if optional is not None:
        schema = _convert(_merged(optional, node, but="anyOf"), definitions, where, inside)
        return schema if node.get("default", ...) is None else ordered(_with_null(schema, where))
    schema = {
        key: _keyword(key, value, definitions, where, inside) for key, value in node.items() if key not in _DROPPED
    }
    return ordered(_checked(_spelled(schema, where), where))


def _merged(inner: Resource, outer: Resource, *, but: str) -> Resource:
    """The keywords of both; a keyword of the field wins over one of its type, but rules add up."""
    merged = {**inner, **{key: value for key, value in outer.items() if key != but}}
    if RULES in inner and RULES in outer:
        merged[RULES] = [*inner[RULES], *outer[RULES]]
    return merged


def _keyword(key: str, value: Any, definitions: _Definitions, where: str, inside: tuple[str, ...]) -> Any:
    if key == "properties":
        return {name: _convert(child, definitions, f"{where}.{name}", inside) for name, child in value.items()}
    if key == "items":
        return _convert(value, definitions, f"{where}[]", inside)
    if key == "additionalProperties" and isinstance(value, dict):
        return _convert(value, definitions, f"{where}.*", inside)
    return value


def _spelled(schema: Resource, where: str) -> Resource:
    """The keywords of JSON Schema as Kubernetes spells them."""
    if "default" in schema:
        given = schema.pop("default")
        default = as_stored(given, schema)
        if not has_all_of(default, given):
            _refuse(where, "its default has fields that the API server would drop: leave them out")
        schema |= {} if default is None else {"default": default}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in schema:
            if bound in schema:
                _refuse(where, f"it has two limits at one end, {bound} and {exclusive}: keep one")
            schema |= {bound: schema[exclusive], exclusive: True}
    if schema.get("additionalProperties") is False or (
        schema.get("additionalProperties") and PRESERVE_UNKNOWN in schema
    ):
        del schema["additionalProperties"]
    return schema


def _checked(schema: Resource, where: str) -> Resource:
    """The schema, unless a CustomResourceDefinition cannot express it, or would not check a part of it."""
    for key in schema:
        if key not in _KEPT or (key == "anyOf" and INT_OR_STRING not in schema):
            _refuse(
                where,
                _REFUSED.get(
                    key, f"a CustomResourceDefinition has no keyword {key!r}: correct its name, or choose another type"
                ),
            )
    if "format" in schema and schema["format"] not in _FORMATS.get(schema.get("type", ""), ()):
        _refuse(where, f"the API server has no format {schema['format']!r} that means the same: use str with a pattern")
    if "enum" in schema and "type" not in schema:
        _refuse(where, "the values of an enumeration must be of one type")
    if schema.get("type") == "null":
        _refuse(where, "null alone is not a type: name one, for example `int | None`")
    if not (PRESERVE_UNKNOWN in schema or INT_OR_STRING in schema) and (
        "type" not in schema or schema.get("additionalProperties") is True
    ):
        _refuse(
            where,
            "its content has no type: name one, or write Annotated[..., PreserveUnknown()], with which the API server "
            "keeps the field unchecked",
        )
    return schema


def _with_null(schema: Resource, where: str) -> Resource:
    if "enum" in schema:  # also with null among the values (tried on 1.36)
        _refuse(
            where, "the API server refuses null for an enumeration: give it the default None, or a value of its own"
        )
    return {**schema, "nullable": True}


def _non_null(node: Resource) -> Resource | None:
    """The other half of `X | None`; None for everything else."""
    choices = [] if INT_OR_STRING in node else node.get("anyOf", [])
    others = [choice for choice in choices if choice.get("type") != "null"]
    return others[0] if len(others) == 1 and len(choices) == 2 else None


def ordered(schema: Resource) -> Resource:
    """The keywords of one level in the order of a manifest."""
    return {key: schema[key] for key in _KEPT if key in schema}


def _refuse(where: str, why: str) -> NoReturn:
    raise OptionError(f"{where}: {why}")
