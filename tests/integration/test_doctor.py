"""`invoke doctor` on a real API server: each line, when all checks pass and when one fails."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bonny import Axn, Controller, Field, Operator, Owned, Status
from bonny.api import Rule, Spec, Version
from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.resource import MANAGED_BY, OWNER_UID, Resource
from bonny.tls import certificates
from bonny.webhooks import Admission, Review, names
from bonny_dev.manifest import bundle
from bonny_dev.manifest.webhooks import webhooks
from bonny_dev.sandbox import Sandbox, versions
from bonny_dev.tasks.doctor import examine
from bonny_dev.tasks.doctor import run as examine_and_tell
from bonny_dev.tasks.provision import apply_samples, sample_files
from bonny_dev.testing.faults import Fault, FaultProxy, Respond, is_any
from bonny_dev.uses import has_webhooks

RUNTIME = Path(__file__).parents[2] / "runtime"
NAME = "gates"
CRD = "gates.gates.example.com"
RBAC = "rbac.authorization.k8s.io/v1"

Doctor = Callable[..., list[str]]


class GateSpec(Spec):
    """What the user wants."""

    width: int = Field(1, ge=1, le=9)


class GateStatus(Status):
    """What is."""


class Gate(Version):
    """A wide door."""

    kind = "Gate"
    version = "v1"
    storage = True
    hub = True
    spec: GateSpec = GateSpec()
    status: GateStatus


class GateController(Controller[Gate]):
    """Owns something."""

    owns = (Owned("v1", "ConfigMap"),)

    async def add(self, axn: Axn[Gate]) -> None:
        """Does nothing."""


operator = Operator(name=NAME, group="gates.example.com", controllers=[GateController])
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: kube-system}\n"
SAMPLE = "apiVersion: gates.example.com/v1\nkind: Gate\nmetadata: {name: front}\nspec: {width: 3}\n"


@pytest.fixture
def installed(sandbox: Sandbox) -> Iterator[list[dict[str, Any]]]:
    """The manifest as it is applied; removed afterwards."""
    documents = bundle.documents(operator, image=None, namespace=NAME, local=True)
    sandbox.apply(documents)
    Sandbox.eventually(lambda: sandbox.request("GET", "/apis/gates.example.com/v1/gates").status == 200)
    yield documents
    for document in documents[1:]:
        sandbox.delete(document["apiVersion"], document["kind"], document["metadata"]["name"], namespace=NAME)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
    Sandbox.eventually(lambda: sandbox.request("GET", path).status == 404)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "gate-v1.yaml").write_text(SAMPLE, "utf-8")
    return folder


@pytest.fixture
def examined(
    sandbox: Sandbox, samples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Doctor:
    """Its lines; the last one is checked against what it returned."""

    def run(checked: Operator = operator, *, kubeconfig: Path | None = None, **options: str) -> list[str]:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig or sandbox.kubeconfig))
        given = {"namespace": "", "context": "", **options}
        well = examine_and_tell(checked, samples, sandbox=False, **given)
        lines = capsys.readouterr().out.splitlines()
        wrong = sum(line.startswith("FAIL") for line in lines)
        assert lines[-1] == (
            f"{wrong} of {wrong + sum(line.startswith('ok ') for line in lines)} checks failed"
            if wrong
            else "all checks passed"
        )
        assert well == (wrong == 0)
        return lines[:-1]

    return run


def of(part: str, lines: list[str]) -> str:
    """The one line about that part, without its mark."""
    (line,) = [line for line in lines if line[6:].startswith(part)]
    return line


# --- all checks pass --------------------------------------------------------------------------------------------------


def test_when_all_is_well_each_line_says_so(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    assert examined() == [
        f"ok    cluster      {sandbox.url}, context 'sandbox' of {sandbox.kubeconfig}",
        f"ok    version      Kubernetes v{versions.KUBERNETES}",
        f"ok    crd          {CRD} is installed as declared in the code",
        "ok    permissions  ServiceAccount gates/gates has all 15 permissions that it needs",
        "ok    children     the owners of all children exist",
        "ok    sample       gate-v1.yaml: Gate default/front would be accepted",
    ]
    assert sandbox.items("gates.example.com/v1", "Gate") == []


# --- cluster and version ----------------------------------------------------------------------------------------------


def kubeconfig(folder: Path, *, server: str, ca_file: Path, token: str = "wrong") -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        f"""apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: "{ca_file}"}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
""",
        "utf-8",
    )
    return path


def test_a_cluster_that_does_not_answer_is_all_that_is_said(sandbox: Sandbox, examined: Doctor, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{unused.getsockname()[1]}"
        (line,) = examined(kubeconfig=kubeconfig(tmp_path, server=server, ca_file=sandbox.ca_file))
    assert line.startswith(f"FAIL  cluster      {server} cannot be reached")
    assert line.endswith("check that the API server runs and can be reached from here")


def test_a_refused_token_is_said_to_be_refused(sandbox: Sandbox, examined: Doctor, tmp_path: Path) -> None:
    (line,) = examined(kubeconfig=kubeconfig(tmp_path, server=sandbox.url, ca_file=sandbox.ca_file))
    assert line == "FAIL  cluster      cannot read the version (401): Unauthorized: log in again"


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b""])
def test_a_server_that_is_none_of_kubernetes_is_all_that_is_said(
    sandbox: Sandbox, examined: Doctor, body: bytes
) -> None:
    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Respond(200, body), on=is_any, times=None))
        (line,) = examined(kubeconfig=proxy.kubeconfig)
    assert line.startswith("FAIL  cluster      ")
    assert line.endswith("does not look like a Kubernetes API server: correct the address")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1.33.9", "is too old, 1.34 to 1.36 are supported: upgrade the cluster"),
        ("v1.37.0", "is too new, 1.34 to 1.36 are supported: `invoke update-runtime`"),
        ("unknown", "is not a version, and 1.34 to 1.36 are supported: ask the administrator of the cluster"),
        ("v1.34.0-eks-1a2b3c", ""),
    ],
)
def test_a_version_that_is_not_supported_is_named(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor, version: str, said: str
) -> None:
    with FaultProxy(sandbox) as proxy:
        told = f'{{"gitVersion": "{version}"}}'.encode()
        proxy.add(Fault(Respond(200, told), on=lambda request: request.path == "/version", times=None))
        line = of("version", examined(kubeconfig=proxy.kubeconfig))
    assert version in line
    assert line.endswith(said)
    assert line.startswith("FAIL" if said else "ok")


class HiddenGateSpec(Spec):
    """The fields of a version that is not served yet."""

    metres: int = 1


class HiddenGate(Version):
    """A wide door, in metres."""

    kind = "Gate"
    version = "v2"
    served = False
    spec: HiddenGateSpec = HiddenGateSpec()
    status: GateStatus

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        """Not called in these tests."""
        return resource

    from_hub = to_hub


async def test_regression_a_version_that_is_not_served_yet_fails_no_check_in_a_sandbox(
    sandbox: Sandbox, installed: list[dict[str, Any]], samples: Path
) -> None:
    """The manifest for a sandbox grants nothing for webhooks, and the sample of the new version cannot be applied."""
    converting = Operator(name=NAME, group="gates.example.com", controllers=[GateController], crds=[Gate, HiddenGate])
    (samples / "gate-v2.yaml").write_text(SAMPLE.replace("v1", "v2").replace("width", "metres"), "utf-8")
    cluster = Kubeconfig(str(sandbox.kubeconfig))

    assert has_webhooks(converting)
    findings = examine(converting, cluster, namespace=NAME, samples=sample_files(samples), installs=True)
    assert [each.text async for each in findings if not each.ok or "v2" in each.text] == [
        "gate-v2.yaml: has no object of a served version"
    ]
    assert await apply_samples(converting, cluster, samples, namespace="default") == ["Gate default/front"]


# --- CRDs -------------------------------------------------------------------------------------------------------------


def test_a_crd_that_is_not_installed_is_named_and_so_are_samples_of_it(sandbox: Sandbox, examined: Doctor) -> None:
    lines = examined()
    assert of("crd", lines) == f"FAIL  crd          {CRD} is not installed: apply the output of `invoke manifest`"
    served = "gate-v1.yaml: Gate of gates.example.com/v1 is not served: apply the output of `invoke manifest`"
    assert of("sample", lines) == f"FAIL  sample       {served}"


def test_a_crd_that_differs_from_the_code_is_shown_with_the_difference(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
    change = {"spec": {"names": {"shortNames": ["gt"]}}}
    answer = sandbox.request("PATCH", path, change, content_type="application/merge-patch+json")
    assert answer.status == 200, answer.body

    lines = examined()

    at = lines.index(f"FAIL  crd          {CRD} differs from the code: apply the output of `invoke manifest`")
    detail = [line.strip() for line in lines[at + 1 :] if line.startswith(" " * 19)]
    assert detail[:2] == ["--- in the cluster", "+++ in the code"]
    assert any(line.startswith("-") and "shortNames: [gt]" in line for line in detail)


def test_a_crd_that_the_api_server_would_refuse_is_named(sandbox: Sandbox, examined: Doctor) -> None:
    class Broken(Version):
        """Its rule names a field that there is not."""

        kind = "Broken"
        version = "v1"
        storage = True
        hub = True
        rules = (Rule("self.spec.missing > 1", message="never"),)
        spec: GateSpec

    lines = examined(Operator(name="broken", group="gates.example.com", crds=[Broken]))

    line = of("crd", lines)
    assert line.startswith("FAIL  crd          cannot create brokens.gates.example.com (422)")
    assert line.endswith("undefined field 'missing': fix it in the code")
    assert lines[lines.index(line) + 1].split() == ["|", "self.spec.missing", ">", "1"]


# --- children ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reference", "said"), [(True, ""), (False, "  # has no owner reference")])
def test_a_child_whose_owner_was_deleted_is_named(
    reference: bool, said: str, sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    owner = {"apiVersion": "gates.example.com/v1", "kind": "Gate", "name": "gone", "uid": "u1"}
    labels = {MANAGED_BY: NAME, OWNER_UID: "u1"}
    metadata = {"name": "left", "namespace": "default", "labels": labels}
    sandbox.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "ownerReferences": [owner] * reference}}
    )
    try:
        lines = examined()
    finally:
        sandbox.delete("v1", "ConfigMap", "left", namespace="default")

    at = lines.index("FAIL  children     1 children have lost their owner: delete the ones that you do not need")
    assert lines[at + 1].strip() == f"ConfigMap default/left{said}"


# --- permissions ------------------------------------------------------------------------------------------------------


def test_a_missing_rule_is_shown_as_the_yaml_to_add(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    (role,) = [known for known in installed if known["kind"] == "ClusterRole" and known["metadata"]["name"] == NAME]
    kept = [rule for rule in role["rules"] if "configmaps" not in rule["resources"]]
    sandbox.apply({**role, "rules": kept})

    lacks = "ServiceAccount gates/gates lacks 5 of 15 permissions"
    title = f"FAIL  permissions  {lacks}: apply the output of `invoke manifest`, or"
    lines = Sandbox.eventually(lambda: [lines for lines in [examined()] if title in lines])[0]

    verbs = "get, list, watch, create, patch"
    added = f'add to the ClusterRole: - {{apiGroups: [""], resources: ["configmaps"], verbs: [{verbs}]}}'
    assert lines[lines.index(title) + 1] == " " * 19 + added


def test_an_account_without_any_permission_is_probably_elsewhere(
    installed: list[dict[str, Any]], examined: Doctor
) -> None:
    line = of("permissions", examined(namespace="elsewhere"))
    assert line.startswith("FAIL  permissions  ServiceAccount elsewhere/gates has no permissions")
    assert "--namespace" in line


def test_what_one_may_not_look_at_leads_to_an_administrator(sandbox: Sandbox, examined: Doctor) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "visitor", "namespace": "default"}}
    sandbox.apply(account)
    lines = examined(kubeconfig=sandbox.service_account_kubeconfig("default", "visitor"))
    for part in ("crd", "permissions"):
        assert of(part, lines).startswith(f"FAIL  {part}")
        assert of(part, lines).endswith("ask an administrator to run this")


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SAMPLE.replace("3", "30"), "spec.width"),
        (SAMPLE.replace("width", "widht"), "widht"),
        (SAMPLE.replace("{width: 3}", "{width: 3}\nspce: {}"), "spce"),
        (SAMPLE.replace("Gate", "Wicket"), "Wicket of gates.example.com/v1 is not served"),
        (f"{CONFIG_MAP}dta: {{}}\n", "dta"),
        ("{", "is not valid YAML"),
        ("- a", "holds something that is not an object"),
        ("apiVersion: v1\nkind: ConfigMap\n", "holds something that is not an object"),
    ],
)
def test_a_sample_that_would_be_refused_is_named(
    installed: list[dict[str, Any]], examined: Doctor, samples: Path, text: str, said: str
) -> None:
    (samples / "wrong.yaml").write_text(text, "utf-8")
    right, wrong = [line for line in examined() if line[6:].startswith("sample")]
    assert right.startswith("ok")
    assert wrong.startswith("FAIL  sample       wrong.yaml")
    assert said in wrong


def test_a_sample_may_hold_several_objects_of_any_kind(
    installed: list[dict[str, Any]], examined: Doctor, samples: Path
) -> None:
    (samples / "gate-v1.yaml").write_text(f"---\n{CONFIG_MAP}---\n{SAMPLE}", "utf-8")
    told = "gate-v1.yaml: ConfigMap kube-system/settings, Gate default/front would be accepted"
    assert of("sample", examined()) == f"ok    sample       {told}"


def test_a_sample_that_cannot_be_read_is_bad_input(examined: Doctor, samples: Path) -> None:
    (samples / "folder.yaml").mkdir()
    with pytest.raises(UsageError, match=r"the sample .*folder\.yaml cannot be read \(Is a directory\)"):
        examined()


# --- the task ---------------------------------------------------------------------------------------------------------

OPERATOR = """from bonny import Operator

