"""Rules: conditions in CEL that the API server checks on every write.

You need it for constraints between fields, and for fields that must not change.
You do not need it for limits of one field: use `Field(ge=1, max_length=10, pattern=...)`, which clients see, too.

    class RangeSpec(Spec, rules=(Rule("self.min <= self.max", message="min must not be above max"),)):
        min: int
        max: int
        volume: Annotated[str, IMMUTABLE]

A rule belongs to a field (inside `Annotated`), to a model (`rules=` in its class line) or to a whole object (`rules` of
a `Version`). Only the API server evaluates rules. It refuses a definition whose rules do not compile or may cost too
much; `max_length` on lists, mappings and strings lowers the cost.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, fields
from typing import Final, Literal

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ..naming import camel_case
from ..resource import Resource

RULES: Final = "x-kubernetes-validations"

# Words of CEL, which the API server spells with underscores where a field has such a name.
_RESERVED: Final = re.compile(
    "as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void|while"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition in CEL; `self` is the value that the rule belongs to, `oldSelf` its previous value.

    `Rule("self.spec.size < 50 || self.spec.colour == 'red'", message="blue widgets are small")`

    A rule with `oldSelf` is checked only when there is a previous value, unless `optional_old_self` is set.
    """

    expression: str
    """True for values that are accepted."""

    _: KW_ONLY

    message: str
    """The text for the user when a value is refused. One line."""

    message_expression: str = ""
    """A CEL expression whose string replaces `message`. Default: none."""

    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"] = (
        "FieldValueInvalid"
    )
    """The machine-readable reason. Default `FieldValueInvalid`, as in Kubernetes itself."""

    field_path: str = ""
    """The field that the error names, relative to the value: `.size`. Default: the value itself."""

    optional_old_self: bool = False
    """Check the rule without a previous value, too: `oldSelf` is then a CEL optional. Default False."""

    def as_keyword(self) -> Resource:
        """The rule in the form of a schema."""
        options = (field for field in fields(self) if getattr(self, field.name) != field.default)
        keyword = {camel_case(field.name): getattr(self, field.name) for field in options}
        return {"rule": keyword.pop("expression"), **keyword}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, RULES: [*schema.get(RULES, ()), self.as_keyword()]}


IMMUTABLE: Final = Rule("self == oldSelf", message="cannot be changed")
"""On a field: a value cannot be changed.

An optional field can still be removed, and set again. `Rule("has(self.x) == has(oldSelf.x)", message=...)`
on its model prevents that.
"""


def exactly_one_of(*fields: str) -> Rule:
    """Exactly one of the fields (wire names) of this model is given."""
    return Rule(f"[{_given(fields, ', ')}].exists_one(given, given)", message=f"give one of {', '.join(fields)}")


def at_most_one_of(*fields: str) -> Rule:
    """At most one of the fields (wire names) of this model is given."""
    expression = f"[{_given(fields, ', ')}].filter(given, given).size() <= 1"
    return Rule(expression, message=f"give no more than one of {', '.join(fields)}")


def at_least_one_of(*fields: str) -> Rule:
    """At least one of the fields (wire names) of this model is given."""
    return Rule(_given(fields, " || "), message=f"give at least one of {', '.join(fields)}")


def union(discriminator: str, /, **members: str) -> tuple[Rule, ...]:
    """For `rules=` of a discriminated union: the value of one field selects the other field that is given.

    `rules=union("type", Http="http", Exec="exec")`: `http` is given if, and only if, `type` is `Http`. The
    discriminator must be required or have a default.
    """
    return tuple(
        Rule(
            f"(self.{_escaped(discriminator)} == '{value}') == has(self.{_escaped(field)})",
            message=f"{field} belongs to {discriminator} {value}, which needs it",
        )
        for value, field in members.items()
    )


def _given(fields: tuple[str, ...], separator: str) -> str:
    return separator.join(f"has(self.{_escaped(field)})" for field in fields)


def _escaped(field: str) -> str:
    return f"__{field}__" if _RESERVED.fullmatch(field) else field
