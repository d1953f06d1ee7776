"""Watch: the rules of following one kind: list it in pages, watch from there, resume, start over when that is needed.

`step` makes every decision: a state and something that happened in; a state, one command and the changes for the store
out. The shell that talks to the server is `bonny.servers.reflector`.

    Listing --page, more to come--> Listing      Watching --event, bookmark--> Watching
    Listing --last page-----------> Watching     Watching --closed-----------> Watching (resumes where it was)
    Watching --410, deaf----------> Waiting --> Listing
    any --trouble-----------------> Waiting --> where it was

Rules worth knowing:
- The first list, like every list, carries no resourceVersion: the answer is the newest state, never a stale cache.
- What the store holds is served while a list is under way; keys that the complete list lacks are swept at its end.
- A stream that ended without a word in all its time is listed anew: a server that was restored from a backup keeps a
  watch with a version of its future open and silent.
- Only progress is followed by a request at once: a page with objects and a new token, a watch that moved the version or
  lasted a second. Everything else waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from ..errors import OptionError
from .backoff import Backoff
from .objects import (
    UNREADABLE,
    Failure,
    Item,
    decode_bookmark,
    decode_event,
    decode_failure,
    decode_item,
    decode_page,
    version_number,
)

__all__ = [
    "Begin",
    "Broken",
    "Change",
    "Closed",
    "Command",
    "Event",
    "Gone",
    "Heard",
    "Line",
    "List",
    "Listing",
    "Put",
    "Reply",
    "Silent",
    "State",
    "Step",
    "Stream",
    "Sweep",
    "Tick",
    "Trouble",
    "TroubleKind",
    "Wait",
    "Waiting",
    "Watch",
    "WatchOptions",
    "Watching",
    "start",
    "step",
]

# The page size of client-go (tools/pager): larger pages cost the API server memory, smaller ones round trips.
LIST_PAGE: Final = 500
# Load balancers cut idle flows after 240 s (Azure) to 350 s (AWS); a watch ends itself before that.
WATCH_SECONDS: Final = (200.0, 230.0)
# Time for a slow answer to reach us after the server's own end of the watch.
WATCH_GRACE_SECONDS: Final = 15.0
# Bookmarks come about once a minute. A stream that heard nothing for longer than this is deaf, not quiet.
DEAF_SECONDS: Final = 150.0
# client-go calls a watch that ended within a second without any event "very short" and backs off.
SHORT_WATCH_SECONDS: Final = 1.0
# client-go's reflector: 0.8 s to 30 s, reset after two quiet minutes.
BACKOFF: Final = Backoff(base=0.8, cap=30.0)
QUIET_SECONDS: Final = 120.0
# The API server itself asks for 1 s. A proxy that asks for hours must not silence a stream for longer than the probes
# wait for a sign of it (300 s, bonny.operator).
LONGEST_ADVICE_SECONDS: Final = 120.0
# A resumed watch that fails this often without delivering anything is listed anew: its version may be the reason.
RESUMES_BEFORE_RELIST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How one kind is followed. Times are seconds."""

    page_size: int = LIST_PAGE
    """Objects a page. Default 500, as client-go."""

    timeout: tuple[float, float] = WATCH_SECONDS
    """The server ends a watch after a time drawn from this range. Default 200 to 230 s."""

    grace: float = WATCH_GRACE_SECONDS
    """So much longer than that the client waits in silence before it gives a watch up. Default 15 s."""

    deaf_after: float = DEAF_SECONDS
    """A watch that lasted this long and delivered nothing at all is followed by a list. Default 150 s."""

    backoff: Backoff = BACKOFF
    """Waits after trouble. Default 0.8 s to 30 s."""

    def __post_init__(self) -> None:
        if self.page_size < 1:
            raise OptionError(
                f"WatchOptions.page_size is {self.page_size}: use 1 or more, or leave it out for {LIST_PAGE}"
            )
        if not 1 <= self.timeout[0] <= self.timeout[1]:
            raise OptionError(f"WatchOptions.timeout is {self.timeout}: use a range of seconds from 1 up")


class TroubleKind(StrEnum):
    """Why a stream is not following. The values are label values of metrics."""

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


@dataclass(frozen=True, slots=True)
class Trouble:
    """The last thing that went wrong on a stream, until it works again."""

    kind: TroubleKind
    verb: str
    status: int
    message: str
    since: float


# --- states -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listing:
    """A page was asked for. `continue_token` is empty for the first one."""

    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Watching:
    """A watch from `version` is being opened (`opened` is None) or open."""

    version: str
    opened: float | None = None
    heard: float | None = None
    """When the last event or bookmark of this watch came."""

    moved: bool = False
    """Whether this watch brought a newer version."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is under way until a `Tick`; then `then` is taken up again."""

    then: Listing | Watching


State: TypeAlias = Listing | Watching | Waiting


