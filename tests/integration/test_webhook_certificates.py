"""Certificates of webhooks on a real API server: filled, rotated and repaired while it calls a webhook all the time.

The manifest's own permissions and its guard are in force. Every call makes a new connection. Beside the writes, which
wait for each other, 100 reviews a second come straight from here.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import pytest

from bonny import Operator, Spec, Version
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.resource import Resource
from bonny.tls.issuer import Issuer
from bonny.tls.rotation import NEXT_CERTIFICATE
from bonny.tls.rotation import RotationStep as Step
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY, TlsSecret
from bonny.tls.serving import ServingCertificate
from bonny.webhooks import Admission, Review, names
from bonny.webhooks.ca_bundles import CaBundles
from bonny_dev.manifest.bundle import documents
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer, collection

pytestmark = pytest.mark.server

NAME: Final = "stalls-operator"
GROUP: Final = "stalls.example.com"
# Far more than a step takes, on a loaded machine too.
SECONDS: Final = 30.0
# What the server is asked in a second; a loaded machine may reach less.
RATE: Final = 100
# Connections that are open at a time. Each takes some milliseconds.
OPEN: Final = 50
# So many writes after a step: API servers and replicas have seen it, and have used it.
WRITES: Final = 5


class StallSpec(Spec):
    """What the user wants."""

    seats: int = 1


class Stall(Version):
    """A kind that is reviewed and converted."""

    kind = "Stall"
    version = "v2"
    storage = True
    hub = True
    spec: StallSpec


class OldStallSpec(Spec):
    """As it was."""

    chairs: int = 1


class OldStall(Version):
    """A version whose fields differ."""

    kind = "Stall"
    version = "v1"
    spec: OldStallSpec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        return {**resource, "spec": {"seats": resource["spec"]["chairs"]}}

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        return {**resource, "spec": {"chairs": resource["spec"]["seats"]}}


class StallAdmission(Admission[Stall]):
    """Both configurations; the server of the test answers for it."""

    def default(self, review: Review[Stall]) -> None: ...

    def validate(self, review: Review[Stall]) -> None: ...


OPERATOR: Final = Operator(name=NAME, group=GROUP, crds=[Stall, OldStall], controllers=[StallAdmission])


def objects(port: int) -> list[Resource]:
    """The manifest, for an API server that calls this machine."""
    manifest = documents(OPERATOR, image="registry.example.com/stalls:1.0.0")
    for each in manifest:
        for client in clients(each):
            path = client.pop("service").get("path", "/convert")
            client["url"] = f"https://localhost:{port}{path}"
    return manifest


def clients(resource: Resource) -> list[Resource]:
    conversion = resource.get("spec", {}).get("conversion", {}).get("webhook")
    return [each["clientConfig"] for each in (*resource.get("webhooks", ()), *([conversion] if conversion else ()))]


def path(resource: Resource) -> str:
    return f"{collection(resource)}/{resource['metadata']['name']}"


class Reviews:
    """Reviews over new connections, as an API server opens them that trusts this bundle."""

    def __init__(self, port: int) -> None:
        self.failures: list[str] = []
        self.done = 0
        self._port = port
        self._open: set[asyncio.Task[None]] = set()

    async def trust(self, bundle: bytes) -> None:
        """Trust these CAs from now on; returns when no connection is open that trusts others."""
        self._context = ssl.create_default_context(cadata=bundle.decode())
        if before := set(self._open):
            await asyncio.wait(before)

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        began, number = clock(), 0
        while True:
            number += 1
            task = asyncio.create_task(self._send(str(number)))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            if len(self._open) >= OPEN:
                await asyncio.wait(self._open, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(began + number / RATE - clock())

    async def _send(self, uid: str) -> None:
        body = b'{"kind": "AdmissionReview", "request": {"uid": "%b"}}' % uid.encode()
        try:
            reader, writer = await asyncio.open_connection("localhost", self._port, ssl=self._context)
            writer.write(b"POST /validate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            answered = await reader.read()
            writer.close()
            assert json.loads(answered.partition(b"\r\n\r\n")[2])["response"] == {"uid": uid, "allowed": True}
            self.done += 1
        except (OSError, AssertionError, ValueError) as error:
            self.failures.append(repr(error))


class Secret(TlsSecret):
    """That of a server which is also called at localhost."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return (*super().hosts, "localhost")


def issuer_of(client: Client) -> Issuer:
    """A leader that has just begun, and does not wait for API servers to see its changes."""
    secret = Secret(*names.secret(OPERATOR, NAME))
    return Issuer(client, secret, spread=0.0, registry=CaBundles(client, OPERATOR, namespace=NAME))


