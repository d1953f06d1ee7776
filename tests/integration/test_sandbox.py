"""The sandbox itself, on real binaries: it starts, fails with the server's own words, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import bonny
from bonny.errors import UsageError
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox, SandboxError, connections
from bonny_dev.sandbox import server as server_module
from bonny_dev.sandbox.snapshot import Snapshot

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
MOST_CHANGES = 30
NAMESPACES = ("default", "kube-public")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

WAITING_OWNER = """
import sys
from bonny_dev.sandbox import Sandbox
sandbox = Sandbox().start()
print(sandbox.folder, flush=True)
sys.stdin.read()
"""
# As `invoke sandbox.start` in the folder of a project, in the background and with --foreground.
START = "from bonny_dev.sandbox import commands; commands.start()"
RUN = "from bonny_dev.sandbox import commands; commands.run()"
STOP = "from bonny_dev.sandbox import commands; commands.stop()"


def processes_naming(text: str | Path) -> list[str]:
    listing = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if str(text) in line]


def wait_until_gone(folder: Path, *, within_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + within_seconds
    while folder.exists() or processes_naming(folder):
        assert time.monotonic() < deadline, processes_naming(folder)
        time.sleep(0.02)


@contextmanager
def python(script: str, *, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(bonny.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def role(name: str, *, verbs: list[str]) -> list[Resource]:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]


def crd(plural: str, kind: str) -> Resource:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.sandbox.example.com"},
        "spec": {
            "group": "sandbox.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_a_sandbox_is_ready_when_start_returns_and_gone_when_stop_returns() -> None:
    sandbox = Sandbox()
    sandbox.start()
    try:
        assert sandbox.request("GET", "/readyz").status == 200
        assert sandbox.get("v1", "Namespace", "default") is not None
        assert len(processes_naming(sandbox.folder)) == 3  # etcd, kube-apiserver and their watchdog
    finally:
        sandbox.stop()

    assert not sandbox.folder.exists()
    assert processes_naming(sandbox.folder) == []
    sandbox.stop()  # a second time does nothing


def test_a_stopped_sandbox_can_be_started_again_and_is_empty() -> None:
    sandbox = Sandbox()
    with sandbox:
        sandbox.apply(CONFIG_MAP)
    with sandbox:
        assert sandbox.get("v1", "ConfigMap", "kept") is None


@pytest.fixture(scope="module")
def fresh() -> Iterator[Sandbox]:
    """One that each test resets."""
    with Sandbox() as sandbox:
        yield sandbox


def test_reset_makes_everything_as_it_was_at_the_start(fresh: Sandbox) -> None:
    roles, helds = "rbac.authorization.k8s.io/v1", "/apis/sandbox.example.com/v1/helds"
    named = {"name": "one", "finalizers": ["sandbox.example.com/held"]}
    held = {"apiVersion": "sandbox.example.com/v1", "kind": "Held", "metadata": named}
    labelled = {"apiVersion": roles, "kind": "ClusterRole", "metadata": {"name": "view", "labels": {"a": "b"}}}
    for _ in range(3):  # a kind comes back at once, with objects of its own
        fresh.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, CONFIG_MAP])
        fresh.apply([crd("helds", "Held"), *role("reader", verbs=["get"])])
        # A 404 has a text before the kind is served.
        fresh.eventually(lambda: (seen := fresh.request("GET", helds)).status == 200 and seen.body["items"] == [])
        fresh.apply([held, {**CONFIG_MAP, "metadata": {"name": "kept", "namespace": "shop"}}])
        fresh.delete("v1", "Namespace", "shop")
        fresh.apply(labelled)
        fresh.delete(roles, "ClusterRole", "edit")

        fresh.reset()

        names = {each["metadata"]["name"] for each in fresh.items("v1", "Namespace")}
        assert names == {"default", "kube-node-lease", "kube-public", "kube-system"}
        assert fresh.items("v1", "ConfigMap", namespace="shop") == []
        assert fresh.get("v1", "ConfigMap", "kept") is None
        assert fresh.request("GET", helds).status == 404
        view, edit = (fresh.get(roles, "ClusterRole", name) for name in ("view", "edit"))
        assert view is not None
        assert "a" not in view["metadata"]["labels"]
        assert edit is not None


def test_reset_is_seen_by_watches(fresh: Sandbox) -> None:
    fresh.apply(CONFIG_MAP)
    version = fresh.request("GET", CONFIG_MAPS).body["metadata"]["resourceVersion"]

    fresh.reset()

    answer = fresh.request("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}")
    assert (answer.body["type"], answer.body["object"]["metadata"]["name"]) == ("DELETED", "kept")


def test_reset_accepts_a_definition_that_disappears_meanwhile(fresh: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the end of its deletion could come after the list of the keys."""
    fresh.apply([CONFIG_MAP, crd("helds", "Held")])
    definitions, name = "apiextensions.k8s.io/v1", "helds.sandbox.example.com"
    listed = Snapshot._all

    def then_deleted(snapshot: Snapshot, **options: bool) -> dict[str, dict[str, Any]]:
        found = listed(snapshot, **options)
        if fresh.get(definitions, "CustomResourceDefinition", name) is not None:
            fresh.delete(definitions, "CustomResourceDefinition", name)
            fresh.eventually(lambda: fresh.get(definitions, "CustomResourceDefinition", name) is None)
        return found

    monkeypatch.setattr(Snapshot, "_all", then_deleted)
    fresh.reset()

    assert fresh.get("v1", "ConfigMap", "kept") is None


