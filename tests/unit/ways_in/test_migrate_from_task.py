"""`invoke migrate-from` as a task: its options and what it refuses. Its work is in `integration/test_take_over.py`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from bonny import Controller, Operator
from bonny_dev import tasks
from bonny_dev.project import Project
from bonny_dev.tasks import migrate_from
from bonny_dev.ways_in.sources import SOURCES, Traces, chosen
from tests.support.widget import Widget


class Widgets(Controller[Widget]):
    """Does nothing."""

    async def reconcile(self, axn: Any) -> None: ...


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the task asks for."""
    asked: list[dict[str, Any]] = []

    async def take_over(cluster: Any, operator: Any, traces: Traces, **options: Any) -> bool:
        asked.append({"traces": traces, **options})
        return not options["back"]

    operator = Operator(name="widgets", group="example.com", controllers=[Widgets])
    monkeypatch.setattr(Project, "at", lambda root: SimpleNamespace(load_operator=lambda: operator))
    monkeypatch.setattr(migrate_from, "cluster_of", str)
    monkeypatch.setattr(migrate_from, "take_over", take_over)
    return asked


def run(folder: Path, source: str, **options: Any) -> None:
    tasks.move_from.body(cast("Context", SimpleNamespace(root=str(folder))), source, **options)


def test_names_that_are_given_come_before_the_names_of_the_source(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    run(tmp_path, "kopf", finalizer=["example.com/a,example.com/b"], manager=["python-httpx"], dry_run=True)

    (asked,) = calls
    assert asked["traces"].finalizers == ("example.com/a", "example.com/b", *SOURCES["kopf"].finalizers)
    assert asked["traces"].managers[-1] == "python-httpx"
    assert (asked["dry_run"], asked["back"]) == (True, False)


def test_an_object_that_is_left_gives_code_1(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(Exit) as raised:
        run(tmp_path, "kopf", back=True)
    assert raised.value.code == 1


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("rails", {}, "'rails' is not a source: use one of kopf, kubebuilder"),
        ("kopf", {"finalizer": ["cleanup"]}, "'cleanup' is not the name of a finalizer"),
        ("kopf", {"back": True, "manager": ["x"]}, "--back changes finalizers only"),
        ("bonny", {"code": "x.py"}, "--code reads modules of kopf only"),
        ("kopf", {"code": "x.py", "context": "prod"}, "--code does not touch the cluster"),
        ("kopf", {"code": "x.py"}, "--code x.py cannot be read"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_with_code_2(
    source: str, options: dict[str, Any], sentence: str, calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(Exit, match=sentence) as raised:
        run(tmp_path, source, **options)
    assert (raised.value.code, calls) == (2, [])


def test_a_pattern_that_ends_with_a_slash_stands_for_all_names_that_begin_with_it() -> None:
    names = ["kopf.zalando.org/x", "kopf.zalando.org", "example.com/y", "example.com/z"]

    assert chosen(names, ["kopf.zalando.org/", "example.com/z"]) == ["kopf.zalando.org/x", "example.com/z"]
    assert chosen(names, []) == []


def test_each_source_leaves_traces_whose_names_the_help_lists() -> None:
    assert [name for name, traces in SOURCES.items() if not (traces.managers or traces.finalizers)] == []
    text = tasks.move_from.help["source"]
    assert [name for name in SOURCES if name not in text] == []
