"""Schema: structural OpenAPI schemas, by which the API server checks objects, made from pydantic models.

You need it to see the checks of the API server: `structural(WidgetSpec, where="Widget.spec")`.
You do not need it to read objects: see `bonny.api.reading`.
Elsewhere: schemas that the API server would refuse (`schema_checks`), whether an object fits one (`objects`).

Pydantic writes JSON Schema; this module converts it to the subset that a CustomResourceDefinition allows, and refuses
the rest with the path of the field, so that nothing is dropped silently:

- References are inlined; recursive models are refused.
- `X | None = None` is an optional field, and null counts as left out. `X | None` without a default, or with another
  one, becomes `nullable`: null is a value.
- A default becomes a default of the schema, so the API server fills it in; `default_factory` stays on the Python side.
  The default of a nested model has the fields that were given: `Port()` is `{}`.
- `Any` and untyped mappings are refused unless marked with `PreserveUnknown`; a model with `extra="allow"` is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, NoReturn, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, PydanticJsonSchemaWarning
from pydantic_core.core_schema import ChainSchema, ModelSchema, StringSchema

from bonny.api.markers import (
    AS_IS,
    BUILT_IN,
    EITHER,
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE_UNKNOWN,
)
from bonny.api.model import Model
from bonny.api.patterns import WRITTEN
from bonny.api.rules import RULES
from bonny.api.status import Status
from bonny.api.stored import as_stored
from bonny.api.version import Version, object_model
from bonny.errors import OptionError
from bonny.resource import Resource, has_all_of

from .builtin import builtin_schema
from .names import check_version_class
from .validation import FORMATS

_COMMON: Final = ("type", "format", "description", "nullable", "default", "enum")
LIMITS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
LENGTHS: Final = ("minLength", "maxLength")
SIZES: Final = (*LENGTHS, "pattern", "minItems", "maxItems", "minProperties", "maxProperties")
_EXTENSIONS: Final = (AS_IS, LIST_TYPE, LIST_KEYS, MAP_TYPE, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN, RULES)
_CONTENT: Final = ("required", "properties", "additionalProperties", "items", "anyOf")
# In the order of a manifest.
_KEPT: Final = (*_COMMON, *LIMITS, *SIZES, *_EXTENSIONS, *_CONTENT)
_DROPPED: Final = frozenset(("title", "examples", "$defs"))
_FORMATS: Final = {"string": frozenset(FORMATS), "integer": frozenset(("int32", "int64"))}
_UNION: Final = (
    "a structural schema cannot have a union of types: choose one type, IntOrString, or one field for each with "
    "`rules=union(...)`"
)
_REFUSED: Final = {
    "oneOf": _UNION,
    "uniqueItems": "the API server refuses schemas with unique items: use a list instead of a set",
    "prefixItems": "a structural schema cannot have a tuple: use a list of one type, or an object",
    "propertyNames": "the API server cannot check keys: use dict[str, ...]",
    "patternProperties": "the API server cannot check keys: use dict[str, ...]",
    "deprecated": "the API server has no deprecated fields: write it in the description",
}

_Definitions = Mapping[str, Resource]


class _Generator(GenerateJsonSchema):
    """JSON Schema as pydantic writes it, with the parts that pydantic would leave out or change."""

    def chain_schema(self, schema: ChainSchema) -> JsonSchemaValue:
        """Add patterns to types that are not plain strings, such as `IntOrString`."""
        first, *limits = map(self.generate_inner, schema["steps"])
        for limit in limits:
            first |= {key: limit[key] for key in ("pattern",) if key in limit}
        return first

    def str_schema(self, schema: StringSchema) -> JsonSchemaValue:
        written = schema.get("metadata", {}).get(WRITTEN)
        return super().str_schema(schema) | ({"pattern": written} if written else {})

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        model = schema["cls"]
        if issubclass(model, Model):
            _check_wire_names(model)
        made = super().model_schema(schema)
        if issubclass(model, Model) and model.__rules__:
            made[RULES] = [rule.as_keyword() for rule in model.__rules__]
        if issubclass(model, Status) and model.__required__:
            made["required"] = list(model.__required__)
        return made

    def encode_default(self, dft: Any) -> Any:
        return TypeAdapter(Any).dump_python(dft, mode="json", by_alias=True, exclude_unset=True)


def _check_wire_names(model: type[Model]) -> None:
    """Check that each field has one name on the wire, for reading and for writing, and shares it with no other."""
    model.model_rebuild(raise_errors=False)  # its types may be defined further down in the module
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        label = f"class {model.__qualname__} in {model.__module__}: {name}"
        if field.alias is None or {field.validation_alias, field.serialization_alias} != {field.alias}:
            raise OptionError(f"{label} is read and written by different names: give it Field(alias=...) alone")
        if any(isinstance(part, FieldInfo) and part.alias for part in _parts(field.annotation)):
            raise OptionError(
                f"{label} has its alias inside its type: write Annotated[..., Field(alias=...)] around it"
            )
        other = names.setdefault(field.alias, name)
        if other != name:
            raise OptionError(f"{label} and {other} are both {field.alias} on the wire: rename one")


def _parts(annotation: Any) -> Iterator[Any]:
    """All arguments of a type and of its arguments."""
    for part in get_args(annotation):
        yield part
        yield from _parts(part)


def schema_of(version: type[Version]) -> Resource:
    """The schema of whole objects, as CustomResourceDefinitions have it.

    Raises: `OptionError` with the field, or with a name of the class that cannot be one.
    """
    check_version_class(version)
    return structural(object_model(version).model, where=f"{version.kind} {version.version}:")


def structural(model: type[BaseModel], *, where: str, marked: bool = False) -> Resource:
    """The schema of `model`, the same bytes every time; `where` begins the paths in messages.

    Keywords of `AsIs` are among the others, or in `marked` schemas apart from them, below `AS_IS`.

    Raises: `OptionError` naming the field that a CustomResourceDefinition cannot express.
    """
    schema = _structural(model, where)
    return deepcopy(schema) if marked else _unmarked(schema)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _unmarked(child) for key, child in {**value, **value.get(AS_IS, {})}.items() if key != AS_IS}


@cache
def _structural(model: type[BaseModel], where: str) -> Resource:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PydanticJsonSchemaWarning)  # of a default that JSON cannot hold
            document = model.model_json_schema(mode="validation", schema_generator=_Generator)
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
        null = {} if node.get("default", ...) is None else {"nullable": True}
        return _convert(_merged(optional, node | null, but="anyOf"), definitions, where, inside)
    if BUILT_IN in node:
        node = _built_in(node, where)
    schema = {
        key: _keyword(key, value, definitions, where, inside) for key, value in node.items() if key not in _DROPPED
    }
    schema = _spelled(schema, where)
    for why in _faults(schema):
        _refuse(where, why)
    return ordered(schema)


def _merged(inner: Resource, outer: Resource, *, but: str) -> Resource:
    """The keywords of both; a keyword of the field wins over one of its type, but rules add up."""
    merged = {**inner, **{key: value for key, value in outer.items() if key != but}}
    if RULES in inner and RULES in outer:
        merged[RULES] = [*inner[RULES], *outer[RULES]]
    if AS_IS in inner and AS_IS in outer:
        merged[AS_IS] = {**inner[AS_IS], **outer[AS_IS]}
    return merged


def _built_in(node: Resource, where: str) -> Resource:
    """`node` with the schema of the built-in type that it names."""
    api_version, _, name = node[BUILT_IN].rpartition("/")
    try:
        schema = builtin_schema(api_version, name)
    except OptionError as error:
        _refuse(where, str(error))
    return {key: value for key, value in node.items() if key not in (BUILT_IN, "additionalProperties")} | schema


def _keyword(key: str, value: Any, definitions: _Definitions, where: str, inside: tuple[str, ...]) -> Any:
    if key == "properties":
        above = f"{where} " if where.endswith(":") else f"{where}."
        return {name: _convert(child, definitions, f"{above}{name}", inside) for name, child in value.items()}
    if key == "items":
        return _convert(value, definitions, f"{where}[]", inside)
    if key == "additionalProperties" and isinstance(value, dict):
        return _convert(value, definitions, f"{where}.*", inside)
    return value


def _spelled(schema: Resource, where: str) -> Resource:
    """The keywords of JSON Schema as Kubernetes spells them."""
    if "default" in schema:
        given = schema.pop("default")
        stored = as_stored(given, _unmarked(schema))
        if not has_all_of(stored, given):
            _refuse(where, "its default has fields that the API server would drop: leave them out")
        schema |= {} if stored is None else {"default": _as_given(stored, given, schema)}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in schema:
            if bound in schema:
                _refuse(where, f"it has two limits at one end, {bound} and {exclusive}: keep one")
            schema |= {bound: schema[exclusive], exclusive: True}
    return _spelled_object(schema) if schema.get("type") == "object" else schema


def _spelled_object(schema: Resource) -> Resource:
    for name in LENGTHS:  # of pydantic, for the number of fields of a model
        if name in schema:
            schema[name.replace("Length", "Properties")] = schema.pop(name)
    other = schema.get("additionalProperties")
    if other is True and "properties" in schema:  # a model with extra="allow"
        schema[PRESERVE_UNKNOWN] = True
    if other is False or (other and PRESERVE_UNKNOWN in schema):
        del schema["additionalProperties"]
    return schema


def _as_given(stored: Any, given: Any, schema: Resource) -> Any:
    """The given fields of a default: the API server fills in the rest, but checks rules before it does."""
    if isinstance(given, dict) and RULES not in schema:
        fields, other = schema.get("properties", {}), schema.get("additionalProperties") or {}
        return {
            name: _as_given(child, given[name], fields.get(name, other))
            for name, child in stored.items()
            if name in given
        }
    if isinstance(given, list):
        return [_as_given(*pair, schema.get("items", {})) for pair in zip(stored, given, strict=True)]
    return stored


def _faults(schema: Resource) -> Iterator[str]:
    """The sentences about keywords of one level that a CustomResourceDefinition cannot express, or would not check."""
    for key in schema:
        if key not in _KEPT:
            other = f"a CustomResourceDefinition has no keyword {key!r}: correct its name, or choose another type"
            yield _REFUSED.get(key, other)
    if "anyOf" in schema and not (INT_OR_STRING in schema and schema["anyOf"] == EITHER):
        yield _UNION
    if "format" in schema and schema["format"] not in _FORMATS.get(schema.get("type", ""), ()):
        yield (
            f"the API server has no format {schema['format']!r} that means the same: use Base64 for bytes, Duration "
            "for a length of time, else str with a pattern"
        )
    if "enum" in schema and "nullable" in schema:  # also with null among the values (tried on 1.36)
        yield "the API server refuses null for an enumeration: give it the default None, or a value of its own"
    if "enum" in schema and "type" not in schema:
        yield "the values of an enumeration must be of one type"
    if schema.get("type") == "null":
        yield "null alone is not a type: name one, for example `int | None`"
    if not (PRESERVE_UNKNOWN in schema or INT_OR_STRING in schema) and (
        "type" not in schema or schema.get("additionalProperties") is True
    ):
        yield (
            "its content has no type: name one, or write Annotated[..., PreserveUnknown()], with which the API server "
            "keeps the field unchecked"
        )


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
