"""Rules: where they may stand, what they become, and which are refused."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bonny.api import (
    IMMUTABLE,
    Field,
    ListMap,
    MapAtomic,
    Model,
    PreserveUnknown,
    Rule,
    Spec,
    Version,
    at_least_one_of,
    at_most_one_of,
    exactly_one_of,
    union,
)
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny_dev.crd import schema_of
from bonny_dev.crd.schema import structural as unchecked
from bonny_dev.crd.schema_checks import check, checked_schema


def structural(model: type[BaseModel], *, where: str) -> Resource:
    """The schema of a model, checked as `crds` checks it."""
    schema = unchecked(model, where=where)
    check(schema, where)
    return schema


def rules_of(schema: Resource) -> list[str]:
    return [rule["rule"] for rule in schema.get("x-kubernetes-validations", [])]


ORDERED = Rule("self.low <= self.high", message="low is above high")


class Range(Model, rules=(ORDERED,)):
    """Two numbers in order."""

    low: int = 0
    high: int = 9


def test_a_rule_is_written_with_what_it_says() -> None:
    full = Rule(
        "!oldSelf.hasValue() || self > 0",
        message="must grow",
        message_expression="'must grow from ' + string(oldSelf.value())",
        reason="FieldValueForbidden",
        field_path=".size",
        optional_old_self=True,
    )

    assert full.as_keyword() == {
        "rule": "!oldSelf.hasValue() || self > 0",
        "message": "must grow",
        "messageExpression": "'must grow from ' + string(oldSelf.value())",
        "reason": "FieldValueForbidden",
        "fieldPath": ".size",
        "optionalOldSelf": True,
    }
    assert ORDERED.as_keyword() == {"rule": "self.low <= self.high", "message": "low is above high"}


def test_rules_stand_on_fields_on_models_and_on_items() -> None:
    positive, even = Rule("self > 0", message="positive"), Rule("self % 2 == 0", message="even")

    class Probe(Spec, rules=(Rule("self.size != self.other", message="different"),)):
        size: Annotated[int, positive, even]
        other: Annotated[int | None, positive] = None
        sizes: list[Annotated[int, even]] = Field(default_factory=list)

    schema = structural(Probe, where="spec")

    assert rules_of(schema) == ["self.size != self.other"]
    assert rules_of(schema["properties"]["size"]) == ["self > 0", "self % 2 == 0"]
    assert rules_of(schema["properties"]["other"]) == ["self > 0"]
    assert rules_of(schema["properties"]["sizes"]["items"]) == ["self % 2 == 0"]


def test_rules_of_a_field_and_of_its_model_add_up() -> None:
    narrow = Rule("self.high < 5", message="narrow")

    class Probe(Spec):
        plain: Range
        both: Annotated[Range, narrow]
        perhaps: Annotated[Range, narrow] | None = None

    fields = structural(Probe, where="spec")["properties"]

    assert rules_of(fields["plain"]) == ["self.low <= self.high"]
    assert rules_of(fields["both"]) == ["self.low <= self.high", "self.high < 5"]
    assert rules_of(fields["perhaps"]) == ["self.low <= self.high", "self.high < 5"]


def test_rules_are_inherited_once() -> None:
    class Other(Range):
        """Adds nothing."""

    class Both(Other, Range, rules=(Rule("self.low > 0", message="positive"),)):
        """Comes from it twice."""

    assert [rule.expression for rule in Both.__rules__] == ["self.low <= self.high", "self.low > 0"]


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        ({"expression": " ", "message": "x"}, "the rule ' ' needs an expression, and a message of one line"),
        ({"expression": "self", "message": " "}, r"the rule 'self' needs an expression, and a message of one line"),
        ({"expression": "self", "message": "a\nb"}, "a message of one line instead of"),
        ({"expression": "self", "message": "x", "optional_old_self": True}, "has no oldSelf: leave it out"),
        ({"expression": "self", "message": "x", "field_path": "size"}, "no such field: write for example .size"),
    ],
)
def test_a_rule_that_the_api_server_would_refuse_is_refused(keywords: Resource, why: str) -> None:
    class Probe(Spec, rules=(Rule(keywords.pop("expression"), **keywords),)):
        size: int

    with pytest.raises(OptionError, match=rf"^spec: .*{why}"):
        structural(Probe, where="spec")


def test_old_values_are_known_for_fields_and_for_items_of_merged_lists() -> None:
    class Item(Model):
        name: str
        size: Annotated[int, IMMUTABLE] = 1

    class Probe(Spec):
        items: Annotated[list[Item], ListMap("name")]
        by_name: dict[str, Item]
        whole: Annotated[Item, MapAtomic()]

    fields = structural(Probe, where="spec")["properties"]

    assert rules_of(fields["items"]["items"]["properties"]["size"]) == ["self == oldSelf"]
    assert rules_of(fields["whole"]["properties"]["size"]) == ["self == oldSelf"]
    assert rules_of(fields["byName"]["additionalProperties"]["properties"]["size"]) == ["self == oldSelf"]


class Frozen(Model):
    """With a field that cannot change."""

    size: Annotated[int, IMMUTABLE] = 1


@pytest.mark.parametrize(
    ("annotation", "path"),
    [
        (list[Frozen], r"field\[\]\.size"),
        (list[Annotated[int, IMMUTABLE]], r"field\[\]"),
        (dict[str, list[Frozen]], r"field\.\*\[\]\.size"),
    ],
)
def test_old_values_that_the_api_server_cannot_know_are_refused(annotation: Any, path: str) -> None:
    from pydantic import create_model  # noqa: PLC0415

    probe = create_model("Probe", __base__=Spec, field=(annotation, ...))

    with pytest.raises(
        OptionError, match=rf"^spec\.{path}: the rule 'self == oldSelf' uses oldSelf, but the API server"
    ):
        structural(probe, where="spec")


def test_a_rule_on_content_without_a_type_is_refused() -> None:
    class Probe(Spec):
        free: Annotated[list[Annotated[Any, PreserveUnknown()]], Rule("size(self) > 0", message="some")]

    with pytest.raises(OptionError, match=r"^spec\.free: the rule 'size\(self\) > 0' stands on a field whose content"):
        structural(Probe, where="spec")


def test_a_field_path_must_lead_to_a_field() -> None:
    class Probe(Spec, rules=(Rule("self.size > 0", message="x", field_path=".sise"),)):
        size: int

    with pytest.raises(OptionError, match=r"has the field_path \.sise, and there is no such field"):
        structural(Probe, where="spec")


def test_a_rule_on_a_whole_object_is_checked_too() -> None:
    class Crossed(Ranged):
        """With a path that leads nowhere."""

        version = "v2"
        rules = (Rule("self.spec.low > 0", message="x", field_path=".spec.lo"),)

    with pytest.raises(
        OptionError, match=r"^Ranged v2: the rule .* has the field_path \.spec\.lo, and there is no such"
    ):
        checked_schema(Crossed)


def test_unions_are_rules_over_the_names_of_the_wire() -> None:
    assert exactly_one_of("file", "secretRef").expression == (
        "[has(self.file), has(self.secretRef)].exists_one(given, given)"
    )
    assert at_most_one_of("a", "b").expression == "[has(self.a), has(self.b)].filter(given, given).size() <= 1"
    assert at_least_one_of("a", "namespace").expression == "has(self.a) || has(self.__namespace__)"
    assert [rule.expression for rule in union("type", Http="http", Exec="exec")] == [
        "(self.type == 'Http') == has(self.http)",
        "(self.type == 'Exec') == has(self.exec)",
    ]


class RangeSpec(Range, Spec):
    """With the rule of a range."""


class Ranged(Version):
    """A range."""

    kind = "Ranged"
    version = "v1"
    spec: RangeSpec = RangeSpec()


def test_a_spec_with_rules_has_a_default_that_they_can_look_at() -> None:
    """Regression: the API server refused the definition, because the rules found no field in an empty default."""

    assert schema_of(Ranged)["properties"]["spec"]["default"] == {"low": 0, "high": 9}
