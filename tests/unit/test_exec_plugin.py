"""Commands that print credentials: real processes, good ones and bad ones."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny_dev import exec_plugin
from tests.support.installed import entry_points_in

V1 = "client.authentication.k8s.io/v1"
TOKEN = {"token": "hunter2"}


@pytest.fixture(autouse=True)
def tools(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer tools are installed."""
    monkeypatch.syspath_prepend(entry_points_in(tmp_path_factory.mktemp("tools")))


def printing(status: dict[str, Any] | None, *, version: str = V1) -> str:
    """The source of a plugin that prints this."""
    printed = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return f"print({printed!r})"


def kubeconfig(folder: Path, source: str, **settings: Any) -> Kubeconfig:
    """A context whose user runs a Python program."""
    command = {"apiVersion": V1, "command": sys.executable, "args": ["-c", source], **settings}
    file = folder / "config"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com"}}],
                "users": [{"name": "u", "user": {"exec": command}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        ),
        "utf-8",
    )
    return Kubeconfig(str(file))


async def test_without_the_developer_tools_one_sentence_names_the_user_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    cluster = kubeconfig(tmp_path, printing(TOKEN))

    with pytest.raises(UsageError) as caught:
        await cluster.connect()

    assert str(caught.value) == (
        f"user 'u' of {cluster.files} has a command (exec), which only the developer tools run: "
        "use a token or a certificate"
    )


async def test_the_token_that_it_prints_is_used(tmp_path: Path) -> None:
    found = await kubeconfig(tmp_path, printing(TOKEN)).connect()

    assert (found.authorization, found.max_age) == ("Bearer hunter2", float("inf"))


def test_a_certificate_that_it_prints_is_used(tmp_path: Path) -> None:
    status = {"clientCertificateData": "CERTIFICATE", "clientKeyData": "KEY"}
    found = asyncio.run(kubeconfig(tmp_path, printing(status)).connect())

    assert found.authorization is None
    files = [Path(file).read_text("utf-8") for file in (found.cert_file, found.key_file) if file]
    assert files == ["CERTIFICATE", "KEY"]


@pytest.mark.parametrize(
    ("left", "shortest", "longest"),
    [
        (timedelta(hours=1), 3500, 3590),
        (timedelta(seconds=5), 1, 1),
        (timedelta(hours=-1), 1, 1),
    ],
)
async def test_it_is_run_again_before_what_it_printed_expires(
    tmp_path: Path, left: timedelta, shortest: float, longest: float
) -> None:
    expires = (datetime.now(UTC) + left).strftime("%Y-%m-%dT%H:%M:%SZ")

    found = await kubeconfig(tmp_path, printing({**TOKEN, "expirationTimestamp": expires})).connect()

    assert shortest <= found.max_age <= longest


async def test_it_is_told_what_kubectl_tells(tmp_path: Path) -> None:
    told = tmp_path / "told"
    source = f"import os; open({str(told)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'] + os.environ['GIVEN'])"
    await kubeconfig(
        tmp_path, f"{source}; {printing(TOKEN)}", env=[{"name": "GIVEN", "value": "!"}], interactiveMode="Never"
    ).connect()

    spec = {"interactive": False}
    assert told.read_text("utf-8") == json.dumps({"apiVersion": V1, "kind": "ExecCredential", "spec": spec}) + "!"


async def test_a_path_is_relative_to_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "bin" / "plugin"
    plugin.parent.mkdir()
    plugin.write_text(f"#!{sys.executable}\n{printing(TOKEN)}\n", "utf-8")
    plugin.chmod(0o755)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    found = await kubeconfig(tmp_path, "", command="./bin/plugin").connect()

    assert found.authorization == "Bearer hunter2"


@pytest.mark.parametrize(
    ("source", "settings", "told"),
    [
        ("raise SystemExit(3)", {}, "failed with exit code 3: see its output on stderr"),
        ("import os; os.kill(os.getpid(), 9)", {}, "failed with exit code -9: see its output on stderr"),
        ("print('hunter2')", {}, "printed no ExecCredential: run it by hand"),
        ("print('{\"hunter2\"')", {}, "printed no ExecCredential: run it by hand"),
        ("", {}, "printed no ExecCredential: run it by hand"),
        (printing(None), {}, "printed no ExecCredential: run it by hand"),
        (printing({"token": ["hunter2"]}), {}, "printed no ExecCredential: run it by hand"),
        (printing({}), {}, "printed neither a token nor a certificate with its key: log in again"),
        (printing({"clientCertificateData": "x"}), {}, "printed neither a token nor a certificate with its key"),
        (printing(TOKEN, version="client.authentication.k8s.io/v1beta1"), {}, f"the kubeconfig {V1}"),
        ("", {"command": "no-such-plugin"}, "cannot be run (FileNotFoundError): install it, or correct the kubeconfig"),
        ("", {"command": "no-such-plugin", "installHint": "get it\nfrom us"}, "(FileNotFoundError): get it from us"),
        ("", {"command": "/"}, "cannot be run (PermissionError)"),
        ("", {"command": None}, "cannot be run ("),
        ("", {"args": [1]}, "cannot be run (TypeError)"),
        ("", {"env": [{"name": "x"}]}, "cannot be run (KeyError)"),
    ],
)
async def test_one_that_fails_is_named_in_one_sentence(
    tmp_path: Path, source: str, settings: dict[str, Any], told: str
) -> None:
    """Regression: the official client only logs that, and asks the server as nobody."""
    cluster = kubeconfig(tmp_path, source, **settings)

    with pytest.raises(UsageError) as caught:
        await cluster.connect()

    command = settings.get("command", sys.executable)
    assert str(caught.value).startswith(f"the command {command!r} of user 'u' of {cluster.files} ")
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_what_it_says_on_stderr_reaches_a_person(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    await kubeconfig(tmp_path, f"import sys; print('log in at ...', file=sys.stderr); {printing(TOKEN)}").connect()

    assert capfd.readouterr().err == "log in at ...\n"


@pytest.mark.parametrize("how", ["too slow", "cancelled"])
async def test_one_that_hangs_is_given_up_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    alive = tmp_path / "alive"
    hanging = f"import os, time; open({str(alive)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    if how == "too slow":
        monkeypatch.setattr(exec_plugin, "PLUGIN_SECONDS", 3.0)
    connecting = asyncio.create_task(kubeconfig(tmp_path, hanging).connect())
    async with asyncio.timeout(10):
        while not (alive.exists() and alive.read_text("utf-8")):  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.01)
        if how == "cancelled":
            connecting.cancel()
        await asyncio.wait([connecting])

    with pytest.raises(ProcessLookupError):
        os.kill(int(alive.read_text("utf-8")), 0)
    if how == "too slow":
        assert "ran longer than 3 s: run it by hand" in str(connecting.exception())
    else:
        assert connecting.cancelled()
