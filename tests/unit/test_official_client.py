"""What `client.config` relies on in the official client, so that an upgrade which breaks it is told by its name."""

from __future__ import annotations

import ast
import asyncio
import base64
import importlib
import inspect
import stat
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bonny.client import config

# The parameters by which they are called, and the attributes that are read.
SYMBOLS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "kubernetes.aio.client.configuration.Configuration": ((), ()),
    "kubernetes.aio.config.ConfigException": ((), ()),
    "kubernetes.aio.config.list_kube_config_contexts": (("config_file",), ()),
    "kubernetes.aio.config.kube_config.KubeConfigMerger": (("paths",), ("config",)),
    "kubernetes.aio.config.kube_config.KubeConfigLoader": (
        ("config_dict", "active_context", "config_base_path"),
        ("current_context", "load_and_set"),
    ),
}
READ: Final = ("host", "api_key", "ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "tls_server_name", "proxy")


def symbol(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name, None)
    assert found is not None, f"{path} is gone: bonny.client.config imports it"
    return found


def imported() -> set[str]:
    """The names that client/config.py imports from the official client."""
    tree = ast.parse(inspect.getsource(config))
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kubernetes")
        for alias in node.names
    }


def test_every_symbol_that_is_used_is_held_to_something_here() -> None:
    assert imported() == set(SYMBOLS)


@pytest.mark.parametrize("path", SYMBOLS)
def test_a_symbol_is_there_with_the_parameters_and_attributes_that_are_used(path: str) -> None:
    found, (parameters, attributes) = symbol(path), SYMBOLS[path]

    missing = set(parameters) - set(inspect.signature(found).parameters) if parameters else set()
    assert not missing, f"{path} takes no {', '.join(missing)} any more: bonny.client.config passes it"
    for name in attributes:
        assert hasattr(found, name), f"{path} has no {name} any more: bonny.client.config uses it"


def test_the_configuration_has_what_is_read_and_starts_empty() -> None:
    """`Configuration()` must not take anything from its surroundings: what it says is taken for the kubeconfig's."""
    made = symbol("kubernetes.aio.client.configuration.Configuration")()

    values = {name: getattr(made, name, "gone") for name in READ}
    assert "gone" not in values.values(), f"Configuration has lost an attribute that is read: {values}"
    assert values == {
        "host": "",
        "api_key": {},
        "ssl_ca_cert": None,
        "cert_file": None,
        "key_file": None,
        "verify_ssl": True,
        "tls_server_name": None,
        "proxy": None,
    }


def test_the_configuration_takes_no_proxy_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one leads to the server is decided by `client.proxy`, by kubectl's rules."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example.com:3128")

    assert symbol("kubernetes.aio.client.configuration.Configuration")().proxy is None


def write(path: Path, *, context: str = "here", user: Any = None, cluster: Any = None, name: str = "x") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": context,
                "clusters": [{"name": name, "cluster": {"server": "https://api.example.com/", **(cluster or {})}}],
                "users": [{"name": name, "user": user or {}}],
                "contexts": [{"name": context, "context": {"cluster": name, "user": name}}],
            }
        ),
        "utf-8",
    )
    return path


def merged(*files: Path) -> Any:
    return symbol("kubernetes.aio.config.kube_config.KubeConfigMerger")(":".join(map(str, files))).config


def load(*files: Path) -> Any:
    """As `Kubeconfig.connect` does."""
    loaded = symbol("kubernetes.aio.client.configuration.Configuration")()
    loader = symbol("kubernetes.aio.config.kube_config.KubeConfigLoader")
    asyncio.run(loader(merged(*files), config_base_path=None).load_and_set(loaded))
    return loaded


def test_files_are_merged_the_first_one_wins_and_each_entry_knows_its_file(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "config", context="one", name="shared", user={"token": "first"})
    second = write(tmp_path / "b" / "config", context="two", name="shared", user={"token": "second"})
    own = write(tmp_path / "c" / "config", context="three", name="own", user={"token": "own"})
    users = merged(first, tmp_path / "missing", second, own)["users"]

    found = users.get_with_name("shared", safe=True)
    assert (found["user"].value, found.path) == ({"token": "first"}, str(first)), "KubeConfigMerger merges otherwise"
    assert users.get_with_name("own", safe=True).path == str(own), "ConfigNode.path is no longer the entry's file"
    assert users.get_with_name("nobody", safe=True) is None, "ConfigNode.get_with_name(safe=True) raises now"


