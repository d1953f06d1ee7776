"""Stage: one operator process behind proxies, and the lives of samples that it takes part in.

Each life has a namespace and a process of its own, so it is the same whatever came before. Waits are for conditions:
a state, and then silence, or silence without that state.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from bonny.resource import Resource

from ..install import kind_of, kinds_of
from ..sandbox import SandboxError
from ..sandbox.guard import Guard
from ..testing import faults
from ..testing.faults import CommitThenDrop, Drop, FaultProxy, Notify, ProxiedRequest
from .external import External
from .life import POLL_SECONDS, REST_SECONDS, Broken, Life, Reference, Setup, chapters_of, counted, forms_of, more_often
from .objects import Objects
from .orders import Turn, writers_of
from .permissions import used_by
from .plans import COALESCED_SECONDS, LATE_SECONDS, LOAD_SECONDS, Fault, Plan
from .points import API, Chapter, Point, Sort, at
from .process import Process
from .shown import Shown
from .state import State, differences
from .traffic import Traffic
from .variants import Sample, placed
from .world import World, flood, write_too

# How long a life without a fault must be silent after each chapter.
SILENCE_SECONDS: Final = 1.5
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
        process = Process(setup, guard, kubeconfig=proxy.kubeconfig, service=outside.url if outside else "")
        stack.callback(process.close)
        yield Stage(setup, proxy, process, Traffic(proxy, outside), service=service)


class Stage:
    """See the module."""

    def __init__(
        self, setup: Setup, proxy: FaultProxy, process: Process, traffic: Traffic, *, service: External | None
    ) -> None:
        self._setup, self._proxy, self._process, self._traffic = setup, proxy, process, traffic
        self._sandbox = setup.sandbox
        self._objects = Objects(self._sandbox, traffic, service)
        self._world = World(proxy)
        self._shown = Shown()
        self._service = service
        self._before = ""
        self._sample: Sample
        self._fault: faults.Fault | None = None

    def live(self, sample: Sample, plan: Plan, reference: Reference | None = None) -> Life:
        """One life of `sample`. Without a `reference` it is one that others are compared with.

        Raises: `Interrupted`.
        """
        life = Life()
        self._prepare(sample)
        fault = self._fault = self._arm(plan, reference)
        try:
            self._process.start(self._objects.namespace)
            self._chapters(life, sample, plan, reference)
            if reference is not None:
                silence = LONG_SILENCE_SECONDS.get(plan.fault, SHORT_SILENCE_SECONDS)
                self._compare(life, life.chapter, reference, silence=silence)
            elif plan.fault is not Fault.ORDER:
                life.problem = self._restless()
        except Broken as broken:
            life.problem = str(broken)
        finally:
            self._process.kill()
            self._traffic.cut()
        self._account(life, plan, reference)
        life.struck = (fault is None or fault.hits > 0) and self._world.was_seen()
        life.log = self.log()
        if reference is None:
            life.shown = self._shown.where(self._sandbox, self._objects.namespace, life.log)
        if self._setup.wide:
            self._objects.clean()
        return life

    def _account(self, life: Life, plan: Plan, reference: Reference | None) -> None:
        """Note the requests of a life, and which objects were created or deleted more often than without a fault."""
        sent = self._traffic.sorted(reference)
        life.sorts = [sort for _, sort in sent]
        life.writers = writers_of(sent)
        for request, sort in sent:
            if request.status == 201:
                life.done.append(("created", sort))
            elif request.method == "DELETE" and request.status in (200, 202, 204):
                life.done.append(("deleted", sort))
        if reference and not life.problem and plan.fault is not Fault.KILL_DELETE:
            life.diff = more_often(counted(life.done), reference.done_until(life.chapter))
            life.problem = "something is done more often than without the fault" if life.diff else ""
        own = "" if self._setup.operator.watch == "namespace" else self._objects.namespace
        life.used = used_by(
            (each for server, each in self._traffic.requests() if server == API), self._setup.operator, namespace=own
        )

    @contextmanager
    def history(self, sample: Sample) -> Iterator[Callable[[Setup], State]]:
        """One life of `sample` under several versions of an operator, one after the other.

        Until the end of the block: a function that runs a version until it is silent, and returns the state; it raises
        `Broken` and `Interrupted`. The first time the sample is created. Nothing runs between two calls.
        """
        own = self._setup
        self._prepare(sample)

        def settled(setup: Setup) -> State:
            self._setup = self._process.setup = setup
            self._process.start(self._objects.namespace)
            if self._traffic.chapter is Chapter.START:
                self._do(Chapter.CREATED)
            else:
                self._traffic.enter(Chapter.CREATED)
            life = Life()
            self._settle(life, Chapter.CREATED)
            self._process.kill()
            return life.states[Chapter.CREATED]

        try:
            yield settled
        finally:
            self._process.kill()
            self._traffic.cut()
            self._setup = self._process.setup = own
            if own.wide:
                self._objects.clean()

    def install(self, documents: Iterable[Resource]) -> None:
        """Apply definitions and roles. Raises: `SandboxError`."""
        self._sandbox.apply(documents)

    def log(self) -> str:
        """The output of the operator in this life."""
        return self._process.log()

    def _prepare(self, sample: Sample) -> None:
        namespace = f"prove-{secrets.token_hex(4)}"
        if self._setup.operator.namespaced:
            namespace = self._setup.operator.name
        else:
            self._sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self._sample = sample
        self._traffic.renew(namespace)
        self._objects.renew(namespace, sample)
        self._process.renew()
        self._shown = Shown(sample)
        for each in sample.surroundings:
            self._sandbox.apply(placed(self._setup.operator, each, namespace))
        kinds = kinds_of(self._setup.operator)  # not from the API server: the definitions may come later
        handled = frozenset(kind_of(each, kinds).plural for each in sample.subjects)
        self._world = World(self._proxy, handled)

    def _chapters(self, life: Life, sample: Sample, plan: Plan, reference: Reference | None) -> None:
        chapters = chapters_of(sample)
        self._before = self._objects.version()
        for chapter, following in zip(chapters, (*chapters[1:], None), strict=True):
            life.chapter = chapter
            down = plan.fault is Fault.DOWN and plan.at is chapter
            if down:
                self._process.kill()
            version = self._do(chapter)
            if _goes_straight_on(plan, chapter, following):
                continue
            if down:
                self._process.start(self._objects.namespace)
            if reference is None:
                self._settle(life, chapter)
                if isinstance(plan.at, Turn) and plan.at.chapter is chapter:
                    return
            elif self._disturbed(life, chapter, plan, reference, version):
                return

    def _disturbed(self, life: Life, chapter: Chapter, plan: Plan, reference: Reference, version: str) -> bool:
        """The rest of a chapter of a life with a fault. Returns: whether the life is over."""
        if plan.fault is Fault.SLOW and isinstance(plan.at, Point) and plan.at.chapter is chapter:
            self._until_hit()
            return False
        if plan.fault is Fault.LOAD:
            for each in map(self._objects.subject_path, self._sample.subjects):
                flood(self._sandbox, each)
        if self._compare(life, chapter, reference, kills=plan):
            return True  # the object was deleted early
        if plan.fault is not Fault.OLDER:
            return plan.fault is Fault.LOAD
        if plan.at is chapter:
            self._process.kill()
            self._world.past(self._before)
            self._process.start(self._objects.namespace)
            return True
        if version or chapter is not Chapter.DELETED:  # without a finalizer, the last state is the one before
            self._before = version or self._objects.version()
        return False

    def _do(self, chapter: Chapter) -> str:
        """Carry out a chapter, as its user. Returns: the resource version at which an object waits for its deletion."""
        self._process.mark()
        if chapter is Chapter.DELETED:
            self._traffic.enter(chapter)
            return self._objects.delete_subjects()
        if chapter is Chapter.AGAIN:
            self._sandbox.eventually(self._objects.subjects_gone, within_seconds=CHAPTER_SECONDS)
        self._traffic.enter(chapter)
        for each in forms_of(self._sample)[chapter]:
            try:
                (live,) = self._sandbox.apply(placed(self._setup.operator, each, self._objects.namespace))
            except SandboxError as error:
                raise Broken(str(error).replace(f"{self._objects.namespace}/", "")) from error
            self._objects.applied(live)
        return ""

    # --- waiting ---

    def _until_hit(self) -> None:
        """Return when the request of the fault was sent, or is no longer to be expected."""
        began = time.monotonic()
        while self._fault and not self._fault.hits and time.monotonic() - began < PATIENCE_SECONDS:
            self._check()
            time.sleep(POLL_SECONDS)

    def _settle(self, life: Life, chapter: Chapter) -> None:
        """Without a fault: wait until the operator is silent, and keep the state."""
        began = time.monotonic()
        while True:
            self._check()
            error, again = self._process.failure()
            if again:
                raise Broken(f"the reconcile fails each time: {error.splitlines()[0] if error else 'see the log'}")
            silence = self._traffic.silence()
            if silence >= SILENCE_SECONDS and time.monotonic() - began >= SILENCE_SECONDS and not error:
                if self._is_settled(chapter):
                    life.states[chapter] = self._objects.state()
                    self._shown.look(self._sandbox, self._objects.namespace, self._objects.collected())
                    if self._traffic.silence() >= SILENCE_SECONDS:  # the collector did nothing that wakes the operator
                        return
                elif silence > PATIENCE_SECONDS:
                    raise Broken(_unsettled(chapter))
            if time.monotonic() - began > RESTLESS_SECONDS:
                raise Broken(self._traffic.loop() or _unsettled(chapter))
            time.sleep(POLL_SECONDS)

    def _is_settled(self, chapter: Chapter) -> bool:
        """Whether the operator handled what its user did last, as far as the object says."""
        if chapter is Chapter.DELETED:
            return self._objects.subjects_gone()
        for live in self._objects.subjects():
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
        return self._traffic.loop(since=began)

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
            if self._process.killed.is_set():
                self._process.killed.clear()
                self._process.reap()
                if kills is not None and kills.fault is Fault.KILL_DELETE:
                    self._traffic.enter(Chapter.DELETED)
                    self._objects.delete_subjects()
                    wanted, deleted = reference.nature.without(reference.states[Chapter.DELETED]), True
                    life.chapter = Chapter.DELETED
                self._process.start(self._objects.namespace)
                began = time.monotonic()
            self._check()
            losing = self._world.is_losing()
            if self._traffic.silence() >= silence and not losing:
                diff = differences(reference.nature.without(self._objects.state()), wanted)
                if not diff and self._traffic.silence() >= silence:
                    return deleted
                waited = time.monotonic() - began
                if diff and (min(waited, self._traffic.silence()) > PATIENCE_SECONDS or waited > CHAPTER_SECONDS):
                    life.diff = diff
                    raise Broken("a wrong state remains")
            elif time.monotonic() - began > CHAPTER_SECONDS:
                raise Broken(self._traffic.loop() or "it does not come to rest")
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        """Raises: `Interrupted`; `Broken` when the process ended by itself."""
        self._process.check()
        self._world.turns(self._traffic)

    def _arm(self, plan: Plan, reference: Reference | None) -> faults.Fault | None:
        """Prepare the fault of `plan`; None for a fault that is not at one request."""
        self._world.prepare(plan.fault)
        if isinstance(plan.at, Turn):
            return self._world.hold(plan.at, self._traffic)
        if not isinstance(plan.at, Point) or reference is None:
            return None
        server = plan.at.server

        def sort(request: ProxiedRequest) -> Sort:
            return self._traffic.sort_of(request, server, reference)

        match plan.fault:
            case Fault.KILL_BEFORE:
                effect: faults.Effect = Drop(self._process.strike)
            case Fault.KILL_AFTER | Fault.KILL_DELETE:
                effect = CommitThenDrop(self._process.strike)
            case Fault.LOST:
                effect = CommitThenDrop()
            case Fault.EVENTS_LOST:
                effect = Notify(self._world.lose)
            case Fault.OLD if self._service is not None:
                effect = Notify(self._service.look_back)
            case Fault.WRITTEN:
                effect = Notify(lambda: write_too(self._setup.sandbox, self._traffic.last_path()))
            case _:
                effect = plan.effect()
        return self._traffic.proxy_of(server).add(faults.Fault(effect, on=at(plan.at, sort)))


def _goes_straight_on(plan: Plan, chapter: Chapter, following: Chapter | None) -> bool:
    """Whether the next chapter follows without a wait."""
    if plan.fault is Fault.AT_ONCE:
        return chapter is Chapter.DELETED
    return plan.fault is Fault.COALESCED and following in (Chapter.CHANGED, Chapter.REDUCED)


def _unsettled(chapter: Chapter) -> str:
    if chapter is Chapter.DELETED:
        return "the object is not deleted, because a finalizer is left"
    return "the object does not show that its last change was handled (status.observedGeneration)"
