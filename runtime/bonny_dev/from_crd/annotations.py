"""Annotations: a field of a schema as a line of Python: its type, its markers and its default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final

from bonny.api import IMMUTABLE, Rule
from bonny.api.markers import AS_IS, EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.api.rules import RULES
from bonny.naming import camel_case
from bonny.resource import Resource

from ..crd.schema import LENGTHS, LIMITS
from .canonical import QUANTITY
from .classes import Classes
from .cover import CONDITION
from .names import leads_back
from .sayable import INTEGER_TYPES, STRING_TYPES, TYPE

_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_SNAKE: Final = {camel_case(each.name): each.name for each in fields(Rule)}
_SIZES: Final = {
    f"{end}{what}": f"{end}_length" for end in ("min", "max") for what in ("Length", "Items", "Properties")
}
# How a value of each format is read, where its type is not that of a text.
_READ_BY: Final = {"datetime": "datetime.fromisoformat", "date": "date.fromisoformat"} | {
    each: each for each in ("UUID", "IPv4Address", "IPv6Address")
}


@dataclass
class _Type:
    """A type, its markers, and the arguments of its `Field`."""

    base: str
    markers: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={text(value)}" for name, value in self.options.items())
        markers = [*self.markers, *([f"Field({options})"] if options else [])]
        return f"Annotated[{', '.join((self.base, *markers))}]" if markers else self.base


def field_line(name: str, wire: str, node: Resource, *, required: bool, classes: Classes, description: str = "") -> str:
    """The line `name: type = default` of a model, or of a version; with a `description`, without docstring."""
    typed, default = _type(node, classes), ""
    if "default" in node:
        default = _value(node["default"], node, classes)
        if node.get(INT_OR_STRING) and typed.base == "Quantity" and type(node["default"]) is int:
            typed.options["json_schema_extra"] = {"default": node["default"]}
            default = repr(str(node["default"]))
    elif not required and "nullable" not in node and node.get("type") == "array":
        default = "Field(default_factory=list)"
    elif not required and "nullable" not in node and "additionalProperties" in node:
        default = "Field(default_factory=dict)"
    elif not required:
        default = "None"
    if (default == "None" or "nullable" in node) and typed.base != "Any":
        typed = _Type(f"{typed} | None", ["Nullable()"] if default == "None" and "nullable" in node else [])
    if not leads_back(name, wire):
        typed.options["alias"] = wire
    if description:
        typed.options["description"] = description
    return f"{name}: {typed}" + (f" = {default}" if default else "")


def rules_of(node: Resource) -> list[str]:
    """The rules on `node` as expressions."""
    return [_rule(rule) for rule in node.get(RULES, ())]


def text(value: Any) -> str:
    """A value of JSON in Python; a text with backslashes is raw where it can be."""
    raw = isinstance(value, str) and "\\" in value and value.isprintable() and not value.endswith("\\")
    return f'r"{value}"' if raw and '"' not in value else repr(value)


def _rule(rule: Resource) -> str:
    if rule == IMMUTABLE.as_keyword():
        return "IMMUTABLE"
    options = "".join(f", {_SNAKE[key]}={text(value)}" for key, value in rule.items() if key != "rule")
    return f"Rule({text(rule['rule'])}{options})"


def _type(node: Resource, classes: Classes) -> _Type:
    typed = _base(node, classes)
    if LIST_TYPE in node:
        keys = ", ".join(map(repr, node.get(LIST_KEYS, ())))
        typed.markers.append({"map": f"ListMap({keys})", "set": "ListSet()", "atomic": "ListAtomic()"}[node[LIST_TYPE]])
    if MAP_TYPE in node:
        typed.markers.append("MapAtomic()")
    if not classes.name_of(node):
        typed.markers += rules_of(node)
    if AS_IS in node:
        kept = f"SCHEMAS[{classes.name_of(node)!r}]" if TYPE in node else repr(node[AS_IS])
        typed.markers.append(f"AsIs({kept})")
    return typed


def _base(node: Resource, classes: Classes) -> _Type:
    if INT_OR_STRING in node:
        if node.get("pattern") == QUANTITY:
            return _Type("Quantity")
        return _Type("IntOrString", options={"pattern": node["pattern"]} if "pattern" in node else {})
    sized = {option: node[key] for key, option in _SIZES.items() if key in node}
    match node.get("type"):
        case "array":
            return _Type(f"list[{_item(node['items'], classes)}]", options=sized)
        case "object":
            return _object(node, classes, sized)
        case "string" | "integer" | "number" | "boolean":
            return _scalar(node, sized)
    return _Type("Any", ["PreserveUnknown()"])


def _object(node: Resource, classes: Classes, sized: dict[str, Any]) -> _Type:
    if known := node.get(TYPE):
        builtin = [] if AS_IS in node else [f"BuiltIn({known.api_version!r}, {known.name!r})"]
        return _Type("Condition") if known == CONDITION else _Type("dict[str, Any]", builtin)
    if name := classes.name_of(node):
        return _Type(name, ["Embedded()"] if EMBEDDED in node else [], sized)
    if "additionalProperties" in node:
        return _Type(f"dict[str, {_item(node['additionalProperties'], classes)}]", options=sized)
    if EMBEDDED in node:
        return _Type("dict[str, Any]", ["Embedded()"], sized)
    return _Type("dict[str, Any]", ["PreserveUnknown()"] if PRESERVE_UNKNOWN in node else [], sized)


def _scalar(node: Resource, sized: dict[str, Any]) -> _Type:
    base = _SCALARS[node["type"]]
    if "enum" in node:
        base = f"Literal[{', '.join(map(repr, node['enum']))}]"
    elif "format" in node:
        base = (STRING_TYPES if node["type"] == "string" else INTEGER_TYPES)[node["format"]]
    if "enum" in node or base in _READ_BY:  # pydantic limits no values of these
        beside = (*LENGTHS, "pattern", *LIMITS, *(["format"] if "enum" in node else []))
        extra = {key: node[key] for key in beside if key in node}
        return _Type(base, options={"json_schema_extra": extra} if extra else {})
    options = {"pattern": node["pattern"]} if "pattern" in node else {}
    for name, exclusive, within, beyond in (
        ("minimum", "exclusiveMinimum", "ge", "gt"),
        ("maximum", "exclusiveMaximum", "le", "lt"),
    ):
        if name in node:
            options[beyond if exclusive in node else within] = node[name]
    if "multipleOf" in node:
        options["multiple_of"] = node["multipleOf"]
    return _Type(base, options={**sized, **options})


def _item(node: Resource, classes: Classes) -> str:
    typed = _type(node, classes)
    nullable = "nullable" in node and typed.base != "Any"
    description = node.get("description", "")
    if (name := classes.name_of(node)) and description != classes.description_of(name):
        typed.options["description"] = description
    return f"{typed} | None" if nullable else str(typed)


def _value(value: Any, node: Resource, classes: Classes) -> str:
    """A value of `node`, an expression that has its type."""
    if isinstance(value, dict) and (node.get(TYPE) == CONDITION or (classes.name_of(node) and TYPE not in node)):
        return _instance(classes.name_of(node) or "Condition", value)
    if isinstance(value, dict) and isinstance(other := node.get("additionalProperties"), dict):
        return f"{{{', '.join(f'{key!r}: {_value(each, other, classes)}' for key, each in value.items())}}}"
    if isinstance(value, list) and "items" in node:
        return f"[{', '.join(_value(each, node['items'], classes) for each in value)}]"
    read_by = _READ_BY.get(STRING_TYPES.get(node.get("format", ""), "")) if "enum" not in node else None
    return f"{read_by}({value!r})" if read_by and isinstance(value, str) else repr(value)


def _instance(model: str, value: Resource) -> str:
    """The expression for a `value` of a model, by its wire names; not strict, because times are texts in it."""
    if not value:
        return f"{model}()"
    return f"{model}.model_validate({value!r}, strict=False)"
