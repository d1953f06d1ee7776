"""The page of `invoke console`: its data, whom it refuses, what its buttons do, and the page itself in Chromium."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest

from bonny.client.config import Kubeconfig
from bonny.console.settings import ConsoleSettings
from bonny.errors import UsageError
from bonny.resource import PAUSED, RECONCILE_AT
from bonny_dev.console import command
from bonny_dev.console.changes import HIDDEN
from bonny_dev.manifest.recorder import NOT_RECORDED
from bonny_dev.sandbox import Sandbox
from tests.support.watched import GROUP, TOKEN, exchange, operator, page, serving, watched

API = f"/apis/{GROUP}/v1/namespaces/default/clocks"


class Page:
    """A client of the page."""

    def __init__(self, link: str, inside: int) -> None:
        self.link, self.inside = link, inside
        address, _, self.token = link.partition("/#")
        self.port = int(address.rpartition(":")[2])

    def get(self, path: str, **query: str) -> Any:
        headers = {"X-Console-Token": self.token}
        status, body, _ = exchange(self.port, f"{path}?{urlencode(query)}", **headers)
        assert status == 200, body
        return json.loads(body)

    def act(self, name: str, action: str, **more: str) -> tuple[int, Any]:
        asked = {"kind": "clocks", "namespace": "default", "name": name, "action": action, **more}
        headers = {"X-Console-Token": self.token}
        status, body, _ = exchange(self.port, "/api/act", method="POST", body=asked, **headers)
        return status, json.loads(body)


@pytest.fixture(scope="module")
def shown(sandbox: Sandbox) -> Iterator[Page]:
    with watched(sandbox) as inside, page(sandbox, inside) as link:
        found = Page(link, inside)
        Sandbox.eventually(lambda: found.get("/api/objects", kind="clocks")["total"] == 4)
        wanted = {"calm": "succeeded", "late": "waiting", "broken": "failed", "hostile": "waiting"}
        Sandbox.eventually(lambda: outcomes(found) == wanted)
        yield found


def outcomes(shown: Page, **query: str) -> dict[str, str]:
    rows = shown.get("/api/objects", kind="clocks", **query)["rows"]
    return {row["name"]: row["outcome"] for row in rows}


def test_the_list_of_objects_can_be_searched_and_filtered(shown: Page) -> None:
    assert next(iter(outcomes(shown))) == "broken"
    assert [*outcomes(shown, search="lat")] == ["late"]
    assert {*outcomes(shown, outcome="waiting")} == {"late", "hostile"}
    assert outcomes(shown, search="lat", outcome="failed") == {}


def test_an_object_has_its_answers_and_its_runs(shown: Page) -> None:
    found = shown.get("/api/object", kind="clocks", namespace="default", name="broken")
    assert len(found["answers"]) == 10
    assert found["verdict"]["question"] == "error"
    assert found["inside"]["runs"][0]["outcome"] == "failed"
    assert "secret value" not in json.dumps(found)


def test_a_run_shows_which_fields_it_wrote(shown: Page, sandbox: Sandbox) -> None:
    def writes() -> list[dict[str, Any]]:
        found = shown.get("/api/object", kind="clocks", namespace="default", name="calm")
        return [each for run in found["inside"]["runs"] for each in run["writes"]]

    assert shown.act("calm", "reconcile") == (200, {})
    Sandbox.eventually(lambda: any("~status.conditions[].message" in (each["fields"] or ()) for each in writes()))
    secret = "/api/v1/namespaces/default/secrets/calm"
    sandbox.delete("v1", "Secret", "calm", namespace="default")
    made = [["+metadata", HIDDEN]]
    Sandbox.eventually(
        lambda: [each["fields"] for each in writes() if each["path"] == secret and each["fields"]] == made
    )
    assert "very secret" not in json.dumps(writes())


def test_permissions_are_used_unused_or_missing(shown: Page) -> None:
    found = shown.get("/api/permissions")
    assert found["problem"] is None
    assert any('"clocks"' in line and '"list"' in line for line in found["used"])
    assert any('"leases"' in line for line in found["unused"])  # the test serves without leader election
    assert found["refused"] == []


def test_its_buttons_write_annotations(shown: Page, sandbox: Sandbox) -> None:
    def annotations() -> dict[str, str]:
        found: dict[str, str] = sandbox.request("GET", f"{API}/calm").body["metadata"].get("annotations") or {}
        return found

    assert shown.act("calm", "pause") == (200, {})
    assert annotations()[PAUSED] == "true"
    Sandbox.eventually(lambda: shown.get("/api/object", kind="clocks", namespace="default", name="calm")["paused"])
    assert shown.act("calm", "resume") == (200, {})
    assert PAUSED not in annotations()
    assert shown.act("calm", "reconcile") == (200, {})
    asked = annotations()[RECONCILE_AT]

    def handled() -> bool:
        live = sandbox.request("GET", f"{API}/calm").body
        return any(each["message"].endswith(asked) for each in live["status"]["conditions"])

    Sandbox.eventually(handled)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"action": "delete"}, "'delete' is not an action: use pause, resume, reconcile"),
        ({"kind": "secrets"}, "watched has no kind 'secrets': it has clocks"),
        ({"name": "nobody"}, "cannot patch clocks.watched.example.com default/nobody (404)"),
    ],
)
def test_an_impossible_action_is_one_sentence(shown: Page, change: dict[str, str], problem: str) -> None:
    asked = {"name": "calm", "action": "pause", **change}
    status, found = shown.act(**asked)
    assert status == 422
    assert problem in found["problem"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-Console-Token": "wrong"}, 401),
        ({"Cookie": "X-Console-Token={token}"}, 401),
        ({"X-Console-Token": "{token}", "Host": "evil.example.com"}, 403),
        ({"X-Console-Token": "{token}", "Host": "localhost"}, 403),
        ({"X-Console-Token": "{token}", "Origin": "http://evil.example.com"}, 403),
        ({"X-Console-Token": "{token}", "Origin": "null"}, 403),
        ({"X-Console-Token": "{token}", "Origin": "http://127.0.0.1:{port}"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/api/overview", "/api/act"])
def test_it_refuses_strangers(shown: Page, path: str, headers: dict[str, str], status: int) -> None:
    """Pages of other origins, after DNS rebinding too, and other users of the machine."""
    given = {name: value.format(token=shown.token, port=shown.port) for name, value in headers.items()}
    asked: dict[str, str] = {}
    method, body = ("POST", asked) if path.endswith("act") else ("GET", None)
    found, _, answered = exchange(shown.port, path, method=method, body=body, **given)
    # A request that may act, and names no object, is a bad one.
    assert found == (400 if (path, status) == ("/api/act", 200) else status)
    assert [name for name in answered if name.startswith("access-control-")] == []


def test_nothing_is_changed_by_a_get(shown: Page) -> None:
    query = urlencode({"kind": "clocks", "namespace": "default", "name": "calm", "action": "pause"})
    assert exchange(shown.port, f"/api/act?{query}", **{"X-Console-Token": shown.token})[0] == 405


class Loads(HTMLParser):
    """Notes everything that a page would load, and handlers in attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "srcset", "data") or name[:2] == "on"]
        self.found += [tag for name, _ in attrs if tag == "link" and name == "href"]


