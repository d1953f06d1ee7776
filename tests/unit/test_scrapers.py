"""Who may read /metrics: how long an answer counts, what a flood may cost, and what happens while nobody answers."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.errors import Forbidden, Unreachable
from bonny.core.objects import Failure
from bonny.errors import ApiError, UsageError
from bonny.metrics_auth import scrapers as module
from bonny.metrics_auth.scrapers import SCRAPE, TOKEN_REVIEW, Scrapers, Verdict
from tests.support.virtual import Clock

GOOD, STRANGER, UNKNOWN = "good", "stranger", "nobody"
GROUP = "system:serviceaccounts:secret-team"


class Server:
    """An API server with two users: one may read /metrics. `failure` is raised instead of any answer."""

    def __init__(self) -> None:
        self.users = {GOOD: True, STRANGER: False}
        self.asked: list[tuple[str, Any]] = []
        self.failure: Exception | None = None
        self.seconds = 0.0
        self.under_way = self.most_under_way = 0

    async def create(self, kind: Any, review: Any) -> Any:
        self.asked.append((kind.kind, review["spec"]))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        spec = review["spec"]
        if kind == TOKEN_REVIEW:
            user = {"username": f"user-{spec['token']}", "uid": "1", "groups": [GROUP], "extra": {"a": ["b"]}}
            known = spec["token"] in self.users
            return {"status": {"authenticated": True, "user": user} if known else {"user": {}, "error": "invalid"}}
        return {"status": {"allowed": self.users[spec["user"].removeprefix("user-")]}}

    @property
    def tokens(self) -> Counter[str]:
        """How often each token was reviewed."""
        return Counter(spec["token"] for kind, spec in self.asked if kind == "TokenReview")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def ask(scrapers: Scrapers, token: str, *, address: str = "10.0.0.1") -> Verdict:
    return await scrapers.verdict([(b"authorization", f"Bearer {token}".encode())], address=address)


def played(clock: Clock, story: Callable[[Scrapers, Server], Any]) -> Server:
    server = Server()
    scrapers: Any = Scrapers(server)  # type: ignore[arg-type]  # of the client it uses `create` alone
    clock.run(lambda: story(scrapers, server))
    return server


# --- answers ----------------------------------------------------------------------------------------------------------


def test_the_api_server_is_asked_who_it_is_and_then_whether_that_user_may_get_metrics(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert await ask(scrapers, GOOD) == Verdict(HTTPStatus.OK)
        denied, unauthorized = await ask(scrapers, STRANGER), await ask(scrapers, UNKNOWN)
        assert denied == (HTTPStatus.FORBIDDEN, "user user-stranger may not get /metrics")
        assert unauthorized.status is HTTPStatus.UNAUTHORIZED

    server = played(clock, story)
    attributes = {"path": "/metrics", "verb": "get"}
    assert attributes == SCRAPE
    access = {"nonResourceAttributes": attributes, "uid": "1", "groups": [GROUP], "extra": {"a": ["b"]}}
    assert server.asked == [
        ("TokenReview", {"token": GOOD}),
        ("SubjectAccessReview", {**access, "user": "user-good"}),
        ("TokenReview", {"token": STRANGER}),
        ("SubjectAccessReview", {**access, "user": "user-stranger"}),
        ("TokenReview", {"token": UNKNOWN}),
    ]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Basic Z29vZA==")],
        [(b"authorization", b"Bearer good good")],
        [(b"authorization", b"Bearer g\xc3\xb6\xc3\xb6d")],
        [(b"authorization", b"xBearer good")],
        [(b"authorization", b"Bearer good")] * 2,
        [(b"x-authorization", b"Bearer good")],
    ],
    ids=str,
)
def test_without_exactly_one_token_nobody_is_asked(clock: Clock, headers: list[tuple[bytes, bytes]]) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert (await scrapers.verdict(headers, address="10.0.0.1")).status is HTTPStatus.UNAUTHORIZED

    assert played(clock, story).asked == []


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([{}], HTTPStatus.UNAUTHORIZED),
        ([{"status": {"authenticated": "true", "user": {"username": "a"}}}], HTTPStatus.UNAUTHORIZED),
        ([{"status": {"authenticated": True, "user": {}}}], HTTPStatus.UNAUTHORIZED),
        ([{"status": {"authenticated": False, "user": {"username": "a"}}}], HTTPStatus.UNAUTHORIZED),
        ([{"status": {"authenticated": True, "user": {"username": "a"}}}, {}], HTTPStatus.SERVICE_UNAVAILABLE),
        (
            [{"status": {"authenticated": True, "user": {"username": "a"}}}, {"status": {"allowed": "yes"}}],
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
    ],
)
def test_an_answer_that_does_not_say_yes_lets_nobody_in(clock: Clock, answers: list[Any], status: HTTPStatus) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        async def create(*_: Any) -> Any:
            return answers.pop(0)

        server.create = create  # type: ignore[method-assign]
        assert (await ask(scrapers, GOOD)).status is status

    played(clock, story)


# --- while the API server does not answer -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [Unreachable("no answer to a token"), ApiError("odd"), UsageError("no credentials")],
)
def test_while_the_api_server_does_not_answer_only_answers_that_still_count_let_in(
    clock: Clock, failure: Exception
) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert (await ask(scrapers, GOOD)).status is HTTPStatus.OK
        server.failure = failure
        clock.now += module.SECONDS[HTTPStatus.OK] - 1
        assert (await ask(scrapers, GOOD)).status is HTTPStatus.OK
        clock.now += 1
        away = await ask(scrapers, GOOD)
        assert (away, str(failure) in away.text) == (module.UNKNOWN, False)
        assert await ask(scrapers, STRANGER) == module.UNKNOWN

        server.failure = None
        clock.now += module.SECONDS[HTTPStatus.SERVICE_UNAVAILABLE]
        assert (await ask(scrapers, GOOD)).status is HTTPStatus.OK
        assert (await ask(scrapers, STRANGER)).status is HTTPStatus.FORBIDDEN

    played(clock, story)


def test_a_missing_permission_is_logged_once_with_its_rule(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Without it clients get 503, and no request of the operator itself fails."""

    async def story(scrapers: Scrapers, server: Server) -> None:
        refused = Forbidden(verb="create", resource="tokenreviews", failure=Failure(code=403))
        for failure in (refused, None, refused):
            server.failure = failure
            for _ in range(2):
                clock.now += module.SECONDS[HTTPStatus.OK]
                await ask(scrapers, GOOD)

    played(clock, story)
    rule = '- {apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: [create]}'
    messages = [(record.levelname, record.message, vars(record)["missing_rule"]) for record in caplog.records]
    assert messages == [("WARNING", "clients of /metrics cannot be reviewed", rule)] * 2


