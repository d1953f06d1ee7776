"""Watch: the rules of listing and watching one kind: pages, resuming, and starting over when that is needed.

`step` makes every decision: a state and an input in; a state, one command and the changes for the store out. The I/O is
in `bonny.engine.stream`.

    Listing --page, more to come--> Listing      Watching --event, bookmark--> Watching
    Listing --last page-----------> Watching     Watching --closed-----------> Watching (resumes where it was)
    Listing --page too large------> Listing (fewer objects a page)
    Watching --410, deaf----------> Waiting --> Listing
    Watching --error--------------> Waiting --> Confirming --> Watching
    any other --error-------------> Waiting --> where it was

Rules worth knowing:
- No list carries a resourceVersion, so the answer is the newest state and never a stale cache.
- The store serves its old objects during a list; keys that the complete list lacks are swept at its end.
- A stream without an event or bookmark for `deaf_after` is listed again, even if several watches followed each other in
  that time: a server that was restored from a backup keeps a watch from a future version open and silent.
- For the same reason a watch that is resumed after an error is preceded by a list of one object. It shows the server's
  version; one below ours means that the server was restored, and everything is listed.
- A restored server may have passed our version. Then a list shows older versions of objects than the store holds, the
  stream reports `Rewritten`, and everything is listed once more and reported as new.
- Only progress is followed by an immediate request: a page with objects and a new token, a request for a smaller page,
  a watch that moved the version or lasted a second; of such watches ten at once, then one per second. Everything else
  waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import OptionError
from .backoff import Backoff
from .objects import (
    UNREADABLE,
    UNWATCHED,
    Failure,
    Item,
    decode_bookmark,
    decode_event,
    decode_failure,
    decode_item,
    decode_page,
    version_number,
)

EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
# The page size of client-go (tools/pager), with which a list begins.
LIST_PAGE: Final = 500
# Small pages double up to this: each one costs the API server CPU for all objects of the kind.
LARGEST_PAGE: Final = 2000
# The limit of a page: it is decoded in one step and for a moment in memory three times. An object has at most 3 MiB.
PAGE_BYTES: Final = 8 * 1024 * 1024
# The limit of a page of one object, for a server that ignores `limit` and sends everything, and of a request for all
# objects: about ten thousand objects of 5 KiB, which a pod of 256 MiB survives.
WHOLE_BYTES: Final = 64 * 1024 * 1024
# The divisor of the page size while pages are too large. Each try discards a page: 500, 62, 7, 1.
SMALLER: Final = 8
# Load balancers cut idle flows after 240 s (Azure) to 350 s (AWS); a watch ends itself before that.
WATCH_SECONDS: Final = (200.0, 230.0)
# For a slow answer after the server ended the watch.
WATCH_GRACE_SECONDS: Final = 15.0
# Bookmarks come about once a minute. A stream without one for longer than this is deaf, not quiet.
DEAF_SECONDS: Final = 150.0
# client-go calls a watch that ended within a second without any event "very short" and backs off.
SHORT_WATCH_SECONDS: Final = 1.0
# A server that ends each watch after one event would be asked a thousand times a second.
WATCHES_AT_ONCE: Final = 10
# client-go's reflector: 0.8 s to 30 s, reset after two quiet minutes.
WATCH_BACKOFF: Final = Backoff(base=0.8, cap=30.0)
QUIET_SECONDS: Final = 120.0
# Upper bound for Retry-After: a proxy that asks for hours must not stop a stream longer than /healthz accepts.
LONGEST_ADVICE_SECONDS: Final = 120.0
# The server sends the events of a gap as soon as the watch is open.
CATCH_UP_SECONDS: Final = 1.0
NEWEST: Final = 2**63
# A watch or a page that fails this often without any data is replaced by a new list.
RESUMES_BEFORE_RELIST: Final = 3
# Lists in a row whose token expired before all objects are requested at once: the server may be too slow for pages.
EXPIRED_BEFORE_WHOLE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How one kind is listed and watched. Times are seconds."""

    page_size: int = LARGEST_PAGE
    """Maximum objects per page. Default 2000. Pages begin with 500; pages of large objects become smaller."""

    timeout: tuple[float, float] = WATCH_SECONDS
    """The server ends a watch after a time drawn from this range. Default 200 to 230 s."""

    grace: float = WATCH_GRACE_SECONDS
    """Time after `timeout` before the client gives up a silent watch. Default 15 s."""

    deaf_after: float = DEAF_SECONDS
    """A watch that ends without any event or bookmark for this long, earlier watches included, is followed by a list.
    Default 150 s."""

    backoff: Backoff = WATCH_BACKOFF
    """Waits after errors. Default 0.8 s to 30 s."""

    def __post_init__(self) -> None:
        if self.page_size < 1:
            raise OptionError(f"WatchOptions.page_size is {self.page_size}: use 1 or more, or leave it out")
        if not 1 <= self.timeout[0] <= self.timeout[1]:
            raise OptionError(f"WatchOptions.timeout is {self.timeout}: use a range of seconds from 1 up")