def test_a_sandbox_that_does_not_run_is_not_reset() -> None:
    with pytest.raises(SandboxError, match=r"^start the sandbox before you reset it$"):
        Sandbox().reset()


def test_two_sandboxes_at_once_do_not_collide() -> None:
    first, second = Sandbox(), Sandbox()
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Sandbox.start, [first, second]))

        first.apply(CONFIG_MAP)
        assert second.get("v1", "ConfigMap", "kept") is None
    finally:
        first.stop()
        second.stop()


def test_nothing_outlives_a_parent_that_is_killed() -> None:
    with python(WAITING_OWNER) as owner:
        folder = Path(line_of(owner))
        assert len(processes_naming(folder)) == 3

        owner.kill()
        owner.wait()

        wait_until_gone(folder)


def test_nothing_outlives_a_parent_that_is_killed_while_the_servers_start() -> None:
    with python("import sys, tempfile; tempfile.tempdir = sys.stdin.readline().strip()\n" + WAITING_OWNER) as owner:
        home = Path("/tmp") / f"start-{os.getpid()}"
        home.mkdir()
        try:
            assert owner.stdin is not None
            owner.stdin.write(f"{home}\n")
            owner.stdin.flush()
            Sandbox.eventually(lambda: [line for line in processes_naming(home) if "kube-apiserver" in line])

            owner.kill()
            owner.wait()

            Sandbox.eventually(lambda: not list(home.iterdir()) and not processes_naming(home))
        finally:
            home.rmdir()


def test_a_sandbox_started_from_a_thread_outlives_the_thread() -> None:
    sandbox = Sandbox()
    thread = threading.Thread(target=sandbox.start)
    thread.start()
    thread.join()
    with pytest.raises(SandboxError, match="already runs"):
        sandbox.start()
    try:
        for _ in range(20):
            assert sandbox.request("GET", "/readyz").status == 200
    finally:
        sandbox.stop()


def test_credentials_are_readable_by_their_owner_only(sandbox: Sandbox) -> None:
    sandbox.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    account = sandbox.service_account_kubeconfig("default", "reader")

    for path in (sandbox.kubeconfig, sandbox.token_file, sandbox.folder / "certs" / "apiserver.key", account):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(sandbox.folder.stat().st_mode) == 0o700


