"""The rules of following one kind: every state meets everything that can happen in it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core import watch
from bonny.core.store import Store
from bonny.core.watch import (
    CATCH_UP_SECONDS,
    LIST_PAGE,
    NEWEST,
    PAGE_BYTES,
    WATCHES_AT_ONCE,
    WHOLE_BYTES,
    Begin,
    Broken,
    Closed,
    Command,
    ErrorKind,
    Gone,
    Line,
    Listing,
    ListPage,
    Opened,
    Pause,
    Put,
    Reply,
    Rewritten,
    Silent,
    Sweep,
    Tick,
    TooLarge,
    Waiting,
    Watch,
    Watching,
    WatchInput,
    WatchOptions,
)
from bonny.errors import OptionError
from bonny.resource import Key
from tests.support.core import Led, bookmark, item, line, page, status, thing, watching

EXPIRED = msgspec.json.encode(status(410, "Expired", "too old resource version"))
DEEP = b'{"type":"ADDED","object":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001


def refused(code: int, body: bytes = b"no", retry_after: float | None = None) -> Reply:
    return Reply(code, body, retry_after)


def error_event(code: int, reason: str = "", *, retry_after: int | None = None) -> Line:
    return Line(line("ERROR", status(code, reason, retry_after=retry_after)))


# --- lists ------------------------------------------------------------------------------------------------------------


def test_the_first_request_is_a_list_without_a_token() -> None:
    assert Led(WatchOptions(page_size=50)).command == ListPage(50, "")


def test_a_list_in_one_page_is_stored_swept_and_watched_from_its_version() -> None:
    led = Led(WatchOptions(timeout=(200, 230)), chance=0.5)

    led.lists(thing("a"), thing("b"), version=42)

    begin, a, b, sweep = led.changes
    assert (begin, sweep) == (Begin(42, restored=False), Sweep())
    assert [(put.item.key.name, put.live) for put in (a, b) if isinstance(put, Put)] == [("a", False), ("b", False)]
    assert led.command == Watch("42", 215.0, 230.0)
    assert (led.state.synced, led.state.version) == (True, 42)


def test_pages_follow_each_other_at_once_and_only_the_last_one_sweeps() -> None:
    led = Led()

    led.tell(Reply(200, page(thing("a"), version=42, token="t1")))
    assert (led.command, led.state.synced, led.state.version) == (ListPage(500, "t1"), False, 0)

    led.tell(Reply(200, page(thing("b"), version=42, token="t2")))
    assert led.command == ListPage(500, "t2")

    led.tell(Reply(200, page(thing("c"), version=42)))
    assert (type(led.command), led.state.synced, led.state.version) == (Watch, True, 42)
    assert [type(change) for change in led.changes] == [Begin, Put, Put, Put, Sweep]


def test_a_token_that_expired_starts_the_list_anew_after_a_wait() -> None:
    led = Led()
    led.tell(Reply(200, page(thing("a"), token="t1")), refused(410, EXPIRED))
    assert led.state.error is not None
    assert (led.state.error.kind, led.state.error.verb) == (ErrorKind.EXPIRED, "list")

    led.waits_out()

    assert led.command == ListPage(500, "")
    assert Sweep() not in led.changes


@pytest.mark.parametrize(("event", "limit"), [(Broken("reset"), 250), (refused(500), 500), (refused(429), 500)])
def test_a_list_that_breaks_goes_on_with_the_same_page(event: WatchInput, limit: int) -> None:
    """And with fewer objects where the deadline may have been too short for what they weigh."""
    led = Led()
    led.tell(Reply(200, page(thing("a"), token="t1")), event)

    led.waits_out()

    assert led.command == ListPage(limit, "t1")


@pytest.mark.parametrize(("code", "asked"), [(400, 1), (422, 1), (401, 3), (500, 3), (503, 3)])
def test_a_token_that_is_refused_again_and_again_is_given_up(code: int, asked: int) -> None:
    """Regression: it was sent for ever, and the kind never followed again."""
    led = Led()
    led.tell(Reply(200, page(thing("a"), token="t1")))

    commands = []
    for _ in range(asked):
        led.tell(refused(code, msgspec.json.encode(status(code, "", "continue key is not valid"))))
        commands.append(led.command)
        led.waits_out()

    assert all(isinstance(command, Pause) for command in commands)
    assert led.command == ListPage(500, "")


REMEDY = (
    "an API that computes its objects when they are read, such as metrics.k8s.io, cannot be watched: read it with "
    "`axn.client.get`, and again after `axn.requeue_after`"
)


def test_an_api_that_cannot_be_watched_is_named_with_the_remedy() -> None:
    """Regression: the controller never started, and the reason was "garbage"."""
    led = Led()
    led.tell(Reply(200, b'{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[]}'))

    assert led.state.error is not None
    assert led.state.error.message == f"the list could not be decoded: it has no resourceVersion; {REMEDY}"

    led.waits_out()
    led.lists(thing("a"), version=42)
    led.tell(refused(405, msgspec.json.encode(status(405, "MethodNotAllowed", "not allowed"))))

    assert led.state.error is not None
    assert (led.state.error.verb, led.state.error.message) == ("watch", f"not allowed; {REMEDY}")


def expires(led: Led, times: int) -> None:
    """Let the token of the second page expire in that many lists."""
    for _ in range(times):
        led.tell(Reply(200, page(thing("a"), token="t1")), refused(410, EXPIRED))
        led.waits_out()


def test_after_three_lists_whose_tokens_expired_all_objects_are_listed_at_once() -> None:
    """Regression: one first page followed the other for ever, and the kind never was in sync."""
    led = Led()
    expires(led, 2)
    assert led.command == ListPage(500, "")

    expires(led, 1)
    assert led.command == ListPage(0, "", bound=WHOLE_BYTES)

    led.tell(Reply(200, page(*(thing(f"w{number}") for number in range(3)), version=42)))
    assert led.state.synced
    # The next list is read in pages again.
    led.tell(Opened(), error_event(410))
    led.waits_out()
    assert led.command == ListPage(500, "")


def test_lists_that_were_complete_in_between_are_not_counted() -> None:
    led = Led()
    for _ in range(4):
        expires(led, 2)
        led.tell(Reply(200, page(thing("a"), version=42)))
        led.tell(Opened(), error_event(410))
        led.waits_out()

        assert led.command == ListPage(500, "")


def test_a_first_page_or_a_watch_that_is_refused_with_410_does_not_count_as_an_expired_token() -> None:
    led = Led()
    for _ in range(10):
        led.tell(refused(410, EXPIRED))
        led.waits_out()

    assert led.command == ListPage(500, "")


def test_all_objects_at_once_that_are_too_large_lead_back_to_pages() -> None:
    led = Led()
    expires(led, 3)

    led.tell(TooLarge())

    assert led.state.error is not None
    assert led.state.error.message == f"a list of all objects has more than {WHOLE_BYTES} bytes"
    led.waits_out()
    assert led.command == ListPage(500, "")
    expires(led, 2)
    assert led.command == ListPage(500, "")


def test_a_request_for_all_objects_that_breaks_again_and_again_leads_back_to_pages() -> None:
    led = Led()
    expires(led, 3)
    tries = 0
    while led.command == ListPage(0, "", bound=WHOLE_BYTES):
        led.tell(Broken("the answer took too long"))
        led.waits_out()
        tries += 1

    assert 1 <= tries <= 3
    assert isinstance(led.command, ListPage)


def test_each_page_that_comes_gives_its_token_three_tries_of_its_own() -> None:
    led = Led()
    for number in range(6):
        led.tell(Reply(200, page(thing(f"w{number}"), token=f"t{number}")), refused(503), after=1.0)
        led.waits_out()
        assert led.command == ListPage(500, f"t{number}")


def test_a_page_that_is_too_large_is_asked_for_at_once_with_fewer_objects() -> None:
    led = Led()

    asked = [led.tell(TooLarge()).command for _ in range(3)]

    assert asked == [ListPage(62, ""), ListPage(7, ""), ListPage(1, "", bound=WHOLE_BYTES)]
    assert led.state.error is None


def test_a_server_that_does_not_care_for_the_limit_is_listed_with_a_larger_bound() -> None:
    """Regression: an aggregated API that answers with all that it has, and more than 8 MiB, was never listed."""
    led = Led()
    led.tell(TooLarge(), TooLarge())

    assert led.tell(TooLarge()).command == ListPage(1, "", bound=WHOLE_BYTES)

    led.tell(Reply(200, page(thing("a"), thing("b"))))
    assert led.state.synced


def test_a_list_beyond_every_bound_is_an_error_and_is_requested_again_after_growing_waits() -> None:
    """Regression: the last request had no bound, and a compressed answer of 600 MB was read into memory."""
    led = Led(chance=0.999)
    waits = []
    for _ in range(4):
        for _ in range(10):
            if isinstance(led.command, ListPage):
                assert led.command.bound <= WHOLE_BYTES
                led.tell(TooLarge())
        assert isinstance(led.command, Pause)
        assert led.state.error is not None
        assert (led.state.error.kind, led.state.error.verb) == (ErrorKind.GARBAGE, "list")
        waits.append(led.command.seconds)
        led.waits_out()
        assert led.command == ListPage(1, "", bound=WHOLE_BYTES)

    assert waits == sorted(set(waits))


def test_small_pages_grow_again_up_to_the_page_size() -> None:
    led = Led(WatchOptions(page_size=20))
    led.tell(TooLarge())

    asked = [led.tell(Reply(200, page(thing(f"w{n}"), token=f"t{n}"))).command for n in range(5)]

    assert asked == [ListPage(4, "t0"), ListPage(8, "t1"), ListPage(16, "t2"), ListPage(20, "t3"), ListPage(20, "t4")]


def test_pages_begin_with_500_objects_and_grow_while_they_are_small() -> None:
    led = Led(WatchOptions())
    asked = [led.command, *(led.tell(Reply(200, page(thing(f"w{n}"), token=f"t{n}"))).command for n in range(3))]
    assert asked == [ListPage(500, ""), ListPage(1000, "t0"), ListPage(2000, "t1"), ListPage(2000, "t2")]

    led = Led(WatchOptions())
    quarter = page(thing("w", pad="x" * (PAGE_BYTES // 4)), token="t")
    assert led.tell(Reply(200, quarter)).command == ListPage(500, "t")


def test_a_page_that_is_nearly_too_large_is_followed_by_one_of_its_size() -> None:
    led = Led()
    led.tell(TooLarge(), TooLarge())

    led.tell(Reply(200, page(thing("w", pad="x" * (PAGE_BYTES // 3)), token="t1")))

    assert led.command == ListPage(7, "t1")


def test_a_history_that_was_rewritten_and_has_overtaken_us_is_taken_over() -> None:
    led = Led()
    store = Store()
    led.lists(thing("a", version=90, note="lost"), version=100)
    led.tell(Opened(), Silent())
    led.waits_out()
    # Restored from a backup that has "a" at 40; others have written since, so the newest version is no older one.
    led.lists(thing("a", version=40, note="restored"), version=120)
    for change in led.changes:
        list(store.apply(change))

    assert store.get(Key("default", "a")) == item("a", version=40, note="restored")


@pytest.mark.parametrize("event", [refused(403), refused(404, b"404 page not found"), Reply(200, b'{"metadata":{}}')])
def test_a_list_that_is_refused_or_unreadable_starts_with_the_first_page(event: WatchInput) -> None:
    led = Led()
    led.tell(Reply(200, page(thing("a"), token="t1")), event)

    led.waits_out()

    assert led.command == ListPage(500, "")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"<html/>", msgspec.json.encode(status(500)), page(thing("a"))[:-1], DEEP]
)
def test_a_page_that_is_no_list_changes_nothing_in_the_store(body: bytes) -> None:
    """Regression: a Status with code 200 swept the whole store; a deeply nested object ended the stream."""
    led = Led()

    led.tell(Reply(200, body))

    assert (led.changes, led.state.synced, type(led.command)) == ([], False, Pause)
    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.GARBAGE


def test_a_page_that_continues_with_itself_does_not_spin() -> None:
    """Regression: a server that always answers with the same token was asked without a pause."""
    led = Led()
    led.tell(Reply(200, page(thing("a"), token="t1")))

    led.tell(Reply(200, page(thing("b"), token="t1")))

    assert isinstance(led.command, Pause)
    led.waits_out()
    assert led.command == ListPage(500, "")


def test_an_empty_page_that_is_not_the_last_one_is_followed_after_a_wait() -> None:
    """Regression: empty pages with ever new tokens were fetched without a pause."""
    led = Led()

    led.tell(Reply(200, page(token="t1", version=42)))

    assert (led.changes, type(led.command)) == ([Begin(42, restored=False)], Pause)
    led.waits_out()
    assert led.command == ListPage(500, "t1")


def test_versions_that_fell_are_told_before_any_object() -> None:
    """A server that was restored from a backup."""
    led = watching()
    led.tell(Line(line("ADDED", thing("a", version=90))), Silent())
    led.waits_out()
    led.changes.clear()

    led.lists(thing("a", version=20), version=30)

    assert led.changes[0] == Begin(30, restored=True)
    assert led.state.version == 30
    led.tell(Opened(), Silent())
    led.waits_out()
    led.changes.clear()
    led.lists(version=30)
    assert led.changes[0] == Begin(30, restored=False)


def test_versions_that_fell_below_those_of_a_list_that_was_given_up_are_told() -> None:
    """Regression: only complete lists counted, and what the first page had brought was kept for ever."""
    led = watching()
    led.tell(refused(410))
    led.waits_out()
    led.tell(Reply(200, page(thing("a", version=55), version=60, token="t1")), refused(410))
    led.waits_out()
    led.changes.clear()

    led.lists(thing("a", version=5), version=30)

    assert led.changes[0] == Begin(30, restored=True)


def test_versions_that_fell_are_told_again_when_the_list_starts_over() -> None:
    led = watching()
    led.tell(Line(line("ADDED", thing("a", version=90))), refused(410))
    led.waits_out()
    for _ in range(2):
        led.changes.clear()
        led.tell(Reply(200, page(thing("b", version=5), version=30, token="t1")))
        assert led.changes[0] == Begin(30, restored=True)
        led.tell(refused(410))
        led.waits_out()


def test_servers_whose_versions_are_no_numbers_are_never_thought_restored() -> None:
    led = Led()
    for _ in range(2):
        led.tell(Reply(200, page(version="abc")))
        assert isinstance(led.command, Watch)
        assert led.command.version == "abc"
        led.tell(Opened(), error_event(410))
        led.waits_out()

    assert [change for change in led.changes if change == Begin(0, restored=True)] == []


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_event_is_stored_as_live_and_moves_the_version(kind: str) -> None:
    led = watching()
    led.changes.clear()

    led.tell(Line(line(kind, thing("a", version=11))))

    (put,) = led.changes
    assert isinstance(put, Put)
    assert (put.item.key.name, put.live, led.state.version, led.command) == ("a", True, 11, None)


def test_a_deletion_comes_with_the_last_state() -> None:
    led = watching()
    led.changes.clear()

    led.tell(Line(line("DELETED", thing("a", version=12, spec={"size": 3}))))

    (gone,) = led.changes
    assert isinstance(gone, Gone)
    assert (gone.item.decode()["spec"], led.state.version) == ({"size": 3}, 12)


def test_a_bookmark_moves_the_version_even_when_no_object_follows() -> None:
    led = watching()
    led.changes.clear()
    led.tell(Line(bookmark(99)), after=60)

    led.tell(Closed(), after=140)

    assert (led.changes, led.state.version) == ([], 99)
    assert isinstance(led.command, Watch)
    assert led.command.version == "99"


@pytest.mark.parametrize("data", [bookmark(""), line("BOOKMARK", {"metadata": {}})])
def test_a_bookmark_without_a_version_is_only_a_sign_of_life(data: bytes) -> None:
    led = watching()

    led.tell(Line(data), after=60)
    led.tell(Closed(), after=140)

    assert isinstance(led.command, Watch)
    assert led.command.version == "10"


def test_an_event_of_an_unknown_type_is_only_a_sign_of_life() -> None:
    led = watching()
    led.changes.clear()

    led.tell(Line(line("RENAMED", {"what": "ever"})), after=60)
    led.tell(Closed(), after=140)

    assert (led.changes, led.state.version) == ([], 10)
    assert isinstance(led.command, Watch)
    assert led.command.version == "10"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"garbage", id="text"),
        pytest.param(b"{}", id="empty"),
        pytest.param(b'{"type":"ADDED"}', id="no object"),
        pytest.param(line("ADDED", {"metadata": {}}), id="no name"),
        pytest.param(line("BOOKMARK", {}), id="no metadata"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', id="not UTF-8"),
        pytest.param(DEEP, id="deep"),
    ],
)
def test_a_garbage_line_ends_the_watch_which_goes_on_from_the_last_good_one(data: bytes) -> None:
    led = watching()

    led.tell(Line(line("ADDED", thing("a", version=11))), Line(data))

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.GARBAGE
    led.waits_out()
    assert isinstance(led.command, Watch)
    assert led.command.version == "11"


def test_an_object_of_another_kind_is_garbage() -> None:
    """Regression: it was stored and handled as if it were of ours."""
    led = watching()
    led.state = watch.WatchState(of=("example.com/v1", "Widget"))
    led.lists(version=10)
    led.opens()

    led.tell(Line(line("ADDED", {**thing("ours", version=11), "apiVersion": "example.com/v1", "kind": "Widget"})))
    led.tell(Line(line("ADDED", {**thing("theirs", version=12), "apiVersion": "example.com/v9", "kind": "Widget"})))

    assert [change.item.meta.name for change in led.changes if isinstance(change, Put)] == ["ours"]
    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.GARBAGE


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [refused(410, EXPIRED), refused(410), error_event(410), error_event(0, "Expired")])
def test_an_expired_version_is_listed_anew_whichever_way_it_is_told(event: WatchInput) -> None:
    led = watching()

    led.tell(event)

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.EXPIRED
    led.waits_out()
    assert led.command == ListPage(500, "")


@pytest.mark.parametrize("listing", [True, False])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, ErrorKind.SERVER),
        (401, ErrorKind.UNAUTHORIZED),
        (403, ErrorKind.FORBIDDEN),
        (404, ErrorKind.MISSING),
        (429, ErrorKind.THROTTLED),
        (500, ErrorKind.SERVER),
        (503, ErrorKind.SERVER),
        (302, ErrorKind.SERVER),
        (204, ErrorKind.SERVER),
    ],
)
def test_a_refusal_is_named_and_followed_by_a_wait(code: int, kind: ErrorKind, listing: bool) -> None:
    led = Led() if listing else watching()

    led.tell(refused(code, b"a text, no JSON"))

    assert led.state.error == watch.StreamError(kind, "list" if listing else "watch", code, "a text, no JSON", led.now)
    assert isinstance(led.command, Pause)
    assert led.command.renew_credentials is (code == 401)


@pytest.mark.parametrize("code", [403, 404])
def test_a_kind_that_was_out_of_reach_is_listed_before_it_is_watched_again(code: int) -> None:
    """It may be another one when it is back: its CRD was deleted and made anew."""
    led = watching()
    led.tell(refused(code))

    led.waits_out()

    assert led.command == ListPage(500, "")


@pytest.mark.parametrize("event", [refused(401), refused(429), refused(500), error_event(500), Broken("reset")])
def test_trouble_that_has_nothing_to_do_with_the_version_keeps_it(event: WatchInput) -> None:
    led = watching()
    led.tell(event)

    led.waits_out()

    assert isinstance(led.command, Watch)
    assert led.command.version == "10"


@pytest.mark.parametrize(
    "event",
    [
        refused(429, b"Too many requests, please try again later.", 40),
        refused(429, msgspec.json.encode(status(429, "TooManyRequests", retry_after=40))),
        refused(503, b"", 40),
        error_event(429, "TooManyRequests", retry_after=40),
    ],
    ids=["header", "body", "503", "event"],
)
def test_the_wait_that_the_server_asks_for_is_kept_with_some_jitter(event: WatchInput) -> None:
    waits = []
    for chance in (0.0, 0.9):
        led = watching(chance=chance)
        led.tell(event)
        assert isinstance(led.command, Pause)
        waits.append(led.command.seconds)

    assert waits == [40.0, pytest.approx(49.0)]


def test_a_server_cannot_ask_for_a_wait_that_looks_like_a_stuck_process() -> None:
    """Regression: Retry-After was believed without a bound; liveness turns red after 300 s without a sign."""
    led = Led(chance=0.99)

    led.tell(refused(503, b"", 10.0**9))

    assert isinstance(led.command, Pause)
    assert 120 <= led.command.seconds <= 150


def test_trouble_lasts_until_the_watch_is_accepted_again() -> None:
    led = watching()
    led.tell(refused(500))
    since = led.now
    led.waits_out()
    led.tell(refused(503))
    assert led.state.error is not None
    assert (led.state.error.since, led.state.error.status) == (since, 503)
    led.waits_out()

    led.opens()

    assert led.state.error is None


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_watch_that_ends_after_its_time_is_resumed_at_once() -> None:
    led = watching()
    led.tell(Line(line("ADDED", thing("a", version=11))), after=100)

    led.tell(Closed(), after=115)

    assert (led.state.error, led.state.failures) == (None, 0)
    assert isinstance(led.command, Watch)
    assert led.command.version == "11"


def test_a_watch_that_was_cut_early_but_brought_something_is_resumed_at_once() -> None:
    """Normal life under load: the server cuts watches whose clients read slowly."""
    led = watching()

    led.tell(Line(line("ADDED", thing("a", version=11))), Closed())

    assert isinstance(led.command, Watch)
    assert led.command.version == "11"


@pytest.mark.parametrize(
    "lines",
    [(), (bookmark(10),), (line("RENAMED", {}),), (line("ADDED", thing("a", version=10)),)],
    ids=["nothing", "the same bookmark", "an unknown type", "an old event"],
)
def test_a_watch_that_ends_at_once_without_progress_waits(lines: tuple[bytes, ...]) -> None:
    """Regression: one stale bookmark before the end was enough to be asked again without a pause."""
    led = watching()

    led.tell(*map(Line, lines), Closed(), after=0.5)

    assert isinstance(led.command, Pause)
    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.SHORT


def test_an_end_without_a_beginning_is_a_short_watch() -> None:
    led = Led()
    led.lists()

    led.tell(Closed(), after=100)

    assert isinstance(led.command, Pause)


def test_a_deaf_watch_is_listed_anew() -> None:
    """Not one event or bookmark in all its time: the server does not know our version."""
    led = watching()

    led.tell(Closed(), after=215)

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.SILENT
    led.waits_out()
    assert led.command == ListPage(500, "")


def test_a_watch_that_ended_too_early_to_be_called_deaf_is_resumed() -> None:
    led = watching()

    led.tell(Closed(), after=149)

    assert isinstance(led.command, Watch)


def test_silence_until_the_clients_own_deadline_is_followed_by_a_list() -> None:
    led = watching()
    led.tell(Line(bookmark(11)))

    led.tell(Silent(), after=230)

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.SILENT
    led.waits_out()
    assert led.command == ListPage(500, "")


@pytest.mark.parametrize("event", [Broken("refused"), refused(500), Line(b"garbage"), error_event(500)])
def test_a_watch_that_cannot_be_resumed_three_times_is_listed_anew(event: WatchInput) -> None:
    led = watching()
    commands = []
    for _ in range(3):
        led.tell(event)
        led.waits_out()
        commands.append(type(led.command))

    assert commands == [Watch, Watch, ListPage]


def test_anything_delivered_in_between_gives_a_watch_three_new_tries() -> None:
    led = watching()
    for version in range(11, 20):
        led.tell(Line(line("ADDED", thing("a", version=version))), Broken("reset"))
        led.waits_out()
        assert isinstance(led.command, Watch)
        led.opens()


def test_the_server_ends_a_watch_before_load_balancers_do_and_before_the_client() -> None:
    for chance in (0.0, 0.5, 0.999):
        led = Led(chance=chance)
        led.lists()
        assert isinstance(led.command, Watch)
        assert 200 <= led.command.timeout < 240
        assert led.command.timeout < led.command.deadline


@pytest.mark.parametrize("lasts", [1.1, 50.0, 149.0])
def test_silence_is_counted_over_all_watches_since_the_last_word(lasts: float) -> None:
    """Regression: each resume began at zero, and behind a balancer that ends streams politely a stream stayed deaf."""
    led = watching(WatchOptions(page_size=LIST_PAGE))
    led.tell(Line(bookmark(11)))
    spoke = led.now

    while isinstance(led.command, Watch | None) and led.now - spoke < 1000:
        led.opens()
        led.tell(Closed(), after=lasts)

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.SILENT
    assert 150 <= led.now - spoke < 150 + lasts
    led.waits_out()
    assert led.command == ListPage(500, "")
    led.lists(version=11)
    led.opens()
    assert isinstance(led.tell(Closed(), after=lasts).command, Watch), "a complete list is a word"


@pytest.mark.parametrize("word", [bookmark(10), line("RENAMED", {}), line("ADDED", thing("a", version=11))])
def test_any_word_within_the_time_keeps_a_stream_from_being_deaf(word: bytes) -> None:
    led = watching()
    for _ in range(20):
        led.tell(Line(word), after=60)
        led.tell(Closed(), after=60)
        assert isinstance(led.command, Watch)
        led.opens()


def watches_of(led: Led, word: Callable[[int], bytes], *, seconds: float, lasts: float = 0.0) -> int:
    """How many watches are opened within `seconds` when each brings one `word` and ends after `lasts`."""
    ends, count = led.now + seconds, 0
    while led.now < ends and count <= 10 * seconds:
        if isinstance(led.command, Pause):
            led.tell(Tick(), after=led.command.seconds)
            continue
        count += 1
        led.opens()
        led.tell(Line(word(led.state.version + 1)))
        led.tell(Closed(), after=lasts)
        assert led.state.error is None
    return count


@pytest.mark.parametrize("word", [bookmark, lambda version: line("MODIFIED", thing("a", version=version))])
def test_watches_that_bring_one_word_and_end_are_opened_once_a_second(word: Callable[[int], bytes]) -> None:
    """Regression: what moved the version was followed at once, 1,156 times a second."""
    led = watching()

    assert watches_of(led, word, seconds=60) <= WATCHES_AT_ONCE + 60

    assert watches_of(led, word, seconds=60) >= 59, "and no slower: nothing is late by more than a second"


def test_a_few_short_watches_in_a_row_cost_no_wait() -> None:
    led = watching()
    for _ in range(3):
        for version in range(WATCHES_AT_ONCE):
            led.tell(Line(bookmark(led.state.version + 1 + version)), Closed())
            assert isinstance(led.command, Watch)
            led.opens()
        led.tell(Line(bookmark(led.state.version + 1)), after=60)


def test_watches_that_last_a_second_are_never_waited_for() -> None:
    led = watching()

    assert watches_of(led, bookmark, seconds=1000, lasts=1.0) == 1000


# --- the server's history ---------------------------------------------------------------------------------------------


def broken(version: int = 10) -> Led:
    """A stream whose watch broke and whose wait is over."""
    led = watching()
    led.tell(Line(bookmark(version)), Broken("reset"))
    assert isinstance(led.command, Pause)
    led.tell(Tick(), after=led.command.seconds)
    return led


def test_before_a_watch_is_resumed_after_an_error_the_servers_version_is_asked_for() -> None:
    led = broken(version=12)
    assert led.command == ListPage(1, "")
    assert not is_current(led)

    led.tell(Reply(200, page(thing("a", version=3), version=12, token="t1")))

    assert isinstance(led.command, Watch)
    assert led.command.version == "12"
    assert [change for change in led.changes if isinstance(change, Put)] == [], "what it shows is not stored"


def test_a_watch_is_not_resumed_at_a_version_of_the_servers_future() -> None:
    """Regression: it was, and stayed open and silent for 204 s, while the stream was called in sync."""
    led = broken(version=12)

    led.tell(Reply(200, page(thing("a", version=3), version=11)))

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.EXPIRED
    assert led.waits_out().command == ListPage(500, "")
    led.lists(version=11)
    assert Begin(11, restored=True) in led.changes


def test_a_restore_that_was_noticed_counts_also_if_the_server_passes_our_version_before_the_list() -> None:
    """Regression: the list came after a wait, showed a version above ours, and did not count as a restored server's."""
    led = broken(version=12)

    led.tell(Reply(200, page(version=11)))
    led.waits_out()
    led.lists(version=13)

    assert Begin(13, restored=True) in led.changes
    assert led.state.newest == 13


