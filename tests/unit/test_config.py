"""Config: what the environment says, and what it must not say; and where a cluster is looked for."""

from __future__ import annotations

import logging
import os
from dataclasses import fields, replace
from pathlib import Path

import pytest

from bonny import Operator
from bonny.client.config import InCluster, Kubeconfig, find_cluster
from bonny.console.settings import ConsoleSettings
from bonny.errors import UsageError
from bonny.main import defaults, main
from bonny.metrics_auth.settings import MetricsSettings
from bonny.namespaces import NamespaceSelector
from bonny.run.config import VARIABLES, Config, settings, variables
from bonny.webhooks.settings import WebhookSettings
from tools import configuration


def test_without_a_word_all_namespaces_are_watched_and_the_port_is_8080() -> None:
    found = Config.from_environment({})
    assert (found.watch_namespaces, found.http_port, found.grace) == (None, 8080, 25.0)
    assert found.watched == "all namespaces"


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
    found = Config.from_environment({"BONNY_HTTP_PORT": "2", "BONNY_LOG_LEVEL": "debug"}, base=base)
    assert (found.watch_namespaces, found.http_port, found.log_level) == (("a",), 2, logging.DEBUG)


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
        ("BONNY_HTTP_PORT", " 80"),
        ("BONNY_HTTP_PORT", "8_0"),
        ("BONNY_HTTP_PORT", "80.0"),
        ("BONNY_LEADER_ELECTION", "yes"),
        ("BONNY_LEADER_ELECTION", "1"),
        ("BONNY_LOG_FORMAT", "xml"),
        ("BONNY_LOG_LEVEL", "loud"),
        ("BONNY_LOG_LEVEL", "10"),
        ("BONNY_EVENT_LOOP", "trio"),
        ("BONNY_EVENT_LOOP", "asyncio "),
        ("BONNY_GRACE_SECONDS", "soon"),
        ("BONNY_GRACE_SECONDS", "nan"),
        ("BONNY_GRACE_SECONDS", "-1"),
        ("BONNY_WATCH_NAMESPACES", "a"),
        ("BONNY_WEBHOOK_PORT", "70000"),
        ("BONNY_DRAIN_SECONDS", "61"),
        ("BONNY_SECURE_METRICS_PORT", "-1"),
    ],
)
def test_what_cannot_be_is_refused_by_name_in_one_sentence(name: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        Config.from_environment({name: value})
    sentence = str(caught.value)
    assert name in sentence
    assert "\n" not in sentence


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
    with pytest.raises(UsageError, match="no cluster found"):
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


# --- what is in force ---------------------------------------------------------------------------------------------


def in_force(environ: dict[str, str], *, base: Config | None = None) -> dict[str, tuple[str, str]]:
    return {setting.name: (setting.value, setting.source) for setting in settings(environ, base=base)}


def test_each_setting_tells_its_value_and_where_it_comes_from() -> None:
    found = in_force(
        {"BONNY_HTTP_PORT": "9090", "BONNY_LOG_LEVEL": "debug", "BONNY_LOG_FORMAT": "json"},
        base=Config(watch_namespaces=("a", "b")),
    )
    assert found["BONNY_HTTP_PORT"] == ("9090", "BONNY_HTTP_PORT")
    assert found["BONNY_LOG_LEVEL"] == ("debug", "BONNY_LOG_LEVEL")
    assert found["BONNY_LOG_FORMAT"] == ("json", "BONNY_LOG_FORMAT")
    assert found["BONNY_WATCH_NAMESPACE"] == ("a,b", "operator")
    assert found["BONNY_GRACE_SECONDS"] == ("25", "default")
    assert found["BONNY_KUBECONFIG"] == ("", "default")


def test_what_is_watched_because_of_the_pods_namespace_says_so() -> None:
    assert in_force({"BONNY_POD_NAMESPACE": "here"})["BONNY_WATCH_NAMESPACE"] == ("here", "BONNY_POD_NAMESPACE")
    both = in_force({"BONNY_POD_NAMESPACE": "here", "BONNY_WATCH_NAMESPACE": "__ALL__"})
    assert both["BONNY_WATCH_NAMESPACE"] == ("__ALL__", "BONNY_WATCH_NAMESPACE")
    assert both["BONNY_POD_NAMESPACE"] == ("here", "BONNY_POD_NAMESPACE")


def test_what_is_told_as_set_can_be_set_again() -> None:
    """Each value is spelled as its variable takes it: the settings of one process are those of the next."""
    extras = WebhookSettings(port=0, certificate="c", drain=0.5), MetricsSettings(port=1)
    base = Config(
        watch_namespaces=("a",),
        pod_namespace="b",
        http_port=0,
        log_json=True,
        log_level=10,
        grace=0.5,
        extras=extras,
    )
    told = {setting.name: setting.value for setting in settings({}, base=base) if setting.value}
    again = Config.from_environment(told)
    assert replace(again, extras=()) == replace(base, extras=())
    assert sorted(again.extras, key=repr) == sorted(base.extras, key=repr)
    assert again.of(WebhookSettings).drain == 0.5


def test_the_grace_period_of_an_operator_is_its_own_unless_the_environment_names_another() -> None:
    base = defaults(Operator(name="o", group="example.com", grace=7.0))

    assert Config.from_environment({}, base=base).grace == 7.0
    assert Config.from_environment({"BONNY_GRACE_SECONDS": "3"}, base=base).grace == 3.0


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("http://user:pa@ss@proxy:3128", "http://***@proxy:3128"),
        ("user:pass@proxy:3128", "***@proxy:3128"),
        ("http://proxy:3128", "http://proxy:3128"),
    ],
)
def test_the_password_of_a_proxy_is_masked(proxy: str, shown: str) -> None:
    assert in_force({"HTTPS_PROXY": proxy})["HTTPS_PROXY"] == (shown, "HTTPS_PROXY")


