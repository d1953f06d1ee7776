"""Conversion on a real API server: two versions whose fields differ, read, written, applied, listed and watched."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bonny import Operator
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.request import ApiRequest
from bonny.resource import Resource
from bonny.tls.server import TlsServer
from bonny.webhooks.app import WebhookApp
from bonny.webhooks.serving import SERVER
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer
from tests.support.certificates import Authority
from tests.support.crontabs import GROUP, CronTabV1, CronTabV2

pytestmark = pytest.mark.server

WEEKLY = {"schedule": {"minute": "0", "dayOfWeek": "1"}}
OPERATOR = Operator(name="crontabs-operator", group=GROUP, crds=[CronTabV1, CronTabV2])


class Server:
    """The API server, asked while this loop converts."""

    def __init__(self, administrator: Administrator, app: WebhookApp) -> None:
        self._administrator = administrator
        self.app = app

    async def request(self, method: str, version: str, name: str = "", body: Any = None, **how: Any) -> Resource:
        answer = await self.answer(method, version, name, body, **how)
        assert answer.status in (200, 201), answer.message
        return answer.body

    async def answer(self, method: str, version: str, name: str = "", body: Any = None, **how: Any) -> Answer:
        path = f"/apis/{GROUP}/{version}/namespaces/default/crontabs{name and '/'}{name}"
        return await asyncio.to_thread(self._administrator.request, method, path, body, **how)

    async def apply(self, manager: str, resource: Resource, *, force: bool = False) -> Answer:
        name = f"{resource['metadata']['name']}?fieldManager={manager}&force={str(force).lower()}"
        version = resource["apiVersion"].rpartition("/")[2]
        return await self.answer("PATCH", version, name, resource, media="apply-patch+yaml")

    async def listed(self, version: str) -> dict[str, Resource]:
        """The specs by name, as of now: a resourceVersion is not asked for."""
        found = await self.request("GET", version)
        assert {each["apiVersion"] for each in found["items"]} <= {f"{GROUP}/{version}"}
        return {each["metadata"]["name"]: each["spec"] for each in found["items"]}


@pytest.fixture
async def server(sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """With the parameter "loose" the schemas keep unknown fields of a spec."""
    authority = Authority(tmp_path)
    with Administrator(sandbox) as administrator:
        app = WebhookApp(OPERATOR, None)
        context = authority.issue("webhook").server_context()
        listener = TlsServer(app, "127.0.0.1", 0, SERVER, context=context)
        await listener.start()
        (definition,) = crds(OPERATOR.crds, GROUP)
        bundle = b64encode(authority.certificate.read_bytes()).decode()
        client = {"url": f"https://127.0.0.1:{listener.port}/convert", "caBundle": bundle}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        if getattr(request, "param", "") == "loose":
            for version in definition["spec"]["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
        installed = administrator.installed([definition])
        await asyncio.to_thread(installed.__enter__)
        try:
            yield Server(administrator, app)
        finally:
            await asyncio.to_thread(installed.__exit__, None, None, None)
            await listener.stop()


def crontab(version: str, name: str, **spec: Any) -> Resource:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "CronTab", "metadata": metadata, "spec": spec}


async def test_both_versions_are_read_and_written_and_nothing_is_lost(server: Server) -> None:
    # Written in v1, read in v2.
    given = crontab("v1", "a", schedule="0 3 * * *", command="ls", concurrency="Forbid")
    await server.request("POST", "v1", body=given)
    await server.request("PATCH", "v1", "a/status", {"status": {"runs": 7}}, media="merge-patch+json")
    new = await server.request("GET", "v2", "a")
    assert new["spec"] == {"schedule": {"minute": "0", "hour": "3"}, "command": "ls", "suspend": False}
    assert new["status"] == {"runs": 7}
    assert "concurrency" in str(new["metadata"]["annotations"])

    # Edited in v2, as kubectl edit does it; read in v1.
    new["spec"]["schedule"]["hour"], new["spec"]["timeZone"] = "4", "Europe/Paris"
    await server.request("PUT", "v2", "a", new)
    old = await server.request("GET", "v1", "a")
    assert old["spec"] == {"schedule": "0 4 * * *", "command": "ls", "suspend": False, "concurrency": "Forbid"}
    assert (old["status"], old["metadata"]["generation"]) == ({"runs": 7}, 2)
    again = await server.request("GET", "v2", "a")
    assert again["spec"] == new["spec"]

    # Applied in both by two field managers: a renamed field has one owner, whatever version it is written in.
    await server.request("DELETE", "v1", "a")
    assert (await server.apply("ann", given)).status == 201
    taken = await server.apply("bob", crontab("v2", "a", schedule={"hour": "5"}, command="ls"))
    assert taken.status == 409
    assert 'conflict with "ann"' in taken.message
    assert ".spec.schedule" in taken.message
    forced = await server.apply("bob", crontab("v2", "a", schedule={"hour": "5"}, command="ls"), force=True)
    assert forced.status == 200, forced.message
    both = await server.request("GET", "v1", "a")
    assert both["spec"]["concurrency"] == "Forbid"
    version = both["metadata"]["resourceVersion"]
    repeated = await server.apply("bob", crontab("v2", "a", schedule={"hour": "5"}, command="ls"), force=True)
    assert repeated.body["metadata"]["resourceVersion"] == version


async def test_lists_and_watches_of_objects_of_both_versions_with_one_that_fails(
    server: Server, sandbox: Sandbox
) -> None:
    await server.request("POST", "v1", body=crontab("v1", "good", schedule="1 2 3 4 5", command="ls"))
    await server.request("POST", "v1", body=crontab("v1", "odd", schedule="@hourly", command="ls"))
    await server.request("POST", "v2", body=crontab("v2", "new", schedule={"hour": "4"}, command="ls", timeZone="UTC"))

    everything = {"minute": "1", "hour": "2", "dayOfMonth": "3", "month": "4", "dayOfWeek": "5"}
    assert {name: spec.get("schedule") for name, spec in (await server.listed("v2")).items()} == {
        "good": everything,
        "new": {"hour": "4"},
        "odd": None,  # required, and nothing that is true can be said
    }
    schedules = {name: spec["schedule"] for name, spec in (await server.listed("v1")).items()}
    assert schedules == {"good": "1 2 3 4 5", "new": "* 4 * * *", "odd": "@hourly"}
    assert server.app.converter is not None
    assert server.app.converter.objects["CronTab", "failed"] > 0

    # A write in v2 that leaves the field alone keeps what v1 has; one that sets it wins. A watch shows both.
    since = (await server.request("GET", "v2"))["metadata"]["resourceVersion"]
    for patch, schedule in (({"metadata": {"labels": {"x": "y"}}}, "@hourly"), ({"spec": WEEKLY}, "0 * * * 1")):
        await server.request("PATCH", "v2", "odd", patch, media="merge-patch+json")
        assert (await server.listed("v1"))["odd"]["schedule"] == schedule
    assert await asyncio.to_thread(watched, sandbox, "v2", since) == [None, WEEKLY["schedule"]]
    assert await asyncio.to_thread(watched, sandbox, "v1", since) == ["@hourly", "0 * * * 1"]


@pytest.mark.parametrize("server", ["loose"], indirect=True)
async def test_an_object_that_is_nested_too_deeply_hides_no_other_object_in_either_version(
    server: Server, sandbox: Sandbox
) -> None:
    """Regression: each list in the version in which that object is not stored failed, for all users.

    The API server keeps the managedFields of the deep object, so the test's own decoder cannot follow the list.
    """
    nested = '{"a":' * 1_500 + "1" + "}" * 1_500
    deep = json.dumps(crontab("v1", "deep", schedule="1 2 3 4 5", command="ls")).replace('"ls"', f'"ls","x":{nested}')
    paths = [f"/apis/{GROUP}/{version}/namespaces/default/crontabs" for version in ("v1", "v2")]
    await server.request("POST", "v1", body=crontab("v1", "good", schedule="1 2 3 4 5", command="ls"))
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="tests/1") as client:
        headers = {"Content-Type": "application/json"}
        created = await client.exchange(ApiRequest("POST", paths[0], headers=headers, body=deep.encode()))
        assert created.status == 201, created.body[:500]
        listed = [await client.exchange(ApiRequest("GET", path)) for path in paths]

    for answer in listed:
        assert answer.status == 200, answer.body[:500]
        assert all(f'"name":"{name}"'.encode() in answer.body for name in ("good", "deep"))
    assert server.app.converter is not None
    assert server.app.converter.objects["CronTab", "lost"] > 0


async def test_the_version_that_is_written_refuses_what_its_function_cannot_convert(
    server: Server, sandbox: Sandbox
) -> None:
    """As docs/how-to/add-a-version.md advises: the conversion itself refuses nothing."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.{GROUP}"
    definition = sandbox.request("GET", path).body
    names = [version["name"] for version in definition["spec"]["versions"]]
    command = f"/spec/versions/{names.index('v2')}/schema/openAPIV3Schema/properties/spec/properties/command"
    patch = [{"op": "add", "path": f"{command}/pattern", "value": "^[a-z]+$"}]
    changed = sandbox.request("PATCH", path, patch, content_type="application/json-patch+json")
    assert changed.status == 200, changed.body

    def refused() -> bool:
        crontabs = f"/apis/{GROUP}/v2/namespaces/default/crontabs?dryRun=All"
        answer = sandbox.request("POST", crontabs, crontab("v2", "loud", schedule={}, command="LS"))
        return answer.status == 422 and "spec.command" in str(answer.body)

    await asyncio.to_thread(sandbox.eventually, refused, within_seconds=30.0)
    assert server.app.converter is not None
    converted = server.app.converter.objects.total()

    assert await asyncio.to_thread(refused)
    assert server.app.converter.objects.total() == converted, "the conversion was not asked"


