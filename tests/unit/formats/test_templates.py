"""Templates of a chart: what Helm computes, and what it must leave as it is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bonny.errors import OptionError
from bonny_dev.formats.templates import Appended, Expression, Text, When, filled, to_template

MARK = "bonny-release-namespace"
NAMESPACE = Expression("{{ .Release.Namespace }}")

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30) | st.sampled_from(
    ["{{ $labels.namespace }}", "a {{ b }} c\n{{ d }}", "}}", "{", "1e3", "null", "'\"", "a: b # c", "\u2028\x85"]
)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


def left_alone(template: str) -> str:
    """What Helm makes of a template that holds no expressions of ours: only the two braces that it was given."""
    literals = template.replace('{{ "{{" }}', "\x00")
    assert "{{" not in literals
    return literals.replace("\x00", "{{")


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_what_helm_must_not_touch_comes_out_as_it_was(document: dict[str, Any]) -> None:
    assert [*yaml.safe_load_all(left_alone(to_template([document])))] == [document]


def test_a_mark_becomes_an_expression_wherever_it_stands_in_a_string() -> None:
    document = {"namespace": MARK, "user": f"system:serviceaccount:{MARK}:x", "list": [f"{MARK}/{MARK}"], "n": 1}

    node = filled(document, {MARK: NAMESPACE})

    assert node == {
        "namespace": Text((NAMESPACE,)),
        "user": Text(("system:serviceaccount:", NAMESPACE, ":x")),
        "list": [Text((NAMESPACE, "/", NAMESPACE))],
        "n": 1,
    }
    template = to_template([node])
    assert 'user: "system:serviceaccount:{{ .Release.Namespace }}:x"' in template
    assert yaml.safe_load(template.replace(NAMESPACE.text, MARK)) == document


def test_a_mark_in_a_key_is_refused() -> None:
    with pytest.raises(OptionError, match=r"the manifest has the key 'a-bonny-release-namespace', which depends on"):
        filled({"metadata": {f"a-{MARK}": 1}}, {MARK: NAMESPACE})


def test_a_condition_is_around_a_document_or_a_key() -> None:
    keep = {"annotations": When("if .Values.crd.keep", {"a": "b"}), "name": "x"}
    template = to_template([When("if .Values.crd.enable", {"metadata": keep}), {"kind": "Other"}])

    assert template == (
        "{{- if .Values.crd.enable }}\n---\nmetadata:\n  {{- if .Values.crd.keep }}\n  annotations:\n    a: b\n"
        "  {{- end }}\n  name: x\n{{- end }}\n---\nkind: Other\n"
    )


def test_items_of_a_value_follow_the_ones_of_the_manifest() -> None:
    template = to_template([{"env": Appended([{"name": "A", "value": "1"}], ".Values.env")}])

    assert template == (
        "---\nenv:\n  - name: A\n    value: '1'\n  {{- range .Values.env }}\n  - {{ toJson . }}\n  {{- end }}\n"
    )
