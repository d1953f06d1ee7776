"""Stage: one operator process behind proxies, and the lives of samples that it takes part in.

Each life has a namespace and a process of its own, so it is the same whatever came before. Waits are for conditions:
a state, and then silence, or silence without that state.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Final

from bonny.client.api import MERGE_PATCH
from bonny.resource import Resource
from bonny.run.config import ALL_NAMESPACES

from ..install import kind_of, kinds_of
from ..sandbox import SandboxError
from ..sandbox.guard import Guard
from ..sandbox.ports import free_ports
from ..sandbox.server import answers
from ..testing import faults
from ..testing.faults import CommitThenDrop, Drop, FaultProxy, Notify, ProxiedRequest
from ..testing.running import START, environment
from ..uses import has_webhooks
from .external import External
from .life import Broken, Interrupted, Life, Reference, Setup, chapters_of, counted
from .permissions import used_by
from .plans import COALESCED_SECONDS, LATE_SECONDS, LOAD_SECONDS, Fault, Plan
from .points import API, PATH, SERVICE, Chapter, Sort, at, is_step, sort_of
from .state import NAMESPACE, UUID, Fields, State, alike, differences, fields_of
from .variants import Sample, placed
from .world import World, flood

# A process starts within a second or two; the rest is for a loaded machine.
START_SECONDS: Final = 45.0
POLL_SECONDS: Final = 0.05
# How long a life without a fault must be silent after each chapter, and at its end.
SILENCE_SECONDS: Final = 1.5
REST_SECONDS: Final = 5.0
# In other lives the state is known, and silence only shows that nothing more is written at once.
SHORT_SILENCE_SECONDS: Final = 0.3
# At the end of lives in which something comes late.
LONG_SILENCE_SECONDS: Final = {
    Fault.LATE: LATE_SECONDS + 1.0,
    Fault.COALESCED: COALESCED_SECONDS + 1.0,
    Fault.OLDER: LATE_SECONDS + 1.0,
    Fault.LOAD: LOAD_SECONDS + 1.0,
    Fault.AT_ONCE: 2.0,
    Fault.DOWN: 1.0,
}
# An operator that sent no request for so long does not repair its state any more. Retries come within 2 s.
PATIENCE_SECONDS: Final = 12.0
CHAPTER_SECONDS: Final = 60.0
RESTLESS_SECONDS: Final = 30.0


@contextmanager
def staged(setup: Setup) -> Iterator[Stage]:
    """A stage, until the end of the block."""
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(setup.sandbox, token=setup.token))
        service, outside = None, None
        if setup.externals:
            external = External(ca_file=setup.sandbox.ca_file, folder=setup.sandbox.folder)
            service = stack.enter_context(external.serving())
            outside = stack.enter_context(FaultProxy(service))
        guard = stack.enter_context(Guard(setup.sandbox.folder / f"stage-{secrets.token_hex(4)}"))
        yield Stage(setup, proxy, service, outside, guard)


class Stage:
    """See the module."""

    def __init__(
        self, setup: Setup, proxy: FaultProxy, service: External | None, outside: FaultProxy | None, guard: Guard
    ) -> None:
        self._setup, self._proxy, self._service, self._outside, self._guard = setup, proxy, service, outside, guard
        self._sandbox = setup.sandbox
        self._world = World(proxy)
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace = ""
        self._chapter = Chapter.START
        self._began: list[tuple[float, Chapter]] = []
        self._uids: dict[str, str] = {}
        self._gone: set[str] = set()
        self._before = ""
        self._killed = Event()
        self._log = Path()
        self._sample: Sample

    # --- a life -------------------------------------------------------------------------------------------------------

    def live(self, sample: Sample, plan: Plan, reference: Reference | None = None) -> Life:
        """One life of `sample`. Without a `reference` it is the one that others are compared with.

        Raises: `Interrupted`.
        """
        life = Life()
        self._prepare(sample)
        fault = self._arm(plan, reference) if reference else None
        try:
            self._start()
            self._chapters(life, sample, plan, reference)
            if reference is None:
                life.problem = self._restless()
            else:
                silence = LONG_SILENCE_SECONDS.get(plan.fault, SHORT_SILENCE_SECONDS)
                self._compare(life, life.chapter, reference, silence=silence)
        except Broken as broken:
            life.problem = str(broken)
        finally:
            self._kill()
            for proxy in self._proxies():
                proxy.cut_all()
        named = reference.named if reference else str
        sent = [
            (request, sort_of(self._like(request), self._chapter_at(request.time), server, named))
            for server, request in self._requests()
            if server == SERVICE or is_step(request) or _is_read(request)
        ]
        life.sorts = [sort for _, sort in sent]
        for request, sort in sent:
            if request.status == 201:
                life.done.append(("created", sort))
            elif request.method == "DELETE" and request.status in (200, 202, 204):
                life.done.append(("deleted", sort))
        if reference and not life.problem and plan.fault is not Fault.KILL_DELETE:
            life.diff = [
                f"+ {what} {count} times, not {reference.done.get(what, 0)}"
                for what, count in counted(life.done).items()
                if count > reference.done.get(what, 0)
            ]
            life.problem = "something is done more often than without the fault" if life.diff else ""
        own = "" if self._setup.operator.watch == "namespace" else self._namespace
        life.used = used_by(
            (each for server, each in self._requests() if server == API), self._setup.operator, namespace=own
        )
        life.struck = (fault is None or fault.hits > 0) and self._world.was_seen()
        life.log = self.log()
        if self._setup.wide:
            self._clean()
        return life

    @contextmanager
    def history(self, sample: Sample) -> Iterator[Callable[[Setup], State]]:
        """One life of `sample` under several versions of an operator, one after the other.

        Until the end of the block: a function that runs a version until it is silent, and returns the state; it raises
        `Broken` and `Interrupted`. The first time the sample is created. Nothing runs between two calls.
        """
        own = self._setup
        self._prepare(sample)

        def settled(setup: Setup) -> State:
            self._setup = setup
            self._start()
            if self._chapter is Chapter.START:
                self._do(Chapter.CREATED)
            else:
                self._enter(Chapter.CREATED)
            life = Life()
            self._settle(life, Chapter.CREATED)
            self._kill()
            return life.states[Chapter.CREATED]

        try:
            yield settled
        finally:
            self._kill()
            for proxy in self._proxies():
                proxy.cut_all()
            self._setup = own
            if own.wide:
                self._clean()

    def install(self, documents: Iterable[Resource]) -> None:
        """Apply definitions and roles. Raises: `SandboxError`."""
        self._sandbox.apply(documents)

    def log(self) -> str:
        """The output of the operator in this life."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def _prepare(self, sample: Sample) -> None:
        self._namespace = f"prove-{secrets.token_hex(4)}"
        if self._setup.operator.namespaced:
            self._namespace = self._setup.operator.name
        else:
            self._sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}})
        self._sample, self._uids, self._gone = sample, {}, set()
        self._killed.clear()
        for proxy in self._proxies():
            proxy.requests.clear()
            proxy.clear()
        if self._service:
            self._service.reset()
        self._log = self._guard.folder / f"{secrets.token_hex(4)}.log"
        self._chapter, self._began = Chapter.START, [(0.0, Chapter.START)]
        for each in sample.surroundings:
            self._sandbox.apply(placed(self._setup.operator, each, self._namespace))
        kinds = kinds_of(self._setup.operator)  # not from the API server: the definitions may come later
        handled = frozenset(kind_of(each, kinds).plural for each in sample.subjects)
        self._world = World(self._proxy, handled)

    def _chapters(self, life: Life, sample: Sample, plan: Plan, reference: Reference | None) -> None:
        chapters = chapters_of(sample)
        self._before = self._version()
        for chapter, following in zip(chapters, (*chapters[1:], None), strict=True):
            life.chapter = chapter
            down = plan.fault is Fault.DOWN and plan.at is chapter
            if down:
                self._kill()
            version = self._do(chapter)
            if _goes_straight_on(plan, chapter, following):
                continue
            if down:
                self._start()
            if reference is None:
                self._settle(life, chapter)
            elif self._disturbed(life, chapter, plan, reference, version):
                return

    def _disturbed(self, life: Life, chapter: Chapter, plan: Plan, reference: Reference, version: str) -> bool:
        """The rest of a chapter of a life with a fault. Returns: whether the life is over."""
        if plan.fault is Fault.LOAD:
            for each in map(self._subject_path, self._sample.subjects):
                flood(self._sandbox, each)
        if self._compare(life, chapter, reference, kills=plan):
            return True  # the object was deleted early
        if plan.fault is not Fault.OLDER:
            return plan.fault is Fault.LOAD
        if plan.at is chapter:
            self._kill()
            self._world.past(self._before)
            self._start()
            return True
        if version or chapter is not Chapter.DELETED:  # without a finalizer, the last state is the one before
            self._before = version or self._version()
        return False

    def _do(self, chapter: Chapter) -> str:
        """Carry out a chapter, as its user. Returns: the resource version at which an object waits for its deletion."""
        sample = self._sample
        forms = {
            Chapter.CREATED: sample.subjects,
            Chapter.CHANGED: sample.changed,
            Chapter.REDUCED: sample.reduced,
            Chapter.AGAIN: sample.reduced or sample.changed or sample.subjects,
        }
        if chapter is Chapter.DELETED:
            self._enter(chapter)
            return self._delete_subjects()
        if chapter is Chapter.AGAIN:
            self._sandbox.eventually(self._subjects_gone, within_seconds=CHAPTER_SECONDS)
        self._enter(chapter)
        for each in forms[chapter]:
            try:
                (live,) = self._sandbox.apply(placed(self._setup.operator, each, self._namespace))
            except SandboxError as error:
                raise Broken(str(error).replace(f"{self._namespace}/", "")) from error
            self._know(live)
        return ""

    def _know(self, live: Resource) -> None:
        uid, name = live["metadata"]["uid"], live["metadata"]["name"]
        for known in [known for known, word in self._uids.items() if word == f"(UID of {name})" and known != uid]:
            self._uids[known] = f"(UID of an earlier {name})"
        self._uids[uid] = f"(UID of {name})"

    def _enter(self, chapter: Chapter) -> None:
        self._chapter = chapter
        self._began.append((time.monotonic(), chapter))

    def _chapter_at(self, moment: float) -> Chapter:
        return next(chapter for began, chapter in reversed(self._began) if began <= moment)

    def _delete_subjects(self) -> str:
        """Returns: the resource version at which the last one waits for its finalizers; empty if there is none."""
        version = ""
        for each in self._sample.subjects:
            live = self._subject(each)
            if live is not None:
                self._gone.add(live["metadata"]["uid"])
                answer = self._sandbox.request("DELETE", self._subject_path(each)).body
                version = answer.get("metadata", {}).get("resourceVersion", "")
        return version

    def _subject_path(self, each: Resource) -> str:
        name = each["metadata"]["name"]
        return self._sandbox.path_of(each["apiVersion"], each["kind"], namespace=self._namespace, name=name)

    def _subject(self, each: Resource) -> Resource | None:
        return self._sandbox.get(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace=self._namespace)

    def _version(self) -> str:
        """The resource version of the state now."""
        first = self._sample.subjects[0]
        path = self._sandbox.path_of(first["apiVersion"], first["kind"], namespace=self._namespace)
        return str(self._sandbox.request("GET", path).body["metadata"]["resourceVersion"])

    def _subjects_gone(self) -> bool:
        return all(
            live is None or live["metadata"]["uid"] not in self._gone
            for live in map(self._subject, self._sample.subjects)
        )

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _settle(self, life: Life, chapter: Chapter) -> None:
        """Without a fault: wait until the operator is silent, and keep the state."""
        began = time.monotonic()
        while True:
            self._check()
            if self._silence() >= SILENCE_SECONDS and time.monotonic() - began >= SILENCE_SECONDS:
                if self._is_settled(chapter):
                    life.states[chapter] = self._state()
                    if self._silence() >= SILENCE_SECONDS:  # the collector did nothing that wakes the operator
                        return
                elif self._silence() > PATIENCE_SECONDS:
                    raise Broken(_unsettled(chapter))
            if time.monotonic() - began > RESTLESS_SECONDS:
                raise Broken(self._loop() or _unsettled(chapter))
            time.sleep(POLL_SECONDS)

    def _is_settled(self, chapter: Chapter) -> bool:
        """Whether the operator handled what its user did last, as far as the object says."""
        if chapter is Chapter.DELETED:
            return self._subjects_gone()
        for live in map(self._subject, self._sample.subjects):
            if live is None:
                return False
            observed = (live.get("status") or {}).get("observedGeneration")
            if observed is not None and observed != live["metadata"].get("generation"):
                return False
        return True

    def _restless(self) -> str:
        """Wait a while at the end of a life without a fault; returns a sentence if something was written."""
        began = time.monotonic()
        while time.monotonic() - began < REST_SECONDS:
            self._check()
            time.sleep(POLL_SECONDS)
        return self._loop(since=began)

    def _loop(self, *, since: float | None = None) -> str:
        """Writes that are repeated, as the end of a sentence; empty if there are none."""
        begin = time.monotonic() - REST_SECONDS if since is None else since
        writes = [
            sort_of(self._like(each), self._chapter, server)
            for server, each in self._requests()
            if each.time >= begin and (is_step(each) if server == API else each.method != "GET")
        ]
        if not writes:
            return ""
        counts = {sort: writes.count(sort) for sort in dict.fromkeys(writes)}
        told = ", ".join(f"the {sort[2]} of {sort[3]} {count} times" for sort, count in counts.items())
        return f"it does not come to rest: within {REST_SECONDS:g} s, while nothing changed, {told}"

    def _compare(
        self,
        life: Life,
        chapter: Chapter,
        reference: Reference,
        *,
        kills: Plan | None = None,
        silence: float = SHORT_SILENCE_SECONDS,
    ) -> bool:
        """Wait until the state is that of the life without a fault.

        Returns: whether the object was deleted on the way, as the plan says.
        Raises: `Broken`, after `life` got the differences.
        """
        wanted = reference.nature.without(reference.states[chapter])
        began, deleted = time.monotonic(), False
        while True:
            if self._killed.is_set():
                self._killed.clear()
                self._reap()
                if kills is not None and kills.fault is Fault.KILL_DELETE:
                    self._enter(Chapter.DELETED)
                    self._delete_subjects()
                    wanted, deleted = reference.nature.without(reference.states[Chapter.DELETED]), True
                    life.chapter = Chapter.DELETED
                self._start()
                began = time.monotonic()
            self._check()
            losing = self._world.is_losing()
            if self._silence() >= silence and not losing:
                diff = differences(reference.nature.without(self._state()), wanted)
                if not diff and self._silence() >= silence:
                    return deleted
                waited = time.monotonic() - began
                if diff and (min(waited, self._silence()) > PATIENCE_SECONDS or waited > CHAPTER_SECONDS):
                    life.diff = diff
                    raise Broken("a wrong state remains")
            elif time.monotonic() - began > CHAPTER_SECONDS:
                raise Broken(self._loop() or "it does not come to rest")
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        """Raises: `Interrupted`; `Broken` when the process ended by itself."""
        if self._setup.stopped.is_set():
            raise Interrupted
        if self._process is not None and self._process.poll() is not None and not self._killed.is_set():
            raise Broken(f"the operator ended by itself with code {self._process.returncode}")

    def _silence(self) -> float:
        """Seconds since the operator last asked for something; watches do not count. 0 while it waits for an answer."""
        last = self._began[-1][0]
        for server, request in self._requests():
            if request.is_watch or (server == API and not (is_step(request) or _is_read(request))):
                continue
            if request.ended is None:
                return 0.0
            last = max(last, request.ended)
        return time.monotonic() - last

    # --- the state ----------------------------------------------------------------------------------------------------

    def _words(self) -> dict[str, str]:
        return {**self._uids, self._namespace: NAMESPACE}

    def _state(self) -> State:
        """The state now; objects that lost their owners are deleted first, as by Kubernetes' garbage collector."""
        state: State = {}
        for resource in self._collected():
            label = alike(f"{resource['kind']} {resource['metadata']['name']}", self._words())
            state[label] = fields_of(resource, words=self._words())
        for path, document in dict(self._service.records if self._service else {}).items():
            fields: Fields = fields_of({"metadata": {}, "document": document}, words=self._words())
            state[alike(f"record {path}", self._words())] = fields
        return state

    def _collected(self) -> list[Resource]:
        live = {each["metadata"]["uid"] for each in map(self._subject, self._sample.subjects) if each is not None}
        for resource in list(self._items()) if self._gone - live else []:
            owners = resource["metadata"].get("ownerReferences", [])
            kept = [owner for owner in owners if owner["uid"] not in self._gone - live]
            if owners and not kept:
                self._gone.add(resource["metadata"]["uid"])
                self._sandbox.request("DELETE", resource["path"], {"propagationPolicy": "Background"})
            elif len(kept) < len(owners):
                patch = {"metadata": {"ownerReferences": kept, "uid": resource["metadata"]["uid"]}}
                self._sandbox.request("PATCH", resource["path"], patch, content_type=MERGE_PATCH)
        return [{name: value for name, value in each.items() if name != "path"} for each in self._items()]

    def _items(self) -> Iterator[Resource]:
        """The objects that the operator wrote, and all others of their kinds in the namespace, with their paths."""
        written: dict[str, set[str]] = {}
        for each in self._sample.subjects:
            path = self._sandbox.path_of(each["apiVersion"], each["kind"], namespace=self._namespace)
            written.setdefault(path, set()).add(each["metadata"]["name"])
        for server, request in self._requests():
            match = PATH.fullmatch(request.path)
            if server == API and is_step(request) and match:
                end = match.start("name") - 1 if match["name"] else len(request.path)
                written.setdefault(request.path[:end], set()).add(match["name"] or "")
        for collection, names in written.items():
            inside = f"/namespaces/{self._namespace}/" in collection
            answer = self._sandbox.request("GET", collection)
            if answer.status != 200:
                continue
            for item in answer.body["items"]:
                name = item["metadata"]["name"]
                if name != "kube-root-ca.crt" and (inside or name in names):
                    kind = answer.body["kind"].removesuffix("List")
                    yield {"kind": kind, **item, "path": f"{collection}/{name}"}

    def _clean(self) -> None:
        """Delete what a life left, so that the next one does not see it."""
        self._delete_subjects()
        for resource in self._items():
            if resource["metadata"].get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                self._sandbox.request("PATCH", resource["path"], patch, content_type=MERGE_PATCH)
            self._sandbox.request("DELETE", resource["path"], {"gracePeriodSeconds": 0})

    # --- requests -----------------------------------------------------------------------------------------------------

    def _proxies(self) -> list[FaultProxy]:
        return [self._proxy, *([self._outside] if self._outside else [])]

    def _requests(self) -> list[tuple[str, ProxiedRequest]]:
        """All requests of this life, in their order, with the server that they go to."""
        sent = [(API, each) for each in list(self._proxy.requests)]
        sent += [(SERVICE, each) for each in list(self._outside.requests)] if self._outside else []
        return sorted(sent, key=lambda each: each[1].time)

    def _like(self, request: ProxiedRequest) -> ProxiedRequest:
        """The request with words that are the same in each life, also while a UID is not known yet."""

        def same(text: str) -> str:
            return UUID.sub("(UID)", text.replace(self._namespace, NAMESPACE))

        path, body = same(request.path), same(request.body.decode(errors="replace")).encode()
        return ProxiedRequest(request.method, path, request.query, request.time, request.status, body)

    def _arm(self, plan: Plan, reference: Reference) -> faults.Fault | None:
        """Prepare the fault of `plan`; None for a fault that is not at one request."""
        self._world.prepare(plan.fault)
        if plan.at is None or isinstance(plan.at, Chapter):
            return None
        server = plan.at.server
        proxy = self._proxy if server == API or self._outside is None else self._outside

        def sort(request: ProxiedRequest) -> Sort:
            return sort_of(self._like(request), self._chapter, server, reference.named)

        match plan.fault:
            case Fault.KILL_BEFORE:
                effect: faults.Effect = Drop(self._strike)
            case Fault.KILL_AFTER | Fault.KILL_DELETE:
                effect = CommitThenDrop(self._strike)
            case Fault.LOST:
                effect = CommitThenDrop()
            case Fault.EVENTS_LOST:
                effect = Notify(self._world.lose)
            case _:
                effect = plan.effect()
        return proxy.add(faults.Fault(effect, on=at(plan.at, sort)))

    # --- the process --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the operator, and return when it is ready. Raises: `Broken`, `Interrupted`."""
        setup = self._setup
        (port,) = free_ports(1)
        settings = environment(setup.operator, setup.root, kubeconfig=self._proxy.kubeconfig, port=port)
        settings |= {
            "BONNY_WATCH_NAMESPACE": ALL_NAMESPACES if setup.wide else self._namespace,
            "PYTHONHASHSEED": str(setup.seed),
        }
        if setup.operator.namespaced:
            settings["BONNY_WATCH_NAMESPACE"] = self._namespace
        settings |= dict.fromkeys(setup.externals, self._outside.url) if self._outside else {}
        if has_webhooks(setup.operator):
            from ..local_webhooks import Loopback  # noqa: PLC0415  its extra may be absent

            # Nothing calls them. With this certificate it needs no Secret, whose Role is in a namespace of its own.
            settings |= Loopback.at(self._guard.folder).environment()
        command = [sys.executable, "-c", START, setup.package]
        self._process = self._guard.popen(command, log_file=self._log, env=settings, cwd=setup.root)
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            self._check()
            if self._killed.is_set():
                return
            if time.monotonic() > deadline:
                raise Broken(f"the operator is not ready {START_SECONDS:g} s after its start")
            time.sleep(POLL_SECONDS)

    def _strike(self) -> None:
        """Kill the operator; the proxy calls this in the middle of a request."""
        self._killed.set()
        if self._process is not None:
            self._process.kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None


def _goes_straight_on(plan: Plan, chapter: Chapter, following: Chapter | None) -> bool:
    """Whether the next chapter follows without a wait."""
    if plan.fault is Fault.AT_ONCE:
        return chapter is Chapter.DELETED
    return plan.fault is Fault.COALESCED and following in (Chapter.CHANGED, Chapter.REDUCED)


def _is_read(request: ProxiedRequest) -> bool:
    return request.method == "GET" and PATH.fullmatch(request.path) is not None


def _unsettled(chapter: Chapter) -> str:
    if chapter is Chapter.DELETED:
        return "the object is not deleted, because a finalizer is left"
    return "the object does not show that its last change was handled (status.observedGeneration)"
