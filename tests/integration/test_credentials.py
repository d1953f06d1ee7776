"""Credentials that change while an operator runs, on a real API server: nothing is restarted, nothing is lost."""

from __future__ import annotations

import base64
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bonny.client import api
from bonny.client.api import JSON, Client
from bonny.client.config import Cluster, InCluster, Kubeconfig
from bonny.client.errors import Unauthorized, Unreachable
from bonny.client.request import ApiRequest
from bonny.kinds import Kind
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.certificates import Authority, Pair
from tests.support.handwritten import operator
from tests.support.installed import entry_points_in
from tests.support.peer import Peer, tunnel_to
from tests.support.processes import RUNTIME, OperatorProcess, handwritten

NAMESPACE = Kind("v1", "Namespace")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
# A stream that is in trouble waits for 30 s at most.
SEEN_SECONDS = 45.0


def kubeconfig(path: Path, server: str, *, user: dict[str, Any], **cluster: Any) -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        ),
        "utf-8",
    )
    return path


async def who(client: Client) -> str:
    """Whom the API server takes us for."""
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    answer = await client.exchange(ApiRequest("POST", REVIEWS, headers={"Content-Type": JSON}, body=body))
    name: str = msgspec.json.decode(answer.body)["status"]["userInfo"]["username"]
    return name


def connected(cluster: Cluster) -> Client:
    return Client(cluster, user_agent="credentials/1.0", timeout=10)


# --- tokens -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["in a pod", "tokenFile"])
def by_file(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path) -> Cluster:
    """A cluster whose token is in the file `token`, in both ways in which it can be."""
    shutil.copy(sandbox.ca_file, tmp_path / "ca.crt")
    if request.param == "in a pod":
        return InCluster(sandbox.url, tmp_path)
    authority = {"certificate-authority": "ca.crt"}
    return Kubeconfig(str(kubeconfig(tmp_path / "config", sandbox.url, user={"tokenFile": "token"}, **authority)))