@pytest.mark.parametrize("event", [Broken("refused"), refused(500), refused(429), Reply(200, b"<html/>")])
def test_a_version_that_cannot_be_asked_for_counts_as_a_watch_that_cannot_be_resumed(event: WatchInput) -> None:
    led = broken()
    commands: list[Command] = []
    for _ in range(2):
        led.tell(event)
        assert led.state.error is not None
        assert led.state.error.verb == "list"
        assert isinstance(led.command, Pause)
        commands.append(led.tell(Tick(), after=led.command.seconds).command)

    assert commands == [ListPage(1, ""), ListPage(500, "")]


def test_a_server_that_sends_everything_instead_of_one_object_is_watched_without_being_asked() -> None:
    led = broken()

    assert isinstance(led.tell(TooLarge()).command, Watch)


def test_versions_that_are_no_numbers_are_confirmed_whatever_they_are() -> None:
    led = Led()
    led.tell(Reply(200, page(version="abc")), Opened(), Broken("reset"))
    assert isinstance(led.command, Pause)
    led.tell(Tick(), after=led.command.seconds)

    assert isinstance(led.tell(Reply(200, page(version="xyz"))).command, Watch)


@pytest.mark.parametrize("token", ["", "t1"])
def test_a_list_that_shows_older_versions_starts_over_as_that_of_a_restored_server(token: str) -> None:
    """Regression: only a version of the whole list that fell counted, and a restored server may have passed ours."""
    led = watching()
    led.tell(error_event(410))
    led.waits_out()
    led.tell(Reply(200, page(thing("a", version=5), version=20, token=token)))

    led.tell(Rewritten())

    assert led.state.error is not None
    assert led.state.error.kind is ErrorKind.EXPIRED
    assert led.waits_out().command == ListPage(500, "")
    led.changes.clear()
    led.lists(thing("a", version=5), version=21)
    assert led.changes[0] == Begin(21, restored=True)
    assert led.state.newest == 21 < NEWEST