@dataclass(frozen=True, slots=True)
class Stream:
    """All that is remembered of one stream between two steps."""

    state: State
    of: tuple[str, str] | None = None
    """API version and kind of what the watch may show; None: it is not looked at."""

    synced: bool = False
    """A complete list was stored once; stays true."""

    version: int = 0
    """The newest version that the store is known to hold. Falls only when the server's own versions fell."""

    told: int = 0
    """The newest version that the server named; above `version` while pages of a list, perhaps given up, are stored."""

    failures: int = 0
    resumes: int = 0
    trouble: Trouble | None = None
    troubled: float = float("-inf")
    """When the last trouble came, for the reset after quiet minutes."""


# --- what can happen --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP answer: a page, or the refusal of a list or watch."""

    status: int
    body: bytes
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """The server accepted the watch: headers with status 200 came."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the open watch."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The server ended the watch."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing came until the client's own deadline, which lies behind the server's."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection could not be made or broke: refused, reset, cut, timed out, no credentials."""

    message: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The wait is over."""


Event: TypeAlias = Reply | Heard | Line | Closed | Silent | Broken | Tick

# --- what to do -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class List:
    """Ask for one page; answer with `Reply` or `Broken`."""

    limit: int
    continue_token: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Open a watch; answer with `Heard` and `Line`s, then `Closed`, `Silent` or `Broken`; or with `Reply`."""

    version: str
    timeout: float
    """Seconds after which the server ends it."""

    deadline: float
    """Seconds of silence after which the client gives it up."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so long, then answer with `Tick`."""

    seconds: float
    renew_credentials: bool = False
    """The server did not accept who we are: read the credentials again."""


Command: TypeAlias = List | Watch | Wait | None
"""None: go on reading the open watch."""

# --- changes for the store --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The first page of a list came. `restored`: the server's versions fell, so "never backwards" does not hold."""

    version: int
    """The version that the whole list shows."""

    restored: bool


@dataclass(frozen=True, slots=True)
class Put:
    """The object exists in this form. `live`: said by the watch, not by a list."""

    item: Item
    live: bool


@dataclass(frozen=True, slots=True)
class Gone:
    """The watch says that the object left; `item` is its last state."""

    item: Item


@dataclass(frozen=True, slots=True)
class Sweep:
    """The list is complete: what it lacked is gone."""


