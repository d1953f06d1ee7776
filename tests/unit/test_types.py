"""The types of Kubernetes' objects: for type checkers alone, and never loaded at run time."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from bonny import kinds
from tools.builtin_types import FOLDER, META, stubs

KIND = {"group": "apps", "kind": "Thing", "version": "v1"}


def thing(**fields: Any) -> str:
    """The stub of a kind with `fields`."""
    schema = {
        "x-kubernetes-group-version-kind": [KIND],
        "properties": {"metadata": {"$ref": f"#/components/schemas/{META}.ObjectMeta"}, **fields},
    }
    parts = {"io.k8s.api.core.v1.Part": {"properties": {"size": {"type": "integer"}}}}
    meta = {f"{META}.ObjectMeta": {"properties": {"name": {"type": "string"}}}}
    return stubs({"io.k8s.api.apps.v1.Thing": schema, **parts, **meta})["apps_v1.pyi"]


@pytest.mark.parametrize("module", ["bonny.types", "bonny.types.apps_v1"])
def test_an_import_at_run_time_says_what_to_write(module: str) -> None:
    with pytest.raises(ImportError, match=r"^bonny.types is for type checkers: import it below `if TYPE_CHECKING:`$"):
        importlib.import_module(module)


PART = {"$ref": "#/components/schemas/io.k8s.api.core.v1.Part"}


@pytest.mark.parametrize(
    ("node", "line"),
    [
        ({"type": "integer", "format": "int32"}, "field: int"),
        ({"type": "string", "enum": ["a"]}, "field: str"),
        (PART, "field: Part"),
        ({"allOf": [PART], "default": {}}, "field: Part"),
        ({"type": "array", "items": PART}, "field: list[Part]"),
        (
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "dict[str, list[str]]",
        ),
        ({"type": "object"}, "field: dict[str, Any]"),
        ({}, "field: Any"),
        ({"$ref": "#/io.k8s.apimachinery.pkg.api.resource.Quantity"}, "field: str | float"),
        ({"type": "string", "description": 'Its "name". It is long.'}, 'field: str\n    "Its \\"name\\"."'),
    ],
)
def test_a_field_has_the_type_of_its_schema(node: dict[str, Any], line: str) -> None:
    assert line in thing(field=node)


def test_only_what_names_an_object_is_required() -> None:
    text = thing(spec={"type": "string"})
    assert 'apiVersion: Required[Literal["apps/v1"]]' in text
    assert 'kind: Required[Literal["Thing"]]' in text
    assert "metadata: Required[NamedMeta]" in text
    assert "spec: str" in text


@pytest.mark.parametrize("name", ["from", "$ref", "int"])
def test_a_name_that_a_class_cannot_have_is_a_key(name: str) -> None:
    text = thing(**{name: {"type": "integer"}})
    assert f'"{name}": "int"' in text
    compile(text, "stub", "exec")


def test_every_built_in_kind_has_a_type() -> None:
    text = "".join(path.read_text("utf-8") for path in FOLDER.glob("*.pyi"))
    for api_version, table in kinds._table().items():
        for kind in table:
            assert f'apiVersion: Required[Literal["{api_version}"]]' in text, (api_version, kind)
            assert f'kind: Required[Literal["{kind}"]]' in text, (api_version, kind)
