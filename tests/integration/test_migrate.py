"""`invoke migrate` on a real API server: objects in an old version, until the version is gone."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import urllib.request
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from bonny.client.config import Kubeconfig
from bonny.client.errors import LEFT_OUT
from bonny.errors import ApiError, UsageError
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks import migrate as module
from bonny_dev.tasks.migrate import migrate

GROUP = "gears.example.com"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
MANAGERS = ("kubectl", "controller")
NAMES = [f"gear-{number:02}" for number in range(16)]
_numbers = count(1)


class Gears:
    """A kind of its own with objects that were written in v1, by several field managers."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.plural = f"gears{next(_numbers)}"
        self.name = f"{self.plural}.{GROUP}"
        self.definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"

    def crd(self, *versions: str, storage: str) -> dict[str, Any]:
        """The definition; only v1 has the field `old`."""
        names = {"kind": self.plural.title(), "plural": self.plural}
        spec = {"group": GROUP, "scope": "Namespaced", "names": names}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {**spec, "versions": [self.version(each, storage=storage) for each in versions]},
        }

    @staticmethod
    def version(name: str, *, storage: str) -> dict[str, Any]:
        fields = {"size": {"type": "integer"}, "colour": {"type": "string"}}
        fields |= {"old": {"type": "string"}} if name == "v1" else {}
        status = {"type": "object", "properties": {"size": {"type": "integer"}}}
        properties = {"spec": {"type": "object", "properties": fields}, "status": status}
        return {
            "name": name,
            "served": True,
            "storage": name == storage,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        }

    def install(self, *versions: str, storage: str) -> None:
        """Apply the definition, and wait until the API server stores objects as it says."""
        self.sandbox.apply(self.crd(*versions, storage=storage))
        self.wait_until_stored_in(storage, *versions)

    def wait_until_stored_in(self, storage: str, *versions: str) -> None:
        probe = {"apiVersion": f"{GROUP}/{storage}", "kind": self.plural.title(), "metadata": {"name": "probe"}}

        def stores() -> bool:
            self.request("DELETE", storage, "probe")
            return self.request("POST", storage, body=probe).status == 201 and self.stored("probe") == storage

        Sandbox.eventually(stores)
        Sandbox.eventually(lambda: [self.request("GET", each).status for each in versions] == [200] * len(versions))
        self.request("DELETE", storage, "probe")

    def request(self, method: str, version: str, name: str = "", body: Any = None, **options: Any) -> Any:
        path = f"/apis/{GROUP}/{version}/namespaces/default/{self.plural}/{name}".rstrip("/")
        return self.sandbox.request(method, path, body, **options)

    def apply(self, version: str, name: str, *, manager: str, size: int) -> Any:
        """Server-side apply of `spec.size`, or of `status.size` for the controller."""
        part, end = ("status", "/status") if manager == "controller" else ("spec", "")
        kind = {"apiVersion": f"{GROUP}/{version}", "kind": self.plural.title(), "metadata": {"name": name}}
        fields = {part: {"size": size}}
        if version == "v1" and part == "spec":
            fields["spec"]["old"] = "x"  # type: ignore[assignment]
        query = f"{name}{end}?fieldManager={manager}"
        return self.request("PATCH", version, query, {**kind, **fields}, content_type=APPLY)

    def write(self) -> None:
        """Create all objects in v1: by two appliers, and by an editor."""
        for name in NAMES:
            for manager in MANAGERS:
                assert self.apply("v1", name, manager=manager, size=1).status < 300
            query, colour = f"{name}?fieldManager=editor", {"spec": {"colour": "red"}}
            assert self.request("PATCH", "v1", query, colour, content_type=MERGE).status == 200

    def stored(self, name: str) -> str:
        """The version of an object in etcd."""
        (flag,) = [each for each in self.sandbox.apiserver._command if each.startswith("--etcd-servers=")]
        key = base64.b64encode(f"/registry/{GROUP}/{self.plural}/default/{name}".encode()).decode()
        url = f"{flag.partition('=')[2]}/v3/kv/range"
        with urllib.request.urlopen(url, json.dumps({"key": key}).encode(), timeout=10) as answer:
            (found,) = json.load(answer)["kvs"]
        version: str = json.loads(base64.b64decode(found["value"]))["apiVersion"]
        return version.rpartition("/")[2]

    def stored_in_v1(self) -> int:
        return [self.stored(name) for name in NAMES].count("v1")

    def versions_of_definition(self) -> list[str]:
        versions: list[str] = self.sandbox.request("GET", self.definition).body["status"]["storedVersions"]
        return versions

    def versions_of_managers(self) -> set[tuple[str, str]]:
        items = self.request("GET", "v2").body["items"]
        entries = [entry for item in items for entry in item["metadata"].get("managedFields", ())]
        return {(entry["manager"], entry["apiVersion"].rpartition("/")[2]) for entry in entries}

    def resource_versions(self) -> list[str]:
        return [item["metadata"]["resourceVersion"] for item in self.request("GET", "v2").body["items"]]

    def migrate(self, *removed: str, dry_run: bool = False) -> bool:
        cluster = Kubeconfig(str(self.sandbox.kubeconfig))
        declared = self.crd("v1", "v2", storage="v2")
        return asyncio.run(migrate(cluster, declared, removed=removed, dry_run=dry_run))


