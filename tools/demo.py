"""Demo: from an empty folder to a running operator on a real API server, one printed step after the other.

    make demo

Everything lives in one temporary folder and one process group, both guarded: they vanish at the end, after a failure,
and when this process is killed.

Where kube-controller-manager is there or can be downloaded, the Widget runs a Deployment, as in docs/tutorial.md. Else
it is the generated one, with a ConfigMap, and a line says how to get the controllers.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bonny.errors import UsageError
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.binaries import find_or_build, ready_made
from bonny_dev.sandbox.download import ArchiveError
from bonny_dev.sandbox.guard import Guard
from bonny_dev.sandbox.workloads import MANAGER, controller_manager

ROOT: Final = Path(__file__).resolve().parent.parent
# For tools.tutorial, as this file is run as a script.
sys.path.insert(0, str(ROOT))

from tools.tutorial import PAGE, Edit, steps  # noqa: E402

SLUG: Final = "widgets-operator"
# Installing reads the package cache after the first time; a slow line gets its time.
COMMAND_SECONDS: Final = 600.0
# How long a reconciled change may take to show. It takes some 20 ms; controllers start again after a new CRD.
SEEN_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0
REPORT_EVERY_SECONDS: Final = 10.0


class DemoError(Exception):
    """A step did not come out as it should."""


class Screen:
    """Prints steps as they happen."""

    def __init__(self) -> None:
        self._colour = sys.stdout.isatty()
        self._step = 0
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step: its title, what it says, and how long it took; a failure names it."""
        self._step += 1
        print(f"\n{self._painted('1;36', f'{self._step:2}. {title}')}", flush=True)
        began = time.monotonic()
        try:
            yield
        except (DemoError, UsageError, AssertionError, OSError) as error:
            raise DemoError(f"step {self._step} ({title}) failed: {error}") from error
        self.say(f"done in {time.monotonic() - began:.1f} s", dim=True)

    def say(self, text: str, *, dim: bool = False) -> None:
        for line in text.splitlines():
            print(f"    {self._painted('2', line) if dim else line}", flush=True)

    def show(self, resource: Any, *, only: Sequence[str] = ()) -> None:
        """A part of an object as YAML."""
        part = {name: resource[name] for name in only if name in resource} if only else resource
        self.say(yaml.safe_dump(part, sort_keys=False, width=100).rstrip())

    def _painted(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._colour else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The child of a Widget: how it shows the size of its owner, and what is worth showing of it."""

    api_version: str
    kind: str
    size: Callable[[Resource], int]
    """The size that its spec or data says."""

    has_size: Callable[[Resource, int], bool]
    """Whether all of it has this size, its status included."""

    edited: Resource
    """A patch that sets another size."""

    shown: Callable[[Resource], object]


CONFIG_MAP: Final = Child(
    api_version="v1",
    kind="ConfigMap",
    size=lambda live: int(live["data"]["size"]),
    has_size=lambda live, size: live["data"] == {"size": str(size)},
    edited={"data": {"size": "9"}},
    shown=lambda live: {"kind": "ConfigMap", "data": live["data"]},
)
COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas")
DEPLOYMENT: Final = Child(
    api_version="apps/v1",
    kind="Deployment",
    size=lambda live: int(live["spec"]["replicas"]),
    has_size=lambda live, size: live.get("status", {}).get("availableReplicas") == size == live["spec"]["replicas"],
    edited={"spec": {"replicas": 9}},
    shown=lambda live: {"kind": "Deployment", "status": {name: live["status"].get(name) for name in COUNTS}},
)


class Demo:
    """The steps, in order, with what they hand on to each other."""

    def __init__(self, screen: Screen, guard: Guard) -> None:
        self.screen = screen
        self.guard = guard
        self.project = guard.folder / SLUG
        self.log = guard.folder / "commands.log"

    def run(self) -> None:
        self.render()
        self.install()
        self.generate()
        with self.screen.step("Get the control plane: etcd and kube-apiserver, and controllers if they are at hand"):
            binaries = find_or_build(self.screen.say)
            self.screen.say(str(binaries["kube-apiserver"]))
            workloads = self.controllers(binaries)
        if workloads:
            self.run_replicas()
        sandbox = Sandbox(binaries=binaries, workloads=workloads)
        try:
            with self.screen.step("Start it: free ports of this machine, data in a temporary folder"):
                sandbox.start()
                self.screen.say(f"ready at {sandbox.url}")
                if workloads:
                    self.screen.say(
                        "controllers run, kubelets are simulated: a pod becomes Ready, and nothing runs in it"
                    )
            self.deploy(sandbox)
            operator = self.start_operator(sandbox)
            self.use(sandbox, DEPLOYMENT if workloads else CONFIG_MAP, collected=workloads)
            self.stop(operator)
        finally:
            sandbox.stop()

    # --- steps --------------------------------------------------------------------------------------------------------

    def render(self) -> None:
        with self.screen.step("Render the template"):
            self.command([sys.executable, "-m", "cookiecutter", str(ROOT), "--no-input", "-o", str(self.guard.folder)])
            files = [path for path in self.project.rglob("*") if path.is_file() and "vendor" not in path.parts]
            self.screen.say(f"{SLUG}/: {len(files)} files, and the packages in vendor/")

    def install(self) -> None:
        with self.screen.step("Install it in an environment of its own"):
            uv = str(Path(sys.executable).with_name("uv"))
            self.command([uv, "venv", "--quiet", "--python", sys.executable, ".venv"], cwd=self.project)
            self.command(
                [uv, "pip", "install", "--quiet", "--python", ".venv/bin/python", "-e", ".[dev]"], cwd=self.project
            )

    def generate(self) -> None:
        with self.screen.step("invoke gen-controller Widget widgets --version v2alpha1"):
            self.screen.say(self.invoke("gen-controller", "Widget", "widgets", "--version", "v2alpha1"))

    def controllers(self, binaries: dict[str, Path]) -> bool:
        """Add kube-controller-manager to `binaries`; returns whether it could be had without a build."""
        try:
            binaries[MANAGER] = ready_made(MANAGER, self.screen.say)
            self.screen.say(str(controller_manager(binaries)))
        except (ArchiveError, UsageError) as error:
            binaries.pop(MANAGER, None)
            self.screen.say(
                f"no {MANAGER} ({error}), so no Deployment becomes Available and no child is collected here: "
                "`.venv/bin/invoke fetch --workloads` builds it in one to three minutes"
            )
        return MANAGER in binaries

    def run_replicas(self) -> None:
        with self.screen.step("Let a Widget run replicas of an image: the controller of docs/tutorial.md"):
            for step in steps(PAGE.read_text("utf-8")):
                if isinstance(step, Edit) and step.path.startswith("src/"):
                    # The page generates version v1.
                    path = step.path.replace("/v1/", "/v2alpha1/")
                    Edit(path, step.text.replace("api.v1.", "api.v2alpha1.")).carry_out(self.project)
                    self.screen.say(f"wrote {path}")

    def deploy(self, sandbox: Sandbox) -> None:
        with self.screen.step("Apply what `invoke manifest` prints"):
            text = self.invoke("manifest", "--local", "--out", "-")
            documents = [document for document in yaml.safe_load_all(text) if document]
            sandbox.apply(documents)
            self.screen.say("\n".join(f"{known['kind']} {known['metadata']['name']}" for known in documents))

    def start_operator(self, sandbox: Sandbox) -> subprocess.Popen[bytes]:
        with self.screen.step("Run the operator as its ServiceAccount, with no more rights than the manifest gives"):
            kubeconfig = sandbox.service_account_kubeconfig(SLUG, SLUG)
            self.operator_log = self.guard.folder / "operator.log"
            operator = self.guard.popen(
                [str(self.project / ".venv/bin/python"), "-m", SLUG.replace("-", "_")],
                log_file=self.operator_log,
                cwd=self.project,
                env={
                    **os.environ,
                    "KUBECONFIG": str(kubeconfig),
                    "BONNY_HTTP_PORT": "0",
                    "BONNY_HTTP_HOST": "127.0.0.1",
                    "BONNY_LOG_FORMAT": "console",
                },
            )
            sandbox.eventually(lambda: self._says_started(operator), within_seconds=SEEN_SECONDS)
            self.screen.say(f"process {operator.pid}, system:serviceaccount:{SLUG}:{SLUG}")
        return operator

    def use(self, sandbox: Sandbox, kind: Child, *, collected: bool) -> None:
        widget: Resource = yaml.safe_load((self.project / "samples/widget-v2alpha1.yaml").read_text("utf-8"))
        name = widget["metadata"]["name"]

        def live() -> Resource | None:
            return sandbox.get(widget["apiVersion"], "Widget", name)

        def children() -> list[Resource]:
            mine = f"app.kubernetes.io/managed-by={SLUG}"
            return sandbox.items(kind.api_version, kind.kind, label_selector=mine)

        def child() -> Resource:
            (found,) = children()
            return found

        with self.screen.step("Create a Widget from samples/widget-v2alpha1.yaml"):
            sandbox.apply(widget)
            self.eventually(sandbox, lambda: _ready(live()))
            self.screen.show({"spec": widget["spec"], "status": (live() or {})["status"]})
        with self.screen.step("Its child"):
            self.screen.show(kind.shown(child()))
        with self.screen.step("Update the Widget: size 7"):
            sandbox.apply({**widget, "spec": {**widget["spec"], "size": 7}})
            self.eventually(sandbox, lambda: kind.has_size(child(), 7))
            self.screen.show(kind.shown(child()))
        with self.screen.step("Edit the child by hand: the operator repairs it"):
            metadata = child()["metadata"]
            path = sandbox.path_of(kind.api_version, kind.kind, namespace=metadata["namespace"], name=metadata["name"])
            edited = sandbox.request("PATCH", path, kind.edited, content_type="application/merge-patch+json")
            self.screen.say(f"edited:   size {kind.size(edited.body)}")
            self.eventually(sandbox, lambda: kind.has_size(child(), 7))
            self.screen.say(f"repaired: size {kind.size(child())}")
        with self.screen.step("Delete the Widget"):
            sandbox.delete(widget["apiVersion"], "Widget", name)
            self.eventually(sandbox, lambda: live() is None)
            if collected:
                self.eventually(sandbox, lambda: not children())
                self.screen.say(f"the Widget is gone, and the garbage collector of Kubernetes removed its {kind.kind}")
                return
            self.screen.say("the Widget is gone; its child still names it as its owner:")
            self.screen.show(child()["metadata"], only=("ownerReferences",))
            self.screen.say("In a full cluster the garbage collector now removes the child; here none runs.")

    def stop(self, operator: subprocess.Popen[bytes]) -> None:
        with self.screen.step("Stop the operator with SIGTERM"):
            operator.terminate()
            try:
                code = operator.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise DemoError(f"it still runs after {STOP_SECONDS:.0f} s") from error
            if code:
                raise DemoError(f"it ended with code {code}\n{self.operator_log.read_text('utf-8')}")
            self.screen.say("exit code 0; this is what it said:")
            self.screen.say(self.operator_log.read_text("utf-8"), dim=True)

    # --- means --------------------------------------------------------------------------------------------------------

    def invoke(self, *arguments: str) -> str:
        return self.command([str(self.project / ".venv/bin/invoke"), *arguments], cwd=self.project)

    def command(self, arguments: Sequence[str], *, cwd: Path | None = None) -> str:
        """Run to the end and return what it printed; a line now and then while it takes long."""
        start = self.log.stat().st_size if self.log.exists() else 0
        # The rendered environment's own tools come first, and none of ours leak in.
        env = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "UV_PYTHON")
        }
        child = self.guard.popen(arguments, log_file=self.log, cwd=cwd, env=env)
        began = time.monotonic()
        while True:
            try:
                code = child.wait(REPORT_EVERY_SECONDS)
                break
            except subprocess.TimeoutExpired:
                elapsed = time.monotonic() - began
                if elapsed > COMMAND_SECONDS:
                    raise DemoError(f"{Path(arguments[0]).name} still runs after {elapsed:.0f} s") from None
                self.screen.say(f"still at it after {elapsed:.0f} s ...", dim=True)
        with self.log.open("rb") as log:
            log.seek(start)
            printed = log.read().decode("utf-8", "replace")
        if code:
            raise DemoError(f"{' '.join(map(str, arguments))} ended with code {code}:\n{printed}")
        return printed.rstrip()

    def eventually(self, sandbox: Sandbox, check: Callable[[], bool]) -> None:
        try:
            sandbox.eventually(check, within_seconds=SEEN_SECONDS)
        except AssertionError as error:
            raise DemoError(f"{error}\nThe operator said:\n{self.operator_log.read_text('utf-8')}") from error

    def _says_started(self, operator: subprocess.Popen[bytes]) -> bool:
        said = self.operator_log.read_text("utf-8")
        if operator.poll() is not None:
            raise DemoError(f"it ended at once:\n{said}")
        return "started" in said


def _ready(widget: Resource | None) -> bool:
    conditions = ((widget or {}).get("status") or {}).get("conditions") or ()
    return any(known["type"] == "Ready" and known["status"] == "True" for known in conditions)


def main() -> int:
    screen = Screen()
    folder = Path(tempfile.gettempdir()).resolve() / f"bonny-demo-{secrets.token_hex(6)}"
    try:
        with Guard(folder) as guard:
            Demo(screen, guard).run()
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; everything was stopped and removed", file=sys.stderr)
        return 130
    print(
        f"""
All done in {screen.elapsed:.0f} s; nothing was left behind. Your own operator, from here:

    .venv/bin/cookiecutter . -o ..            # answer a few questions; press Enter for the defaults
    cd ../{SLUG} && python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
    invoke gen-controller Widget widgets --version v2alpha1
    invoke run-local --sandbox"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