def test_the_page_is_one_file_that_loads_nothing(shown: Page) -> None:
    status, body, headers = exchange(shown.port, "/")
    text = body.decode()
    assert (status, len(body) < 100_000) == (200, True)
    loads = Loads()
    loads.feed(text)
    assert loads.found == []
    assert re.findall(r"https?://", text) == []
    assert not re.search(r"innerHTML\s*=[^=]|insertAdjacentHTML|document\.write|\beval\(", text)
    nonce = re.search(r"'nonce-([\w-]+)'", headers["content-security-policy"])
    assert nonce is not None
    assert headers["content-security-policy"].startswith("default-src 'none'; ")
    assert text.count(f'nonce="{nonce[1]}"') == 2
    assert shown.token not in text


def test_without_the_operators_console_a_sentence_shows_how_to_have_it(sandbox: Sandbox, shown: Page) -> None:
    with page(sandbox, None) as link:
        other = Page(link, 0)
        Sandbox.eventually(lambda: other.get("/api/objects", kind="clocks")["total"] == 4)
        assert other.get("/api/overview")["inside"]["problem"].startswith("the operator's memory is not shown: no pod")
        found = other.get("/api/object", kind="clocks", namespace="default", name="late")
        assert found["verdict"]["text"].endswith("it is not noon yet")
    with page(sandbox, 1) as link:
        problem = Page(link, 0).get("/api/overview")["inside"]["problem"]
        assert problem == "the operator at http://127.0.0.1:1 does not answer (ClientConnectorError)"


def test_top_prints_queues_retries_and_streams(
    shown: Page, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Kubeconfig(str(sandbox.kubeconfig))

    def top(url: str) -> tuple[int, list[str]]:
        code = command.top(cluster, operator(), namespace="watched", url=url, once=True)
        return code, capsys.readouterr().out.splitlines()

    monkeypatch.setenv("BONNY_CONSOLE_TOKEN", TOKEN)
    code, lines = top(f"http://127.0.0.1:{shown.inside}")
    assert (code, lines[0]) == (0, "watched 1.2.3 test leads")
    assert [line.split()[:2] for line in lines if line.startswith("ClockController")] == [["ClockController", "0/10"]]
    retries = [line for line in lines if line.startswith("  retry    default/broken in ")]
    assert retries[0].endswith(": RuntimeError: see the operator's log")
    streams = [line.split() for line in lines if line.startswith(f"clocks.{GROUP} ")]
    assert [(line[:2], line[-2:]) for line in streams] == [([f"clocks.{GROUP}", "4"], ["in", "sync"])]
    assert top("http://127.0.0.1:1") == (
        1,
        ["the operator at http://127.0.0.1:1 does not answer (ClientConnectorError)"],
    )
    assert top("") == (1, ["the operator's memory is not shown: no pod of watched is ready in the namespace watched"])
    with pytest.raises(UsageError, match=r"'http://example.com': write for example http://127\.0\.0\.1:8090"):
        top("http://example.com")


def test_beside_an_operator_on_this_machine_both_know_port_and_token(
    shown: Page, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `invoke run-local` does with the extra."""
    printed = ""

    def announced() -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return "Ctrl-C ends it" in printed

    with command.beside(Kubeconfig(str(sandbox.kubeconfig)), operator(), namespace="watched") as (port, token):
        Sandbox.eventually(announced, within_seconds=30.0)
        found = Page(printed.split()[4].rstrip(";"), 0)
        assert found.get("/api/overview")["inside"]["problem"].startswith(f"the operator at http://127.0.0.1:{port} ")
        with serving(operator(), sandbox.kubeconfig, ConsoleSettings(port=port, token=token)):
            assert found.get("/api/overview")["inside"]["operator"] == "watched"
    assert [thread.name for thread in threading.enumerate() if thread.name == NOT_RECORDED] == []