@pytest.fixture(scope="module")
def all_gears(sandbox: Sandbox) -> Iterator[list[Gears]]:
    """Kinds whose objects are in v1, in a cluster that stores v2 by now; at once, since each change takes a second."""
    made = [Gears(sandbox) for _ in range(3)]
    for storage in ("v1", "v2"):
        sandbox.apply([each.crd("v1", "v2", storage=storage) for each in made])
        for each in made:
            each.wait_until_stored_in(storage, "v1", "v2")
            if storage == "v1":
                each.write()
    yield list(made)
    for each in made:
        sandbox.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", each.name)


@pytest.fixture(autouse=True)
def _one_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has seen the definition: the fixture waited until it stored a probe accordingly."""
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)


@pytest.fixture
def gears(all_gears: list[Gears]) -> Gears:
    """One of them, for one test."""
    one = all_gears.pop()
    assert one.stored_in_v1() == len(NAMES)
    return one


def test_objects_outlive_the_version_in_which_they_were_written(
    gears: Gears, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dry run, interruption, a changed definition, completion, repetition; then the old version leaves."""
    before = gears.resource_versions()
    assert gears.migrate("v1", dry_run=True)
    assert (gears.resource_versions(), gears.versions_of_definition()) == (before, ["v1", "v2"])
    relabel = f"  managedFields to relabel as {GROUP}/v2:"
    assert capsys.readouterr().out.splitlines() == [
        f"{gears.name}: stored versions: v1, v2; objects to write: 16",
        f"{relabel} Apply of status by controller in {GROUP}/v1 (16)",
        f"{relabel} Apply of the object by kubectl in {GROUP}/v1, without fields that the storage version lacks (16)",
        f"{relabel} Update of the object by editor in {GROUP}/v1 (16)",
        "dry run: nothing was changed",
    ]

    real, written = module._write, count(1)

    async def interrupted(*arguments: Any) -> str:
        if next(written) > 12:
            raise ConnectionError
        return await real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", interrupted)
        with pytest.raises(ConnectionError):
            gears.migrate()
    assert 0 < gears.stored_in_v1() < len(NAMES)
    assert gears.versions_of_definition() == ["v1", "v2"]

    record = module._record

    async def recorded_too_late(*arguments: Any) -> None:
        column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
        crd = gears.crd("v1", "v2", storage="v2")
        crd["spec"]["versions"][1]["additionalPrinterColumns"] = [column]
        gears.sandbox.apply(crd)
        await record(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_record", recorded_too_late)
        with pytest.raises(UsageError, match=f"^{gears.name} was changed meanwhile"):
            gears.migrate()
    assert (gears.stored_in_v1(), gears.versions_of_definition()) == (0, ["v1", "v2"])

    assert gears.migrate()
    assert (gears.stored_in_v1(), gears.versions_of_definition()) == (0, ["v2"])
    assert gears.versions_of_managers() == {("kubectl", "v1"), ("controller", "v1"), ("editor", "v1")}

    async def overtaken(*arguments: Any) -> str:
        if len(arguments) == 3:  # the first try
            name, labels = arguments[2]["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}}
            gears.request("PATCH", "v2", f"{name}?fieldManager=labeller", labels, content_type=MERGE)
        return await real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", overtaken)
        assert gears.migrate("v1")
    assert gears.versions_of_managers() == {(each, "v2") for each in (*MANAGERS, "editor", "labeller")}
    capsys.readouterr()

    before = gears.resource_versions()
    assert gears.migrate("v1")
    assert gears.resource_versions() == before
    assert capsys.readouterr().out.splitlines()[1:] == ["nothing to do"]

    gears.install("v2", storage="v2")
    for name in NAMES:
        for manager in MANAGERS:
            assert gears.apply("v2", name, manager=manager, size=2).status == 200
    # kubectl still owns what it applied, so the editor may not take it.
    answer = gears.request(
        "PATCH",
        "v2",
        f"{NAMES[0]}?fieldManager=editor",
        {
            "apiVersion": f"{GROUP}/v2",
            "kind": gears.plural.title(),
            "metadata": {"name": NAMES[0]},
            "spec": {"size": 3},
        },
        content_type=APPLY,
    )
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (409, ".spec.size")


def test_without_it_no_apply_succeeds_once_the_version_is_gone(gears: Gears, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the page about versions said to write all objects once, which leaves their managedFields."""
    for name in NAMES:
        assert gears.request("PATCH", "v2", name, {}, content_type=MERGE).status == 200
    status = {"status": {"storedVersions": ["v2"]}}
    assert gears.sandbox.request("PATCH", f"{gears.definition}/status", status, content_type=MERGE).status == 200
    gears.install("v2", storage="v2")
    for manager in MANAGERS:
        refused = gears.apply("v2", NAMES[0], manager=manager, size=2)
        assert (refused.status, "invalid group/version" in refused.body["message"]) == (500, True)

    # Objects are repaired then, too; one goes between the read and the write.
    real = module._write

    async def overtaken(*arguments: Any) -> str:
        name = arguments[2]["metadata"]["name"]
        if name == NAMES[1]:
            gears.request("DELETE", "v2", name)
        return await real(*arguments)

    monkeypatch.setattr(module, "_write", overtaken)
    assert gears.migrate()
    assert gears.versions_of_managers() == {("kubectl", "v2"), ("controller", "v2"), ("editor", "v2")}
    for manager in MANAGERS:
        assert gears.apply("v2", NAMES[0], manager=manager, size=2).status == 200


def test_an_object_that_a_policy_refuses_is_named_and_keeps_the_old_version_stored(
    gears: Gears, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [gears.plural]}
    policy: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": gears.name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"object.metadata.name != '{NAMES[3]}'", "message": "secret-colour"}],
        },
    }
    binding: dict[str, Any] = {
        "apiVersion": policy["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": gears.name},
        "spec": {"policyName": gears.name, "validationActions": ["Deny"]},
    }
    probe = f"{NAMES[3]}?dryRun=All"
    labels = {"metadata": {"labels": {"a": "b"}}}

    def answers(status: int) -> None:
        Sandbox.eventually(lambda: gears.request("PATCH", "v2", probe, labels, content_type=MERGE).status == status)

    gears.sandbox.apply([policy, binding])
    answers(422)
    assert not gears.migrate("v1")
    said = capsys.readouterr().out
    assert f"refused: cannot patch {gears.name} default/{NAMES[3]} (422): Invalid; {LEFT_OUT}" in said
    assert "secret-colour" not in said
    assert "objects refused: 1; change them or the policy, and run this again" in said.splitlines()
    assert (gears.stored_in_v1(), gears.versions_of_definition()) == (1, ["v1", "v2"])

    gears.sandbox.delete(policy["apiVersion"], binding["kind"], gears.name)
    gears.sandbox.delete(policy["apiVersion"], policy["kind"], gears.name)
    answers(200)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert gears.migrate("v1")
    assert f"\r\033[K[{'#' * 30}] 16 of 16\r\033[Kobjects written: 16\n" in capsys.readouterr().out
    assert (gears.stored_in_v1(), gears.versions_of_definition()) == (0, ["v2"])


def test_what_cannot_be_migrated_is_refused_before_anything_is_written(sandbox: Sandbox) -> None:
    gears = Gears(sandbox)
    with pytest.raises(ApiError, match=f"{gears.name} .404.: .* not found"):
        gears.migrate()
    gears.install("v1", "v2", storage="v1")
    gears.apply("v1", NAMES[0], manager="kubectl", size=1)
    before = gears.resource_versions()
    with pytest.raises(UsageError, match=f"^v2 is the storage version of {gears.name} in the code only: run `invoke i"):
        gears.migrate()
    gears.install("v1", "v2", storage="v2")
    for wrong in ("v2", "v3"):
        with pytest.raises(UsageError, match=f"^--remove-version {wrong}: {gears.name} has no such version beside its"):
            gears.migrate(wrong)

    # Nobody converts.
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}
    broken = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    assert sandbox.request("PATCH", gears.definition, broken, content_type=MERGE).status == 200
    Sandbox.eventually(lambda: gears.request("GET", "v2", NAMES[0]).status == 500)
    with pytest.raises(ApiError, match=r"cannot list .* \((429|500)\)"):
        gears.migrate()
    repaired = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    assert sandbox.request("PATCH", gears.definition, repaired, content_type=MERGE).status == 200
    Sandbox.eventually(lambda: gears.resource_versions() == before)
    assert gears.versions_of_definition() == ["v1", "v2"]
    sandbox.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", gears.name)
