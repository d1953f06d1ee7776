"""Rows W3 and W6: lists of many pages, and what a list is allowed to cost (docs/reliability.md)."""

from __future__ import annotations

import pytest

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, Hold, ProxiedRequest, Respond
from tests.conftest import Start
from tests.faults.flood import LINUX, Flood, flooding
from tests.faults.scene import GONE, GONE_EVENT, SEEN_SECONDS, SLOW, compact, refused

PAGE = 20


def begin_a_list_that_stays_in_the_middle(flood: Flood) -> Hold:
    """Three pages of objects are in sync, are listed anew, and the second page does not come until the hold ends."""
    names = [f"g{number:02}" for number in range(2 * PAGE)]
    flood.create(names)
    flood.apply_grain("zz", size=7)
    flood.sync(page_size=PAGE)
    flood.until_handled(len(names) + 1)
    flood.until("zz", 7)
    held = flood.proxy.add(Fault(effect := Hold(), on=lambda request: asks_for_more(flood, request)))
    flood.meet(GONE_EVENT, flood.watch_of_grains)
    flood.sandbox.eventually(lambda: held.hits, within_seconds=SEEN_SECONDS)
    return effect


def asks_for_more(flood: Flood, request: ProxiedRequest) -> bool:
    """A page after the first one."""
    return flood.list_of_grains(request) and bool(request.query.get("continue"))


def first_pages(flood: Flood) -> int:
    return flood.proxy.count(lambda request: flood.list_of_grains(request) and not request.query.get("continue"))


def test_w3_while_a_list_is_under_way_objects_of_the_last_list_are_handled(flood: Flood) -> None:
    """The object is on the page that does not come; its child comes back all the same."""
    effect = begin_a_list_that_stays_in_the_middle(flood)
    flood.remove(["g39"])

    flood.sandbox.delete("v1", "ConfigMap", "zz", namespace=flood.namespace)

    flood.until("zz", 7)
    assert flood.handled_names("delete") == set(), "nothing is gone before the list is complete"
    effect.until.set()
    flood.sandbox.eventually(lambda: flood.handled_names("delete") == {"g39"}, within_seconds=SEEN_SECONDS)


def test_w3_objects_of_a_first_list_are_handled_page_by_page(flood: Flood) -> None:
    """Two pages have come, the third is held back: with 100,000 objects it would be seconds until the last one."""
    names = [f"g{number:02}" for number in range(2 * PAGE)]
    flood.create(names)
    flood.apply_grain("aa", size=7)
    pages = iter(range(100))
    held = flood.proxy.add(
        Fault(effect := Hold(), on=lambda request: asks_for_more(flood, request) and next(pages) == 1)
    )
    flood.begin_flooded(page_size=PAGE)

    flood.until_handled(2 * PAGE)
    flood.until("aa", 7)

    assert held.hits == 1
    assert flood.handled_names() == {"aa", *names[: 2 * PAGE - 1]}
    assert flood.operator.lines("in sync") == []
    # The key waits for its own write, which no stream shows yet, and no longer than 5 s.
    flood.sandbox.delete("v1", "ConfigMap", "aa", namespace=flood.namespace)
    flood.until("aa", 7)
    effect.until.set()
    flood.sandbox.eventually(lambda: flood.handled_names() == {"aa", *names}, within_seconds=SEEN_SECONDS)


def test_w3_an_object_that_was_deleted_during_a_first_list_gets_no_child(flood: Flood) -> None:
    """The list is complete only after its last page, and shows a deletion no earlier."""
    flood.create([f"g{number:02}" for number in range(2 * PAGE)])
    flood.apply_grain("aa", size=7)
    flood.proxy.add(Fault(effect := Hold(), on=lambda request: asks_for_more(flood, request)))
    flood.begin_flooded(page_size=PAGE)
    flood.until("aa", 7)

    flood.remove(["aa"])
    flood.sandbox.delete("v1", "ConfigMap", "aa", namespace=flood.namespace)

    flood.sandbox.eventually(
        lambda: "was deleted, but the watch has not reported it yet" in flood.operator.text, within_seconds=SEEN_SECONDS
    )
    assert flood.sandbox.get("v1", "ConfigMap", "aa", namespace=flood.namespace) is None
    assert flood.handled_names("delete") == set()
    effect.until.set()
    flood.sandbox.eventually(lambda: flood.handled_names("delete") == {"aa"}, within_seconds=SEEN_SECONDS)
    assert flood.sandbox.get("v1", "ConfigMap", "aa", namespace=flood.namespace) is None


