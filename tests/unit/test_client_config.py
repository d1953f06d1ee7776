"""Where the API server is and who we are: kubeconfig files and the pod's ServiceAccount, good ones and bad ones."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny.client.config import InCluster, Kubeconfig, find_cluster
from bonny.errors import UsageError


def kubeconfig(path: Path, *, contexts: tuple[str, ...] = ("one",), user: dict[str, Any] | None = None) -> Path:
    """A file whose context of name x is the server https://x.example.com:6443/."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": contexts[0],
                "clusters": [
                    {"name": name, "cluster": {"server": f"https://{name}.example.com:6443/"}} for name in contexts
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

    assert str(caught.value) == f"the kubeconfig {gone} named by {variable} does not exist: correct the path"


def test_of_several_files_some_may_be_missing_as_with_kubectl(tmp_path: Path) -> None:
    there = kubeconfig(tmp_path / "there")
    named = f"{tmp_path / 'gone'}{os.pathsep}{there}"

    assert find_cluster(environ={"KUBECONFIG": named}) == Kubeconfig(named)


def test_a_context_is_looked_for_in_a_file_even_in_a_pod(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}

    with pytest.raises(UsageError, match="no cluster to talk to"):
        find_cluster(context="one", environ=environ)
    (tmp_path / ".kube").mkdir()
    home = kubeconfig(tmp_path / ".kube" / "config")
    assert find_cluster(context="one", environ=environ) == Kubeconfig(str(home), "one")