def test_a_service_account_may_do_what_rbac_grants_and_no_more(sandbox: Sandbox) -> None:
    sandbox.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "lister"}})
    config = yaml.safe_load(sandbox.service_account_kubeconfig("default", "lister").read_text(encoding="utf-8"))
    token = config["users"][0]["user"]["token"]
    assert token != sandbox.token

    refused = sandbox.request("GET", CONFIG_MAPS, token=token)
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert "system:serviceaccount:default:lister" in refused.body["message"]

    sandbox.apply(role("lister", verbs=["list"]))

    sandbox.eventually(lambda: sandbox.request("GET", CONFIG_MAPS, token=token).status == 200)
    assert sandbox.request("POST", CONFIG_MAPS, CONFIG_MAP, token=token).status == 403


def test_a_token_for_an_unknown_service_account_is_one_sentence(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match=r'ServiceAccount default/nobody was refused \(404\): .*"nobody" not found'):
        sandbox.service_account_kubeconfig("default", "nobody")


def test_without_a_valid_token_nothing_is_readable(sandbox: Sandbox) -> None:
    assert sandbox.request("GET", CONFIG_MAPS, token="guessed").status == 401


def test_objects_are_applied_read_listed_and_deleted(sandbox: Sandbox) -> None:
    labelled = {**CONFIG_MAP, "metadata": {"name": "listed", "labels": {"of": "this-test"}}}
    (live,) = sandbox.apply(labelled)
    assert live["metadata"]["namespace"] == "default"

    (item,) = sandbox.items("v1", "ConfigMap", label_selector="of=this-test")
    assert (item["kind"], item["data"]) == ("ConfigMap", {"a": "1"})
    assert sandbox.items("v1", "ConfigMap", namespace="kube-public", label_selector="of=this-test") == []

    assert sandbox.delete("v1", "ConfigMap", "listed") is not None
    assert sandbox.delete("v1", "ConfigMap", "listed") is None
    assert sandbox.get("v1", "ConfigMap", "listed") is None


def test_a_resource_may_follow_its_definition_at_once(sandbox: Sandbox) -> None:
    gadget = {"apiVersion": "sandbox.example.com/v1", "kind": "Gadget", "metadata": {"name": "g1"}, "spec": {"size": 3}}

    sandbox.apply([crd("gadgets", "Gadget"), gadget])

    found = sandbox.get("sandbox.example.com/v1", "Gadget", "g1")
    assert found is not None
    assert found["spec"] == {"size": 3}


