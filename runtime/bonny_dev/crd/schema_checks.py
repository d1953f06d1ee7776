"""Schema checks: refuses a schema that the API server would refuse, or would not check as it reads.

Internal: `crds` calls `checked_schema` for every version that it writes.

It follows the validation of CustomResourceDefinitions in apiextensions-apiserver. Only the server itself checks whether
rules in CEL compile, and their cost is within the limits.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from bonny.api.markers import AS_IS, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.api.rules import RULES
from bonny.api.stored import EXACT
from bonny.api.version import Version, object_model
from bonny.errors import OptionError
from bonny.resource import Resource

from .schema import LENGTHS, LIMITS, SIZES, schema_of, structural
from .tree import inside
from .validation import problems

# One element of a pattern: an escape, what begins a group, a named class, a number of repetitions, or one character.
_ELEMENT: Final = re.compile(
    r"\\(?:[pPx]\{[^}]*\}|[pP].|x..|.)|\(\?(?:P?<\w+>|[a-zA-Z-]*)|\[:\^?[a-z]+:\]|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL
)
# Escapes that Go and Rust read alike: themselves, control characters, code points, general categories.
_ESCAPE: Final = re.compile(
    r"\\([^0-9A-Za-z<>]|[aftnrvAzdDsSwW]|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|[pP]([LMNPSZC]|\{[LMNPSZC][a-z]?\}))"
)
_GROUP: Final = re.compile(r"\(\?(P?<\w+>|[imsU]*(-[imsU]+)?)")
# Go's regexp refuses more repetitions than this.
_REPETITIONS: Final = 1000


BELONGS: Final = {
    "string": (*LENGTHS, "pattern"),
    "integer": LIMITS,
    "number": LIMITS,
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
    INT_OR_STRING: ("pattern",),
    "string with a format": ("pattern",),
}
"""The limits of each type. A model cannot count the characters of a time or an address."""


def checked_schema(version: type[Version]) -> Resource:
    """The schema of `version`. Raises: `OptionError` naming the path of the field that the API server would refuse."""
    title = f"{version.kind} {version.version}"
    schema = structural(object_model(version).model, where=f"{title}:", marked=True)
    for name, child in schema["properties"].items():
        check(child, f"{title}: {name}")
    check(schema, title)
    return schema_of(version)


def check(schema: Resource, where: str, *, correlated: bool = True) -> None:
    """Raises: `OptionError` naming the path of the field. `correlated`: the server has its earlier value."""
    check_rules(schema, where, correlated=correlated)
    _check_limits(schema, where)
    _check_value(schema, where)
    if LIST_TYPE in schema:
        _check_list(schema, where)
    if MAP_TYPE in schema and schema.get("type") != "object":
        _refuse(where, "MapAtomic is for objects and mappings: leave it out")
    for step, child in inside(schema):
        known = step != "[]" or schema.get(LIST_TYPE) == "map"
        check(child, f"{where}{step}", correlated=correlated and known)


def field_at(schema: Resource, path: str) -> Resource | None:
    """The schema of the field at a path such as `.spec.size`; None where there is none.

    Where content is not described, and from the first bracket on, every path counts as there.
    """
    for name in filter(None, path.partition("[")[0].split(".")):
        schema = {**schema, **schema.get(AS_IS, {})}
        child = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if child is None:
            return {} if PRESERVE_UNKNOWN in schema else None
        schema = child
    return schema


def check_rules(schema: Resource, where: str, *, correlated: bool = True) -> None:
    """As `check`, for the rules of one level."""
    for rule in schema.get(RULES, ()):
        label, message = f"the rule {rule['rule']!r}", rule["message"].strip()
        if not rule["rule"].strip() or not message or re.search(r"[\n\r]", message):
            _refuse(where, f"{label} needs an expression, and a message of one line instead of {rule['message']!r}")
        if not _typed(schema):
            _refuse(where, f"{label} stands on a field whose content has no type: put it on the object around it")
        # The word in a string counts, too.
        uses_old_self = re.search(r"\boldSelf\b", rule["rule"])
        if "optionalOldSelf" in rule and not uses_old_self:
            _refuse(where, f"{label} sets optional_old_self and has no oldSelf: leave it out")
        if not correlated and uses_old_self:
            _refuse(
                where,
                f"{label} uses oldSelf, but the API server does not know the former value of an item, unless the list "
                "is a ListMap: make it one, or put the rule on the list",
            )
        path = rule.get("fieldPath", ".")
        if path[0] not in ".[" or field_at(schema, path) is None:
            _refuse(where, f"{label} has the field_path {path}, and there is no such field: write for example .size")


def _typed(schema: Resource) -> bool:
    """Whether rules can speak of it: its content has a type all the way down."""
    inner = schema.get("items", schema.get("additionalProperties"))
    return INT_OR_STRING in schema or ("type" in schema and (inner is None or _typed(inner)))


def _check_limits(schema: Resource, where: str) -> None:
    """The API server ignores a limit of another type."""
    name = INT_OR_STRING if INT_OR_STRING in schema else schema.get("type", "any")
    if name == "string" and schema.get("format", "byte") != "byte":
        name = "string with a format"
    for key in (*LIMITS, *SIZES):
        if key in schema and key not in BELONGS.get(name, ()):
            _refuse(where, f"the limit {key} does not belong to a value of type {name}: leave it out")


def _check_value(schema: Resource, where: str) -> None:
    for name in ("minimum", "maximum", "multipleOf"):
        bound = schema.get(name, 0)
        if bound != int(bound) or abs(bound) > EXACT:
            _refuse(
                where,
                f"the limit {bound} is not a whole number of up to 53 bits, and the API server cuts others off before "
                "it compares: use one, or a Rule",
            )
    if "enum" in schema and schema.get("type") == "number":
        _refuse(where, "the API server takes 1.5 for 1 in an enumeration of fractions: use strings, or limits")
    if "pattern" in schema and (flaw := _pattern_flaw(schema["pattern"])):
        _refuse(
            where, f"{flaw!r} in the pattern {schema['pattern']!r} means something else to the API server, or nothing"
        )
    if "default" in schema:
        for problem in problems(schema["default"], schema, where):
            _refuse(where, f"its default does not fit it ({problem})")


def _check_list(schema: Resource, where: str) -> None:
    kind, items = schema[LIST_TYPE], schema.get("items", {})
    items = {**items, **items.get(AS_IS, {})}
    if schema.get("type") != "array":
        _refuse(where, f"it is not a list, and cannot have the list type {kind}: leave the marker out")
    if kind != "atomic" and "nullable" in items:
        _refuse(f"{where}[]", f"items of a list of type {kind} cannot be null")
    if kind == "set":
        inner = items.get(LIST_TYPE, "atomic") if items.get("type") == "array" else items.get(MAP_TYPE, "granular")
        if items.get("type") in ("array", "object") and inner != "atomic":
            _refuse(f"{where}[]", "the items of a ListSet are kept whole: mark them with MapAtomic or ListAtomic")
    if kind == "map":
        _check_keys(schema[LIST_KEYS], items, where)


def _check_keys(keys: list[str], items: Resource, where: str) -> None:
    if items.get("type") != "object" or not keys or len(set(keys)) < len(keys):
        _refuse(where, "a ListMap is a list of objects, and names one or several different fields of its items as keys")
    for key in keys:
        field = items.get("properties", {}).get(key)
        if field is None or field.get("type") in ("array", "object", None) or "nullable" in field:
            _refuse(where, f"the key {key} of the ListMap must be a scalar field of its items that cannot be null")
        if key not in items.get("required", ()) and "default" not in field:
            _refuse(f"{where}[].{key}", "it is a key of a ListMap: make it required or give it a default")


def _pattern_flaw(pattern: str) -> str | None:
    """The first element that is not the same for Go's regexp, which checks objects, and Rust's, which reads them."""
    inside, previous = False, ""
    repeated, around = 1, [1]  # how often the last element is repeated, and the most of each group that is open
    for element in _ELEMENT.findall(pattern):
        if inside:
            operator = element == "[" or (element == previous and element in "&-~")
            if operator or (element[0] == "\\" and not _means_the_same(element)):
                return str(element)
            inside = element != "]" or previous in ("[", "[^")
        elif element[0] == "{" and len(element) > 1:
            repeated *= max(map(int, re.findall(r"[0-9]+", element)))
            if repeated > _REPETITIONS:
                return str(element)
        else:
            if not _means_the_same(element):
                return str(element)
            if element[0] == "(":
                around.append(1)
            repeated = around.pop() if element == ")" and len(around) > 1 else 1
            inside = element == "["
        around[-1] = max(around[-1], repeated)
        previous = previous + element if element == "^" and previous == "[" else element
    return None


def _means_the_same(element: str) -> bool:
    if element[0] == "\\":
        return _ESCAPE.fullmatch(element) is not None
    return not element.startswith("(?") or _GROUP.fullmatch(element) is not None


def _refuse(where: str, why: str) -> NoReturn:
    raise OptionError(f"{where}: {why}")
