"""What other people write never becomes code: each value of a generator, and each text of a definition, is a name, a
constant, or refused. Shown by the syntax tree, without running what was generated."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, meta

import bonny_dev
from bonny.errors import UsageError
from bonny_dev.from_crd.definition_checks import checked
from bonny_dev.from_crd.source import version_source
from bonny_dev.project import Project
from bonny_dev.tasks.plan import QUOTED, rendered

SCAFFOLD = Path(bonny_dev.__file__).parent / "scaffold"
# What is made of a definition is tested by its texts, below.
OF_DEFINITIONS = ("models_from_crd.py.j2", "version_from_crd.py.j2")
TEMPLATES = sorted(path.name for path in SCAFFOLD.glob("*.j2") if path.name not in OF_DEFINITIONS)
MARK = "pwned"
HOSTILE = (
    *('"', "'", '"""', "'''", "\\", "\n", "\r", "\0", "\x1b[2J", "\u2028", "{", "}", "}}", "{{", "#", ";", " "),
    *("{{ 7 * 7 }}", "{% raw %}", "{# x #}", "${{ x }}", "{pwned}", "../pwned", "pwned\npwned()", "x: pwned"),
    *(f"{end}\n{MARK}()\n{end}" for end in ('"', "'", '"""', "'''", "", "\\", ")")),
    *(
        f'__import__("os").system("{MARK}")',
        f"x'+{MARK}()+'",
        f'x"+{MARK}()+"',
        f"x; {MARK}()",
        f"x as {MARK}",
        f"x\\\n{MARK}()",
    ),
    *(
        f'x"""\nimport {MARK}\n"""',
        f"x) or {MARK}(",
        f"x], {MARK}(), [",
        f"!!python/object/apply:{MARK} []",
        "- x: &a [*a]",
    ),
)
PLAIN: dict[str, Any] = {
    "api": "api.v1.widget",
    "api_version": "apps/v1",
    "bare": False,
    "builtin": False,
    "class": "Cheap",
    "cluster_scoped": False,
    QUOTED: repr(["a difference"]),
    "finalize_is_async": False,
    "finalizer": True,
    "finalizes": ["withdraw"],
    "free": "widget",
    "group": "example.com",
    "hub": "v2",
    "hub_module": "widget",
    "hub_package": "v2",
    "kind": "Widget",
    "label": "widget",
    "module": "widget",
    "name": "widgets",
    "own": True,
    "own_group": "example.org",
    "package": "widgets_operator",
    "plural": "widgets",
    "reconcile_is_async": True,
    "reconciles": ["create", "look"],
    "sample": "widget-v1.yaml",
    "seconds": 60.0,
    "short_names": ["w", "wi"],
    "source": "handlers.py",
    "version": "v1",
    "versions": ["v1", "v2"],
}
PROJECT = Project(root=Path(), package="widgets_operator", image="", version="1")


def structure(source: str) -> str:
    """The syntax tree without the values of constants, but with those that cannot be told from code by their place."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
    return ast.dump(tree)


def slots(template: str) -> set[str]:
    return meta.find_undeclared_variables(Environment().parse((SCAFFOLD / template).read_text("utf-8")))


def text_of(template: str, values: Mapping[str, Any]) -> str:
    (text,) = rendered(PROJECT, {"it.txt": template}, values).values()
    return text


def test_the_table_has_each_slot() -> None:
    assert {slot for template in TEMPLATES for slot in slots(template)} <= set(PLAIN)


@pytest.mark.parametrize("switched", [False, True])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_value_of_a_generator_is_a_name_or_refused(template: str, switched: bool) -> None:
    values = {name: (not value if isinstance(value, bool) and switched else value) for name, value in PLAIN.items()}
    read: Any = structure if template.endswith(".py.j2") else lambda text: type(yaml.safe_load(text)).__name__
    plain = read(text_of(template, values))
    for slot in slots(template):
        if isinstance(values[slot], bool):
            continue
        for hostile in HOSTILE:
            given = repr([hostile]) if slot == QUOTED else [hostile, "x"] if isinstance(values[slot], list) else hostile
            try:
                text = text_of(template, {**values, slot: given})
            except UsageError as error:
                assert slot != QUOTED
                assert len(str(error)) < 300  # noqa: PT017  the refusal is one of two outcomes
            else:
                assert slot == QUOTED, (slot, hostile)
                assert read(text) == plain


CRD = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.org
  labels: {team: blue}
  annotations: {example.org/note: a note}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList, shortNames: [wi], categories: [all]}
  versions:
    - name: v1
      served: true
      storage: true
      deprecated: true
      deprecationWarning: use v2
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
      selectableFields: [{jsonPath: .spec.note}]
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size, description: the size, format: int32, priority: 1}
      schema:
        openAPIV3Schema:
          type: object
          description: A widget.
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              type: object
              description: What is wanted.
              required: [note]
              x-kubernetes-validations:
                - rule: self.size > 0
                  message: must be more
                  messageExpression: "'a'"
                  reason: FieldValueInvalid
                  fieldPath: .size
              properties:
                size: {type: integer, format: int32, default: 1, minimum: 0, description: The size.}
                note: {type: string, pattern: "^a+$", enum: [aa, bb], default: aa, title: Note}
                texts: {type: array, items: {type: string}, default: [a, b]}
                ports:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties: {name: {type: string, default: http}, number: {type: integer}}
                options: {type: object, additionalProperties: {type: string}, default: {a: b}}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {a: {b: c}}}
            status:
              type: object
              properties: {size: {type: integer}, selector: {type: string}}
""")


