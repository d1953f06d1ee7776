"""The reference page of telemetry: it lists what there is, all of it and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import PROCESS_COLLECTOR

import bonny
from bonny import telemetry
from bonny.client.metering import Requests
from bonny.run.metrics import families
from bonny.scheduler.metrics import families as of_schedulers
from bonny.telemetry import tracing
from bonny.webhooks.serving import WebhookRun
from tests.support.metered import assembled, full_name, labels_of
from tests.support.telemetry_page import Keys, code, events, keys, table
from tests.support.traced import collecting, told
from tests.unit.test_tracing import axn_of

RUNTIME = Path(bonny.__file__).parent
DEVELOPMENT = {"tasks", "scaffold", "sandbox", "testing", "manifest"}
# Of the step `Logger`, and those of events, whose messages are their names.
VARIABLE = {"message", "name"}


def test_every_event_has_a_row() -> None:
    rows = [code(row[0]) for row in table("event")]
    assert len(set(rows)) == len(rows)
    assert set(rows) == set(telemetry.EVENTS)


async def test_every_metric_has_a_row_as_a_scrape_tells_it() -> None:
    """`tests/support/heard.py` compares the keys of events with the page wherever a test hears one."""
    process = await assembled()
    process.extras.append(WebhookRun(process))
    there = {
        full_name(family): (family.type, labels_of(family), family.documentation)
        for family in (
            *families(process),
            *of_schedulers(()),
            *PROCESS_COLLECTOR.collect(),
        )
    }
    rows = {code(name): (type_, keys(labels).always, meaning) for name, type_, labels, meaning in table("metric")}
    assert rows == there


def test_every_alert_has_a_row() -> None:
    loaded: dict[str, Any] = yaml.safe_load(files("bonny_dev.manifest").joinpath("alerts.yaml").read_text("utf-8"))
    rules = [rule for group in loaded["groups"] for rule in group["rules"]]
    there = {rule["alert"]: (rule["labels"]["severity"], rule.get("for", "at once")) for rule in rules}
    assert {code(name): (severity, after) for name, severity, after, _ in table("alert")} == there


# --- logs -------------------------------------------------------------------------------------------------------------


def logged() -> Iterator[tuple[str, str]]:
    """The messages of the runtime and their levels; no level where that is not constant."""
    for path in sorted(RUNTIME.rglob("*.py")):
        if path.relative_to(RUNTIME).parts[0] not in DEVELOPMENT:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield from message(node)


def message(call: ast.Call) -> Iterator[tuple[str, str]]:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr="log"), args=[_, text, *_]):
            level = ""
        case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr=level), args=[text, *_]):
            if level == "isEnabledFor":
                return
        case ast.Call(func=ast.Name("report"), args=[ast.Attribute(attr=level), text, *_]):
            pass
        case ast.Call(func=ast.Attribute(attr="run"), args=[ast.Attribute(value=ast.Name("log"), attr=level), text]):
            pass
        case _:
            return
    if isinstance(text, ast.Constant):
        yield str(text.value), {"exception": "error"}.get(level, level)
    else:
        assert isinstance(text, ast.Name), f"line {call.lineno}: a message is a constant"
        assert text.id in VARIABLE, f"line {call.lineno}: a message is a constant"


def test_every_message_has_a_row_with_its_level() -> None:
    rows = {text: set(levels.split(", ")) for text, levels, _ in table("message")}
    found = list(logged())
    assert {text for text, _ in found} == set(rows)
    for text, level in found:
        assert not level or rows[text] == {level}, text
    assert all(levels <= {"debug", "info", "warning", "error"} for levels in rows.values())


def test_a_call_that_logs_a_text_made_of_values_is_noticed() -> None:
    (statement,) = ast.parse('log.info(f"object {name}")').body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    with pytest.raises(AssertionError, match="a message is a constant"):
        list(message(statement.value))


# --- traces -----------------------------------------------------------------------------------------------------------


async def test_every_attribute_of_a_span_has_its_place() -> None:
    rows = {row[0]: keys(row[2]) for row in table("span")}

    async def step() -> None:
        with Requests().under_way("GET", "/version") as request:
            request.answered(404)

    with collecting() as collected:
        assert tracing.spans is not None
        with tracing.spans.handling(axn_of(), controller="Maps"):
            await tracing.spans.step("step", step())
        with pytest.raises(ValueError, match="no"), tracing.spans.handling(axn_of(), controller="Maps"):
            raise ValueError("no")

    seen = {name: Keys(frozenset(), frozenset()) for name in rows}
    for name, span in zip(("request (client)", "step", "handling", "handling"), collected.spans, strict=True):
        found = frozenset(told(span))
        assert rows[name].admit(found), (name, found)
        seen[name] = Keys(frozenset(), seen[name].may | found)
    assert seen["handling"].may == rows["handling"].always | rows["handling"].may
    assert seen["request (client)"].may == rows["request (client)"].always | rows["request (client)"].may


def test_an_event_is_told_with_the_keys_of_its_row() -> None:
    figures, metadata = events()["bonny.watcher.watch.failed"]
    assert figures == Keys(frozenset(), frozenset())
    assert metadata == Keys(frozenset({"stream"}), frozenset({"status", "error"}))
    assert metadata.admit(frozenset({"stream", "error"}))
    assert not metadata.admit(frozenset({"error"}))
    assert not metadata.admit(frozenset({"stream", "reason"}))