async def test_a_token_that_was_replaced_is_used_as_soon_as_the_old_one_is_refused(
    sandbox: Sandbox, by_file: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("expired\n", "ascii")
    async with connected(by_file) as client:
        with pytest.raises(Unauthorized):
            await client.get(NAMESPACE, "default")

        (tmp_path / "token").write_text(f"{sandbox.token}\n", "ascii")
        assert (await client.get(NAMESPACE, "default"))["metadata"]["name"] == "default"
        (tmp_path / "token").unlink()
        assert (await client.get(NAMESPACE, "default"))["metadata"]["name"] == "default"


# --- exec plugins -----------------------------------------------------------------------------------------------------


def service_account(name: str) -> list[Resource]:
    """A ServiceAccount that may do everything."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    return [account, {**binding, "subjects": [subject], "roleRef": role}]


PLUGIN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
with open(folder / "runs", "a") as runs:
    runs.write("run\\n")
status = json.loads((folder / "credential").read_text())
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


class Plugin:
    """A kubeconfig whose user is what a command prints; without a `credential` file the command fails."""

    def __init__(self, sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tools = entry_points_in(folder)
        monkeypatch.syspath_prepend(tools)
        self.path = os.pathsep.join((tools, str(RUNTIME), str(RUNTIME.parent)))
        """PYTHONPATH of a process in which the developer tools are installed."""

        self.credential, self._runs = folder / "credential", folder / "runs"
        settings = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", PLUGIN, str(folder)],
        }
        self.kubeconfig = kubeconfig(
            folder / "config",
            sandbox.url,
            user={"exec": settings},
            **{"certificate-authority": str(sandbox.ca_file)},
        )

    @property
    def runs(self) -> int:
        return self._runs.read_text("ascii").count("run") if self._runs.exists() else 0

    def prints(self, token: str, *, expires: datetime | None = None) -> None:
        status = {"token": token}
        if expires is not None:
            status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.credential.write_bytes(msgspec.json.encode(status))


async def test_a_plugin_is_run_once_and_again_when_what_it_printed_expires(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(sandbox, tmp_path, monkeypatch)
    plugin.prints(sandbox.token)
    async with connected(Kubeconfig(str(plugin.kubeconfig))) as client:
        assert [await who(client) for _ in range(3)] == ["admin"] * 3
        assert plugin.runs == 1, "what has no end is used until it is refused"

        sandbox.apply(service_account("renewed"))
        plugin.prints("refused", expires=datetime.now(UTC) + timedelta(hours=1))
        await client.connection(renew=True)
        plugin.prints(sandbox.service_account_token("default", "renewed"), expires=datetime.now(UTC))
        assert [await who(client) for _ in range(3)] == ["system:serviceaccount:default:renewed"] * 3
        assert plugin.runs == 3, "run again because it was refused"

        plugin.prints(sandbox.token)
        client._read_at -= 2.0
        assert await who(client) == "admin", "run again because it expired"
        assert plugin.runs == 4


def test_a_plugin_that_fails_is_named_and_tried_again_until_it_works(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the official client only logs it; the operator asked as nobody, and blamed its permissions."""
    sandbox.apply([*crds(operator.crds, operator.group), *service_account("first"), *service_account("second")])
    plugin = Plugin(sandbox, tmp_path, monkeypatch)

    without = start_operator(handwritten(), kubeconfig=plugin.kubeconfig, PYTHONPATH=plugin.path)
    assert without.process.wait(20) == 2, "at the start it is bad configuration"
    assert without.text.rstrip().endswith("failed with exit code 1: see its output on stderr")

    plugin.prints(sandbox.service_account_token("default", "first"))
    at_work = start_operator(
        handwritten(), kubeconfig=plugin.kubeconfig, TEST_WATCH_SECONDS="3", PYTHONPATH=plugin.path
    ).wait_ready()
    plugin.credential.unlink()
    sandbox.delete("v1", "ServiceAccount", "first")

    named = f"the command '{sys.executable}' of user 'u' of {plugin.kubeconfig} failed with exit code 1"
    sandbox.eventually(lambda: named in at_work.probe("/readyz")[1], within_seconds=SEEN_SECONDS)
    assert at_work.probe("/healthz")[0] == 200

    token = sandbox.service_account_token("default", "second")
    plugin.prints(token)
    sandbox.eventually(lambda: is_in_sync(at_work), within_seconds=SEEN_SECONDS)
    assert token not in at_work.text


def is_in_sync(at_work: OperatorProcess) -> bool:
    """Every stream follows, without trouble."""
    status, text = at_work.probe("/readyz")
    return status == 200 and all("in sync" in line for line in text.strip().splitlines() if ":" in line)


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture
def own() -> Iterator[Sandbox]:
    """A control plane that this test may do everything to."""
    with Sandbox() as started:
        yield started


def renew(own: Sandbox) -> Path:
    """Start the API server again with a certificate of a new authority; returns the authority's file."""
    own.apiserver.kill()
    shutil.rmtree(own.ca_file.parent)
    own.apiserver.start()
    return own.ca_file


@pytest.mark.slow  # waits of up to half a minute; the transport's own tests of it are quick
def test_a_new_authority_of_the_api_server_is_trusted_without_a_restart(
    own: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    """The file is replaced after the server; before it; and is missing and half written for a while."""
    own.apply(crds(operator.crds, operator.group))
    mounted, old = tmp_path / "ca.crt", tmp_path / "old.crt"
    shutil.copy(own.ca_file, mounted)
    user = {"token": own.token}
    config = kubeconfig(tmp_path / "config", own.url, user=user, **{"certificate-authority": str(mounted)})
    at_work = start_operator(handwritten(), kubeconfig=config).wait_ready()

    def follows(name: str) -> None:
        own.apply(
            {
                "apiVersion": f"{operator.group}/v1",
                "kind": "Widget",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"size": 1},
            }
        )
        own.eventually(lambda: own.get("v1", "ConfigMap", name), within_seconds=SEEN_SECONDS)
        own.eventually(lambda: is_in_sync(at_work), within_seconds=SEEN_SECONDS)

    def distrusts() -> bool:
        return "certificate verify failed" in at_work.probe("/readyz")[1]

    follows("before")
    authority = renew(own)
    own.eventually(distrusts, within_seconds=SEEN_SECONDS)
    shutil.copy(authority, mounted)
    follows("server-first")

    shutil.copy(own.ca_file, old)
    mounted.unlink()
    authority = renew(own)
    own.eventually(distrusts, within_seconds=SEEN_SECONDS)
    whole = authority.read_bytes()
    mounted.write_bytes(whole[: len(whole) // 3])
    both = tmp_path / "both.crt"
    both.write_bytes(old.read_bytes() + whole)
    both.replace(mounted)
    follows("missing-and-half-written")

    assert at_work.process.poll() is None
    assert "please report" not in at_work.text


async def test_an_authority_inside_of_the_kubeconfig_is_read_again_after_it_was_not_trusted(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: only a file of its own was read again; the operator had to be restarted."""
    monkeypatch.setattr(api, "DISTRUSTED_SECONDS", 0.0)
    path = tmp_path / "config"

    def trusts(authority: Path) -> None:
        data = base64.b64encode(authority.read_bytes()).decode()
        kubeconfig(path, sandbox.url, user={"token": sandbox.token}, **{"certificate-authority-data": data})

    trusts(Authority(tmp_path, "stranger").certificate)
    async with connected(Kubeconfig(str(path))) as client:
        for _ in range(2):
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await who(client)
        trusts(sandbox.ca_file)
        assert await who(client) == "admin"


def replace(used: Pair, by: Pair) -> None:
    for file, source in zip(used, by, strict=True):
        shutil.copy(source, file)


async def test_a_client_certificate_that_was_replaced_is_presented_from_the_next_connection_on(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = (authority.issue(name, subject=f"/O=system:masters/CN={name}") for name in ("first", "second"))
    used = Pair(tmp_path / "tls.crt", tmp_path / "tls.key")
    with Sandbox(apiserver_flags=[f"--client-ca-file={authority.certificate}"]) as own:
        user = {"client-certificate": str(used.certificate), "client-key": str(used.key)}
        config = kubeconfig(tmp_path / "config", own.url, user=user, **{"certificate-authority": str(own.ca_file)})
        names = []
        replace(used, first)
        async with connected(Kubeconfig(str(config))) as client:
            names.append(await who(client))
            replace(used, second)
            names.append(await who(client))

    assert names == ["first", "second"]


# --- the way there ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["proxy-url", "HTTPS_PROXY", "HTTPS_PROXY in a pod"])
async def test_the_api_server_is_reached_through_a_proxy(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """By an address and a name that only the proxy can reach; both are in the server's certificate."""
    async with Peer(tunnel_to(int(sandbox.url.rsplit(":", 1)[1]))) as proxy:
        user, authority = {"token": sandbox.token}, {"certificate-authority": str(sandbox.ca_file)}
        server, cluster = "https://kubernetes.default.svc", None
        if how == "proxy-url":
            authority["proxy-url"] = proxy.url
        else:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "10.1.0.0/16,localhost")
        if how == "HTTPS_PROXY in a pod":
            shutil.copy(sandbox.ca_file, tmp_path / "ca.crt")
            (tmp_path / "token").write_text(sandbox.token, "ascii")
            server = "https://10.0.0.1:443"
            cluster = InCluster(server, tmp_path)
        async with connected(
            cluster or Kubeconfig(str(kubeconfig(tmp_path / "config", server, user=user, **authority)))
        ) as client:
            assert await who(client) == "admin"
            async with client.stream("/api/v1/namespaces", query={"watch": "true"}, read_timeout=10) as streamed:
                assert await anext(aiter(streamed.chunks))

        host = server.removeprefix("https://").removesuffix(":443")
        assert [(heard.method, heard.target) for heard in proxy.heard] == [("CONNECT", f"{host}:443")] * 2


async def test_what_no_proxy_names_is_reached_without_one(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(sandbox.ca_file, tmp_path / "ca.crt")
    (tmp_path / "token").write_text(sandbox.token, "ascii")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    async with connected(InCluster(sandbox.url, tmp_path)) as client:
        assert await who(client) == "admin"


@pytest.mark.parametrize(
    ("cluster", "reaches"),
    [
        pytest.param({"tls-server-name": "kubernetes.default.svc"}, True, id="a-name-of-the-certificate"),
        pytest.param({"tls-server-name": "elsewhere.example.com"}, False, id="another-name"),
        pytest.param({"insecure-skip-tls-verify": True}, True, id="insecure"),
        pytest.param({}, False, id="an-authority-that-nobody-knows"),
    ],
)
async def test_the_server_is_trusted_as_the_kubeconfig_says(
    sandbox: Sandbox, tmp_path: Path, cluster: dict[str, Any], reaches: bool
) -> None:
    authority = {"certificate-authority": str(sandbox.ca_file)} if "tls-server-name" in cluster else {}
    config = kubeconfig(tmp_path / "config", sandbox.url, user={"token": sandbox.token}, **authority, **cluster)
    async with connected(Kubeconfig(str(config))) as client:
        if reaches:
            assert await who(client) == "admin"
        else:
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await who(client)