# The calls of a module that is made from the definition.
CALLED = {
    "AsIs",
    "Column",
    "Default",
    "Field",
    "Keywords",
    "ListMap",
    "PreserveUnknown",
    "Rule",
    "Scale",
    "ListSet",
    "MapType",
}


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all texts, numbers, booleans and keys of a definition."""
    if isinstance(node, dict):
        for name, child in node.items():
            yield (*path, name, None)  # the key itself
            yield from leaves(child, (*path, name))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from leaves(child, (*path, index))
    else:
        yield path


def replaced(path: tuple[Any, ...], by: str) -> Any:
    """The definition with `by` at the path, or in place of the key there."""
    crd = deepcopy(CRD)
    *above, last = path[:-1] if path[-1] is None else path
    node = crd
    for step in above:
        node = node[step]
    if path[-1] is None:
        items = list(node.items())
        node.clear()
        node.update({by if name == last else name: value for name, value in items})
    else:
        node[last] = by
    return crd


def modules(crd: Any) -> list[str]:
    read = checked("it.yaml", crd)
    return [
        version_source(read, version, group="example.com", hub=True, alone=True).module()
        for version in read["spec"]["versions"]
    ]


@pytest.mark.parametrize("path", list(leaves(CRD)), ids=lambda path: ".".join(map(str, path)))
def test_a_text_of_a_definition_is_a_constant_or_refused(path: tuple[Any, ...]) -> None:
    """Regression: `storage` of a version was written as it was, and ran when the module was imported."""
    for hostile in (each for each in HOSTILE if f"{MARK}(" in each):
        try:
            (source,) = modules(replaced(path, hostile))
        except Exception:  # noqa: BLE001  refused; that it is by a sentence is tested in from_crd/test_reading.py
            continue
        tree = ast.parse(source)
        tree.body = [node for node in tree.body if ast.unparse(node) != "SCHEMAS = schemas_beside(__file__)"]
        assert {type(node) for node in tree.body} <= {ast.ImportFrom, ast.ClassDef, ast.Expr}
        assert all(isinstance(node.value, ast.Constant) for node in tree.body if isinstance(node, ast.Expr))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.Lambda | ast.FunctionDef)]
        assert {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} <= {"bonny.api", "typing"}
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        assert called <= CALLED | own | {f"{name}.model_validate" for name in own}
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        assert MARK not in {node.id for node in used}  # a field may be called so


def test_the_plain_definition_is_declared() -> None:
    (source,) = modules(deepcopy(CRD))
    assert "class WidgetSpec(Spec" in source
