"""`invoke run-local` as a person meets it: what it says, how it ends, and what it says about what cannot work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bonny import Deploy, Operator
from bonny.client.config import Kubeconfig
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.admin import Admin
from bonny_dev.tasks.provision import install_account
from tests.support.baking import bake, install, invoke
from tests.support.controllers import skip_without_controllers
from tools.terminal import CTRL_C, Terminal, plain

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
    done = run("run-local", KUBECONFIG=str(named))
    said = refused(done)
    assert done.stdout.startswith(f"installing into {sandbox.url}, context ")
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
        (("--workloads",), {}, "--workloads needs --sandbox"),
        ((), {"BONNY_WATCH_NAMESPACES": "x"}, "BONNY_WATCH_NAMESPACES is unknown"),
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


# --- as a person at a terminal ----------------------------------------------------------------------------------------

CONTROLLER = "src/widgets_operator/controllers/widget.py"
API = "src/widgets_operator/api/v1/widget.py"


@pytest.fixture
def source(project: Path) -> Iterator[Path]:
    """The project to edit; it is as before afterwards."""
    before = {path: path.read_bytes() for path in (project / "src").rglob("*.py")}
    yield project
    for path, content in before.items():
        path.write_bytes(content)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def at_a_terminal(project: Path, home: Path, *words: str, **settings: str) -> Terminal:
    command = [str(project / ".venv/bin/invoke"), "run-local", *words]
    environ = environment(home, TMPDIR=str(home), TERM="xterm-256color", **settings)
    return Terminal(command, cwd=project, env={name: value for name, value in environ.items() if name != "NO_COLOR"})


def left_behind(folder: Path) -> list[str]:
    """Temporary folders of ours, and processes that name one of them or run an operator from there."""
    listed = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [path.name for path in folder.glob("bonny-*")] + [
        line for line in listed.splitlines() if f"{folder}/bonny-" in line
    ]


def children_of(process: subprocess.Popen[bytes]) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,sid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, session in pairs if session == process.pid]


def test_reload_restarts_only_the_operator_and_ctrl_c_leaves_nothing(source: Path, tmp_path: Path) -> None:
    words = ("--sandbox", "--reload", "--apply-samples", "--as-service-account")
    with at_a_terminal(source, tmp_path, *words) as terminal:
        at = terminal.wait_for("export KUBECONFIG=")
        terminal.wait_for("kubectl", after=at)
        kubeconfig = plain(terminal.text)[at:].partition("\n")[0]
        terminal.wait_for("applied Widget default/widget-sample")
        at = terminal.wait_for("applied   WidgetController  default/widget-sample  add        added")
        assert "\033[32mapplied  \033[0m" in terminal.text
        widgets = kubectl_like(kubeconfig)
        first = widgets.get("example.com/v1", "Widget", "widget-sample")
        assert first is not None
        managers = [entry["manager"] for entry in first["metadata"]["managedFields"]]
        assert "kubectl" in managers  # `kubectl apply --server-side` of the sample does not conflict
        widgets.apply({**spec_of(first), "spec": {"size": 7}})

        edit(source / CONTROLLER, 'reason="Published"', 'reason="Told"')
        at = terminal.wait_for(f"{CONTROLLER} changed: restarting", after=at)
        at = terminal.wait_for("default/widget-sample  add        added", after=at)
        live = widgets.get("example.com/v1", "Widget", "widget-sample")
        assert live is not None
        assert (live["metadata"]["uid"], live["spec"]["size"]) == (first["metadata"]["uid"], 7)

        edit(source / CONTROLLER, "async def reconcile(", "async def reconcile((")
        at = terminal.wait_for("SyntaxError", after=at)
        at = terminal.wait_for("the operator ended with code 2; the next change restarts it", after=at)
        edit(source / CONTROLLER, "async def reconcile((", "async def reconcile(")
        at = terminal.wait_for("unchanged WidgetController  default/widget-sample  add", after=at)

        edit(source / API, "le=100", "le=42")
        at = terminal.wait_for("installed widgets.example.com", after=at)
        definition = widgets.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com")
        assert "'maximum': 42" in str(definition)
        at = terminal.wait_for("unchanged", after=at)

        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text
        assert plain(terminal.text)[at:].count("stopped") == 1
        # What no run used, summed over the runs: the first one created the ConfigMap, the last one had nothing to do.
        (report,) = [line for line in plain(terminal.text).splitlines() if line.startswith("permissions ")]
        unused = plain(terminal.text).partition(report)[2]
        assert report == "permissions granted but never used this time:"
        assert "configmaps" in unused
        assert "create" not in unused
        assert "Traceback" not in terminal.text[terminal.text.rindex("restarting") :]
    Sandbox.eventually(lambda: not left_behind(tmp_path) and not children_of(terminal.process), within_seconds=30)


def test_after_a_first_start_that_failed_the_samples_are_applied_by_the_next(
    source: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    edit(source / CONTROLLER, "async def reconcile(", "async def reconcile((")
    words = ("--reload", "--apply-samples")
    with at_a_terminal(source, tmp_path, *words, KUBECONFIG=str(sandbox.kubeconfig)) as terminal:
        at = terminal.wait_for("the operator ended with code 2; the next change restarts it")
        edit(source / CONTROLLER, "async def reconcile((", "async def reconcile(")
        at = terminal.wait_for(f"{CONTROLLER} changed: restarting", after=at)
        terminal.wait_for("applied Widget default/widget-sample", after=at)
        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text


def test_a_second_ctrl_c_ends_it_at_once_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    """The handler hangs, and the time that it may take is an hour."""
    edit(source / CONTROLLER, "        settings = ", "        __import__('time').sleep(600)\n        settings = ")
    edit(source / CONTROLLER, "    async def reconcile", "    def reconcile")
    hour = {"BONNY_GRACE_SECONDS": "3600"}
    for words in (("--sandbox", "--apply-samples"), ("--sandbox", "--apply-samples", "--reload")):
        with at_a_terminal(source, tmp_path, *words, **hour) as terminal:
            terminal.wait_for("in sync")
            terminal.press(CTRL_C)
            terminal.wait_for("stopping")
            began = time.monotonic()
            terminal.press(CTRL_C)
            assert terminal.ended() == 1, terminal.text
            assert time.monotonic() - began < 10
        Sandbox.eventually(lambda: not left_behind(tmp_path) and not children_of(terminal.process), within_seconds=30)


@pytest.mark.parametrize("handler", ["async def reconcile", pytest.param("def reconcile", marks=pytest.mark.slow)])
def test_a_person_may_stop_in_a_handler_and_go_on(source: Path, tmp_path: Path, handler: str) -> None:
    edit(source / CONTROLLER, "        settings = ", "        breakpoint()\n        settings = ")
    edit(source / CONTROLLER, "async def reconcile", handler)
    with at_a_terminal(source, tmp_path, "--sandbox", "--apply-samples") as terminal:
        at = terminal.wait_for("(Pdb)")
        terminal.press(b"p axn.key.name\n")
        at = terminal.wait_for("'widget-sample'", after=at)
        terminal.press(b"c\n")
        at = terminal.wait_for("applied   WidgetController  default/widget-sample  add", after=at)
        terminal.wait_for("(Pdb)", after=at)  # the new child, too, runs the handler
        terminal.press(CTRL_C)
        terminal.press(b"c\n")
        assert terminal.ended() == 0, terminal.text


def test_a_kill_of_the_reloading_process_takes_everything_with_it(source: Path, tmp_path: Path) -> None:
    with at_a_terminal(source, tmp_path, "--sandbox", "--reload") as terminal:
        terminal.wait_for("in sync")
        terminal.process.kill()
        terminal.process.wait()
        Sandbox.eventually(lambda: not left_behind(tmp_path) and not children_of(terminal.process), within_seconds=30)


def test_with_workloads_the_controllers_run_and_a_kill_takes_everything_with_it(source: Path, tmp_path: Path) -> None:
    skip_without_controllers()
    with at_a_terminal(source, tmp_path, "--sandbox", "--workloads", "--apply-samples") as terminal:
        terminal.wait_for("controllers run, kubelets are simulated: a pod becomes Ready, and nothing runs in it")
        terminal.wait_for("in sync")
        assert [line for line in left_behind(tmp_path) if "kube-controller-manager" in line]
        terminal.process.kill()
        terminal.process.wait()
        Sandbox.eventually(lambda: not left_behind(tmp_path) and not children_of(terminal.process), within_seconds=30)


# The process that runs kube-controller-manager ends with it, so the second case is the first one, a moment later.
@pytest.mark.parametrize(
    "program",
    ["-m bonny_dev.workloads", pytest.param("/kube-controller-manager --kubeconfig", marks=pytest.mark.slow)],
)
def test_the_end_of_the_workloads_is_reported_in_a_sentence_and_the_operator_goes_on(
    source: Path, tmp_path: Path, program: str
) -> None:
    skip_without_controllers()
    with at_a_terminal(source, tmp_path, "--sandbox", "--workloads", "--apply-samples") as terminal:
        at = terminal.wait_for("export KUBECONFIG=")
        terminal.wait_for("kubectl", after=at)
        widgets = kubectl_like(plain(terminal.text)[at:].partition("\n")[0].strip())
        at = terminal.wait_for("default/widget-sample  add        added")

        def running() -> list[str]:
            listed = subprocess.run(
                ["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True
            ).stdout
            found = [line for line in listed.splitlines() if program in line and f"{tmp_path}/bonny-" in line]
            # The first of them runs the second one, whose folder its command line names, too.
            return [line for line in found if ("-m bonny_dev" in line) is program.startswith("-m")]

        # For the new kind the second one is replaced, which is not its end.
        (log,) = tmp_path.glob("bonny-*/workloads.log")
        Sandbox.eventually(lambda: "again, for widgets.example.com" in log.read_text("utf-8"), within_seconds=30)
        # One of them only: for a moment, a process that starts another one is there twice.
        (killed,) = Sandbox.eventually(lambda: found if len(found := running()) == 1 else None, within_seconds=30)
        os.kill(int(killed.split()[0]), signal.SIGKILL)

        sentence = "workloads stopped by itself: pods no longer become Ready, and nothing is collected; press Ctrl-C"
        at = terminal.wait_for(sentence, after=at)
        live = widgets.get("example.com/v1", "Widget", "widget-sample")
        assert live is not None
        widgets.apply({**spec_of(live), "spec": {"size": 7}})
        terminal.wait_for("applied   WidgetController  default/widget-sample  modify", after=at)
        assert plain(terminal.text).count("stopped by itself") == 1
        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text
        assert "Traceback" not in terminal.text
    Sandbox.eventually(lambda: not left_behind(tmp_path), within_seconds=30)


def test_ctrl_c_while_the_sandbox_starts_leaves_nothing(source: Path, tmp_path: Path) -> None:
    with at_a_terminal(source, tmp_path, "--sandbox") as terminal:
        terminal.wait_for("starting a sandbox")
        Sandbox.eventually(lambda: left_behind(tmp_path))
        terminal.press(CTRL_C)
        assert terminal.ended() == 1
        assert "Traceback" not in terminal.text
    Sandbox.eventually(lambda: not left_behind(tmp_path), within_seconds=30)


def test_as_service_account_shows_a_permission_that_the_manifest_lacks(
    source: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    reads = 'await axn.client.get(Kind("v1", "Pod"), "web", namespace="default")'
    edit(source / CONTROLLER, "        settings = ", f"        {reads}\n        settings = ")
    edit(source / CONTROLLER, "import Axn,", "import Kind, Axn,")
    words = ("--as-service-account", "--apply-samples")
    with at_a_terminal(source, tmp_path, *words, KUBECONFIG=str(sandbox.kubeconfig)) as terminal:
        terminal.wait_for("runs as ServiceAccount widgets-operator/widgets-operator")
        at = terminal.wait_for("failed    WidgetController  default/widget-sample")
        terminal.wait_for("next try in", after=at)
        told = plain(terminal.text)[at:]
        assert "system:serviceaccount:widgets-operator:widgets-operator" in told
        assert "pods" in told
        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text
        advice = plain(terminal.text).partition("permissions used but not granted")[2]
        assert '"pods"' in advice
        assert "serviceaccounts/token" not in advice


async def test_an_account_does_without_the_monitors_that_a_manifest_has(sandbox: Sandbox) -> None:
    monitor: Resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "monitored", "namespace": "monitored"},
    }
    operator = Operator(name="monitored", group="example.com", deploy=Deploy(customize=lambda found: [*found, monitor]))

    account = await install_account(operator, Kubeconfig(str(sandbox.kubeconfig)))

    assert account.source == "ServiceAccount monitored/monitored"
    assert sandbox.get("v1", "ServiceAccount", "monitored", namespace="monitored") is not None


def test_an_operator_of_one_namespace_watches_that_of_its_account(
    source: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    edit(source / "src/widgets_operator/operator.py", 'watch="all"', 'watch="namespace"')
    words = ("--as-service-account", "--apply-samples")
    with at_a_terminal(source, tmp_path, *words, KUBECONFIG=str(sandbox.kubeconfig)) as terminal:
        terminal.wait_for("watching namespace widgets-operator")
        terminal.wait_for("applied   WidgetController  widgets-operator/widget-sample  add        added")
        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text
        assert "Forbidden" not in terminal.text
        assert "(403)" not in terminal.text


def test_a_sample_that_the_api_server_refuses_is_named(run: Run, source: Path, sandbox: Sandbox) -> None:
    (source / "samples" / "wrong.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: wrong}\nspec: {size: -1}\n", "utf-8"
    )
    try:
        said = refused(run("run-local", "--apply-samples", KUBECONFIG=str(sandbox.kubeconfig)))
    finally:
        (source / "samples" / "wrong.yaml").unlink()
    assert said.startswith("cannot apply samples/wrong.yaml: ")
    assert "spec.size" in said
    assert "-1" in said  # the value is in a file of the person who reads this


@pytest.mark.parametrize("text", ["{", "- a\n", "kind: Widget\n"])
def test_a_sample_that_is_no_object_is_named(run: Run, source: Path, sandbox: Sandbox, text: str) -> None:
    (source / "samples" / "wrong.yaml").write_text(text, "utf-8")
    try:
        said = refused(run("run-local", "--apply-samples", KUBECONFIG=str(sandbox.kubeconfig)))
    finally:
        (source / "samples" / "wrong.yaml").unlink()
    assert "samples/wrong.yaml" in said


def kubectl_like(kubeconfig: str) -> Admin:
    """The sandbox that another process started, as its administrator sees it."""
    known = yaml.safe_load(Path(kubeconfig).read_text("utf-8"))
    url, token = known["clusters"][0]["cluster"]["server"], known["users"][0]["user"]["token"]
    return Admin(url=url, token=token, ca_file=Path(kubeconfig).parent / "certs" / "apiserver.crt")


def spec_of(resource: Resource) -> Resource:
    metadata = {"name": resource["metadata"]["name"], "namespace": resource["metadata"]["namespace"]}
    return {"apiVersion": resource["apiVersion"], "kind": resource["kind"], "metadata": metadata}