def test_where_only_the_second_review_fails_nobody_is_let_in(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        whole = server.create

        async def create(kind: Any, review: Any) -> Any:
            if kind != TOKEN_REVIEW:
                raise Unreachable("no answer")
            return await whole(kind, review)

        server.create = create  # type: ignore[method-assign]
        assert await ask(scrapers, GOOD) == module.UNKNOWN

    played(clock, story)


def test_a_review_without_an_answer_is_given_up_and_not_repeated_at_once(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        server.seconds = 3600.0
        began = clock.now
        assert await ask(scrapers, GOOD) == module.UNKNOWN
        assert clock.now - began == pytest.approx(module.REVIEW_SECONDS, abs=0.01)
        assert await ask(scrapers, GOOD) == module.UNKNOWN

    assert played(clock, story).tokens == {GOOD: 1}


def test_a_client_that_goes_away_does_not_end_the_review_for_the_others(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        server.seconds = 1.0
        waiting = [asyncio.create_task(ask(scrapers, GOOD)) for _ in range(50)]
        await asyncio.sleep(0.5)
        waiting[0].cancel()
        assert {verdict.status for verdict in await asyncio.gather(*waiting[1:])} == {HTTPStatus.OK}

    server = played(clock, story)
    assert server.tokens == {GOOD: 1}
    assert server.most_under_way == 1


# --- how long an answer counts ----------------------------------------------------------------------------------------


def test_what_rbac_says_now_counts_at_the_end_of_an_answer(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert [(await ask(scrapers, token)).status for token in (GOOD, STRANGER)] == [200, 403]
        server.users = {GOOD: False, STRANGER: True}
        clock.now += module.SECONDS[HTTPStatus.FORBIDDEN]
        assert [(await ask(scrapers, token)).status for token in (GOOD, STRANGER)] == [200, 200]
        clock.now += module.SECONDS[HTTPStatus.OK]
        assert (await ask(scrapers, GOOD)).status is HTTPStatus.FORBIDDEN
        del server.users[STRANGER]
        assert (await ask(scrapers, STRANGER)).status is HTTPStatus.UNAUTHORIZED

    played(clock, story)


# --- floods -----------------------------------------------------------------------------------------------------------


def test_a_flood_of_new_tokens_costs_a_few_reviews_a_second_and_does_not_keep_out_who_was_let_in(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert (await ask(scrapers, GOOD, address="10.0.0.9")).status is HTTPStatus.OK
        for second in range(300):
            flood = [ask(scrapers, f"{second}-{number}", address=f"10.1.0.{number}") for number in range(100)]
            statuses = Counter(verdict.status for verdict in await asyncio.gather(*flood))
            assert statuses[HTTPStatus.UNAUTHORIZED] <= module.NEW_TOKENS
            assert statuses.total() - statuses[HTTPStatus.UNAUTHORIZED] == statuses[HTTPStatus.TOO_MANY_REQUESTS]
            assert (await ask(scrapers, GOOD, address="10.0.0.9")).status is HTTPStatus.OK
            clock.now += 1.0
        assert len(scrapers._kept) <= 1 + module.NEW_TOKENS * (module.SECONDS[HTTPStatus.UNAUTHORIZED] + 1)
        assert scrapers._reviews == {}

    server = played(clock, story)
    assert server.tokens.total() <= module.NEW_TOKENS * 301 + server.tokens[GOOD]
    assert server.tokens[GOOD] == 5


def test_a_flood_while_the_api_server_hangs_leaves_few_reviews_under_way(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        assert (await ask(scrapers, GOOD)).status is HTTPStatus.OK
        server.seconds = 3600.0
        clock.now += module.SECONDS[HTTPStatus.OK]
        flood = []
        for number in range(2000):
            flood.append(asyncio.create_task(ask(scrapers, f"t{number % 500}", address=f"10.1.{number % 256}.1")))
            flood.append(asyncio.create_task(ask(scrapers, GOOD)))
            await asyncio.sleep(0.01)
        server.seconds = 0.0
        assert {verdict.status for verdict in await asyncio.gather(*flood)} <= {429, 503}

    server = played(clock, story)
    assert server.most_under_way <= module.NEW_TOKENS * (module.REVIEW_SECONDS + 1) + 1


def test_one_address_leaves_room_for_the_new_token_of_another(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        for number in range(100):
            await ask(scrapers, f"t{number}", address="10.1.0.1")
        assert (await ask(scrapers, GOOD, address="10.0.0.9")).status is HTTPStatus.OK

    assert played(clock, story).tokens.total() == module.NEW_TOKENS_OF_ONE_ADDRESS + 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from([GOOD, STRANGER, UNKNOWN, *"abcdefgh"]),
            st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
            st.sampled_from([0.0, 0.2, 1.0, 9.0, 61.0, 3601.0]),
            st.sampled_from(["yes", "revoked", "away"]),
        ),
        max_size=60,
    )
)
def test_whoever_is_let_in_had_a_yes_within_a_minute_and_the_bounds_hold(
    requests: list[tuple[str, str, float, str]],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock, new = Clock(monkeypatch), []

        async def story(scrapers: Scrapers, server: Server) -> None:
            granted = -float("inf")
            for token, address, pause, state in requests:
                clock.now += pause
                server.failure = Unreachable("away") if state == "away" else None
                server.users[GOOD] = state == "yes"
                before = server.tokens.total()
                verdict = await ask(scrapers, token, address=address)
                reviewed = server.tokens.total() > before
                if reviewed and token != GOOD:
                    new.append(clock.now)
                if reviewed and token == GOOD and state == "yes":
                    granted = clock.now
                if verdict.status is HTTPStatus.OK:
                    assert token == GOOD
                    assert clock.now - granted < module.SECONDS[HTTPStatus.OK]
                if reviewed and token == GOOD and state != "yes":
                    assert verdict.status is not HTTPStatus.OK

        played(clock, story)
        for at in new:
            assert sum(0 <= other - at < 1.0 for other in new) <= module.NEW_TOKENS


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_many_tokens_that_are_let_in_are_kept_up_to_a_bound(clock: Clock) -> None:
    async def story(scrapers: Scrapers, server: Server) -> None:
        server.users = {f"t{number}": True for number in range(2 * module.MOST_KEPT)}
        for number, token in enumerate(server.users):
            assert (await ask(scrapers, token, address=f"10.0.{number}.1")).status is HTTPStatus.OK
            clock.now += 0.3
        assert len(scrapers._kept) == module.MOST_KEPT
        clock.now += module.KNOWN_SECONDS + module.SECONDS[HTTPStatus.OK]
        await ask(scrapers, UNKNOWN)
        assert len(scrapers._kept) == 1

    played(clock, story)


def test_no_token_is_kept_after_its_review(clock: Clock) -> None:
    token = "a-token-that-is-long-enough-to-be-found-in-memory"

    async def story(scrapers: Scrapers, server: Server) -> None:
        server.users[token] = True
        assert (await ask(scrapers, token)).status is HTTPStatus.OK
        server.users.clear()
        server.asked.clear()
        gc.collect()
        assert token not in repr(vars(scrapers))
        assert token not in repr([vars(task) if hasattr(task, "__dict__") else task for task in asyncio.all_tasks()])

    played(clock, story)