def test_every_field_has_a_variable_and_every_variable_a_field() -> None:
    assert {variable.field for variable in VARIABLES.values()} == {field.name for field in fields(Config)} - {"extras"}
    types = {Config, ConsoleSettings, WebhookSettings, MetricsSettings, NamespaceSelector}
    for of in types:
        named = {variable.field for settings_, variable in variables().values() if settings_ is of}
        assert named == {field.name for field in fields(of)} - {"extras"}
    assert {of for of, _ in variables().values()} == {
        Config,
        ConsoleSettings,
        WebhookSettings,
        MetricsSettings,
        NamespaceSelector,
    }
    assert set(in_force({})) == set(variables())


@pytest.mark.parametrize(
    "name",
    ["BONNY_HTTP_HOST", "BONNY_HTTP_PORT", "BONNY_LEADER_ELECTION", "BONNY_LOG_LEVEL", "BONNY_WEBHOOK_PORT"],
)
def test_the_default_in_the_table_is_the_default_of_the_field(name: str) -> None:
    assert variables()[name][1].default == in_force({})[name][0]


def test_the_page_is_what_the_code_says_now() -> None:
    assert configuration.PAGE.read_text("utf-8") == configuration.page(), "run `invoke reference`"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith(("BONNY_", "KUBE")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


def test_the_command_config_prints_them_and_the_cluster(
    environ: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kubeconfig").write_text("", "utf-8")
    environ.setenv("BONNY_KUBECONFIG", str(tmp_path / "kubeconfig"))

    assert main(Operator(name="o", group="example.com"), ["config"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["BONNY_HTTP_PORT", "8080", "default"] in lines
    assert ["BONNY_CONTEXT", "(none)", "default"] in lines
    assert lines[-1][0] == "cluster"
    assert str(tmp_path / "kubeconfig") in " ".join(lines[-1])


@pytest.mark.parametrize(("name", "value"), [("BONNY_HTTP_PRT", "80"), ("BONNY_HTTP_PORT", "http")])
def test_the_command_config_refuses_what_run_would_refuse(
    environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    environ.setenv(name, value)

    assert main(Operator(name="o", group="example.com"), ["config"]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert name in printed.err
    assert printed.err.count("\n") == 1


def test_without_a_cluster_the_settings_are_printed_and_then_what_is_missing(
    environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(Operator(name="o", group="example.com"), ["config"]) == 2
    printed = capsys.readouterr()
    assert "BONNY_HTTP_PORT" in printed.out
    assert "no cluster found" in printed.err


def test_the_help_names_every_command_and_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Operator(name="o", group="example.com"), ["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n    {word} " in printed for word in ("run", "config", "version", *in_force({})))
    assert main(Operator(name="o", group="example.com"), ["conf"]) == 2
    assert "use run, config, version or help" in capsys.readouterr().err
