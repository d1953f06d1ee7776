"""Demo: from an empty folder to a running operator on a real API server, one printed step after the other.

    make demo

Everything lives in one temporary folder and one process group, both guarded: they vanish at the end, after a failure,
and when this process is killed.
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
from pathlib import Path
from typing import Any, Final

import yaml

from bonny.errors import UsageError
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.binaries import find_or_build
from bonny_dev.sandbox.guard import Guard

ROOT: Final = Path(__file__).resolve().parent.parent
SLUG: Final = "widgets-operator"
# Installing reads the package cache after the first time; a slow line gets its time.
COMMAND_SECONDS: Final = 600.0
# How long a reconciled change may take to show. It takes some 20 ms.
SEEN_SECONDS: Final = 15.0
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
        with self.screen.step("Get the control plane: etcd and kube-apiserver"):
            binaries = find_or_build(self.screen.say)
            self.screen.say(str(binaries["kube-apiserver"]))
        sandbox = Sandbox(binaries=binaries)
        try:
            with self.screen.step("Start it: free ports of this machine, data in a temporary folder"):
                sandbox.start()
                self.screen.say(f"ready at {sandbox.url}")
            self.deploy(sandbox)
            operator = self.start_operator(sandbox)
            self.use(sandbox)
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

    def use(self, sandbox: Sandbox) -> None:
        widget: Resource = yaml.safe_load((self.project / "samples/widget-v2alpha1.yaml").read_text("utf-8"))
        name = widget["metadata"]["name"]

        def live() -> Resource | None:
            return sandbox.get(widget["apiVersion"], "Widget", name)

        def child() -> Resource:
            found = sandbox.items("v1", "ConfigMap", label_selector=f"app.kubernetes.io/managed-by={SLUG}")
            return found[0]

        with self.screen.step("Create a Widget from samples/widget-v2alpha1.yaml"):
            sandbox.apply(widget)
            self.eventually(sandbox, lambda: _ready(live()))
            self.screen.show({"spec": widget["spec"], "status": (live() or {})["status"]})
        with self.screen.step("Its child"):
            self.screen.show(child(), only=("kind", "data"))
        with self.screen.step("Update the Widget: size 7"):
            sandbox.apply({**widget, "spec": {**widget["spec"], "size": 7}})
            self.eventually(sandbox, lambda: child()["data"] == {"size": "7"})
            self.screen.show(child(), only=("data",))
        with self.screen.step("Edit the child by hand: the operator repairs it"):
            metadata = child()["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}"
            edit = {"data": {"size": "meddled"}}
            edited = sandbox.request("PATCH", path, edit, content_type="application/merge-patch+json")
            self.screen.say(f"edited:   {edited.body['data']}")
            self.eventually(sandbox, lambda: child()["data"] == {"size": "7"})
            self.screen.say(f"repaired: {child()['data']}")
        with self.screen.step("Delete the Widget"):
            sandbox.delete(widget["apiVersion"], "Widget", name)
            self.eventually(sandbox, lambda: live() is None)
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
