"""Reading definitions: what is not one is refused in one sentence."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny.errors import UsageError
from bonny_dev.from_crd.reading import parse_crd, read_crd

LABELS = Path(__file__).parents[2] / "corpus" / "labels.yaml"
TEXT = LABELS.read_text("utf-8")


def with_change(*path: Any, value: Any = None) -> str:
    """The YAML of a definition in which one value is another, or gone."""
    crd = yaml.safe_load(TEXT)
    part = crd
    for name in path[:-1]:
        part = part[name]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return yaml.safe_dump(crd)


# Regression: it was written into the module of the version without quotes, and ran.
CODE = '__import__("os").system("touch pwned") or True'
VERSION = ("spec", "versions", 0)
SCHEMA = (*VERSION, "schema", "openAPIV3Schema")


def nested(levels: int) -> str:
    """The YAML of a definition with objects inside of objects."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return with_change(*SCHEMA, value=schema)


def with_aliases(schema: str, *, doublings: int = 0) -> str:
    """The YAML of a definition with `schema` in it, which can name `a40`: one that names `a39` twice, and so on."""
    again = (f"x{n}: &a{n} {{properties: {{p: *a{n - 1}, q: *a{n - 1}}}}}\n" for n in range(1, doublings + 1))
    text = "".join(("x0: &a0 {type: object}\n", *again, TEXT))
    return text.replace("openAPIV3Schema:", f"openAPIV3Schema:\n          x: {schema}", 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "x has no CustomResourceDefinition, but nothing: name a file with one"),
        ("- 1", "x has no CustomResourceDefinition, but no object: name"),
        ("kind: Pod\napiVersion: v1", "x has no CustomResourceDefinition, but Pod: name a file with one"),
        ("a: 1\nb: [", "x is not valid YAML at line 2 ("),
        ("a: {{ .Values.x }}\n", "x is not valid YAML at line 1 ("),
        (
            with_change("apiVersion", value="apiextensions.k8s.io/v1beta1"),
            "x is a definition of apiextensions.k8s.io/v1b",
        ),
        (f"{TEXT}---\n{TEXT}", "x has the definitions of Label, Label: choose one, such as --kind Label"),
        (with_change("spec", "group"), "x has no spec.group, which every definition has: add it"),
        (with_change("spec", "names", "kind", value="no-kind"), "'no-kind' is not a kind"),
        (with_change("spec", "names", "kind", value="X(1):\n  pass\nclass Y"), "is not a kind"),
        (
            with_change("metadata", "name", value="../../x"),
            "x has the name '../../x': a definition is called plural.gr",
        ),
        (with_change("spec", "group", value="a/b"), "x has the name 'labels.sea.example.org': a definition"),
        (with_change("spec", "scope", value="Galaxy"), "x has the scope 'Galaxy': write Namespaced or Cluster"),
        (with_change("spec", "versions", value=[]), "x has no spec.versions: add one"),
        (with_change("spec", "versions", 0, "name", value="../x"), "'../x' is not an API version"),
        (with_change("spec", "versions", 0, "served"), "x has a version without served: add it"),
        *(
            (
                with_change("spec", "versions", 0, key, value=CODE),
                f"x has a version whose {key} is {CODE!r}: write true",
            )
            for key in ("served", "storage", "deprecated")
        ),
        (with_change("spec", "versions", 0, "schema"), "x has no schema with fields in version v1, so there"),
        (with_change(*SCHEMA, "properties", value={}), "x has no schema with fields in version v1, so there"),
        (
            with_change(*SCHEMA, "properties", "value", value=1),
            "x has a schema in version v1 that cannot be read at .val",
        ),
        (with_change(*SCHEMA, "properties", "value", "type", value=[1]), "cannot be read at .value: type: correct it"),
        (with_change(*SCHEMA, "x-kubernetes-validations", value=[1]), "cannot be read at : x-kubernetes-validations"),
        (
            with_change(*SCHEMA, "x-kubernetes-validations", value=[{"rule": "true", "x": 1}]),
            "x-kubernetes-validations",
        ),
        (with_change(*SCHEMA, "required", value=[1]), "cannot be read at : required"),
        (with_change(*SCHEMA, "properties", "value", value={"oneOf": 1}), "cannot be read at .value: oneOf"),
        (
            with_change(*VERSION, "additionalPrinterColumns", value="abc"),
            "x cannot be read at spec.versions[0].additionalPrinterColumns: must be of type array: correct it",
        ),
        (
            with_change(*VERSION, "additionalPrinterColumns", value=[{"name": "a", "type": "string"}]),
            "additionalPrinterColumns[0].jsonPath: is required: correct it",
        ),
        (
            with_change(*VERSION, "subresources", value={"scale": "x"}),
            "spec.versions[0].subresources.scale: must be of t",
        ),
        (
            with_change(*VERSION, "selectableFields", value=[1]),
            "spec.versions[0].selectableFields[0]: must be of type ob",
        ),
        (
            with_change("spec", "names", "shortNames", value="ab"),
            "x cannot be read at spec.names.shortNames: must be of",
        ),
        (
            with_change("metadata", "labels", value={"a": 1}),
            "x cannot be read at metadata.labels.a: must be of type str",
        ),
        (
            with_change(*SCHEMA, "properties", 1, value={}),
            "x has the name 1, which needs quotes at .spec.versions[0].sche",
        ),
        (
            with_change(*SCHEMA, "default", value=float("inf")),
            "x has the number inf, which JSON does not have at .spec.ve",
        ),
        (with_change(*SCHEMA, "default", value={1}), "which JSON does not have at .spec.versions[0].schema."),
        (
            with_change(*SCHEMA, "description", value="\0"),
            "x has a text with a character that a file cannot have at .spec",
        ),
        (
            TEXT.replace('default: ""', r'default: "\ud800"'),
            "x has a text with a character that a file cannot have at ",
        ),
        (
            with_change(*SCHEMA, "properties", "value", value={"$ref": "#"}),
            "x has a $ref, which no definition can have",
        ),
        ("[" * 5_000, "x is nested too deep to be read: no object of Kubernetes is, so correct it"),
        (
            nested(50),
            "x is too large with its YAML aliases written out: a definition has up to 1,500,000 bytes and 100",
        ),
        (
            with_aliases("&s {type: object, properties: {again: *s}}"),
            "x is too large with its YAML aliases written out",
        ),
        (with_aliases("*a40", doublings=40), "x is too large with its YAML aliases written out"),
    ],
)
def test_what_is_no_definition_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_crd("x", text)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_of_several_in_a_file_is_chosen_by_its_kind() -> None:
    other = TEXT.replace("Label", "Tag").replace("labels", "tags")

    crd, text = parse_crd("x", f"{TEXT}---\n{other}", kind="Tag")

    assert crd["spec"]["names"]["kind"] == "Tag"
    assert yaml.safe_load(text) == crd


def test_a_list_of_kubectl_is_read() -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(TEXT)]})

    assert parse_crd("x", text)[0] == yaml.safe_load(TEXT)


def test_a_file_of_one_definition_is_kept_as_it_is() -> None:
    assert read_crd(str(LABELS))[1] == TEXT


def test_the_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT))

    assert read_crd("-") == parse_crd("x", TEXT)


def test_times_and_equals_signs_are_texts_as_for_the_api_server() -> None:
    text = TEXT.replace('default: ""', "default: 2026-01-01, enum: [=, 2026-01-01T00:00:00Z]")

    crd, _ = parse_crd("x", text)

    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["description"] == {
        "type": "string",
        "default": "2026-01-01",
        "enum": ["=", "2026-01-01T00:00:00Z"],
    }


@pytest.mark.parametrize("name", ["nothing.yaml", "./x", "nothing", "a b.c"])
def test_a_file_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"there is no file .*: name one, - for the standard input, or a definition in"
    ):
        read_crd(name)


def test_without_a_cluster_a_name_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(UsageError, match="no cluster found"):
        read_crd("labels.sea.example.org")
