"""Sandbox: a real etcd and kube-apiserver on this machine, for tests and for trying things out, without Docker.

    with Sandbox() as sandbox:
        sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        subprocess.run(["kubectl", "--kubeconfig", sandbox.kubeconfig, "get", "namespaces"])

There are no kubelets, no controllers and no scheduler: Pods do not run, Deployments make no ReplicaSets, owner
references are not garbage-collected, and a deleted Namespace stays Terminating. `Sandbox(workloads=True)` adds
controllers, and kubelets that are simulated: a Deployment becomes Available, although nothing runs.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template
from typing import Final, Self

from .. import files
from .admin import Admin
from .binaries import find_or_build
from .cache import Progress
from .guard import Guard
from .kubeconfig import kubeconfig
from .ports import LOOPBACK, check_free, free_ports, is_free
from .processes import SandboxError, ServerProcess
from .snapshot import Snapshot
from .workloads import MANAGER, Workloads, controller_manager

# A free port can be lost to another process before the server listens on it; losing it twice in a row is unlikely.
START_ATTEMPTS: Final = 5
# 2 to 3 s on an idle machine; the rest is for a loaded one.
START_SECONDS: Final = 60.0
# A stranger that was quicker to take the port may accept connections and never answer.
PROBE_TIMEOUT_SECONDS: Final = 2.0
# The API server makes the namespace `default` a moment after it calls itself ready.
READY_PATHS: Final = ("/readyz", "/api/v1/namespaces/default")


class Sandbox(Admin):
    """A control plane of its own: free loopback ports, one temporary folder, an administrator, RBAC for all others.

    Guarantees: `stop`, the end of a `with` block, or the end of this process in any way (SIGKILL included) ends the
    servers and removes the folder. Several sandboxes can run at once.
    Raises: on start, `UsageError` when the binaries cannot be had or `port` is taken; `SandboxError`, with the server's
    last lines, when a server fails.
    """

    folder: Path
    """Everything the sandbox writes; only its owner can read it."""

    kubeconfig: Path
    """The administrator's kubeconfig (mode 0600)."""

    token_file: Path
    """The API server's list of static tokens (mode 0600): the administrator's only."""

    etcd: ServerProcess
    apiserver: ServerProcess

    def __init__(
        self,
        *,
        port: int = 0,
        workloads: bool = False,
        binaries: Mapping[str, Path] | None = None,
        apiserver_flags: Sequence[str] = (),
        start_seconds: float = START_SECONDS,
        progress: Progress | None = None,
    ) -> None:
        """Prepare a sandbox; nothing happens before `start` or `with`.

        `port` is the API server's (default 0: a free one); `workloads` starts controllers and simulated kubelets, too
        (default: none); `binaries` are found or built by default; `apiserver_flags` are appended to ours, the last one
        of a name wins; `start_seconds` is how long each server may take (default 60); `progress` is called with a line
        from time to time while binaries are fetched or built.
        """
        super().__init__(url="", token=secrets.token_urlsafe(32), ca_file=Path())
        self._port = port
        self._with_workloads = workloads
        self._workloads: Workloads | None = None
        self._found: dict[str, Path] = {}
        self._binaries = binaries
        self._apiserver_flags = tuple(apiserver_flags)
        self._start_seconds = start_seconds
        self._progress = progress
        self._guard: Guard | None = None
        self._owner = 0

    def start(self) -> Self:
        """Start both servers and return when the API server is ready. Any thread may call it."""
        if self._guard is not None:
            raise SandboxError(f"this sandbox already runs at {self.url}: make another one, or stop it first")
        if self._port:
            check_free(self._port)
        binaries = dict(self._binaries or find_or_build(self._progress))
        if self._with_workloads:
            binaries[MANAGER] = controller_manager(binaries, self._progress)
        self._found = binaries
        for attempt in range(1, START_ATTEMPTS + 1):
            ports = [self._port or free_ports(1)[0], *free_ports(2)]
            try:
                self._launch(binaries, *ports)
                break
            except BaseException as error:
                self.stop()
                if self._port and isinstance(error, SandboxError):
                    check_free(self._port)
                race_lost = isinstance(error, SandboxError) and not all(is_free(port) for port in ports)
                if not race_lost or attempt == START_ATTEMPTS:
                    raise
        return self

    def stop(self) -> None:
        """Kill the servers and remove the folder. Calling it again, or in a forked child, does nothing."""
        if self._guard is not None and self._owner == os.getpid():
            self.forget()
            self._guard.close()
            self._guard = self._workloads = None

    @property
    def workloads(self) -> Workloads:
        """Controllers and simulated kubelets. Raises: `SandboxError` while none run."""
        if self._workloads is None:
            raise SandboxError("this sandbox runs no controllers: use Sandbox(workloads=True), or start_workloads()")
        return self._workloads

    @property
    def servers(self) -> list[ServerProcess]:
        """The processes that must run for the sandbox to work."""
        return [self.etcd, self.apiserver, *([self._workloads.process] if self._workloads else [])]

    def start_workloads(self, progress: Progress | None = None) -> Workloads:
        """Start controllers and simulated kubelets beside a running API server; return when they work.

        `progress` as in `Sandbox`.
        Raises: `UsageError` when kube-controller-manager cannot be had; `SandboxError` when a process fails, or the
        sandbox does not run.
        """
        if self._guard is None:
            raise SandboxError("start the sandbox before its controllers")
        if self._workloads is None:
            self._workloads = Workloads(
                self,
                guard=self._guard,
                kubeconfig=self.kubeconfig,
                program=controller_manager(self._found, progress or self._progress),
                start_seconds=self._start_seconds,
            )
        return self._workloads

    def stop_workloads(self) -> None:
        """Stop the controllers of `start_workloads`; the objects stay as they are."""
        if self._workloads is not None:
            self._workloads.process.terminate()
            self._workloads = None

    def reset(self) -> None:
        """Make all objects as they were at the start, in about a tenth of a second; a new start takes seconds.

        Kinds that tests installed are no longer served. Webhooks and admission policies that were there may be called
        for some seconds more, as after each deletion.
        Raises: `SandboxError` while controllers run, which remember objects, or when the sandbox does not run.
        """
        if self._guard is None:
            raise SandboxError("start the sandbox before you reset it")
        if self._workloads is not None:
            raise SandboxError("controllers remember the objects of the sandbox: call stop_workloads() before reset()")
        self.forget()
        for crd in self._snapshot.restore():
            group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
            for version in crd["spec"]["versions"]:
                self.eventually(partial(self._is_unserved, f"/apis/{group}/{version['name']}/{plural}?limit=1"))

    def service_account_kubeconfig(self, namespace: str, name: str, *, expires_seconds: int = 3600) -> Path:
        """Write a kubeconfig (mode 0600) that acts as a ServiceAccount, which must exist, with a real token.

        It has the permissions that RBAC grants to it. The token ends after `expires_seconds` (default an hour, at least
        600); another call writes a fresh one to the same file.
        """
        token = self.service_account_token(namespace, name, expires_seconds=expires_seconds)
        text = kubeconfig(url=self.url, ca=self.ca_file.read_bytes(), user=name, token=token, namespace=namespace)
        return files.write(self.folder / f"{namespace}-{name}.kubeconfig", text)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self, binaries: Mapping[str, Path], port: int, etcd_port: int, peer_port: int) -> None:
        self._owner = os.getpid()
        self.folder = Path(tempfile.gettempdir()).resolve() / f"bonny-sandbox-{secrets.token_hex(6)}"
        self._guard = guard = Guard(self.folder)
        self.url = f"https://{LOOPBACK}:{port}"
        self.ca_file = self.folder / "certs" / "apiserver.crt"
        self.token_file = files.write(self.folder / "tokens.csv", f"{self.token},admin,admin,system:masters\n")
        values = {"folder": self.folder, "host": LOOPBACK, "port": port, "etcd": etcd_port, "peer": peer_port}

        def server(name: str, is_ready: Callable[[], bool], more_flags: Sequence[str] = ()) -> ServerProcess:
            command = [str(binaries[name]), *flags_of(name, values), *more_flags]
            return ServerProcess(name, command, guard=guard, is_ready=is_ready, start_seconds=self._start_seconds)

        self.etcd = server("etcd", lambda: answers(f"http://{LOOPBACK}:{etcd_port}/health"))
        self.apiserver = server("kube-apiserver", self._is_ready, self._apiserver_flags)
        self._snapshot = Snapshot(f"http://{LOOPBACK}:{etcd_port}")
        text = kubeconfig(url=self.url, ca=self.ca_file.read_bytes(), user="admin", token=self.token)
        self.kubeconfig = files.write(self.folder / "kubeconfig", text)
        if self._with_workloads:
            self.start_workloads()

    def _is_unserved(self, path: str) -> bool:
        return self.request("GET", path).status == 404

    def _is_ready(self) -> bool:
        """Whether the API server answers, is ready, and has made the namespace that most requests use."""
        try:
            answers = [self.request("GET", path, timeout=PROBE_TIMEOUT_SECONDS) for path in READY_PATHS]
        except OSError:  # not listening yet, or its certificate is not (wholly) written yet
            return False
        return all(answer.status == 200 for answer in answers)


def answers(url: str) -> bool:
    """Whether a server on this machine answers a GET of `url` with 200."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PROBE_TIMEOUT_SECONDS) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def flags_of(name: str, values: Mapping[str, object]) -> list[str]:
    """The flags of a server, one a line in `flags/NAME.txt`, with `values` filled in."""
    text = (Path(__file__).parent / "flags" / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in Template(text).substitute(values).splitlines() if line.startswith("--")]
