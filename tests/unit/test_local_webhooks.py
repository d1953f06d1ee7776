"""`bonny_dev.local_webhooks`: how an API server of this machine is led to a process of this machine."""

from __future__ import annotations

import base64
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bonny import Operator, Spec, Version
from bonny.client.config import Kubeconfig
from bonny.policies import ValidatingAdmissionPolicy, Validation
from bonny.resource import Resource
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from bonny.webhooks import Admission, Review
from bonny_dev.local_webhooks import Loopback
from bonny_dev.manifest.recorder import NOT_RECORDED
from bonny_dev.manifest.webhooks import webhooks
from bonny_dev.tasks import run_local
from bonny_dev.tasks.options import LocalRun
from bonny_dev.tasks.provision import Account
from bonny_dev.tasks.run_local import CALLED_IN, _once_it_answers, _webhooks
from tests.support.things import Thing


class ThingAdmission(Admission[Thing]):
    """With both kinds of reviews."""

    def default(self, review: Review[Thing]) -> None:
        """Changes nothing."""

    def validate(self, review: Review[Thing]) -> None:
        """Refuses nothing."""


class OldThingSpec(Spec):
    """What the user wants."""

    length: int = 1


class OldThing(Version):
    """With another field, so that it is converted."""

    kind = "Thing"
    version = "v1alpha1"
    spec: OldThingSpec
    to_hub = staticmethod(dict)
    from_hub = staticmethod(dict)


OPERATOR = Operator(name="things", group="example.com", controllers=[ThingAdmission], crds=[Thing, OldThing])
SERVICE: Resource = {"service": {"name": "things-webhook", "namespace": "things", "path": "/convert", "port": 443}}
CONVERTED: Resource = {
    "kind": "CustomResourceDefinition",
    "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": SERVICE}}, "names": {}},
}


def authority(loopback: Loopback) -> str:
    return base64.b64encode((loopback.folder / BUNDLE).read_bytes()).decode()


def test_the_service_becomes_a_url_of_this_machine_and_all_else_stays(tmp_path: Path) -> None:
    loopback = Loopback.at(tmp_path)

    for before in webhooks(OPERATOR, "things"):
        after = loopback.called(before)
        (old,), (new,) = before["webhooks"], after["webhooks"]
        url = f"https://127.0.0.1:{loopback.port}{old['clientConfig']['service']['path']}"
        assert new == old | {"clientConfig": {"url": url, "caBundle": authority(loopback)}}
        assert after == before | {"webhooks": [new]}


def test_a_conversion_by_webhook_is_asked_for_here_and_another_document_stays(tmp_path: Path) -> None:
    loopback = Loopback.at(tmp_path)

    conversion = loopback.called(CONVERTED)["spec"]["conversion"]
    url = f"https://127.0.0.1:{loopback.port}/convert"
    assert conversion == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": url, "caBundle": authority(loopback)}},
    }
    for document in ({"kind": "CustomResourceDefinition", "spec": {"names": {}}}, {"kind": "ServiceAccount"}):
        assert loopback.called(document) == document


def test_the_next_run_has_the_same_port_and_certificate(tmp_path: Path) -> None:
    """Else what the API server knows would be wrong after a reload."""
    first = Loopback.at(tmp_path)
    certificate = (tmp_path / CERTIFICATE).read_bytes()

    assert Loopback.at(tmp_path) == first
    assert (tmp_path / CERTIFICATE).read_bytes() == certificate
    assert (tmp_path / KEY).stat().st_mode & 0o077 == 0


@contextmanager
def served(loopback: Loopback, folder: Path) -> Iterator[None]:
    """A server at the port of `loopback`, with the certificate in `folder`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    server = socket.create_server(("127.0.0.1", loopback.port))

    def serve() -> None:
        with suppress(OSError):
            while True:
                accepted, _ = server.accept()
                with suppress(ssl.SSLError):
                    context.wrap_socket(accepted, server_side=True).close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()


def test_only_a_server_with_this_certificate_counts(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    loopback, other = Loopback.at(tmp_path), Loopback.at(tmp_path / "other")

    assert not loopback.answers()
    with served(loopback, other.folder):
        assert not loopback.answers()
    with served(loopback, loopback.folder):
        assert loopback.answers()


def test_work_begins_when_the_server_answers_and_its_error_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real signal could meet this process anywhere, also outside of the test."""
    loopback = Loopback.at(tmp_path)
    sent: list[tuple[int, int]] = []
    interrupted = threading.Event()

    def kill(process: int, number: int) -> None:
        sent.append((process, number))
        interrupted.set()

    monkeypatch.setattr(os, "kill", kill)

    def work() -> None:
        raise RuntimeError("refused")

    with (
        served(loopback, loopback.folder),
        pytest.raises(RuntimeError, match="refused"),
        _once_it_answers(loopback, work),
    ):
        assert interrupted.wait(10)
    assert sent == [(os.getpid(), signal.SIGINT)]


@pytest.mark.parametrize(("sandbox", "shared"), [(True, False), (False, True), (False, False)])
def test_only_a_sandbox_is_led_to_this_machine(
    sandbox: bool,
    shared: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another API server would refuse all writes of a kind whose webhook it cannot reach."""
    called = sandbox or shared
    if shared:
        monkeypatch.setenv(CALLED_IN, str(tmp_path))

    with _webhooks(OPERATOR, LocalRun(sandbox=sandbox), Kubeconfig("config")) as (loopback, registered):
        assert loopback is not None
        assert (loopback.folder == tmp_path) == shared
        assert registered == (loopback if called else None)

    said = capsys.readouterr().out
    assert ("webhooks and conversions of the current context of config are left alone" in said) == (not called)
    assert ("--sandbox" in said) == (not called)
    assert ("the CRD of Thing is not installed" in said) == (not called)


def test_an_operator_without_webhooks_gets_no_certificate() -> None:
    bare = Operator(name="things", group="example.com", crds=[Thing])

    with _webhooks(bare, LocalRun(), Kubeconfig("config")) as found:
        assert found == (None, None)


@pytest.mark.parametrize("exempt", [True, False])
def test_policies_that_are_not_installed_are_named(
    exempt: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its own ServiceAccount, which policies exempt, the operator's writes could be refused by them."""

    async def installed(*_: object) -> list[str]:
        return ["things.example.com"]

    async def account(*_: object) -> Account:
        return Account(admin=Kubeconfig("config"), namespace="things", name="things")

    monkeypatch.setattr(run_local, "install_crds", installed)
    monkeypatch.setattr(run_local, "install_account", account)
    policies = [
        ValidatingAdmissionPolicy(name, resource=Thing, validations=(Validation("true", message="no"),))
        for name in ("small", "named")
    ]
    limited = Operator(name="things", group="example.com", crds=[Thing, *policies])

    run_local._provision(limited, LocalRun(sandbox=True, as_service_account=exempt), Kubeconfig("config"), [])

    said = "admission policies are not installed (small, named): to try them, use --as-service-account\n"
    assert (said in capsys.readouterr().out) == (not exempt)


def test_a_run_that_ends_first_does_no_work(tmp_path: Path) -> None:
    done: list[str] = []
    loopback = Loopback.at(tmp_path)

    with _once_it_answers(loopback, lambda: done.append("work")):
        (thread,) = (each for each in threading.enumerate() if each.name == NOT_RECORDED)
    with served(loopback, loopback.folder):
        thread.join()

    assert done == []
