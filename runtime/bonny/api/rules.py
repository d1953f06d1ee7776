"""Rules: conditions in CEL that the API server checks on every write.

You need it for what the limits of one field cannot say: how fields fit together, and what may change.
You do not need it for limits of one field: `Field(ge=1, max_length=10, pattern=...)` says those, and clients see them.

    class RangeSpec(Spec, rules=(Rule("self.min <= self.max", message="min must not be above max"),)):
        min: int
        max: int
        volume: Annotated[str, IMMUTABLE]

A rule stands on a field (inside `Annotated`), on a model (`rules=` in its class line) or on a whole object (`rules` of
a `Version`). Only the API server evaluates them; it refuses a definition whose rules do not compile or may cost too
much, which `max_length` on lists, mappings and strings helps against.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ..errors import OptionError
from ..resource import Resource

__all__ = ["IMMUTABLE", "RULES", "Rule", "at_least_one_of", "at_most_one_of", "exactly_one_of", "union"]

RULES: Final = "x-kubernetes-validations"

# Words of CEL, which the API server spells with underscores where a field has such a name.
_RESERVED: Final = re.compile(
    "as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void|while"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition in CEL; `self` is the value that it stands on, `oldSelf` what it was before.

    `Rule("self.spec.size < 50 || self.spec.colour == 'red'", message="blue widgets are small")`

    A rule with `oldSelf` is checked only when there was a value before, unless `optional_old_self` is set.
    """

    expression: str
    """True for what is accepted."""

    _: KW_ONLY

    message: str
    """What the user reads when it is refused. One line."""

    message_expression: str = ""
    """A string in CEL that is read instead of `message`. Default: none."""

    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"] = (
        "FieldValueInvalid"
    )
    """What clients are told by machine. Default `FieldValueInvalid`, as the API server's own."""

    field_path: str = ""
    """The field that the refusal names, from here: `.size`. Default: the value itself."""

    optional_old_self: bool = False
    """Check it also when there was no value before: `oldSelf` is then a CEL optional. Default False."""

    def __post_init__(self) -> None:
        if not self.expression.strip():
            raise OptionError("a Rule has an empty expression: write for example Rule('self > 0', message='...')")
        where = f"Rule({self.expression!r})"
        if not self.message.strip() or re.search(r"[\n\r]", self.message.strip()):
            raise OptionError(f"the message of {where} must be one line that is not empty: {self.message!r}")
        if self.optional_old_self and not self.uses_old_self:
            raise OptionError(f"{where} sets optional_old_self and has no oldSelf: leave it out")
        if self.field_path and not self.field_path.startswith((".", "[")):
            raise OptionError(
                f"the field_path {self.field_path!r} of {where} has no dot in front: write for example .size"
            )

    @property
    def uses_old_self(self) -> bool:
        """Whether it looks at the value before. A word in a string counts, too."""
        return re.search(r"\boldSelf\b", self.expression) is not None

    def as_keyword(self) -> Resource:
        """The rule as a schema writes it."""
        written: Resource = {"rule": self.expression, "message": self.message}
        if self.message_expression:
            written["messageExpression"] = self.message_expression
        if self.reason != "FieldValueInvalid":
            written["reason"] = self.reason
        if self.field_path:
            written["fieldPath"] = self.field_path
        if self.optional_old_self:
            written["optionalOldSelf"] = True
        return written

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, RULES: [*schema.get(RULES, ()), self.as_keyword()]}


IMMUTABLE: Final = Rule("self == oldSelf", message="cannot be changed")
"""On a field: once it has a value, it keeps it.

A field that may be left out can still be removed, and given anew. `Rule("has(self.x) == has(oldSelf.x)", message=...)`
on its model prevents that.
"""


def exactly_one_of(*fields: str) -> Rule:
    """Of the fields (wire names) of this model, one is given."""
    return Rule(f"[{_given(fields, ', ')}].exists_one(given, given)", message=f"give one of {', '.join(fields)}")


def at_most_one_of(*fields: str) -> Rule:
    """Of the fields (wire names) of this model, none or one is given."""
    expression = f"[{_given(fields, ', ')}].filter(given, given).size() <= 1"
    return Rule(expression, message=f"give no more than one of {', '.join(fields)}")


def at_least_one_of(*fields: str) -> Rule:
    """Of the fields (wire names) of this model, some are given."""
    return Rule(_given(fields, " || "), message=f"give at least one of {', '.join(fields)}")


def union(discriminator: str, /, **members: str) -> tuple[Rule, ...]:
    """For `rules=` of a model where the value of one field says which other field is given, and no other one may be.

    `rules=union("type", Http="http", Exec="exec")`: `http` is given if, and only if, `type` is `Http`. The field that
    decides must be required or have a default.
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