def test_what_is_written_into_an_entry_is_what_the_loader_reads(tmp_path: Path) -> None:
    """Tokens of plugins and of files are put there."""
    config_node = merged(write(tmp_path / "config", user={}))
    loader = symbol("kubernetes.aio.config.kube_config.KubeConfigLoader")(config_node, config_base_path=None)
    user = config_node["users"].get_with_name(loader.current_context["context"]["user"], safe=True)["user"].value
    encoded = base64.b64encode(b"PEM")
    user.update({"token": "abc", "client-certificate-data": encoded, "client-key-data": encoded})
    loaded = symbol("kubernetes.aio.client.configuration.Configuration")()
    asyncio.run(loader.load_and_set(loaded))

    assert loaded.api_key == {"BearerToken": "Bearer abc"}, "KubeConfigLoader works on a copy of the entries now"
    assert [Path(file).read_bytes() for file in (loaded.cert_file, loaded.key_file)] == [b"PEM", b"PEM"]


def test_a_file_is_not_written_to(tmp_path: Path) -> None:
    file = write(tmp_path / "config", user={"token": "abc"})
    before = file.read_bytes()
    load(file)

    assert file.read_bytes() == before, "KubeConfigMerger or KubeConfigLoader saves what it loaded now"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, {"BearerToken": "Bearer abc"}),
        ({"username": "a", "password": "b"}, {"BearerToken": "Basic YTpi"}),
        ({}, {}),
        (
            # A JWT without an expiry; what comes from the issuer is not asked for.
            {"auth-provider": {"name": "oidc", "config": {"id-token": "e30.e30.x"}}},
            {"BearerToken": "Bearer e30.e30.x"},
        ),
    ],
)
def test_the_authorization_stands_where_it_is_read(tmp_path: Path, user: Any, expected: dict[str, str]) -> None:
    found = load(write(tmp_path / "config", user=user)).api_key

    assert found == expected, "KubeConfigLoader hands the authorization on in another way"


def test_paths_are_relative_to_the_file_and_data_becomes_files_that_others_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    encoded = base64.b64encode(b"PEM").decode()
    user = {"client-certificate-data": encoded, "client-key-data": encoded}
    found = load(write(tmp_path / "config", user=user, cluster={"certificate-authority": "ca.crt"}))

    assert found.ssl_ca_cert == str(tmp_path / "ca.crt"), "KubeConfigLoader resolves paths otherwise"
    assert Path(found.key_file).read_bytes() == b"PEM", "KubeConfigLoader no longer writes inline data to files"
    assert stat.S_IMODE(Path(found.key_file).stat().st_mode) == 0o600, "everybody can read the private key"


def test_what_a_cluster_says_stands_where_it_is_read(tmp_path: Path) -> None:
    told = {"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128"}
    found = load(write(tmp_path / "config", cluster=told))

    seen = (found.host, found.verify_ssl, found.tls_server_name, found.proxy)
    assert seen == ("https://api.example.com", False, "kubernetes", "http://proxy:3128"), "KubeConfigLoader changed"


def test_mistakes_are_config_exceptions(tmp_path: Path) -> None:
    wrong = symbol("kubernetes.aio.config.ConfigException")
    file = write(tmp_path / "config")

    for context, config_node in (("nowhere", merged(file)), (None, merged(tmp_path / "missing"))):
        with pytest.raises(wrong):
            symbol("kubernetes.aio.config.kube_config.KubeConfigLoader")(config_node, active_context=context)


def test_contexts_are_listed_with_their_names(tmp_path: Path) -> None:
    contexts, current = symbol("kubernetes.aio.config.list_kube_config_contexts")(str(write(tmp_path / "config")))

    assert ([context["name"] for context in contexts], current["name"]) == (["here"], "here")