# --- backoff ----------------------------------------------------------------------------------------------------------


@given(chance=st.floats(0, 1, exclude_max=True), failures=st.integers(1, 40))
def test_every_wait_is_from_0_8_to_30_seconds_and_grows_to_the_cap(chance: float, failures: int) -> None:
    led = Led(chance=chance)
    waits = []
    for _ in range(failures):
        led.tell(Broken("refused"))
        assert isinstance(led.command, Pause)
        waits.append(led.command.seconds)
        led.waits_out()

    assert waits == sorted(waits)
    assert all(0.8 <= wait <= 30 for wait in waits)


def test_the_waits_start_over_after_two_quiet_minutes() -> None:
    led = Led(chance=0.999)
    for _ in range(10):
        led.tell(Broken("refused"))
        led.waits_out()
    led.lists()
    led.opens()
    led.tell(Line(bookmark(11)))

    led.tell(Broken("reset"), after=121)

    assert led.state.failures == 1
    assert isinstance(led.command, Pause)
    assert led.command.seconds < 1.6


def test_a_stream_that_works_only_for_moments_keeps_its_long_waits() -> None:
    led = Led(chance=0.999)
    for _ in range(10):
        led.tell(Broken("refused"))
        led.waits_out()
    led.lists()
    led.opens()

    led.tell(Line(bookmark(11)), Broken("reset"), after=60)

    assert isinstance(led.command, Pause)
    assert led.command.seconds > 29