def test_requests_one_after_the_other_use_one_connection(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that waits asks some twenty times a second; a handshake for each took a sixth of a core."""
    new, made = connections._new, []
    monkeypatch.setattr(connections, "_new", lambda *to: made.append(to) or new(*to))
    sandbox._connections.close()

    for _ in range(20):
        assert sandbox.get("v1", "ConfigMap", "nothing") is None

    assert len(made) == 1


def test_requests_of_several_threads_have_connections_of_their_own(sandbox: Sandbox) -> None:
    def look(number: int) -> set[str]:
        answers = [sandbox.request("GET", f"/api/v1/namespaces/{name}") for name in (NAMESPACES[number % 2],) * 20]
        return {answer.body["metadata"]["name"] for answer in answers}

    with ThreadPoolExecutor(max_workers=8) as pool:
        assert list(pool.map(look, range(8))) == [{NAMESPACES[number % 2]} for number in range(8)]


def test_a_definition_may_be_replaced_by_one_with_other_names(sandbox: Sandbox) -> None:
    """What is remembered of a kind is given up when the server no longer serves it."""
    dial = {"apiVersion": "sandbox.example.com/v1", "kind": "Dial", "metadata": {"name": "d1"}, "spec": {"size": 1}}
    sandbox.apply([crd("dials", "Dial"), dial])
    definition = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    sandbox.delete(*definition, "dials.sandbox.example.com")
    sandbox.eventually(lambda: sandbox.get(*definition, "dials.sandbox.example.com") is None)

    sandbox.apply([crd("clocks", "Dial"), {**dial, "metadata": {"name": "d2"}}])

    assert [each["metadata"]["name"] for each in sandbox.items("sandbox.example.com/v1", "Dial")] == ["d2"]
    assert sandbox.get("sandbox.example.com/v1", "Dial", "d1") is None


def test_a_definition_may_change_while_its_objects_are_listed(sandbox: Sandbox) -> None:
    """Regression: for a moment the server answers 429 "storage is (re)initializing", and a test failed with it."""
    definition = crd("gauges", "Gauge")
    sandbox.apply(definition)
    statuses: set[int] = set()

    def change(short: str) -> None:
        definition["spec"]["names"]["shortNames"] = [short]
        sandbox.apply(definition)

    with ThreadPoolExecutor(max_workers=1) as pool:
        for number in range(MOST_CHANGES):
            changed = pool.submit(change, f"g{number}")
            while not changed.done():
                statuses.add(sandbox.request("GET", "/apis/sandbox.example.com/v1/gauges").status)
                assert sandbox.items("sandbox.example.com/v1", "Gauge") == []
            changed.result()
    assert 429 in statuses


def test_a_refused_object_shows_the_message_of_the_api_server(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match=r"applying ConfigMap Not A Name was refused \(422\): .*RFC 1123"):
        sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}})


def test_a_node_is_as_it_was_made_since_nothing_would_say_later_that_it_is_ready(sandbox: Sandbox) -> None:
    """Regression: it had the taint not-ready for ever, so a scheduler found no node for anything."""
    (node,) = sandbox.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    sandbox.delete("v1", "Node", "n1")

    assert "taints" not in node["spec"]


def test_an_unknown_kind_is_one_sentence(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bonny_dev.sandbox.admin.DISCOVERY_SECONDS", 0.2)

    with pytest.raises(
        UsageError, match=r"serves no kind Gizmo of example\.com/v1: apply its CustomResourceDefinition"
    ):
        sandbox.get("example.com/v1", "Gizmo", "g1")


def test_eventually_gives_up_and_tells_the_last_answer() -> None:
    with pytest.raises(AssertionError, match=r"still not so after 0\.1 s; the last answer was KeyError\('status'\)"):
        Sandbox.eventually(lambda: {}["status"], within_seconds=0.1)


def test_killed_paused_and_terminated_servers_come_back_on_their_ports_with_the_data() -> None:
    with Sandbox() as sandbox:
        sandbox.apply(CONFIG_MAP)
        url, first = sandbox.url, sandbox.apiserver.pid

        sandbox.apiserver.kill()
        with pytest.raises(OSError, match="refused"):
            sandbox.request("GET", "/readyz")
        sandbox.apiserver.start()
        assert (sandbox.url, sandbox.apiserver.pid != first) == (url, True)
        assert sandbox.get("v1", "ConfigMap", "kept") is not None

        sandbox.etcd.kill()
        sandbox.etcd.start()
        sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "kept"), within_seconds=30.0)

        sandbox.apiserver.pause()
        with pytest.raises(OSError, match="timed out"):  # accepted by the kernel, answered by nobody
            sandbox.request("GET", "/readyz", timeout=0.3)
        sandbox.apiserver.resume()
        assert sandbox.request("GET", "/readyz").status == 200

        sandbox.apiserver.terminate(within_seconds=60.0)
        assert not sandbox.apiserver.running


def address_of(sandbox: Sandbox) -> tuple[str, int]:
    host, _, port = sandbox.url.removeprefix("https://").partition(":")
    return host, int(port)


def test_a_failed_start_shows_the_servers_own_last_lines_and_leaves_nothing() -> None:
    sandbox = Sandbox(apiserver_flags=["--shiny"])

    with pytest.raises(UsageError, match=r"kube-apiserver stopped .* s after its start \(code 1\)") as failure:
        sandbox.start()

    assert "Error: unknown flag: --shiny" in str(failure.value)
    assert not sandbox.folder.exists()
    assert processes_naming(sandbox.folder) == []


def test_a_start_that_takes_too_long_is_given_up_and_leaves_nothing() -> None:
    sandbox = Sandbox(start_seconds=0.0)

    with pytest.raises(UsageError, match="etcd was not ready 0 s after its start"):
        sandbox.start()

    assert not sandbox.folder.exists()


def test_an_asked_for_port_is_used_and_a_taken_one_is_one_sentence() -> None:
    (port,) = server_module.free_ports(1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(UsageError, match=f"port {port} of 127.0.0.1"):
        Sandbox(port=port).start()

    with Sandbox(port=port) as sandbox:
        assert sandbox.url == f"https://127.0.0.1:{port}"


def test_a_port_that_another_process_took_first_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race between finding a free port and listening on it, lost once on purpose."""
    with socket.create_server(("127.0.0.1", 0)) as quicker:
        taken = quicker.getsockname()[1]
        answers = iter([[taken]])
        free_ports = server_module.free_ports
        monkeypatch.setattr(server_module, "free_ports", lambda count: next(answers, None) or free_ports(count))

        with Sandbox() as sandbox:
            assert address_of(sandbox)[1] != taken


def kubeconfig_in(lines: list[str]) -> Path:
    assert lines[1].startswith("  export KUBECONFIG=")
    assert lines[2] == "  kubectl get namespaces"
    return Path(lines[1].partition("=")[2])


def test_start_returns_and_its_sandbox_is_found_by_a_second_start_and_ended_by_stop(tmp_path: Path) -> None:
    with python(START, cwd=tmp_path) as first:
        # Reading to the end of the output: a script that captures it must not hang.
        output, errors = first.communicate(timeout=60)
    lines = output.splitlines()
    assert lines[0] == "The sandbox is ready. It runs until `invoke sandbox.stop`, for 12 hours at most."
    assert errors == ""
    kubeconfig = kubeconfig_in(lines)
    assert kubeconfig.exists()

    with python(START, cwd=tmp_path) as second:
        assert [line_of(second) for _ in range(3)] == ["A sandbox is already running in this project:", *lines[1:3]]
        assert second.wait() == 0
    with python(STOP, cwd=tmp_path) as stop:
        assert line_of(stop) == "The sandbox is stopped."
        assert stop.wait() == 0

    wait_until_gone(kubeconfig.parent, within_seconds=0.5)
    assert sorted(path.name for path in (tmp_path / ".sandbox").iterdir()) == [".gitignore", "lock", "log"]


def test_a_sandbox_in_the_background_ends_with_the_folder_of_its_project(tmp_path: Path) -> None:
    with python(START, cwd=tmp_path) as start:
        kubeconfig = kubeconfig_in([line_of(start) for _ in range(3)])

    shutil.rmtree(tmp_path / ".sandbox")

    wait_until_gone(kubeconfig.parent)


def test_ctrl_c_ends_a_sandbox_in_the_foreground_cleanly(tmp_path: Path) -> None:
    with python(RUN, cwd=tmp_path) as process:
        kubeconfig = kubeconfig_in([line_of(process) for _ in range(3)])

        process.send_signal(signal.SIGINT)

        assert process.wait(5.0) == 0
        assert line_of(process) == "The sandbox is stopped."
        assert process.stderr is not None
        assert process.stderr.read() == ""
    wait_until_gone(kubeconfig.parent, within_seconds=0.5)
    assert sorted(path.name for path in (tmp_path / ".sandbox").iterdir()) == [".gitignore", "lock"]


def test_after_a_kill_the_project_starts_afresh(tmp_path: Path) -> None:
    with python(RUN, cwd=tmp_path) as killed:
        kubeconfig = kubeconfig_in([line_of(killed) for _ in range(3)])
        killed.kill()
        killed.wait()
    wait_until_gone(kubeconfig.parent)
    assert (tmp_path / ".sandbox" / "state.json").exists()

    with python(RUN, cwd=tmp_path) as again:
        assert line_of(again).startswith("The sandbox is ready.")