class Place:
    """A server of webhooks with the production certificate, and writes that need it."""

    def __init__(self, sandbox: Sandbox, stack: AsyncExitStack) -> None:
        self.administrator = stack.enter_context(Administrator(sandbox))
        self.user = stack.enter_context(Administrator(sandbox))
        self.refused: list[str] = []
        self.writes = 0

    async def start(self, sandbox: Sandbox, stack: AsyncExitStack) -> None:
        self.follower = await stack.enter_async_context(
            Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="follows/1.0")
        )
        self.certificate = ServingCertificate(self.follower, names.secret(OPERATOR, NAME), OPERATOR.watch_options)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=self.certificate.context)
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        self.reviews = Reviews(port)
        self.manifest = objects(port)
        for each in self.manifest:
            answered = await asyncio.to_thread(self.administrator.apply, each)
            assert answered.status == 201, answered.message
        self._tasks = [asyncio.create_task(self.certificate.run())]
        account = sandbox.service_account_kubeconfig(NAME, NAME)
        self.client = await stack.enter_async_context(Client(Kubeconfig(str(account)), user_agent=f"{NAME}/1.0"))
        await self.until_guarded()

    async def until_guarded(self) -> None:
        """The guard works: else it would not be part of the test."""
        (found,) = (each for each in self.manifest if each["kind"] == "MutatingWebhookConfiguration")
        user = f"system:serviceaccount:{NAME}:{NAME}"
        label = {"metadata": {"labels": {"a": "b"}}}
        ends = time.monotonic() + SECONDS
        while True:
            request = f"{path(found)}?dryRun=All"
            answered = await self.ask("PATCH", request, label, media="merge-patch+json", user=user, group="none")
            if answered.status == 403:
                return
            assert time.monotonic() < ends, "the guard is not in force"

    async def ask(self, *arguments: Any, **options: Any) -> Answer:
        return await asyncio.to_thread(self.administrator.request, *arguments, **options)

    async def live(self, kind: str) -> Resource:
        (found,) = (each for each in self.manifest if each["kind"] == kind)
        return (await self.ask("GET", path(found))).body

    async def write(self) -> Answer:
        """Create a stall, by a dry run: both configurations are called."""
        metadata = {"generateName": "s-", "namespace": "default"}
        stall = {"apiVersion": f"{GROUP}/v2", "kind": "Stall", "metadata": metadata, "spec": {"seats": 1}}
        answered = await asyncio.to_thread(self.user.request, "POST", f"{collection(stall)}?dryRun=All", stall)
        self.writes += 1
        return answered

    async def keep_writing(self) -> None:
        while not self._enough:
            answered = await self.write()
            if answered.status != 201:
                self.refused.append(answered.message)

    async def step(self) -> Step:
        """One step of a leader that has just begun, and dies after it; then some writes."""
        issuer = issuer_of(self.client)
        await issuer._step()
        await self.used()
        assert issuer.decision is not None
        return issuer.decision.step

    async def used(self) -> None:
        ends, goal = time.monotonic() + SECONDS, self.writes + WRITES
        while self.writes < goal and not self._is_quiet:
            assert not self._tasks[-1].done()
            assert time.monotonic() < ends, "no writes"
            await asyncio.sleep(0.01)
        if not self._is_quiet:
            await self.reviews.trust(await self.registered())

    async def registered(self) -> bytes:
        """The caBundle by which the API server knows the server."""
        (webhook,) = clients(await self.live("ValidatingWebhookConfiguration"))
        return base64.b64decode(webhook["caBundle"])

    @property
    def _is_quiet(self) -> bool:
        return len(self._tasks) == 1

    async def begin_writing(self) -> None:
        self._enough = False
        await self.reviews.trust(await self.registered())
        self._reviewing = asyncio.create_task(self.reviews.run())
        self._tasks.append(asyncio.create_task(self.keep_writing()))

    async def end_writing(self) -> None:
        self._enough = True
        await self._tasks.pop()
        assert not self._reviewing.done()
        self._reviewing.cancel()
        await self.reviews.trust(await self.registered())

    async def serves(self, certificate: str) -> None:
        """Wait until the replica serves what is in the Secret."""
        ends = time.monotonic() + SECONDS
        expected = base64.b64decode(certificate), base64.b64decode((await self.live("Secret"))["data"][KEY])
        while self.certificate._read != expected or not self.certificate.ready:
            assert time.monotonic() < ends, self.certificate.problem
            await asyncio.sleep(0.01)

    async def edit(self, patch: Resource) -> None:
        secret = await self.live("Secret")
        assert (await self.ask("PATCH", path(secret), patch, media="merge-patch+json")).status == 200

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in reversed(self.manifest):
            await self.ask("DELETE", path(each))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Allow one write, or convert; then close."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        review = json.loads(await reader.readexactly(length))
        request = review.pop("request")
        response: Resource = {"uid": request["uid"], "allowed": True}
        if review["kind"] == "ConversionReview":
            wanted = request["desiredAPIVersion"]
            change = OldStall.from_hub if wanted.endswith("v1") else OldStall.to_hub
            converted = [{**change(each), "apiVersion": wanted} for each in request["objects"]]
            response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        body = json.dumps({**review, "response": response}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
    writer.close()


@pytest.fixture
async def place(sandbox: Sandbox) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        made = Place(sandbox, stack)
        await made.start(sandbox, stack)
        yield made
        await made.stop()


async def test_no_write_fails_while_certificates_come_and_go(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """From an empty Secret through rotations to the repair of what people did."""
    await fill_and_rotate(place)
    await repair(place)
    await say_what_is_missing(place, caplog)


async def fill_and_rotate(place: Place) -> None:
    """Each step is by another leader."""
    secret = await place.live("Secret")
    assert "data" not in secret
    assert (await place.write()).status == 500
    assert [await place.step() for _ in range(4)] == [
        Step.BUNDLE,
        Step.INJECT,
        Step.LEAF,
        Step.REST,
    ]
    first = (await place.live("Secret"))["data"]
    assert set(first) == {CERTIFICATE, KEY, BUNDLE}
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "CustomResourceDefinition"):
        assert {each["caBundle"] for each in clients(await place.live(kind))} == {first[BUNDLE]}
    await place.serves(first[CERTIFICATE])

    began = time.monotonic()
    await place.begin_writing()
    await place.edit({"data": {NEXT_CERTIFICATE: ""}})
    assert [await place.step() for _ in range(3)] == [Step.BUNDLE, Step.INJECT, Step.LEAF]
    rotated = (await place.live("Secret"))["data"]
    assert rotated[CERTIFICATE] != first[CERTIFICATE]
    await place.serves(rotated[CERTIFICATE])
    await place.used()

    await place.edit({"data": dict.fromkeys(rotated)})
    assert [await place.step() for _ in range(3)] == [Step.BUNDLE, Step.INJECT, Step.LEAF]
    filled = (await place.live("Secret"))["data"]
    assert filled[CERTIFICATE] not in (first[CERTIFICATE], rotated[CERTIFICATE])
    await place.serves(filled[CERTIFICATE])
    await place.used()
    await place.edit({"data": {KEY: "bm9uc2Vuc2U="}})
    assert [await place.step() for _ in range(3)] == [Step.BUNDLE, Step.INJECT, Step.LEAF]
    await place.edit({"data": first})
    assert [await place.step() for _ in range(2)] == [Step.BUNDLE, Step.REST]
    await place.serves(first[CERTIFICATE])
    await place.used()
    await place.end_writing()
    assert (place.refused, place.reviews.failures) == ([], [])
    print(f"{place.reviews.done / (time.monotonic() - began):.0f} reviews a second, beside {place.writes} writes")
    assert place.reviews.done > WRITES


async def say_what_is_missing(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Without a permission there is one line in the log, with the rule to add."""
    issuer = Issuer(place.client, names.secret(OPERATOR, "default"), spread=0.0)
    running = asyncio.create_task(issuer.run())
    ends = time.monotonic() + SECONDS
    while not issuer.error:
        assert time.monotonic() < ends
        await asyncio.sleep(0.01)
    issuer.stop()
    await running
    (record,) = (each for each in caplog.records if each.name == "bonny.tls.issuer" and each.levelname == "ERROR")
    assert 'missing rule: {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}' in vars(record)["error"]


async def repair(place: Place) -> None:
    """A running issuer is quiet at rest, and repairs.

    A manifest that is applied again keeps the caBundle, also when it has one webhook less; a PUT removes it.
    """
    issuer = issuer_of(place.client)
    await place.edit({"data": {NEXT_CERTIFICATE: ""}})
    running = asyncio.create_task(issuer.run())
    ends = time.monotonic() + SECONDS
    while issuer.decision is None or issuer.decision.seconds < math.inf or issuer.decision.step is not Step.REST:
        assert time.monotonic() < ends, issuer.error
        assert (await place.write()).status == 201
    issuer.stop()
    await running

    definition = await place.live("CustomResourceDefinition")
    before = sum(place.client.requests.answers.values())
    assert await issuer._step() == pytest.approx(30.0)
    assert sum(place.client.requests.answers.values()) - before == 4
    assert (await place.live("CustomResourceDefinition"))["metadata"] == definition["metadata"]

    for each in place.manifest:
        if clients(each):
            assert (await asyncio.to_thread(place.administrator.apply, each)).status == 200
    assert (await place.write()).status == 201
    (fewer,) = (each for each in place.manifest if each["kind"] == "MutatingWebhookConfiguration")
    assert (await asyncio.to_thread(place.administrator.apply, {**fewer, "webhooks": []})).status == 200
    assert (await asyncio.to_thread(place.administrator.apply, fewer)).status == 200
    found = await place.live("ValidatingWebhookConfiguration")
    for client in clients(found):
        del client["caBundle"]
    assert (await place.ask("PUT", path(found), found)).status == 200
    assert (await place.write()).status == 500
    await issuer._step()
    ends = time.monotonic() + SECONDS
    while (await place.write()).status != 201:
        assert time.monotonic() < ends, issuer.error