# --- never without a pause --------------------------------------------------------------------------------------------

CODES = st.sampled_from([200, 204, 302, 400, 401, 403, 404, 410, 429, 500, 503])
BODIES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"{}", EXPIRED, b"null", msgspec.json.encode(status(429, retry_after=0))]),
    st.builds(
        lambda names, version, token: page(*(thing(name) for name in names), version=version, token=token),
        st.lists(st.sampled_from("abc"), max_size=2),
        st.integers(0, 30),
        st.sampled_from(["", "", "t1", "t2"]),
    ),
)
LINES = st.one_of(
    st.binary(max_size=20),
    st.builds(bookmark, st.sampled_from(["", "x", 0, 5, 10, 11, 20])),
    st.builds(
        lambda kind, version: line(kind, thing("a", version=version)),
        st.sampled_from(["ADDED", "MODIFIED", "DELETED", "RENAMED"]),
        st.integers(0, 30),
    ),
    st.builds(
        lambda code: line("ERROR", status(code)),
        st.sampled_from([0, 410, 429, 500]),
    ),
)
REFUSALS = st.builds(Reply, CODES.filter(lambda code: code != 200), BODIES, st.sampled_from([None, 0.0, 1.0, 500.0]))
ENDS = st.one_of(st.just(Closed()), st.just(Silent()), st.just(Broken("reset")))
MOMENTS = st.sampled_from([0.0, 0.0, 0.0, 0.5, 2.0, 200.0])