operator = Operator(name="empty", group="example.com")
"""
TASKS = """import sys
from pathlib import Path
from invoke.collection import Collection
from bonny_dev.tasks import *

ns = Collection.from_module(sys.modules[__name__])
ns.configure({"root": str(Path(__file__).parent)})
"""
PROJECT = """[project]
name = "empty"
version = "1.0.0"
[tool.bonny]
package = "empty"
image = "registry.example.com/empty"
"""


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs it in a repository whose operator needs nothing but a lease."""
    root = tmp_path / "repository"
    for path, text in {"src/empty/operator.py": OPERATOR, "tasks.py": TASKS, "pyproject.toml": PROJECT}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")

    def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
        return subprocess.run(
            [sys.executable, "-m", "invoke", "doctor", *words],
            cwd=root,
            env={**kept, "PYTHONPATH": str(RUNTIME), **settings},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_the_exit_code_is_0_when_all_is_well_and_1_on_a_finding(
    sandbox: Sandbox, task: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    well = task("--sandbox")
    assert (well.returncode, well.stdout.splitlines()[-1]) == (0, "all checks passed"), well.stdout
    assert "ok    manifest     is accepted by the sandbox" in well.stdout
    found = task(KUBECONFIG=str(sandbox.kubeconfig))
    assert (found.returncode, found.stdout.splitlines()[-1]) == (1, "1 of 3 checks failed"), found.stderr


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        ((), {"KUBECONFIG": "/nowhere/config"}, "/nowhere/config"),
        (("--namespace", "No_Name"), {}, "No_Name"),
        (("--sandbox", "--context", "x"), {}, "exclude each other"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    task: Callable[..., subprocess.CompletedProcess[str]], words: tuple[str, ...], settings: dict[str, str], said: str
) -> None:
    done = task(*words, **settings)
    assert done.returncode == 2, done.stdout
    (sentence,) = done.stderr.strip().splitlines()
    assert said in sentence


# --- webhooks ---------------------------------------------------------------------------------------------------------


class GateAdmission(Admission[Gate]):
    """Refuses nothing."""

    def validate(self, review: Review[Gate]) -> None:
        """Refuses nothing."""


guarded = Operator(name=NAME, group="gates.example.com", controllers=[GateController, GateAdmission])


def test_webhooks_that_nobody_answers_or_trusts_are_named(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    secret, slices = f"{NAME}-webhook-tls", "/apis/discovery.k8s.io/v1/namespaces/gates/endpointslices"
    issued = certificates.issue(names.secret(operator, NAME).hosts, days=90)
    parts = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.ca}
    data = {name: b64encode(pem).decode() for name, pem in parts.items()}

    def webhook(lines: list[str]) -> list[str]:
        return [line for line in lines if line[6:].startswith("webhook")]

    lines = webhook(examined(guarded))
    assert [line[:4] for line in lines] == ["FAIL"] * 2
    assert "Service gates/gates-webhook has no ready endpoint, so webhooks are not answered" in lines[0]

    (configuration,) = webhooks(guarded, NAME)
    (hook,) = configuration["webhooks"]
    hook["clientConfig"]["caBundle"] = data["ca.crt"]
    sandbox.apply(
        [
            configuration,
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": NAME}, "data": data},
        ]
    )
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "one", "labels": {"kubernetes.io/service-name": f"{NAME}-webhook"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
        "ports": [],
    }
    assert sandbox.request("POST", slices, endpoints).status == 201
    assert webhook(examined(guarded)) == [
        "ok    webhook      Service gates/gates-webhook has ready endpoints (1)",
        f"ok    webhook      the certificate in Secret gates/{secret} is trusted, and ends in 89 days",
    ]
    # Regression: the reason was left out, and "fix it" was the advice.
    refused = Sandbox.eventually(
        lambda: [of("sample", lines) for lines in [examined(guarded)] if lines[-1][:4] == "FAIL"]
    )
    assert 'failed calling webhook "gate-admission.gates.example.com"' in refused[0]
    assert refused[0].endswith(": see the checks of webhooks")

    other = b64encode(certificates.issue(["example.com"]).ca).decode()
    hook["clientConfig"]["caBundle"] = other
    sandbox.apply(configuration)
    _, trusted = webhook(examined(guarded))
    assert trusted.startswith(
        "FAIL  webhook      the caBundle of ValidatingWebhookConfiguration gates.gates.example.com"
    )

    sandbox.delete(configuration["apiVersion"], configuration["kind"], configuration["metadata"]["name"])
    sandbox.delete("v1", "Secret", secret, namespace=NAME)
    sandbox.request("DELETE", f"{slices}/one")


def test_a_memory_limit_that_is_too_low_for_webhooks_is_named(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    assert "ok    memory       webhooks may use the 180Mi of memory that they need" in examined(guarded)
    (deployment,) = [
        each for each in bundle.documents(guarded, image="gates:1", namespace=NAME) if each["kind"] == "Deployment"
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for limits, mark in (({"memory": "200Mi"}, "ok  "), ({}, "ok  "), ({"memory": "128Mi"}, "FAIL")):
        container["resources"] = {"limits": limits}
        sandbox.apply(deployment)
        (line,) = [line for line in examined(guarded) if line[6:].startswith("memory")]
        assert line[:4] == mark
    assert line[19:] == (
        "Deployment gates/gates has 128Mi of memory, and webhooks need 180Mi: set its limit in `Deploy`"
    )
    sandbox.delete("apps/v1", "Deployment", NAME, namespace=NAME)
    assert not [line for line in examined() if line[6:].startswith("memory")]


def test_a_kind_that_is_stored_in_an_older_version_is_named(
    sandbox: Sandbox, installed: list[dict[str, Any]], examined: Doctor
) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}/status"
    stored = {"status": {"storedVersions": ["v1alpha1", "v1"]}}
    crd = sandbox.request("GET", path).body
    old = crd["spec"]["versions"][0] | {"name": "v1alpha1", "storage": False, "served": False}

    def answer(versions: list[dict[str, Any]], status: dict[str, Any]) -> bytes:
        return json.dumps(
            crd | {"spec": crd["spec"] | {"versions": versions}, "status": crd["status"] | status}
        ).encode()

    with FaultProxy(sandbox) as proxy:
        told = answer([*crd["spec"]["versions"], old], stored["status"])
        for method in ("GET", "PUT"):
            proxy.add(
                Fault(
                    Respond(200, told),
                    on=lambda request, method=method: request.method == method and "customresourced" in request.path,
                    times=None,
                )
            )
        line = of("crd", examined(kubeconfig=proxy.kubeconfig))
    assert line == "FAIL  crd          Gate is stored in v1alpha1, v1, not only in v1: `invoke migrate Gate`"