def watched(sandbox: Sandbox, version: str, since: str) -> list[Any]:
    """The schedules in the events since then."""
    query = f"watch=true&resourceVersion={since}&timeoutSeconds=1"
    url = f"{sandbox.url}/apis/{GROUP}/{version}/namespaces/default/crontabs?{query}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {sandbox.token}"})
    trust = ssl.create_default_context(cafile=str(sandbox.ca_file))
    with urllib.request.urlopen(request, context=trust, timeout=30.0) as answer:
        return [json.loads(line)["object"]["spec"].get("schedule") for line in answer]


async def test_a_field_manager_removes_fields_and_items_that_only_its_version_has(server: Server) -> None:
    """Regression: they stayed as soon as anyone had written the other version, as the operator does with the status."""
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    common = {"schedule": {"hour": "3"}, "command": "ls", "user": "root"}
    bobs = {"concurrency": "Forbid", "contact": "bob", "suspend": True}
    anns = crontab("v2", "c", **common, timeZone="UTC", environment=variables)
    assert (await server.apply("ann", anns)).status == 201
    assert (await server.apply("bob", crontab("v1", "c", **bobs))).status == 200
    status = {"status": {"runs": 7}}
    await server.request("PATCH", "v1", "c/status?fieldManager=operator", status, media="merge-patch+json")
    assert (await server.apply("cid", crontab("v2", "c", environment=[{"name": "C", "value": "3"}]))).status == 200

    # Both versions have the fields of others, and Ann's without those that she no longer applies.
    applied = await server.apply("ann", crontab("v2", "c", **common, environment=variables[1:]))
    assert applied.body["spec"] == {
        **common,
        "suspend": True,
        "environment": [variables[1], {"name": "C", "value": "3"}],
    }
    assert (await server.request("GET", "v2", "c"))["spec"] == applied.body["spec"]
    old = await server.request("GET", "v1", "c")
    assert old["spec"] == {"schedule": "* 3 * * *", "command": "ls", **bobs}

    # The same in the hub version, which is the stored one.
    assert (await server.apply("bob", crontab("v1", "c", suspend=True, concurrency="Forbid"))).status == 200
    del old["spec"]["contact"]
    assert (await server.request("GET", "v1", "c"))["spec"] == old["spec"]
    assert (await server.request("GET", "v2", "c"))["spec"] == applied.body["spec"]
    await server.request("PATCH", "v2", "c", {"spec": {"user": None}}, media="merge-patch+json")
    assert "user" not in (await server.request("GET", "v2", "c"))["spec"]
