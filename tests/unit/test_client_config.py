"""Where the API server is and who we are: kubeconfig files and the pod's ServiceAccount, good ones and bad ones."""

from __future__ import annotations

import asyncio
import base64
import os
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny import carried
from bonny.client.config import Connection, InCluster, Kubeconfig, find_cluster
from bonny.errors import UsageError
from bonny_dev.install import with_context


def kubeconfig(
    path: Path, *, contexts: tuple[str, ...] = ("one",), user: dict[str, Any] | None = None, **cluster: Any
) -> Path:
    """A file whose context of name x is the server https://x.example.com:6443/."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": contexts[0],
                "clusters": [
                    {"name": name, "cluster": {"server": f"https://{name}.example.com:6443/", **cluster}}
                    for name in contexts
                ],
                "users": [{"name": "me", "user": user or {"token": "secret"}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in contexts],
            }
        ),
        "utf-8",
    )
    return path


async def test_the_current_context_is_meant_unless_another_one_is_named(tmp_path: Path) -> None:
    file = str(kubeconfig(tmp_path / "config", contexts=("one", "two")))

    current, named = await Kubeconfig(file).connect(), await Kubeconfig(file, "two").connect()

    assert (current.server, current.authorization) == ("https://one.example.com:6443", "Bearer secret")
    assert named.server == "https://two.example.com:6443"


async def test_several_files_are_merged(tmp_path: Path) -> None:
    files = [str(kubeconfig(tmp_path / name, contexts=(name,))) for name in ("one", "two")]

    merged = await Kubeconfig(os.pathsep.join(files), "two").connect()

    assert merged.server == "https://two.example.com:6443"


def test_client_certificates_are_handed_on_as_files(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"PEM").decode()
    user = {"client-certificate-data": encoded, "client-key-data": encoded}
    found = asyncio.run(Kubeconfig(str(kubeconfig(tmp_path / "config", user=user))).connect())

    assert found.authorization is None
    assert [Path(file).read_bytes() for file in (found.cert_file, found.key_file) if file] == [b"PEM", b"PEM"]


async def test_what_a_cluster_says_of_tls_and_proxy_is_handed_on(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.touch()
    proxy = "http://bob:hunter2@proxy.example.com:3128"
    told = {
        "certificate-authority": "ca.crt",
        "insecure-skip-tls-verify": True,
        "tls-server-name": "kubernetes",
        "proxy-url": proxy,
    }
    found = await Kubeconfig(str(kubeconfig(tmp_path / "config", **told))).connect()

    assert (found.ca_file, found.verify, found.server_name, found.proxy) == (str(authority), False, "kubernetes", proxy)


async def test_a_proxy_of_the_environment_is_used_unless_the_kubeconfig_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the environment was passed over, also in a pod."""
    monkeypatch.setenv("HTTPS_PROXY", "http://everybodys:3128")
    monkeypatch.setenv("NO_PROXY", "two.example.com,10.0.0.0/8")
    plain = str(kubeconfig(tmp_path / "plain", contexts=("one", "two")))
    named = str(kubeconfig(tmp_path / "named", contexts=("one", "two"), **{"proxy-url": "http://ours:3128"}))
    (tmp_path / "token").write_text("abc", "ascii")

    clusters = [
        *(Kubeconfig(file, context) for file in (plain, named) for context in ("one", "two")),
        *(InCluster(server, tmp_path) for server in ("https://10.0.0.1:443", "https://172.16.0.1:443")),
    ]

    ours, theirs = "http://ours:3128", "http://everybodys:3128"
    assert [(await cluster.connect()).proxy for cluster in clusters] == [theirs, None, ours, ours, None, theirs]


