"""Config: what the environment says, and what it must not say; and where a cluster is looked for."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bonny.client.config import InCluster, Kubeconfig, find_cluster
from bonny.config import Config
from bonny.errors import UsageError


def test_without_a_word_all_namespaces_are_watched_and_the_port_is_8080() -> None:
    config = Config.from_environment({})
    assert (config.watch_namespaces, config.http_port, config.grace) == (None, 8080, 25.0)
    assert config.watched == "all namespaces"


@pytest.mark.parametrize(
    ("environ", "watched"),
    [
        ({"BONNY_WATCH_NAMESPACE": "a"}, ("a",)),
        ({"BONNY_WATCH_NAMESPACE": "a, b,a"}, ("a", "b")),
        ({"BONNY_WATCH_NAMESPACE": "__ALL__"}, None),
        ({"BONNY_POD_NAMESPACE": "here"}, ("here",)),
        ({"BONNY_POD_NAMESPACE": "__ALL__"}, None),
        ({"BONNY_POD_NAMESPACE": "here", "BONNY_WATCH_NAMESPACE": "__ALL__"}, None),
        ({"BONNY_POD_NAMESPACE": "here", "BONNY_WATCH_NAMESPACE": "there"}, ("there",)),
    ],
)
def test_what_is_watched_is_what_the_environment_says(environ: dict[str, str], watched: tuple[str, ...] | None) -> None:
    assert Config.from_environment(environ).watch_namespaces == watched


def test_the_environment_beats_what_the_operator_says() -> None:
    base = Config(watch_namespaces=("a",), http_port=1)
    config = Config.from_environment({"BONNY_HTTP_PORT": "2", "BONNY_LOG_LEVEL": "debug"}, base=base)
    assert (config.watch_namespaces, config.http_port, config.log_level) == (("a",), 2, logging.DEBUG)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BONNY_WATCH_NAMESPACE", "__ALL"),
        ("BONNY_WATCH_NAMESPACE", "Not_A_Name"),
        ("BONNY_WATCH_NAMESPACE", ","),
        ("BONNY_POD_NAMESPACE", "Not_A_Name"),
        ("BONNY_HTTP_PORT", "70000"),
        ("BONNY_HTTP_PORT", "-1"),
        ("BONNY_HTTP_PORT", "http"),
        ("BONNY_LOG_FORMAT", "xml"),
        ("BONNY_LOG_LEVEL", "loud"),
        ("BONNY_GRACE_SECONDS", "soon"),
        ("BONNY_GRACE_SECONDS", "nan"),
        ("BONNY_GRACE_SECONDS", "-1"),
        ("BONNY_WATCH_NAMESPACES", "a"),
    ],
)
def test_what_cannot_be_is_refused_by_name_in_one_sentence(name: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        Config.from_environment({name: value})
    sentence = str(caught.value)
    assert name in sentence
    assert "\n" not in sentence


def test_the_variables_of_a_service_called_bonny_are_none_of_ours() -> None:
    Config.from_environment({"BONNY_API_SERVICE_HOST": "10.0.0.1", "BONNY_API_PORT": "tcp://10.0.0.1:80"})


def test_a_cluster_is_looked_for_by_name_then_kubeconfig_then_pod_then_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    home, other = tmp_path / ".kube" / "config", tmp_path / "other"
    for path in (home, other):
        path.write_text("", "utf-8")
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}

    assert find_cluster(kubeconfig=str(other), environ=pod) == Kubeconfig(str(other))
    assert find_cluster(environ={**pod, "KUBECONFIG": str(other)}) == Kubeconfig(str(other))
    assert find_cluster(environ=pod) == InCluster("https://[fd00::1]:443")
    assert find_cluster(environ={"HOME": str(tmp_path)}, context="c") == Kubeconfig(str(home), "c")
    with pytest.raises(UsageError, match="no cluster to talk to"):
        find_cluster(environ={"HOME": str(tmp_path / "empty")})


async def test_in_a_pod_the_token_is_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n", "utf-8")
    cluster = InCluster("https://10.0.0.1:443", tmp_path)
    assert (await cluster.connect()).authorization == "Bearer one"
    (tmp_path / "token").write_text("two", "utf-8")
    assert (await cluster.connect()).authorization == "Bearer two"
    (tmp_path / "token").unlink()
    with pytest.raises(UsageError, match="automountServiceAccountToken"):
        await cluster.connect()