class ErrorKind(StrEnum):
    """Why a stream is failing. The values are label values of metrics."""

    EXPIRED = "expired"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    THROTTLED = "throttled"
    SERVER = "server"
    GARBAGE = "garbage"
    UNREACHABLE = "unreachable"
    SILENT = "silent"
    SHORT = "short"


class StreamError(msgspec.Struct, frozen=True):
    """The last error of a stream, until it works again; it is never raised."""

    kind: ErrorKind
    verb: str
    status: int
    message: str
    since: float


# --- states ---


class Listing(msgspec.Struct, frozen=True):
    """A page was requested. `continue_token` is empty for the first page."""

    continue_token: str = ""
    whole: bool = False
    """All objects were requested in one response."""


class Watching(msgspec.Struct, frozen=True):
    """A watch from `version` is being opened (`opened` is None) or open."""

    version: str
    opened: float | None = None
    moved: bool = False
    """Whether this watch brought a newer version."""

    gap: bool = False
    """Whether it was opened after an error: its first events are of the past."""


class Confirming(msgspec.Struct, frozen=True):
    """The server's version was requested, by a list of one object, before `then` is resumed after an error."""

    then: Watching


Asking: TypeAlias = Listing | Watching


class Waiting(msgspec.Struct, frozen=True):
    """No request is running until a `Tick`; then `then` continues."""

    then: Asking


Phase: TypeAlias = Asking | Confirming | Waiting


class WatchState(msgspec.Struct, frozen=True):
    """All state of one stream between two steps."""

    phase: Phase = Listing()
    limit: int = LIST_PAGE
    """The page size of the next request."""

    of: tuple[str, str] | None = None
    """The API version and kind that events must have; None: not checked."""

    synced: bool = False
    """Whether a complete list was stored; stays true."""

    version: int = 0
    """The newest version that the store holds. Goes backwards only if the server's versions did."""

    newest: int = 0
    """The newest version that the server has named; above `version` while a list is incomplete."""

    last_event: float = float("-inf")
    """When the last event or bookmark came, or the last list was complete; kept across watches."""

    watches: float = float("-inf")
    """The rate limit of watches: each one moves this time by a second."""

    failures: int = 0
    resumes: int = 0
    expired: int = 0
    """Lists since the last complete one whose token expired."""

    error: StreamError | None = None
    failed_at: float = float("-inf")
    """When the last error came; the backoff is reset after quiet minutes."""


# --- what can happen ---


class Reply(msgspec.Struct, frozen=True):
    """A complete HTTP response: a page, or the refusal of a list or watch."""

    status: int
    body: bytes
    retry_after: float | None = None


class TooLarge(msgspec.Struct, frozen=True):
    """The page exceeds its size limit and was discarded."""


class Rewritten(msgspec.Struct, frozen=True):
    """The page showed an older version of an object than the store had (`core.store`)."""


class Opened(msgspec.Struct, frozen=True):
    """The server accepted the watch: headers with status 200 came."""


class Line(msgspec.Struct, frozen=True):
    """One line of the open watch."""

    data: bytes


class Closed(msgspec.Struct, frozen=True):
    """The server ended the watch."""


class Silent(msgspec.Struct, frozen=True):
    """No answer came until the client's own deadline, which is after the server's."""


class Broken(msgspec.Struct, frozen=True):
    """The connection failed: refused, reset, cut, timed out, no credentials."""

    message: str


class Tick(msgspec.Struct, frozen=True):
    """The wait is over."""


WatchInput: TypeAlias = Reply | TooLarge | Rewritten | Opened | Line | Closed | Silent | Broken | Tick