async def test_without_the_extra_a_proxy_of_the_kubeconfig_is_refused_and_the_environment_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(kubeconfig(tmp_path / "config", contexts=("one", "two"), **{"proxy-url": "http://ours:3128"}))
    (tmp_path / "token").write_text("abc", "ascii")
    monkeypatch.setenv("HTTPS_PROXY", "http://everybodys:3128")
    carried.listed()
    monkeypatch.setattr(carried, "PACKAGE", tmp_path)

    with pytest.raises(carried.MissingExtra) as caught:
        await Kubeconfig(file).connect()
    assert str(caught.value) == (
        f"the proxy-url of the current context of {file} needs the extra proxy, which is not in vendor/: "
        "run `invoke extras --add proxy`"
    )
    assert (await InCluster("https://10.0.0.1:443", tmp_path).connect()).proxy is None
    (warned,) = carried.unused_variables({"HTTPS_PROXY": "http://everybodys:3128"})
    assert warned.extra == "proxy"


async def test_a_proxy_that_cannot_be_used_is_refused_by_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = kubeconfig(tmp_path / "config", **{"proxy-url": "socks5://bob:hunter2@proxy:1080"})

    with pytest.raises(UsageError, match=f"^the proxy-url of the current context of {file} is not the URL of an HTTP"):
        await Kubeconfig(str(file)).connect()
    monkeypatch.setenv("HTTPS_PROXY", "http://bob:hunter2@[")
    (tmp_path / "token").write_text("abc", "ascii")
    with pytest.raises(UsageError, match=r"^HTTPS_PROXY is not the URL of an HTTP proxy"):
        await InCluster("https://10.0.0.1:443", tmp_path).connect()


async def test_the_content_of_a_token_file_is_used_and_read_again_in_time(tmp_path: Path) -> None:
    """Regression: the newline at its end was sent along, which no header may hold."""
    token = tmp_path / "token"
    token.write_text("first\n", "ascii")
    cluster = Kubeconfig(str(kubeconfig(tmp_path / "config", user={"tokenFile": "token", "token": "stale"})))

    first = await cluster.connect()
    token.write_text("second\n", "ascii")
    second = await cluster.connect()

    assert [found.authorization for found in (first, second)] == ["Bearer first", "Bearer second"]
    assert first.max_age == 60


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", None])
async def test_a_token_file_that_holds_none_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    """Regression: with an empty one the server was asked as nobody."""
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    cluster = Kubeconfig(str(kubeconfig(tmp_path / "config", user={"tokenFile": "token"})))

    with pytest.raises(UsageError, match=r"^the tokenFile .*/token (cannot be read|is empty)"):
        await cluster.connect()


async def test_a_cluster_without_a_server_is_told(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", server="")

    with pytest.raises(UsageError, match=f"^the current context of {file} has no server: add one to its cluster$"):
        await Kubeconfig(str(file)).connect()


@pytest.mark.parametrize("key", ["as", "as-uid", "as-groups", "as-user-extra"])
async def test_impersonation_is_refused_rather_than_passed_over(tmp_path: Path, key: str) -> None:
    """Regression: the loader does not know it, and the operator had the rights of the one who impersonates."""
    value = ["admins"] if key == "as-groups" else {"a": ["b"]} if key == "as-user-extra" else "somebody"
    file = kubeconfig(tmp_path / "config", user={"token": "secret", key: value})

    with pytest.raises(UsageError) as caught:
        await Kubeconfig(str(file)).connect()

    assert str(caught.value) == (
        f"user 'me' of {file} impersonates another user (as), which is not supported: use the other user's credentials"
    )


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: me, token: secret}]",
        "users: [{name: me, user: {token: secret}, token: secret}, {nome: you, token: secret}]",
        "users: [{name: me, user: {client-key-data: secret!}}]",
        "users: [{name: me, user: {token: secret}}, {name: me, user: {token: secret}",
        "users: {me: {token: secret}}",
        "users: [{name: me, user: {auth-provider: {name: oidc, config: {id-token: secret}}}}]",
        "users: [{name: me, user: {exec: secret}}]",
    ],
)
async def test_a_file_with_a_mistake_is_told_without_what_it_holds(tmp_path: Path, text: str) -> None:
    """Regression: the loader names a part of the file by its content."""
    file = tmp_path / "config"
    file.write_text(
        f"""current-context: one
clusters: [{{name: one, cluster: {{server: "https://one.example.com"}}}}]
contexts: [{{name: one, context: {{cluster: one, user: me}}}}]
{text}
""",
        "utf-8",
    )

    with pytest.raises(UsageError) as caught:
        await Kubeconfig(str(file)).connect()

    told = "".join(traceback.format_exception(caught.value))
    assert str(file) in str(caught.value)
    assert "secret" not in told