def test_w3_a_token_that_expires_in_the_middle_of_a_list_starts_the_list_again(flood: Flood) -> None:
    names = [f"g{number:02}" for number in range(3 * PAGE)]
    flood.create(names)
    # Twice the third page is refused, which is the second one that a token asks for.
    seen = iter(range(100))
    expired = flood.proxy.add(
        Fault(GONE, on=lambda request: asks_for_more(flood, request) and next(seen) in (1, 3), times=2)
    )
    flood.sync(page_size=PAGE)

    flood.sandbox.eventually(lambda: flood.handled_names() == set(names), within_seconds=SEEN_SECONDS)
    assert expired.hits == 2
    assert first_pages(flood) == 3


def test_w3_a_list_whose_tokens_always_expire_is_read_at_once(flood: Flood) -> None:
    """Regression: one first page followed the other, nothing was ever in sync, and no log line said why."""
    names = [f"g{number:02}" for number in range(3 * PAGE)]
    flood.create(names)
    expired = flood.proxy.add(Fault(GONE, on=lambda request: asks_for_more(flood, request), times=None))

    flood.sync(page_size=PAGE)

    flood.sandbox.eventually(lambda: flood.handled_names() == set(names), within_seconds=SEEN_SECONDS)
    assert (expired.hits, first_pages(flood)) == (3, 4)
    assert flood.proxy.count(lambda request: flood.list_of_grains(request) and request.query.get("limit") == "0") == 1
    (said,) = flood.operator.lines("tokens of pages always expire: listing all objects at once")
    assert (said["level"], said["stream"]) == ("warning", f"grains.example.com in {flood.namespace}")


# What the API server says of a token that is none, and of one from a history that was lost by a restore.
NO_TOKEN = refused(400, "BadRequest", "continue key is not valid")
LOST_TOKEN = refused(504, "Timeout", "Timeout: Too large resource version: 1000203, current: 203")


@pytest.mark.parametrize(
    ("effect", "tries"), [pytest.param(NO_TOKEN, 1, id="no-token"), pytest.param(LOST_TOKEN, 3, id="of-a-lost-history")]
)
def test_w3_a_token_that_is_refused_for_other_reasons_is_not_sent_for_ever(
    flood: Flood, effect: Respond, tries: int
) -> None:
    """Regression: only 410 was a reason to begin the list again."""
    names = [f"g{number:02}" for number in range(3 * PAGE)]
    flood.create(names)
    fault = flood.proxy.add(Fault(effect, on=lambda request: asks_for_more(flood, request), times=tries))
    flood.sync(page_size=PAGE)

    flood.sandbox.eventually(lambda: flood.handled_names() == set(names), within_seconds=SEEN_SECONDS)
    assert fault.hits == tries
    assert first_pages(flood) == 2


@SLOW
def test_w3_a_token_that_really_expired_starts_the_list_again(start_operator: Start) -> None:
    """The real thing: etcd is compacted and the API server restarts between two pages."""
    with Sandbox() as own, flooding(own, start_operator) as flood:
        effect = begin_a_list_that_stays_in_the_middle(flood)
        flood.remove(["g39"])
        before = first_pages(flood)
        own.apiserver.kill()
        compact(own)
        own.apiserver.start()
        own.eventually(lambda: own.request("GET", flood.grains).status == 200)
        effect.until.set()

        own.eventually(lambda: flood.handled_names("delete") == {"g39"}, within_seconds=SEEN_SECONDS)
        assert flood.proxy.count(lambda request: asks_for_more(flood, request) and request.status == 410) == 1
        assert first_pages(flood) == before + 1


@LINUX
@pytest.mark.parametrize(
    ("objects", "kibibytes", "page"),
    [pytest.param(1_200, 12, 100, id="1,200"), pytest.param(10_000, 8, 500, id="10,000", marks=SLOW)],
)
def test_w6_a_long_list_is_read_page_by_page_and_costs_a_few_pages_of_memory(
    start_operator: Start, sandbox: Sandbox, objects: int, kibibytes: int, page: int
) -> None:
    with flooding(sandbox, start_operator) as flood:
        names = [f"g{number:05}" for number in range(objects)]
        flood.create(names, kibibytes=kibibytes)
        flood.sync(page_size=page, within_seconds=120)
        flood.until_handled(objects, within_seconds=120)
        assert flood.handled_names() == set(names)
        listed = flood.proxy.count(flood.list_of_grains)
        before = flood.settled()
        flood.meet(GONE_EVENT, flood.watch_of_grains)
        flood.apply_grain("zz", size=1)
        flood.until("zz", 1, within_seconds=120)

        pages = flood.proxy.count(flood.list_of_grains) - listed
        assert pages == objects // page + 1
        # A page is there as the answer, cut up, and decoded, and the allocator keeps the room of one more. A list that
        # was collected before it is compared with the store would cost as much as the store.
        store, allowed = objects * kibibytes / 1024, 4 * page * kibibytes / 1024 + 3
        assert allowed < store * 0.7
        grown = flood.peak() - before
        print(f"{objects} objects of {kibibytes} KiB: {before:.0f} MiB, while listed anew {grown:.1f} MiB more")
        assert grown <= allowed