Change: TypeAlias = Begin | Put | Gone | Sweep


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one step."""

    stream: Stream
    command: Command = None
    changes: tuple[Change, ...] = ()


# --- rules ------------------------------------------------------------------------------------------------------------


def start(options: WatchOptions, *, of: tuple[str, str] | None = None) -> Step:
    """The first state and command of a stream, whose events show objects `of` this API version and kind."""
    return Step(Stream(Listing(), of), List(options.page_size, ""))


def step(stream: Stream, event: Event, *, now: float, chance: float, options: WatchOptions) -> Step:
    """Make one decision. `now` is a monotonic clock in seconds, `chance` a uniform draw from [0, 1)."""
    rules = _Rules(now, chance, options)
    match stream.state, event:
        case Watching() as state, Line(data):
            return rules.line(stream, state, data)
        case Watching() as state, Heard():
            return Step(replace(stream, state=replace(state, opened=now, heard=None), trouble=None))
        case Watching() as state, Closed():
            return rules.closed(stream, state)
        case Watching() as state, Silent():
            return rules.trouble(stream, Listing(), TroubleKind.SILENT, Failure(message="the watch fell silent"))
        case Listing() as state, Reply(status=200, body=body):
            return rules.page(stream, state, body)
        case (Listing() | Watching()) as state, Reply(status, body, retry_after):
            return rules.refused(stream, state, decode_failure(status, body, retry_after))
        case (Listing() | Watching()) as state, Broken(message):
            return rules.trouble(
                stream, rules.resumed(stream, state), TroubleKind.UNREACHABLE, Failure(message=message)
            )
        case Waiting(then), Tick():
            return rules.open(stream, then)
    raise AssertionError(f"{type(event).__name__} cannot happen in {type(stream.state).__name__}")


_REFUSALS: Final = {
    401: TroubleKind.UNAUTHORIZED,
    403: TroubleKind.FORBIDDEN,
    404: TroubleKind.MISSING,
    429: TroubleKind.THROTTLED,
}


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules for one step, with its time and chance at hand."""

    now: float
    chance: float
    options: WatchOptions

    def open(self, stream: Stream, state: Listing | Watching) -> Step:
        if isinstance(state, Listing):
            return Step(replace(stream, state=state), List(self.options.page_size, state.continue_token))
        shortest, longest = self.options.timeout
        timeout = float(round(shortest + self.chance * (longest - shortest)))
        fresh = Watching(state.version)
        return Step(replace(stream, state=fresh), Watch(state.version, timeout, timeout + self.options.grace))

    def page(self, stream: Stream, state: Listing, body: bytes) -> Step:
        try:
            page = decode_page(body)
        except UNREADABLE as error:
            failure = Failure(200, "", f"the list could not be decoded: {error}")
            return self.trouble(stream, Listing(), TroubleKind.GARBAGE, failure)
        changes: list[Change] = []
        if not state.continue_token:
            version = version_number(page.version)
            changes.append(Begin(version, restored=version < stream.told))
            stream = replace(stream, told=max(stream.told, version))
        changes += [Put(item, live=False) for item in page.items]
        if page.continue_token == state.continue_token != "":
            failure = Failure(200, "", "the page asks for itself as the next one")
            return replace(self.trouble(stream, Listing(), TroubleKind.GARBAGE, failure), changes=tuple(changes))
        if page.continue_token and not page.items:
            failure = Failure(200, "", "the page is empty and not the last one")
            then = Listing(page.continue_token)
            return replace(self.trouble(stream, then, TroubleKind.GARBAGE, failure), changes=tuple(changes))
        if page.continue_token:
            return Step(
                replace(stream, state=Listing(page.continue_token), trouble=None),
                List(self.options.page_size, page.continue_token),
                tuple(changes),
            )
        changes.append(Sweep())
        version = version_number(page.version)
        complete = replace(stream, synced=True, version=version, told=version, trouble=None, resumes=0)
        opened = self.open(complete, Watching(page.version))
        return replace(opened, changes=tuple(changes))

    def line(self, stream: Stream, state: Watching, data: bytes) -> Step:
        try:
            kind, raw = decode_event(data)
            if kind == "ERROR":
                return self.refused(stream, state, decode_failure(0, raw))
            if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                return Step(replace(stream, state=replace(state, heard=self.now)))
            item = None if kind == "BOOKMARK" else decode_item(raw, of=stream.of)
            version = decode_bookmark(raw) if item is None else item.meta.resource_version
        except UNREADABLE as error:
            failure = Failure(200, "", f"an event could not be decoded: {error}")
            return self.trouble(stream, self.resumed(stream, state), TroubleKind.GARBAGE, failure)
        number = version_number(version)
        newer = state.moved or number > stream.version
        moved = replace(
            stream,
            state=Watching(version or state.version, state.opened, self.now, newer),
            version=max(stream.version, number),
            told=max(stream.told, number),
            resumes=0,
        )
        if item is None:
            return Step(moved)
        return Step(moved, None, (Gone(item) if kind == "DELETED" else Put(item, live=True),))

    def closed(self, stream: Stream, state: Watching) -> Step:
        opened = self.now if state.opened is None else state.opened
        if state.heard is None and self.now - opened >= self.options.deaf_after:
            failure = Failure(message="the watch ended without a single event or bookmark")
            return self.trouble(stream, Listing(), TroubleKind.SILENT, failure)
        if not state.moved and self.now - opened < SHORT_WATCH_SECONDS:
            failure = Failure(message="the server ended the watch at once")
            return self.trouble(stream, self.resumed(stream, state), TroubleKind.SHORT, failure)
        return self.open(stream, state)

    def resumed(self, stream: Stream, state: Listing | Watching) -> Listing | Watching:
        """Where to go on after trouble: the same place, unless a watch failed there too often."""
        if isinstance(state, Watching) and stream.resumes + 1 >= RESUMES_BEFORE_RELIST:
            return Listing()
        return state

    def refused(self, stream: Stream, state: Listing | Watching, failure: Failure) -> Step:
        if failure.code == 410 or failure.reason in ("Expired", "Gone"):
            return self.trouble(stream, Listing(), TroubleKind.EXPIRED, failure)
        kind = _REFUSALS.get(failure.code, TroubleKind.SERVER)
        # A kind that vanished, or that we may not see, can be another one when it is back: list it.
        again: Listing | Watching = Listing()
        if kind not in (TroubleKind.MISSING, TroubleKind.FORBIDDEN):
            again = self.resumed(stream, state)
        return self.trouble(stream, again, kind, failure)

    def trouble(self, stream: Stream, then: Listing | Watching, kind: TroubleKind, failure: Failure) -> Step:
        verb = "list" if isinstance(stream.state, Listing) else "watch"
        failures = 1 if self.now - stream.troubled > QUIET_SECONDS else stream.failures + 1
        resumes = stream.resumes + 1 if isinstance(then, Watching) else 0
        since = stream.trouble.since if stream.trouble is not None else self.now
        wait = self.options.backoff.delay(failures, chance=self.chance)
        if failure.retry_after is not None:
            # Never sooner than asked, and not all at the same moment.
            wait = max(wait, min(failure.retry_after, LONGEST_ADVICE_SECONDS) * (1 + 0.25 * self.chance))
        troubled = replace(
            stream,
            state=Waiting(then),
            failures=failures,
            resumes=resumes,
            trouble=Trouble(kind, verb, failure.code, failure.message, since),
            troubled=self.now,
        )
        return Step(troubled, Wait(wait, renew_credentials=kind is TroubleKind.UNAUTHORIZED))