def test_what_is_secret_is_not_shown() -> None:
    connection = Connection(server="https://x", authorization="Bearer hunter2", proxy="http://bob:hunter2@proxy")

    assert "hunter2" not in repr(connection)


async def test_a_context_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", contexts=("one", "two"))

    with pytest.raises(UsageError) as caught:
        await Kubeconfig(str(file), "three").connect()

    assert str(caught.value) == f"context 'three' does not exist in {file}: it has one, two"


@pytest.mark.parametrize("text", ["", "{", "[]", "text", "kind: Config\ncurrent-context: gone\n"])
@pytest.mark.parametrize("context", [None, "one"])
async def test_a_file_that_is_no_kubeconfig_is_refused_in_one_sentence(
    tmp_path: Path, text: str, context: str | None
) -> None:
    file = tmp_path / "config"
    file.write_text(text, "utf-8")

    with pytest.raises(UsageError) as caught:
        await Kubeconfig(str(file), context).connect()

    assert str(file) in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", None])
async def test_a_token_that_cannot_be_one_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    """Regression: bytes that are no text ended the stream, an empty file was sent as "Bearer "."""
    if content is not None:
        (tmp_path / "token").write_bytes(content)

    with pytest.raises(UsageError, match=r"^the ServiceAccount token .*/token (cannot be read|is empty)"):
        await InCluster("https://10.0.0.1:443", tmp_path).connect()


async def test_in_a_pod_the_mounted_files_are_used(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n", "ascii")

    found = await InCluster("https://10.0.0.1:443", tmp_path).connect()

    assert (found.authorization, found.ca_file, found.verify) == ("Bearer abc", str(tmp_path / "ca.crt"), True)


@pytest.mark.parametrize("variable", ["BONNY_KUBECONFIG", "KUBECONFIG"])
def test_a_kubeconfig_that_does_not_exist_is_an_error_even_in_a_pod(tmp_path: Path, variable: str) -> None:
    """Regression: the sentence blamed a flag that does not exist."""
    gone = str(tmp_path / "gone")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    named = gone if variable == "BONNY_KUBECONFIG" else None

    with pytest.raises(UsageError) as caught:
        find_cluster(kubeconfig=named, environ={**environ, "KUBECONFIG": gone})

    assert str(caught.value) == f"the kubeconfig {gone} in {variable} does not exist: correct the path"


def test_of_several_files_some_may_be_missing_as_with_kubectl(tmp_path: Path) -> None:
    there = kubeconfig(tmp_path / "there")
    named = f"{tmp_path / 'gone'}{os.pathsep}{there}"

    assert find_cluster(environ={"KUBECONFIG": named}) == Kubeconfig(named)


def test_the_current_context_can_be_named(tmp_path: Path) -> None:
    there = str(kubeconfig(tmp_path / "there", contexts=("one", "two")))
    gone = Kubeconfig(str(tmp_path / "gone"))

    assert with_context(Kubeconfig(there)) == Kubeconfig(there, "one")
    assert with_context(Kubeconfig(there)).source == f"context 'one' of {there}"
    assert with_context(Kubeconfig(there, "two")) == Kubeconfig(there, "two")
    assert with_context(gone) == gone


def test_a_context_is_looked_for_in_a_file_even_in_a_pod(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}

    with pytest.raises(UsageError, match="no cluster found"):
        find_cluster(context="one", environ=environ)
    (tmp_path / ".kube").mkdir()
    home = kubeconfig(tmp_path / ".kube" / "config")
    assert find_cluster(context="one", environ=environ) == Kubeconfig(str(home), "one")