# --- what to do ---


class ListPage(msgspec.Struct, frozen=True):
    """Request one page; answer with `Reply`, `TooLarge` or `Broken`."""

    limit: int
    """The most objects of the page; 0 for all."""

    continue_token: str
    bound: int = PAGE_BYTES
    """The maximum size of the response."""


class Watch(msgspec.Struct, frozen=True):
    """Open a watch; answer with `Opened` and `Line`s, then `Closed`, `Silent` or `Broken`; or with `Reply`."""

    version: str
    timeout: float
    """Seconds after which the server ends it."""

    deadline: float
    """Seconds after which the client ends it in any case: a byte now and then does not show that it works."""


class Pause(msgspec.Struct, frozen=True):
    """Do nothing for `seconds`, then answer with `Tick`."""

    seconds: float
    renew_credentials: bool = False
    """The server rejected the credentials: read them again."""


Command: TypeAlias = ListPage | Watch | Pause | None
"""None: go on reading the open watch."""

# --- changes for the store ---


class Begin(msgspec.Struct, frozen=True):
    """A list begins. `restored`: the server's versions went backwards, so objects may, too."""

    version: int
    """The version of the whole list."""

    restored: bool


class Put(msgspec.Struct, frozen=True):
    """The object exists in this form. `live`: shown by the watch, not by a list."""

    item: Item
    live: bool


class Gone(msgspec.Struct, frozen=True):
    """The watch showed that the object left; `item` is its last state."""

    item: Item


class Sweep(msgspec.Struct, frozen=True):
    """The list is complete: objects that it lacked are gone."""


Change: TypeAlias = Begin | Put | Gone | Sweep


class Decision(msgspec.Struct, frozen=True):
    """The outcome of one step."""

    state: WatchState
    command: Command = None
    changes: tuple[Change, ...] = ()


# --- rules ---


def start(state: WatchState, options: WatchOptions, *, distrust: bool = False) -> Decision:
    """List from the first page, with the state so far; with `distrust` as if the server had been restored."""
    rules = _Rules(now=0.0, chance=0.0, options=options)
    return rules.open(replace(state, newest=NEWEST) if distrust else state, Listing())


def is_current(state: WatchState, *, now: float) -> bool:
    """Whether the store is up to date, apart from events in transit: not during a list, nor in the first moment of a
    watch that was opened after an error, whose first events are from the time without one.
    """
    phase = state.phase
    if not state.synced or state.error is not None or not isinstance(phase, Watching):
        return False
    return not phase.gap or (phase.opened is not None and now - phase.opened >= CATCH_UP_SECONDS)


def step(state: WatchState, event: WatchInput, *, now: float, chance: float, options: WatchOptions) -> Decision:
    """Make one decision. `now` is a monotonic clock in seconds, `chance` a uniform draw from [0, 1)."""
    rules = _Rules(now, chance, options)
    match state.phase, event:
        case Watching() as phase, (Line() | Opened() | Closed() | Silent()) as sign:
            outcome = rules.while_watching(state, phase, sign)
        case Waiting(Watching() as then), Tick() if state.error is not None:
            outcome = Decision(replace(state, phase=Confirming(then)), ListPage(1, ""))
        case (Waiting(then), Tick()) | (Confirming(then), TooLarge()):
            outcome = rules.open(state, then)
        case Confirming(then), Reply(status=200, body=body):
            outcome = rules.confirmed(state, then, body)
        case Listing() as phase, Reply(status=200, body=body):
            outcome = rules.page(state, phase, body)
        case Listing() as phase, TooLarge():
            outcome = rules.too_large(state, phase)
        case ((Confirming(request) | ((Listing() | Watching()) as request)), Reply(status, body, retry_after)):
            outcome = rules.refused(state, request, decode_failure(status, body, retry_after))
        case ((Confirming(request) | ((Listing() | Watching()) as request)), Broken(message)):
            outcome = rules.broken(state, request, message)
        case _, Rewritten():
            outcome = rules.restored(state, "the list shows older versions of objects than the store has")
        case _:
            raise AssertionError(f"{type(event).__name__} cannot happen in {type(state.phase).__name__}")
    return outcome


_REFUSALS: Final = {
    401: ErrorKind.UNAUTHORIZED,
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.MISSING,
    429: ErrorKind.THROTTLED,
}