@given(data=st.data(), chance=st.floats(0, 1, exclude_max=True))
def test_nothing_a_server_says_makes_it_send_requests_without_a_pause(data: st.DataObject, chance: float) -> None:
    """Between two pauses there are at most a list and a watch, and one request for each bit of progress; of watches
    that follow each other no more than ten, and one a second."""
    led = Led(chance=chance)
    pauses = progress = requests = watches = lists = 0
    began = led.now
    store = Store()
    for _ in range(40):
        match led.command:
            case Pause(seconds):
                assert 0.8 <= seconds <= 150 or led.state.error is None
                pauses += 1
                led.tell(Tick(), after=seconds)
            case ListPage(_, token):
                requests += 1
                lists += not token
                led.tell(data.draw(st.one_of(st.builds(Reply, st.just(200), BODIES), REFUSALS, st.just(Broken("x")))))
                forward = isinstance(led.state.phase, Listing) and led.state.phase.continue_token != token
                progress += forward and any(isinstance(change, Put) for change in led.changes)
            case Watch():
                requests += 1
                version, opened = led.state.version, led.now
                watches += 1
                if data.draw(st.booleans()):
                    led.opens()
                    for data_line in data.draw(st.lists(LINES, max_size=3)):
                        if isinstance(led.state.phase, Watching):
                            led.tell(Line(data_line), after=data.draw(MOMENTS))
                    if isinstance(led.state.phase, Watching):
                        led.tell(data.draw(ENDS), after=data.draw(MOMENTS))
                else:
                    led.tell(data.draw(st.one_of(REFUSALS, st.just(Broken("refused")), st.just(Closed()))))
                pauses += led.now - opened >= 1
                progress += led.state.version > version
        for change in led.changes:
            store.apply(change)
        led.changes.clear()

    assert requests <= 2 * (pauses + 1) + progress
    assert watches <= WATCHES_AT_ONCE + 1 + lists + (led.now - began) / 0.8


