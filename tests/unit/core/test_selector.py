"""Requirements on labels, as the API reads them, and as users write them."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.selector import Requirement, hold, label_selector, requirements_of
from bonny.errors import OptionError

LABELS = {"zone": "a", "size": "10", "empty": "", "word": "ten"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("none", "In", ("a",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("none", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("none", "Exists", (), False),
        ("none", "DoesNotExist", (), True),
        ("empty", "DoesNotExist", (), False),
        ("size", "Gt", ("9",), True),
        ("size", "Gt", ("10",), False),
        ("size", "Lt", ("11",), True),
        ("size", "Lt", ("10",), False),
        ("size", "Gt", ("nine",), False),
        ("size", "Gt", ("1", "2"), False),
        ("size", "Lt", (str(2**63),), False),
        ("word", "Gt", ("1",), False),
        ("none", "Lt", ("1",), False),
        ("size", "Sideways", ("1",), False),
    ],
)
def test_each_operator(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert hold([Requirement(key, operator, values)], LABELS) is expected


def test_requirements_hold_together() -> None:
    both = [Requirement("zone", "In", ("a",)), Requirement("size", "Exists")]

    assert hold(both, LABELS)
    assert not hold([*both, Requirement("none", "Exists")], LABELS)


def test_a_label_selector_is_its_labels_and_its_expressions() -> None:
    expression = {"key": "size", "operator": "NotIn", "values": ["1"]}

    found = label_selector({"matchLabels": {"zone": "a"}, "matchExpressions": [expression]})

    assert found == (Requirement("zone", "In", ("a",)), Requirement("size", "NotIn", ("1",)))
    assert hold(label_selector({}), LABELS), "an empty selector means everybody"


# --- as users write them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ({}, ()),
        ("app", (Requirement("app", "Exists"),)),
        (" ! app ", (Requirement("app", "DoesNotExist"),)),
        ("app=x,tier!=y", (Requirement("app", "In", ("x",)), Requirement("tier", "NotIn", ("y",)))),
        ("app == x", (Requirement("app", "In", ("x",)),)),
        ("app=", (Requirement("app", "In", ("",)),)),
        ("a.b/c in (x, y),d", (Requirement("a.b/c", "In", ("x", "y")), Requirement("d", "Exists"))),
        ("d,tier notin(a,b)", (Requirement("d", "Exists"), Requirement("tier", "NotIn", ("a", "b")))),
        ("tier in (,a)", (Requirement("tier", "In", ("", "a")),)),
        ("in in (in)", (Requirement("in", "In", ("in",)),)),
        ("size>1,size < 10", (Requirement("size", "Gt", ("1",)), Requirement("size", "Lt", ("10",)))),
        ({"b": "2", "a": "1"}, (Requirement("a", "In", ("1",)), Requirement("b", "In", ("2",)))),
        ({"matchLabels": {"a": "1"}, "matchExpressions": None}, (Requirement("a", "In", ("1",)),)),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["1"]}]},
            (Requirement("a", "Exists"), Requirement("b", "In", ("1",))),
        ),
    ],
)
def test_a_selector_is_read_as_the_api_server_reads_it(selector: Any, expected: tuple[Requirement, ...]) -> None:
    assert requirements_of(selector) == expected


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (",app", "'' is not a requirement"),
        ("app,", "'' is not a requirement"),
        ("app tier", "'app tier' is not a requirement"),
        ("!app=x", "'!app=x' is not a requirement"),
        ("app in x", "'app in x' is not a requirement"),
        ("appin (x)", "'appin (x)' is not a requirement"),
        ("app in (x", "'app in (x' is not a requirement"),
        ("app=x=y", "'app=x=y' is not a requirement"),
        ("app in (a b)", "'a b' is not the value of a label"),
        ("-app", "'-app' is not the key of a label"),
        ("app=-", "'-' is not the value of a label"),
        ("size>ten", "'ten' is not an integer"),
        ("size>", "'' is not an integer"),
        ({"app": 1}, "Expected `str`, got `int`"),
        ({"app": {"matchLabels": {}}}, "Expected `str`, got `object`"),
        ({"matchLabels": {}, "app": "x"}, "Expected `str`, got `object`"),
        ({"matchLabels": "x"}, "got `str`"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "In of 'a' has no values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}, "Exists of 'a' has values"),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "the operator 'Gt' is not one of In"),
        ({"matchExpressions": [{"key": "a"}]}, "missing required field `operator`"),
        (["app=x"], "use a text or a mapping"),
    ],
)
def test_a_malformed_selector_is_refused_in_one_sentence(selector: Any, why: str) -> None:
    with pytest.raises(OptionError, match=re.escape(why)) as refused:
        requirements_of(selector)
    assert str(refused.value).startswith(f"{selector!r} is not a label selector: ")
    assert str(refused.value).endswith("; write for example 'app=web,tier in (a,b),!old'")


LABEL_VALUES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,3}[a-z0-9])?", fullmatch=True)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, LABEL_VALUES, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Requirement,
        LABEL_VALUES,
        st.sampled_from(["In", "NotIn"]),
        st.lists(LABEL_VALUES, min_size=1, max_size=3).map(tuple),
    ),
)


def written(requirement: Requirement) -> str:
    key, values = requirement.key, ",".join(requirement.values)
    forms = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
    return forms[requirement.operator]


@given(requirements=st.lists(REQUIREMENTS, max_size=4), labels=st.dictionaries(LABEL_VALUES, LABEL_VALUES, max_size=4))
def test_a_text_and_a_mapping_select_the_same(requirements: list[Requirement], labels: dict[str, str]) -> None:
    text = requirements_of(",".join(map(written, requirements)))
    mapping = requirements_of({"matchExpressions": [msgspec.to_builtins(each) for each in requirements]})

    assert text == mapping == tuple(requirements)
    assert hold(text, labels) == all(
        {
            "In": labels.get(each.key) in each.values,
            "NotIn": labels.get(each.key) not in each.values,
            "Exists": each.key in labels,
            "DoesNotExist": each.key not in labels,
        }[each.operator]
        for each in requirements
    )


@given(text=st.text(alphabet="ain=!<>(), x-/.", max_size=12))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(OptionError):
        requirements_of(text)
