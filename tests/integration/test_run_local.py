"""`invoke run-local` as a person meets it: what it says, how it ends, and what it says about what cannot work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bonny.sandbox import Sandbox
from tests.support.baking import bake, install, invoke

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    baked = bake(tmp_path_factory.mktemp("run-local") / "bake")
    assert baked.code == 0, baked.said
    install(baked.project)
    assert invoke(baked.project, "gen-controller", "Widget", "widgets").returncode == 0
    return baked.project


def environment(home: Path, **settings: str) -> dict[str, str]:
    """A person's environment with a home of its own; the cache of control planes is the real one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {**kept, "XDG_CACHE_HOME": cache, "HOME": str(home), "PYTHONPATH": "", **settings}


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Run:
    """Runs a task to its end."""

    def to_its_end(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(project / ".venv/bin/invoke"), *words],
            cwd=project,
            env=environment(tmp_path, **settings),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return to_its_end


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence on stderr."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    return sentence


def kubeconfig(folder: Path, *, server: str, token: str = "wrong", ca: bytes = b"") -> str:
    path = folder / "kubeconfig"
    (folder / "ca.crt").write_bytes(ca)
    authority = f', certificate-authority: "{folder}/ca.crt"' if ca else ""
    path.write_text(
        f"""apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{server}"{authority}}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
""",
        "utf-8",
    )
    return str(path)


def test_without_any_cluster_it_says_both_ways_out(run: Run) -> None:
    said = refused(run("run-local"))
    assert "KUBECONFIG" in said
    assert "--sandbox" in said


def test_a_kubeconfig_that_does_not_exist_is_named(run: Run, tmp_path: Path) -> None:
    said = refused(run("run-local", KUBECONFIG=str(tmp_path / "missing")))
    assert f"{tmp_path}/missing" in said


def test_a_kubeconfig_that_is_no_yaml_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{", "utf-8")
    assert f"{tmp_path}/broken" in refused(run("run-local", KUBECONFIG=str(tmp_path / "broken")))


def test_a_context_that_does_not_exist_is_answered_with_those_that_do(run: Run, sandbox: Sandbox) -> None:
    said = refused(run("run-local", "--context", "nowhere", KUBECONFIG=str(sandbox.kubeconfig)))
    assert "'nowhere'" in said
    assert said.endswith("it has sandbox")


def test_a_server_that_does_not_answer_is_named(run: Run, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{unused.getsockname()[1]}"
        assert server in refused(run("run-local", KUBECONFIG=kubeconfig(tmp_path, server=server)))


def test_a_refused_token_is_said_to_be_refused(run: Run, sandbox: Sandbox, tmp_path: Path) -> None:
    named = kubeconfig(tmp_path, server=sandbox.url, ca=sandbox.ca_file.read_bytes())
    assert "refuses the credentials" in refused(run("run-local", KUBECONFIG=named))


def test_crds_that_one_may_not_install_lead_to_an_administrator(run: Run, sandbox: Sandbox) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "newcomer", "namespace": "default"}}
    sandbox.apply(account)
    named = sandbox.service_account_kubeconfig("default", "newcomer")
    said = refused(run("run-local", KUBECONFIG=str(named)))
    assert "may not install CRDs" in said
    assert "invoke manifest --local" in said


def test_a_port_in_use_is_named(run: Run, sandbox: Sandbox) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = refused(run("run-local", KUBECONFIG=str(sandbox.kubeconfig), BONNY_HTTP_PORT=port))
    assert f"port {port}" in said
    assert "BONNY_HTTP_PORT" in said


@pytest.mark.parametrize(
    ("words", "settings", "telling"),
    [
        (("--namespace", "Not_A_Name"), {}, "Not_A_Name"),
        (("--sandbox", "--context", "x"), {}, "exclude each other"),
        ((), {"BONNY_WATCH_NAMESPACES": "x"}, "BONNY_WATCH_NAMESPACES is not known"),
        ((), {"BONNY_WATCH_NAMESPACE": "__ALL"}, "__ALL__"),
        ((), {"BONNY_HTTP_PORT": "http"}, "BONNY_HTTP_PORT is 'http'"),
        ((), {"BONNY_GRACE_SECONDS": "nan"}, "BONNY_GRACE_SECONDS is 'nan'"),
    ],
)
def test_flags_and_settings_that_cannot_be_are_refused(
    run: Run, words: tuple[str, ...], settings: dict[str, str], telling: str
) -> None:
    assert telling in refused(run("run-local", *words, **settings))


def test_a_sandbox_without_go_and_internet_says_what_to_do(run: Run, project: Path, tmp_path: Path) -> None:
    said = refused(
        run("run-local", "--sandbox", XDG_CACHE_HOME=str(tmp_path / "empty"), PATH=f"{project}/.venv/bin:/usr/bin:/bin")
    )
    assert "Go" in said


def test_it_says_what_it_watches_and_ctrl_c_ends_it_within_five_seconds(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "said"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(project / ".venv/bin/invoke"), "run-local", "--sandbox", "--namespace", "default"],
            cwd=project,
            env=environment(tmp_path, PYTHONUNBUFFERED="1"),
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        Sandbox.eventually(lambda: "watching namespace default" in log.read_text("utf-8"), within_seconds=60)
        Sandbox.eventually(lambda: "started" in log.read_text("utf-8"))
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
    finally:
        process.kill()
        process.wait()

    said = log.read_text("utf-8")
    assert code == 0, said
    assert time.monotonic() - began < 5
    assert "installed widgets.example.com" in said
    assert "export KUBECONFIG=" in said
    assert "Traceback" not in said