# --- what is current --------------------------------------------------------------------------------------------------


def is_current(led: Led) -> bool:
    return watch.is_current(led.state, now=led.now)


def test_a_stream_is_current_while_its_watch_is_open() -> None:
    led = Led()
    assert not is_current(led)
    led.lists(thing("a"))
    led.opens()
    assert is_current(led)
    led.tell(Line(bookmark(11)), Closed(), after=200)
    assert is_current(led), "one watch follows the other without a gap"


def test_a_stream_in_the_middle_of_a_list_is_not_current() -> None:
    """Regression: it was in sync once and without trouble, and what had gone in the gap counted as there."""
    led = watching()
    led.tell(error_event(410))
    assert not is_current(led)
    led.waits_out()
    assert not is_current(led)

    led.tell(Reply(200, page(thing("a"), version=20, token="t1")))

    assert led.state.error is None
    assert not is_current(led)
    led.lists(thing("b"), version=20)
    assert is_current(led)


def test_a_watch_that_was_opened_after_trouble_is_current_when_it_had_time_to_tell_the_past() -> None:
    led = watching()
    led.tell(Broken("reset"))
    led.waits_out()
    assert not is_current(led), "not yet open"

    led.opens()
    assert not is_current(led)
    led.tell(Line(line("ADDED", thing("a", version=11))), after=CATCH_UP_SECONDS / 2)
    assert not is_current(led)
    led.tell(Line(bookmark(12)), after=CATCH_UP_SECONDS)
    assert is_current(led)


