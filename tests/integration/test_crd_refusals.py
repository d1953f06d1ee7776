"""What is refused when a definition is made is refused by the API server, too, or means something else to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_core import SchemaError

from bonny.errors import OptionError
from bonny.resource import Resource
from bonny_dev.crd.schema_checks import check
from bonny_dev.crd.validation import matches
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer, collection

pytestmark = pytest.mark.server

GROUP = "refusals.example.com"
OLD = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "x"}]}
TEXT = {"type": "string"}


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    with Administrator(sandbox) as server:
        yield server


def definition(fields: Resource, kind: str = "Probe") -> Resource:
    """A definition with these fields in its spec, as somebody would write it by hand."""
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def tried(server: Administrator, schema: Resource) -> Answer:
    """What the API server says of a field with this schema."""
    made = definition({"field": schema})
    return server.request("POST", f"{collection(made)}?dryRun=All&fieldValidation=Strict", made)


def items(**schema: Any) -> Resource:
    return {"type": "array", "items": schema}


KEYED = {"type": "object", "required": ["a"], "properties": {"a": TEXT, "b": TEXT, "c": items(**TEXT)}}


@pytest.mark.parametrize(
    "schema",
    [
        {**TEXT, "x-kubernetes-list-type": "set"},
        {**TEXT, "x-kubernetes-map-type": "atomic"},
        {**items(**TEXT, nullable=True), "x-kubernetes-list-type": "set"},
        {**items(**KEYED), "x-kubernetes-list-type": "set"},
        {**items(**items(**TEXT), **{"x-kubernetes-list-type": "set"}), "x-kubernetes-list-type": "set"},
        {**items(**TEXT), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
        {**items(**KEYED), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []},
        {**items(**KEYED), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "a"]},
        {**items(**KEYED), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["missing"]},
        {**items(**KEYED), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]},
        {**items(**KEYED), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["c"]},
        items(**TEXT, **OLD),
        items(**items(**TEXT, **OLD)),
        {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [{"rule": "true", "message": "x"}]},
        {
            **items(**{"x-kubernetes-preserve-unknown-fields": True}),
            "x-kubernetes-validations": [{"rule": "size(self) > 0", "message": "x"}],
        },
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != ''", "message": "x", "fieldPath": ".a"}]},
        {**TEXT, "pattern": "a{1001}"},
        {**TEXT, "pattern": "(a{100}){11}"},
        {**TEXT, "default": 1},
        {**TEXT, "default": "a", "minLength": 2},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "default": {}},
    ],
    ids=str,
)
def test_both_refuse_a_schema(server: Administrator, schema: Resource) -> None:
    answer = tried(server, schema)

    assert answer.status == 422, answer.body
    assert "properties[field]" in answer.message
    with pytest.raises(OptionError, match=r"^spec\.field"):
        check({"type": "object", "properties": {"field": schema}}, "spec")


MISJUDGED = (
    ({"type": "number", "minimum": 0.5}, 0, True),
    ({"type": "number", "multipleOf": 0.5}, 1, False),
    ({"type": "integer", "maximum": 2**63 - 1}, 5, False),
    ({"type": "number", "enum": [1]}, 1.5, True),
    ({**TEXT, "pattern": "^[a&&b]$"}, "&", True),
    ({**TEXT, "pattern": r"^\<$"}, "<", True),
)


@pytest.mark.parametrize("schema", [schema for schema, _, _ in MISJUDGED], ids=str)
def test_what_the_api_server_judges_otherwise_than_it_reads_is_refused(schema: Resource) -> None:
    with pytest.raises(OptionError, match=r"^spec\.field"):
        check({"type": "object", "properties": {"field": schema}}, "spec")


def test_the_api_server_still_judges_so(server: Administrator) -> None:
    """Should this fail, the API server was mended, and the refusal may go."""
    fields = {f"f{index}": schema for index, (schema, _, _) in enumerate(MISJUDGED)}
    with server.installed([definition(fields, "Misjudged")]):
        for index, (schema, value, accepted) in enumerate(MISJUDGED):
            spec = {f"f{index}": value}
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Misjudged", "metadata": {"name": "x"}, "spec": spec}
            answer = server.request("POST", f"/apis/{GROUP}/v1/misjudgeds?dryRun=All", thing)
            assert (answer.status == 201) is accepted, (schema, answer.message)


ELEMENTS = (
    *("a", "[a-c]", "[^a]", r"\.", "(?:a|b)", "a{2,3}", r"\p{L}", r"\pN", r"\P{Lu}", "[[:alpha:]]", "(?i)a", "(?i:aB)"),
    *(
        ".",
        "^",
        "$",
        r"\x41",
        r"\x{e9}",
        r"[\-a]",
        r"[a\]]",
        "(?P<n>a)",
        "(?<m>b)",
        r"\A",
        r"\z",
        "a*?",
        "(?s).",
        "(?m)^a$",
    ),
    *("[]a]", "[^]a]", "&&", "é", "[é-ü]", r"\_", "[-a]", "[a-]", "}", "]", r"\/", "[#-%]", "[(?x]", "(a{10}){100}"),
    *(r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"[\w-]", r"[\w-.]", r"[^\S]", r"[^\d_]", r"(?i)\w", r"(?i)[^\W]"),
)
TEXTS = (
    *("", "a", "b", "A", "é", "É", "aa", "aab", ".", "a\n", "\n", "\na", "1", "-", "&&", "]", "x", "(", "\x00", "😀"),
    *(
        "\N{ARABIC-INDIC DIGIT ONE}",
        "\N{LATIN SMALL LETTER LONG S}",
        "\N{KELVIN SIGN}",
        "\v",
        "_",
        "\N{NO-BREAK SPACE}",
    ),
)


def test_patterns_that_are_kept_mean_the_same_to_both(server: Administrator) -> None:
    patterns = [*ELEMENTS, *(f"^{one}{two}$" for one, two in zip(ELEMENTS, ELEMENTS[7:] + ELEMENTS[:7], strict=True))]
    fields = {f"p{index}": {**TEXT, "pattern": pattern} for index, pattern in enumerate(patterns) if _compiles(pattern)}
    check({"type": "object", "properties": fields}, "spec")
    assert len(fields) > 60

    differing = []
    with server.installed([definition(fields, "Pattern")]):
        for text in TEXTS:
            spec = dict.fromkeys(fields, text)
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Pattern", "metadata": {"name": "x"}, "spec": spec}
            answer = server.request("POST", f"/apis/{GROUP}/v1/patterns?dryRun=All", thing)
            refused = {cause["field"] for cause in answer.body.get("details", {}).get("causes", [])}
            differing += [
                (field["pattern"], text)
                for name, field in fields.items()
                if matches(field["pattern"], text) is (f"spec.{name}" in refused)
            ]

    assert differing == []


def _compiles(pattern: str) -> bool:
    """Whether a model can have it; that is known when its class is made."""
    try:
        matches(pattern, "")
    except SchemaError:
        return False
    return True
