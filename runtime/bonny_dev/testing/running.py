"""Running: an operator as a process of its own on a sandbox, with the permissions of its manifest and no others.

You need it in integration tests, through the fixture `running_operator`.
You do not need it to test a handler: build a token with `bonny_dev.testing.axn`.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

from bonny.client.api import JSON, Client
from bonny.client.config import find_cluster
from bonny.client.errors import NotFound, Refusal, shows_values
from bonny.client.request import ApiRequest, path_of
from bonny.errors import UsageError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import OWNER_UID, Key, Resource, identify, key_of, named
from bonny.run.config import ALL_NAMESPACES

from ..converter import stop_converting
from ..install import install, kind_of, kinds_of, misspelt
from ..manifest import bundle
from ..project import Project
from ..sandbox import Sandbox
from ..sandbox.guard import Guard
from ..sandbox.ports import free_ports
from ..sandbox.server import answers
from ..uses import has_webhooks, namespaces_of

T = TypeVar("T")

# Enough for a slow machine to start an interpreter and fill its caches; usually it takes a second.
START_SECONDS: Final = 30.0
# A reconcile and its status take two round trips; ten times the slowest that was seen on two shared cores.
UNTIL_SECONDS: Final = 20.0
# The promised time from SIGTERM to the end when no handler runs.
STOP_SECONDS: Final = 5.0
# How often a condition is checked.
LOOK_SECONDS: Final = 0.05
PROTECTION: Final = frozenset({"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"})
MANAGER: Final = "integration-test"
# As `python -m` does, and refusals in the log quote the objects, which are the test's own.
START: Final = (
    "import runpy, sys; from bonny.client.errors import shows_values; shows_values.set(True); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


class RunningOperator:
    """The process, and the API server as its administrator sees it: applied objects are removed after the test."""

    def __init__(
        self,
        operator: Operator,
        client: Client,
        start: Callable[[], subprocess.Popen[bytes]],
        log: Path,
        *,
        url: str = "",
        replica: Callable[[], Awaitable[RunningOperator]] | None = None,
    ) -> None:
        """`start` starts the process, which writes to `log` and is ready when `url` answers; `replica` one more."""
        self.operator = operator
        self.client = client
        """Other requests, as the administrator: to patch a status, to list."""
        self.process = start()
        self._start, self._log, self._url, self._replica = start, log, url, replica
        self._applied: dict[tuple[Kind, Key], None] = {}
        self._owners: set[str] = set()
        """UIDs of applied objects, also of those deleted since."""

        self._kinds = kinds_of(operator)

    async def apply(self, resource: Mapping[str, Any]) -> Resource:
        """Create or change `resource` by server-side apply.

        Without a namespace it goes to `default`, or to the first one that the operator watches by name. An operator
        that selects namespaces by labels watches all of them here.
        Raises: `ApiError`; when the API server refuses it, with a note that has the text that a user reads.
        `UsageError` for a misspelt kind.
        """
        shows_values.set(True)
        kind, placed = self._placed(resource)
        try:
            applied, _ = await self.client.apply(kind, placed, manager=MANAGER)
        except Refusal as error:
            error.add_note(error.whole_message)
            raise
        self._applied[kind, key_of(applied)] = None
        self._owners.add(applied["metadata"]["uid"])
        return applied

    async def read(self, like: Mapping[str, Any]) -> Resource | None:
        """The live object with the kind and name of `like`, or None."""
        kind, placed = self._placed(like)
        try:
            return await self.client.get(kind, key_of(placed))
        except NotFound:
            return None

    async def delete(self, like: Mapping[str, Any]) -> None:
        """Delete the object with the kind and name of `like`."""
        kind, placed = self._placed(like)
        await self.client.delete(kind, key_of(placed))

    async def until(
        self, like: Mapping[str, Any], holds: Callable[[Resource], bool], *, within: float = UNTIL_SECONDS
    ) -> Resource:
        """Wait until `holds` is true of the live object with the kind and name of `like`, and return it.

        Raises: `AssertionError` after `within` seconds, or when the operator ended; it shows the object and the log.
        """
        last: Resource | None = None

        async def matching() -> Resource | None:
            nonlocal last
            last = await self.read(like)
            return last if last is not None and holds(last) else None

        def problem() -> str:
            metadata = {**last["metadata"], "managedFields": "(left out)"} if last else {}
            return f"{identify(like)} did not meet the condition; it is {last and {**last, 'metadata': metadata}}"

        return await self.eventually(matching, problem, within=within)

    async def until_gone(self, like: Mapping[str, Any], *, within: float = UNTIL_SECONDS) -> None:
        """Wait until there is no object with the kind and name of `like`. Raises: as `until`."""

        async def is_gone() -> bool:
            return await self.read(like) is None

        await self.eventually(is_gone, lambda: f"{identify(like)} is still there", within=within)

    async def until_refused(self, resource: Resource, *, within: float = UNTIL_SECONDS) -> str:
        """Wait until the API server refuses `resource`: a webhook at once, a policy seconds after it was applied.

        A webhook that fails refuses nothing. Returns: the message for the user. Nothing is stored. Raises: as `until`.
        """
        last = ""
        shows_values.set(True)
        kind, placed = self._placed(resource)

        async def refusal() -> str:
            nonlocal last
            try:
                await self.client.apply(kind, placed, manager=MANAGER, dry_run=True)
                last = ""
            except Refusal as error:
                last = error.whole_message
                return last if error.status < 500 else ""
            return ""

        return await self.eventually(refusal, lambda: f"{identify(resource)} is not refused: {last}", within=within)

    async def until_logged(self, message: str, *, within: float = UNTIL_SECONDS, **fields: object) -> dict[str, Any]:
        """Wait until the operator logged `message` with these `fields`, and return the first such line.

        The operator logs in JSON here: `reconcile failed`, not `failed` as on a terminal (docs/reference/telemetry.md).
        Raises: as `until`.
        """
        wanted = {"message": message, **fields}.items()

        async def first_line() -> dict[str, Any] | None:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            # Other lines belong to a traceback, or are still being written.
            logged = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]
            return next((line for line in logged if wanted <= line.items()), None)

        return await self.eventually(first_line, lambda: f"the operator did not log {dict(wanted)}", within=within)

    async def eventually(
        self, look: Callable[[], Awaitable[T | None]], problem: Callable[[], str], *, within: float = UNTIL_SECONDS
    ) -> T:
        """Wait until `look` returns something true, and return that. Raises: as `until`, with the `problem`."""
        ends = time.monotonic() + within
        while time.monotonic() < ends and self.process.poll() is None:
            result = await look()
            if result:
                return result
            await asyncio.sleep(LOOK_SECONDS)
        raise AssertionError(f"{problem()} after {within} s\n{self.log()}")

    async def stop(self) -> int:
        """Send SIGTERM and return the exit code. Raises: `AssertionError` when it takes more than 5 s."""
        self.process.terminate()
        try:
            return await asyncio.to_thread(self.process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the operator did not stop within {STOP_SECONDS} s\n{self.log()}") from None

    async def kill(self) -> None:
        """End it at once, as a crash or a lost node does: no handler ends, nothing is closed. `restart` follows."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)

    async def restart(self) -> None:
        """Start it again, with the environment variables that this process has now; return when it is ready.

        After `kill` or `stop`; one that runs is stopped first. Raises: `AssertionError` when it is not ready in 30 s.
        """
        if self.process.poll() is None:
            await self.stop()
        self.process = self._start()
        await self.until_ready()

    async def join(self) -> RunningOperator:
        """Start one more replica of the operator, as `replicas` in the manifest does; return when it is ready.

        The first call starts this one again, with leader election. Each has a log of its own: `until_logged`, `stop`
        and `kill` are about one replica.
        Raises: `UsageError` for an operator without `sharding`, or with webhooks, which one process serves here.
        """
        if getattr(self.operator, "sharding", None) is None:
            raise UsageError(f"{self.operator.name} does not share its work: use Operator(sharding=Sharding())")
        if self._replica is None:
            raise UsageError(f"{self.operator.name} has webhooks, which one process serves in a test: use no replicas")
        other = await self._replica()
        await other.until_ready()
        return other

    async def until_ready(self) -> None:
        """For the fixture: wait until the probe succeeds. Raises: as `until`."""
        look = partial(asyncio.to_thread, answers, self._url)
        await self.eventually(look, lambda: "the operator is not ready", within=START_SECONDS)

    def log(self) -> str:
        """The end of the operator's output."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(["the operator's log ends with:", *lines[-30:]])

    async def remove_applied(self) -> None:
        """For the fixture: delete the objects of `apply`, newest first, then its children, as a garbage collector."""
        for kind, key in reversed(self._applied):
            like = named(kind.gvk, key)
            if (live := await self.read(like)) is not None:
                await self._unprotect(kind, live)
                # No kubelet runs here that could agree to the end of a pod with a node, and no garbage collector that
                # would release the pods of a Job, whose deletion orphans them by default.
                path = path_of(kind, key.namespace or None, key.name)
                at_once = b'{"gracePeriodSeconds":0,"propagationPolicy":"Background"}'
                await self.client.exchange(ApiRequest("DELETE", path, headers={"Content-Type": JSON}, body=at_once))
                await self.until_gone(like)
        theirs = f"{OWNER_UID} in ({','.join(sorted(self._owners))})"
        for kind in {kind for each in self.operator.controllers for kind in each.owns} if self._owners else ():
            for child in await self.client.list(kind, label_selector=theirs):
                with suppress(NotFound):
                    await self._unprotect(kind, child)
                    await self.client.delete(kind, key_of(child))

    async def _unprotect(self, kind: Kind, live: Resource) -> None:
        """Remove the finalizers of volumes and their claims: the controllers that remove them do not run here."""
        finalizers = live["metadata"].get("finalizers", [])
        if not PROTECTION.isdisjoint(finalizers):
            kept = [each for each in finalizers if each not in PROTECTION]
            await self.client.merge_patch(kind, key_of(live), {"metadata": {"finalizers": kept}})

    def _placed(self, resource: Mapping[str, Any]) -> tuple[Kind, Resource]:
        placed = dict(resource)
        if problem := misspelt(placed, self.operator):
            raise UsageError(problem)
        kind = kind_of(placed, self._kinds)
        if kind.namespaced and not placed["metadata"].get("namespace"):
            # The operator's own namespace admits only pods that are as restricted as itself.
            namespace = (self.operator.watched(self.operator.name) or ("default",))[0]
            placed["metadata"] = {**placed["metadata"], "namespace": namespace}
        return kind, placed


@asynccontextmanager
async def running(sandbox: Sandbox, root: Path) -> AsyncIterator[RunningOperator]:
    """Install the operator of the repository at `root` without its Deployment, and run it as a process meanwhile."""
    project = Project.at(root)
    operator = project.load_operator()
    cluster = find_cluster(kubeconfig=str(sandbox.kubeconfig))
    async with Client(cluster, user_agent=MANAGER, group=operator.group) as client:
        documents = bundle.documents(operator, image=None, namespace=operator.name, local=True)
        guard = Guard(Path(tempfile.gettempdir()) / f"bonny-operator-{secrets.token_hex(4)}")
        try:
            loopback = None
            if has_webhooks(operator):
                from ..local_webhooks import Loopback  # noqa: PLC0415  its extra may be absent

                loopback = Loopback.at(guard.folder)
                documents = [loopback.called(each) for each in documents]
            sandbox.apply(namespaces_of(operator))
            await install(client, documents, manager=MANAGER)
            identity = sandbox.service_account_kubeconfig(operator.name, operator.name)
            command, number = [sys.executable, "-c", START, project.package], count(1)

            elected: dict[str, str] = {}

            def made() -> RunningOperator:
                (port,), pod = free_ports(1), f"{operator.name}-{next(number)}"
                log = guard.folder / f"{pod}.log"

                def start() -> subprocess.Popen[bytes]:
                    settings = environment(operator, root, kubeconfig=identity, port=port)
                    settings |= loopback.environment() if loopback else {}
                    settings |= {"BONNY_POD_NAME": pod, **elected}
                    return guard.popen(command, log_file=log, env=settings, cwd=root)

                url = f"http://127.0.0.1:{port}/readyz"
                return RunningOperator(operator, client, start, log, url=url, replica=None if loopback else replica)

            async def replica() -> RunningOperator:
                if not elected:
                    elected["BONNY_LEADER_ELECTION"] = "true"
                    await at_work.restart()
                return made()

            at_work = made()
            await at_work.until_ready()
            try:
                if loopback:
                    await loopback.register(client, operator, operator.name, manager=MANAGER)
                yield at_work
            finally:
                if loopback:  # the first to go: one may forbid deletions
                    await loopback.unregister(client, operator, operator.name)
            if at_work.process.poll() in (0, -signal.SIGKILL):  # the test ended it, and objects may have finalizers
                await at_work.restart()
            await at_work.remove_applied()
            await stop_converting(client, documents)
        finally:
            await asyncio.to_thread(guard.close)


def environment(operator: Operator, root: Path, *, kubeconfig: Path, port: int) -> dict[str, str]:
    """The environment of the operator's container, and where its code is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE"))}
    return {
        **kept,
        "KUBECONFIG": str(kubeconfig),
        "BONNY_POD_NAMESPACE": operator.name,
        "BONNY_WATCH_NAMESPACE": ",".join(operator.watched(operator.name) or (ALL_NAMESPACES,)),
        "BONNY_HTTP_HOST": "127.0.0.1",
        "BONNY_HTTP_PORT": str(port),
        "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root / "vendor"))),
    }