def test_after_an_error_of_ours_nothing_that_was_told_is_trusted() -> None:
    """Regression: a difference that a subscriber failed on was never told again."""
    led = watching()
    led.tell(Line(line("ADDED", thing("a", version=11))))

    begun = watch.start(led.state, led.options, distrust=True)

    assert begun.command == ListPage(500, "")
    for told in (Reply(200, page(thing("a", version=11), version=11, token="t1")), Reply(500, b""), Tick()):
        step = watch.step(begun.state, told, now=0.0, chance=0.5, options=led.options)
        begun = step
        if step.changes:
            assert step.changes[0] == Begin(11, restored=True)
    led.state = begun.state
    led.lists(thing("a", version=11), version=11)
    led.tell(Opened(), error_event(410))
    led.waits_out()
    led.changes.clear()
    led.lists(thing("a", version=11), version=12)
    assert led.changes[0] == Begin(12, restored=False), "a complete list is trusted again"


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_an_event_that_cannot_happen_is_an_error_of_ours() -> None:
    led = Led()

    with pytest.raises(AssertionError, match="Line cannot happen in Listing"):
        led.tell(Line(b"{}"))


def test_a_wait_ends_only_with_its_tick() -> None:
    led = Led()
    led.tell(Broken("refused"))

    assert led.state.phase == Waiting(Listing())
    with pytest.raises(AssertionError):
        led.tell(Opened())
    assert led.tell(Tick()).command == ListPage(250, "")


@pytest.mark.parametrize("options", [{"page_size": 0}, {"timeout": (0, 5)}, {"timeout": (9, 5)}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=r"^WatchOptions\."):
        WatchOptions(**options)  # type: ignore[arg-type]