class _Rules(msgspec.Struct, frozen=True):
    """The rules for one step, with its time and random number."""

    now: float
    chance: float
    options: WatchOptions

    def while_watching(self, state: WatchState, phase: Watching, event: Line | Opened | Closed | Silent) -> Decision:
        match event:
            case Line(data):
                return self.line(state, phase, data)
            case Opened():
                return Decision(replace(state, phase=replace(phase, opened=self.now), error=None))
            case Closed():
                return self.closed(state, phase)
            case Silent():
                return self.failed(state, Listing(), ErrorKind.SILENT, Failure(message="the watch fell silent"))

    def open(self, state: WatchState, phase: Asking) -> Decision:
        if isinstance(phase, Listing):
            limit = 0 if phase.whole else state.limit
            bound = PAGE_BYTES if limit > 1 else WHOLE_BYTES
            return Decision(replace(state, phase=phase), ListPage(limit, phase.continue_token, bound))
        shortest, longest = self.options.timeout
        timeout = float(round(shortest + self.chance * (longest - shortest)))
        fresh = Watching(phase.version, gap=phase.gap)
        return Decision(replace(state, phase=fresh), Watch(phase.version, timeout, timeout + self.options.grace))

    def page(self, state: WatchState, phase: Listing, body: bytes) -> Decision:
        try:
            page = decode_page(body)
        except UNREADABLE as error:
            return self.garbage(state, Listing(), f"the list could not be decoded: {error}")
        version = version_number(page.version)
        changes: list[Change] = [Put(item, live=False) for item in page.items]
        if not phase.continue_token:
            changes.insert(0, Begin(version, restored=version < state.newest))
            state = replace(state, newest=max(state.newest, version))
        if page.continue_token and page.continue_token == phase.continue_token:
            outcome = self.garbage(state, Listing(), "the pages go in a circle")
        elif page.continue_token and not page.items:
            outcome = self.garbage(state, Listing(page.continue_token), "the page is empty and not the last one")
        else:
            if 4 * len(body) < PAGE_BYTES:
                state = replace(state, limit=min(2 * state.limit, self.options.page_size))
            state = replace(state, error=None, resumes=0)
            if page.continue_token:
                outcome = self.open(state, Listing(page.continue_token))
            else:
                # The store is complete as of this version: watch from there.
                state = replace(state, synced=True, version=version, newest=version, last_event=self.now, expired=0)
                outcome = self.open(state, Watching(page.version))
                changes.append(Sweep())
        return replace(outcome, changes=tuple(changes))

    def too_large(self, state: WatchState, phase: Listing) -> Decision:
        """Request fewer objects; without a wait, as this happens only a few times in a row."""
        if phase.whole or state.limit == 1:
            number = "all objects" if phase.whole else "one object"
            error = f"a list of {number} has more than {WHOLE_BYTES} bytes"
            return self.garbage(replace(state, expired=0), Listing(), error)
        return self.open(replace(state, limit=max(state.limit // SMALLER, 1)), phase)

    def line(self, state: WatchState, phase: Watching, data: bytes) -> Decision:
        try:
            kind, raw = decode_event(data)
            if kind == "ERROR":
                return self.refused(state, phase, decode_failure(0, raw))
            if kind not in EVENT_TYPES:
                return Decision(replace(state, last_event=self.now))
            item = None if kind == "BOOKMARK" else decode_item(raw, of=state.of)
            version = decode_bookmark(raw).resource_version if item is None else item.meta.resource_version
        except UNREADABLE as error:
            return self.garbage(state, self.resumed(state, phase), f"an event could not be decoded: {error}")
        number = version_number(version)
        newer = phase.moved or number > state.version
        moved = replace(
            state,
            phase=replace(phase, version=version or phase.version, moved=newer),
            last_event=self.now,
            version=max(state.version, number),
            newest=max(state.newest, number),
            resumes=0,
        )
        if item is None:
            return Decision(moved)
        return Decision(moved, None, (Gone(item) if kind == "DELETED" else Put(item, live=True),))

    def closed(self, state: WatchState, phase: Watching) -> Decision:
        opened = self.now if phase.opened is None else phase.opened
        if self.now - state.last_event >= self.options.deaf_after:
            failure = Failure(message=f"no event or bookmark came for {self.now - state.last_event:.0f} s")
            return self.failed(state, Listing(), ErrorKind.SILENT, failure)
        if not phase.moved and self.now - opened < SHORT_WATCH_SECONDS:
            failure = Failure(message="the server ended the watch at once")
            return self.failed(state, self.resumed(state, phase), ErrorKind.SHORT, failure)
        watches = max(state.watches, self.now - WATCHES_AT_ONCE) + SHORT_WATCH_SECONDS
        state = replace(state, watches=watches)
        if watches > self.now:
            return Decision(replace(state, phase=Waiting(phase)), Pause(watches - self.now))
        return self.open(state, phase)

    def confirmed(self, state: WatchState, then: Watching, body: bytes) -> Decision:
        """The server named its version: check that ours is not ahead of it."""
        try:
            version = version_number(decode_page(body).version)
        except UNREADABLE as error:
            return self.garbage(state, self.resumed(state, then), f"the list could not be decoded: {error}")
        if version < state.newest:
            return self.restored(state, f"the server is at version {version}, and was at {state.newest}")
        return self.open(state, then)

    def restored(self, state: WatchState, message: str) -> Decision:
        """List everything again, and report any version as a restored server's: it may pass ours before the list."""
        return self.failed(replace(state, newest=NEWEST), Listing(), ErrorKind.EXPIRED, Failure(message=message))

    def broken(self, state: WatchState, phase: Asking, message: str) -> Decision:
        if isinstance(phase, Listing):
            # The page may have been too large for the deadline.
            state = replace(state, limit=max(state.limit // 2, 1))
        return self.failed(state, self.resumed(state, phase), ErrorKind.UNREACHABLE, Failure(message=message))

    def resumed(self, state: WatchState, phase: Asking) -> Asking:
        """The phase to resume after an error: the same one, unless it failed too often."""
        if state.resumes + 1 >= RESUMES_BEFORE_RELIST:
            return Listing()
        return replace(phase, gap=True) if isinstance(phase, Watching) else phase

    def refused(self, state: WatchState, phase: Asking, failure: Failure) -> Decision:
        if failure.code == 410 or failure.reason in ("Expired", "Gone"):
            if isinstance(phase, Listing) and phase.continue_token:
                state = replace(state, expired=state.expired + 1)
            whole = state.expired >= EXPIRED_BEFORE_WHOLE
            return self.failed(state, Listing(whole=whole), ErrorKind.EXPIRED, failure)
        kind = _REFUSALS.get(failure.code, ErrorKind.SERVER)
        if failure.code == 405 and isinstance(phase, Watching):
            failure = replace(failure, message=f"{failure.message}; {UNWATCHED}")
        if isinstance(phase, Listing) and phase.continue_token and failure.code in (400, 422):
            # The server refuses the token and always will.
            return self.failed(state, Listing(), kind, failure)
        # A CRD that is missing or forbidden may be a different one when it is back: list it.
        vanished = kind in (ErrorKind.MISSING, ErrorKind.FORBIDDEN)
        return self.failed(state, Listing() if vanished else self.resumed(state, phase), kind, failure)

    def garbage(self, state: WatchState, then: Asking, message: str) -> Decision:
        return self.failed(state, then, ErrorKind.GARBAGE, Failure(200, "", message))

    def failed(self, state: WatchState, then: Asking, kind: ErrorKind, failure: Failure) -> Decision:
        verb = "list" if isinstance(state.phase, Listing | Confirming) else "watch"
        failures = 1 if self.now - state.failed_at > QUIET_SECONDS else state.failures + 1
        # A list that starts from the first page resumes nothing.
        resumes = 0 if then == Listing() else state.resumes + 1
        since = state.error.since if state.error is not None else self.now
        wait = self.options.backoff.delay(failures, chance=self.chance)
        if failure.retry_after is not None:
            # Never sooner than the server asked for, plus jitter.
            wait = max(wait, min(failure.retry_after, LONGEST_ADVICE_SECONDS) * (1 + 0.25 * self.chance))
        failed = replace(
            state,
            phase=Waiting(then),
            failures=failures,
            resumes=resumes,
            error=StreamError(kind, verb, failure.code, failure.message, since),
            failed_at=self.now,
        )
        return Decision(failed, Pause(wait, renew_credentials=kind is ErrorKind.UNAUTHORIZED))
