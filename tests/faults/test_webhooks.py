"""Webhooks that fail, as the user who writes an object meets them; W10 to W20 of docs/reliability.md."""

from __future__ import annotations

import signal
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from bonny.resource import Resource
from bonny.tls import certificates
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from bonny_dev.crd.definition import crds
from bonny_dev.local_webhooks import Loopback
from bonny_dev.manifest.webhooks import webhooks
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.admin import AdminAnswer
from bonny_dev.sandbox.ports import free_ports
from tests.conftest import Start
from tests.support.processes import OperatorProcess
from tests.support.relay import Relay
from tests.support.reviewing import GROUP, SECRET, operator

CRATES: Final = f"/apis/{GROUP}/{{}}/namespaces/default/crates"
BOXES: Final = f"/apis/{GROUP}/v1/namespaces/default/boxes"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
TRY: Final = "?dryRun=All"
REVIEWING: Final = Path(__file__).parent.parent / "support" / "reviewing.py"
MERGE: Final = "application/merge-patch+json"
# A changed configuration is in force after 0.03 s; starting a process takes seconds on a busy machine.
SEEN_SECONDS: Final = 40.0


def box(name: str, mode: str = "good") -> Resource:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": {"name": name}, "spec": {"mode": mode}}


def config_map(name: str, **data: str) -> Resource:
    metadata = {"name": name, "labels": {"reviewed": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Reviewed:
    """The operator behind a relay, which stands for its Service, and what a user of the API server reads."""

    def __init__(self, sandbox: Sandbox, relay: Relay, folder: Path, start: Start) -> None:
        self.sandbox = sandbox
        self.relay = relay
        self.folder = folder
        self._start = start
        self.valid = certificates.issue(["localhost"], ["127.0.0.1"])
        self.expired = certificates.issue(["localhost"], ["127.0.0.1"], days=-0.01)
        self.certify(self.valid)
        (folder / BUNDLE).write_bytes(self.valid.ca + self.expired.ca)
        loopback = Loopback(port=relay.port, folder=folder)
        sandbox.apply(loopback.crds(operator, "operators"))
        sandbox.apply([loopback.called(each) for each in webhooks(operator, "operators")])

    def certify(self, issued: certificates.Issued) -> None:
        """Give the replicas this certificate."""
        (self.folder / CERTIFICATE).write_bytes(issued.certificate)
        (self.folder / KEY).write_bytes(issued.key)

    def join(self, **settings: str) -> tuple[OperatorProcess, int]:
        """One more replica, ready, and its port; it gets no connections yet."""
        (port,) = free_ports(1)
        process = self._start(
            [sys.executable, str(REVIEWING)],
            BONNY_WEBHOOK_PORT=str(port),
            BONNY_WEBHOOK_CERTIFICATE=str(self.folder),
            **settings,
        )
        return process.wait_ready(), port

    def begin(self, **settings: str) -> OperatorProcess:
        """One replica that gets all connections; returns when its webhooks are in force."""
        process, port = self.join(**settings)
        self.relay.targets = (port,)
        self.sandbox.eventually(lambda: self.tried("bad").status == 422, within_seconds=SEEN_SECONDS)
        self.sandbox.eventually(lambda: self.stored_colour("first") == "red", within_seconds=SEEN_SECONDS)
        return process

    def tried(self, mode: str) -> AdminAnswer:
        """The answer to a dry run."""
        return self.sandbox.request("POST", BOXES + TRY, box("tried", mode))

    def stored_colour(self, name: str) -> Any:
        """Create a box unless it is there, and return the colour that `default` gave it."""
        self.sandbox.request("POST", BOXES, box(name))
        stored = self.sandbox.request("GET", f"{BOXES}/{name}").body
        return stored.get("spec", {}).get("colour")


@pytest.fixture(scope="module", autouse=True)
def _served(sandbox: Sandbox) -> Iterator[None]:
    definitions = crds(operator.crds, GROUP)
    sandbox.apply(definitions)
    sandbox.eventually(lambda: sandbox.request("GET", BOXES).status == 200)
    yield
    for each in definitions:
        without = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        name = each["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        assert sandbox.request("PATCH", path, without, content_type=MERGE).status == 200
        assert sandbox.request("DELETE", path).status == 200


@pytest.fixture
def reviewed(sandbox: Sandbox, start_operator: Start, tmp_path: Path) -> Iterator[Reviewed]:
    folder = tmp_path / "certificate"
    folder.mkdir()
    with Relay() as relay:
        yield Reviewed(sandbox, relay, folder, start_operator)
    for each in webhooks(operator, "operators"):
        sandbox.delete(each["apiVersion"], each["kind"], each["metadata"]["name"])
    for each in sandbox.request("GET", BOXES).body["items"]:
        # No replica is left that would remove its finalizer.
        path = f"{BOXES}/{each['metadata']['name']}"
        sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
    for path in (BOXES, CONFIG_MAPS):
        sandbox.request("DELETE", path)


def test_w10_while_no_replica_answers_only_writes_of_own_kinds_are_refused(reviewed: Reviewed) -> None:
    sandbox = reviewed.sandbox
    gone = reviewed.begin()
    sandbox.eventually(lambda: sandbox.request("GET", f"{BOXES}/first").body["metadata"].get("finalizers"))
    gone.process.kill()
    gone.process.wait()
    reviewed.relay.cut()

    refused = reviewed.tried("good")
    assert refused.status == 500
    assert 'failed calling webhook "box-admission.' in refused.body["message"]
    assert sandbox.request("POST", CONFIG_MAPS + TRY, config_map("foreign", bad="yes")).status == 201, "it fails open"
    # Deleting an own object, and what then removes its finalizer, does not depend on the webhook.
    path = f"{BOXES}/first"
    assert sandbox.request("DELETE", path).status == 200
    assert sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE).status == 200
    assert sandbox.request("GET", path).status == 404

    reviewed.begin()
    assert sandbox.request("POST", CONFIG_MAPS + TRY, config_map("foreign", bad="yes")).status == 422


@pytest.mark.parametrize("mode", ["waits", "blocks-a-thread"])
def test_w11_a_handler_that_does_not_end_is_given_up_in_time_and_delays_no_other(reviewed: Reviewed, mode: str) -> None:
    process = reviewed.begin()
    ended = threading.Event()
    with ThreadPoolExecutor(5) as users:
        slow = [users.submit(reviewed.tried, mode) for _ in range(5)]
        slow[0].add_done_callback(lambda _: ended.set())
        meanwhile = 0
        while not ended.is_set():
            assert reviewed.tried("good").status == 201
            meanwhile += 1
        answers = [each.result() for each in slow]
    assert {answer.status for answer in answers} == {500}
    assert all("of reviewing did not answer within 1.5 s" in answer.body["message"] for answer in answers)
    assert meanwhile > 5
    assert process.process.poll() is None


@pytest.mark.parametrize("mode", ["raises", "exits"])
def test_w12_an_error_of_a_handler_is_an_error_of_this_write_and_shows_no_value(reviewed: Reviewed, mode: str) -> None:
    process = reviewed.begin()
    refused = reviewed.tried(mode)
    assert refused.status == 500
    assert "BoxAdmission of reviewing failed: see the log of the operator" in refused.body["message"]
    assert SECRET not in str(refused.body)
    (line,) = process.lines("webhook failed")
    assert (line["webhook"], line["operation"]) == ("BoxAdmission", "CREATE")
    assert reviewed.tried("good").status == 201


def test_w13_clients_that_send_garbage_or_nothing_hold_up_no_review(reviewed: Reviewed) -> None:
    process = reviewed.begin()
    (port,) = reviewed.relay.targets
    address = "127.0.0.1", port
    idle = [socket.create_connection(address) for _ in range(200)]
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(600), bytes(100_000)):
        with socket.create_connection(address) as garbage, suppress(OSError):
            garbage.sendall(sent)
    context = ssl.create_default_context(cafile=reviewed.folder / BUNDLE)
    with context.wrap_socket(socket.create_connection(address), server_hostname="localhost") as client:
        client.sendall(b"POST /validate/box-admission HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n{}[]{}[]")
        assert client.recv(12) == b"HTTP/1.1 400"
    assert reviewed.tried("good").status == 201
    assert reviewed.tried("bad").status == 422
    assert process.process.poll() is None
    for each in idle:
        each.close()


def test_w14_an_expired_certificate_refuses_writes_until_another_one_is_there(reviewed: Reviewed) -> None:
    """The replica reads the new one without a restart. A connection that is open is not verified again."""
    reviewed.begin()
    reviewed.certify(reviewed.expired)

    def refusal() -> str:
        reviewed.relay.cut()
        return str(reviewed.tried("good").body.get("message", ""))

    reviewed.sandbox.eventually(lambda: "certificate has expired" in refusal(), within_seconds=SEEN_SECONDS)
    reviewed.certify(reviewed.valid)
    reviewed.sandbox.eventually(lambda: refusal() == "", within_seconds=SEEN_SECONDS)


def test_w17_reviews_continue_after_the_api_server_was_restarted(reviewed: Reviewed) -> None:
    process = reviewed.begin()
    sandbox = reviewed.sandbox
    sandbox.apiserver.kill()
    sandbox.apiserver.start()
    sandbox.eventually(lambda: reviewed.tried("bad").status == 422, within_seconds=SEEN_SECONDS)
    assert reviewed.tried("good").status == 201
    assert process.process.poll() is None


def test_w18_replicas_that_are_replaced_one_by_one_refuse_no_write(reviewed: Reviewed) -> None:
    """As a rolling update: the Service drops a pod when it is told to end, and it still answers for a while."""
    first = reviewed.begin(BONNY_DRAIN_SECONDS="3")
    stopped = threading.Event()
    answers: list[AdminAnswer] = []

    def write() -> None:
        while not stopped.is_set():
            answers.append(reviewed.tried("good"))

    with ThreadPoolExecutor(4) as users:
        for _ in range(4):
            users.submit(write)
        second, port = reviewed.join(BONNY_DRAIN_SECONDS="3")
        reviewed.relay.targets = (*reviewed.relay.targets, port)
        enough = len(answers) + 50
        reviewed.sandbox.eventually(lambda: len(answers) > enough, within_seconds=SEEN_SECONDS)
        first.process.send_signal(signal.SIGTERM)
        # New connections go to the ended pod for a moment more, as they do until every node has heard of it.
        enough = len(answers) + 20
        reviewed.sandbox.eventually(lambda: len(answers) > enough, within_seconds=SEEN_SECONDS)
        reviewed.relay.targets = (port,)
        assert first.process.wait(30) == 0
        enough = len(answers) + 50
        reviewed.sandbox.eventually(lambda: len(answers) > enough, within_seconds=SEEN_SECONDS)
        stopped.set()
    assert {answer.status for answer in answers} == {201}
    assert second.process.poll() is None


def test_w19_a_configuration_that_outlives_its_operator_holds_up_nothing_else(reviewed: Reviewed) -> None:
    """The operator's namespace was deleted, and with it the Service, the Secret and all replicas."""
    sandbox = reviewed.sandbox
    for path in (
        "/api/v1/namespaces",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "/api/v1/namespaces/default/secrets",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ):
        (like, *_) = sandbox.request("GET", path).body["items"] or [None]
        if like is None:
            continue
        patched = sandbox.request(
            "PATCH", f"{path}/{like['metadata']['name']}{TRY}", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE
        )
        assert patched.status == 200, path
    assert sandbox.request("POST", CONFIG_MAPS + TRY, config_map("foreign")).status == 201
    assert reviewed.tried("good").status == 500
    for each in webhooks(operator, "operators"):
        sandbox.delete(each["apiVersion"], each["kind"], each["metadata"]["name"])
    sandbox.eventually(lambda: reviewed.tried("bad").status == 201)


def test_w20_while_no_replica_converts_the_stored_version_still_works(reviewed: Reviewed) -> None:
    sandbox, old, stored = reviewed.sandbox, CRATES.format("v1"), CRATES.format("v2")
    gone = reviewed.begin()
    crate = {"apiVersion": f"{GROUP}/v2", "kind": "Crate", "metadata": {"name": "c"}, "spec": {"width": 3}}
    # A definition that was just changed answers 429 for a moment.
    sandbox.eventually(lambda: sandbox.request("POST", stored, crate).status in (201, 409), within_seconds=SEEN_SECONDS)
    sandbox.eventually(lambda: sandbox.request("GET", f"{old}/c").body.get("spec") == {"size": 3})
    gone.process.kill()
    gone.process.wait()
    reviewed.relay.cut()

    refused = sandbox.request("GET", f"{old}/c")
    assert (refused.status, "conversion webhook for" in refused.body["message"]) == (500, True)
    changed = sandbox.request("PATCH", f"{stored}/c", {"spec": {"width": 4}}, content_type=MERGE)
    assert changed.status == 200
    assert [each["spec"] for each in sandbox.request("GET", stored).body["items"]] == [{"width": 4}]

    reviewed.begin()
    sandbox.eventually(
        lambda: sandbox.request("GET", f"{old}/c").body.get("spec") == {"size": 4}, within_seconds=SEEN_SECONDS
    )
    # A list was refused once a moment after the object itself was served.
    sandbox.eventually(
        lambda: [each["spec"] for each in sandbox.request("GET", old).body.get("items", ())] == [{"size": 4}],
        within_seconds=SEEN_SECONDS,
    )
    assert sandbox.request("DELETE", f"{stored}/c").status == 200
