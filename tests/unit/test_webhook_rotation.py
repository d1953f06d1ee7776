"""Rotation of the webhooks' certificates: one test for each rule, and a model with crashes, edits and late replicas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bonny.tls.certificates import DAYS, SKEW, Issued, Leaf, issue, read, split
from bonny.tls.rotation import (
    MOST_CAS,
    NEXT_CERTIFICATE,
    NEXT_KEY,
    URGENT_SECONDS,
    Rotation,
    RotationDecision,
    RotationStep,
)
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from tests.support.effort import examples

NAMES = ("widgets-webhook.default.svc", "widgets-webhook.default")
START = datetime(2030, 1, 1, tzinfo=UTC)
SPREAD_SECONDS = 60.0
LIFE = timedelta(days=DAYS)

Data = dict[str, bytes]


def made(at: datetime = START, names: tuple[str, ...] = NAMES) -> Issued:
    return issue(names, now=at)


def serving(issued: Issued, *more: Issued) -> Data:
    """The Secret with one certificate, and the CAs of `more`."""
    cas = b"".join(each.ca for each in (issued, *more))
    return {CERTIFICATE: issued.certificate, KEY: issued.key, BUNDLE: cas}


def pending(issued: Issued, following: Issued) -> Data:
    """The Secret after BUNDLE."""
    return {
        **serving(issued, following),
        NEXT_CERTIFICATE: following.certificate,
        NEXT_KEY: following.key,
    }


def decided(data: Mapping[str, bytes], *registered: bytes, now: datetime = START) -> RotationDecision:
    return Rotation(NAMES, spread=SPREAD_SECONDS).decide(data, registered, now=now, clock=0.0)


def test_an_empty_secret_is_filled_in_three_steps() -> None:
    rotation = Rotation(NAMES, spread=SPREAD_SECONDS)
    first = rotation.decide({}, [b""], now=START, clock=100.0)
    assert (first.step, set(first.data)) == (RotationStep.BUNDLE, {NEXT_CERTIFICATE, NEXT_KEY, BUNDLE})
    second = rotation.decide(first.data, [b""], now=START, clock=100.0)
    assert (second.step, second.bundle, second.data) == (RotationStep.INJECT, first.data[BUNDLE], first.data)
    third = rotation.decide(first.data, [second.bundle], now=START, clock=101.0)
    assert (third.step, third.seconds, third.leaf) == (RotationStep.REST, URGENT_SECONDS, None)
    last = rotation.decide(first.data, [second.bundle], now=START, clock=101.0 + URGENT_SECONDS)
    assert (last.step, set(last.data)) == (RotationStep.LEAF, {CERTIFICATE, KEY, BUNDLE})
    leaf = read(last.data[CERTIFICATE], last.data[KEY], [last.data[BUNDLE]])
    assert leaf is not None
    assert (leaf.names, leaf.not_after) == (set(NAMES), START + LIFE)
    assert decided(last.data, second.bundle).step is RotationStep.REST


def test_nothing_registered_does_not_hold_up_the_first_certificate() -> None:
    assert decided({}).step is RotationStep.BUNDLE
    rotation, data = Rotation(NAMES, spread=SPREAD_SECONDS), decided({}).data
    assert rotation.decide(data, [], now=START, clock=0.0).step is RotationStep.REST
    assert rotation.decide(data, [], now=START, clock=URGENT_SECONDS).step is RotationStep.LEAF


def test_a_certificate_rests_until_two_thirds_of_its_life() -> None:
    one = made()
    due = START - SKEW + (LIFE + SKEW) * 2 / 3
    before = decided(serving(one), one.ca, now=due - timedelta(minutes=1))
    assert (before.step, before.data) == (RotationStep.REST, serving(one))
    after = decided(serving(one), one.ca, now=due + timedelta(minutes=1))
    assert after.step is RotationStep.BUNDLE
    assert {name: after.data[name] for name in (CERTIFICATE, KEY)} == {CERTIFICATE: one.certificate, KEY: one.key}
    assert next(iter(split(after.data[BUNDLE]))) == one.ca
    assert len(split(after.data[BUNDLE])) == 2


def test_the_next_certificate_waits_until_all_have_had_its_ca() -> None:
    one, other = made(), made()
    data = pending(one, other)
    rotation = Rotation(NAMES, spread=SPREAD_SECONDS)
    assert rotation.decide(data, [data[BUNDLE], one.ca], now=START, clock=0.0).step is RotationStep.INJECT
    assert rotation.decide(data, [data[BUNDLE]] * 2, now=START, clock=10.0).seconds == SPREAD_SECONDS
    # One of them loses it: the wait begins again.
    assert rotation.decide(data, [data[BUNDLE], b""], now=START, clock=50.0).step is RotationStep.INJECT
    assert rotation.decide(data, [data[BUNDLE]] * 2, now=START, clock=60.0).seconds == SPREAD_SECONDS
    assert rotation.decide(data, [data[BUNDLE]] * 2, now=START, clock=59.9 + SPREAD_SECONDS).step is RotationStep.REST
    last = rotation.decide(data, [data[BUNDLE]] * 2, now=START, clock=60.0 + SPREAD_SECONDS)
    assert last.step is RotationStep.LEAF
    assert last.data == {CERTIFICATE: other.certificate, KEY: other.key, BUNDLE: data[BUNDLE]}


def test_a_new_leader_waits_again() -> None:
    one, other = made(), made()
    data = pending(one, other)
    for clock in (0.0, 1e6):
        decision = Rotation(NAMES, spread=SPREAD_SECONDS).decide(data, [data[BUNDLE]], now=START, clock=clock)
        assert (decision.step, decision.seconds) == (RotationStep.REST, SPREAD_SECONDS)


def test_an_empty_next_certificate_asks_for_a_rotation() -> None:
    one = made()
    decision = decided(serving(one) | {NEXT_CERTIFICATE: b""}, one.ca)
    assert decision.step is RotationStep.BUNDLE
    assert decision.data[CERTIFICATE] == one.certificate


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({CERTIFICATE: b""}, id="no certificate"),
        pytest.param({KEY: b"nonsense"}, id="no key"),
        pytest.param({KEY: made().key}, id="the key of another"),
        pytest.param({CERTIFICATE: made().certificate}, id="the certificate of another"),
        pytest.param(serving(made(START - LIFE * 2)), id="expired"),
        pytest.param(serving(made(names=("widgets-webhook.shop.svc",))), id="made for another namespace"),
    ],
)
def test_what_cannot_be_served_is_replaced_at_once(broken: Data) -> None:
    one = made()
    decision = decided(serving(one) | broken, one.ca)
    assert (decision.step, decision.leaf) == (RotationStep.BUNDLE, None)
    assert one.ca in decision.data[BUNDLE]


def test_a_certificate_with_more_names_than_needed_stays() -> None:
    one = made(names=(*NAMES, "localhost"))
    assert decided(serving(one), one.ca).step is RotationStep.REST


def test_a_ca_that_is_registered_returns_to_an_emptied_secret_and_to_an_older_one() -> None:
    one, other = made(), made()
    emptied = decided({}, one.ca)
    assert emptied.step is RotationStep.BUNDLE
    assert one.ca in emptied.data[BUNDLE]
    older = decided(serving(one), one.ca + other.ca)
    assert (older.step, set(split(older.data[BUNDLE]))) == (RotationStep.BUNDLE, {one.ca, other.ca})
    assert NEXT_CERTIFICATE not in older.data


def test_a_bundle_removed_by_hand_is_put_back() -> None:
    one = made()
    decision = decided(serving(one), b"", one.ca)
    assert (decision.step, decision.bundle) == (RotationStep.INJECT, one.ca)


def test_what_does_not_parse_is_never_registered() -> None:
    one = made()
    decision = decided(serving(one) | {BUNDLE: b"a comment\n" + one.ca + b"rest"}, b"")
    assert (decision.step, decision.bundle) == (RotationStep.INJECT, one.ca)


def test_expired_cas_leave_with_the_next_rotation_only() -> None:
    old, one = made(START - LIFE * 2), made()
    bundle = old.ca + one.ca
    assert decided(serving(one) | {BUNDLE: bundle}, bundle).step is RotationStep.REST
    rotated = decided(serving(one) | {BUNDLE: bundle, NEXT_CERTIFICATE: b""}, bundle)
    assert old.ca not in rotated.data[BUNDLE]
    assert one.ca in rotated.data[BUNDLE]


def test_a_ca_outlives_its_end_by_the_difference_of_clocks() -> None:
    old, one = made(START - LIFE), made()
    data = serving(one, old) | {NEXT_CERTIFICATE: b""}
    assert old.ca in decided(data, data[BUNDLE], now=START + timedelta(hours=1)).data[BUNDLE]


def test_a_secret_that_is_emptied_again_and_again_has_a_bounded_bundle() -> None:
    registered = b""
    for minute in range(MOST_CAS + 10):
        decision = decided({}, registered, now=START + timedelta(minutes=minute))
        registered = decision.data[BUNDLE]
    assert len(split(registered)) == MOST_CAS + 1
    assert decided(decision.data, registered, now=START + timedelta(hours=2)).step is RotationStep.REST


@cache
def trusted(certificate: bytes, key: bytes, *bundles: bytes) -> Leaf | None:
    """The certificate, if one of the bundles verifies it."""
    return read(certificate, key, split(b"".join(bundles)))


class RotationModel(RuleBasedStateMachine):
    """Two configurations, two API servers, two replicas, and leaders whose clocks are up to an hour off.

    Between any two steps a leader may die, a late write may arrive, a person may edit, and a replica may load the
    Secret. An API server sees a change within `DELAY`. No edit takes away the last copy of a CA that is in use.
    """

    DELAY = 4.0

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.data: Data = {}
        self.version = 0
        self.history: list[list[tuple[datetime, bytes]]] = [[(START, b"")], [(START, b"")]]
        self.seen = {(server, n): 0 for server in range(2) for n in range(2)}
        self.replicas: list[tuple[bytes, bytes]] = [(b"", b""), (b"", b"")]
        self.snapshots: list[Data] = [{}]
        self.late: list[tuple[int, list[int], RotationDecision]] = []
        self.elect(0)

    @initialize(hours=st.integers(-1, 1), steps=st.sampled_from([0, 3, 6]))
    def a_leader(self, hours: int, steps: int) -> None:
        """From an empty Secret, from one whose first certificate is about to be served, or from rest."""
        self.elect(hours)
        for _ in range(steps):
            self.work()
            self.wait(URGENT_SECONDS)
        for replica in range(2):
            self.load(replica)

    @rule(hours=st.integers(-1, 1))
    def elect(self, hours: int) -> None:
        """The leader dies between two steps."""
        self.rotation = Rotation(NAMES, spread=SPREAD_SECONDS)
        self.offset = timedelta(hours=hours)

    @rule()
    def look(self) -> None:
        """Read and decide; the write is on its way."""
        registered = [writes[-1][1] for writes in self.history]
        clock = (self.now - START).total_seconds()
        decision = self.rotation.decide(self.data, registered, now=self.now + self.offset, clock=clock)
        self.check_step(decision)
        self.late.append((self.version, [len(writes) for writes in self.history], decision))

    @precondition(lambda self: self.late)
    @rule(last=st.booleans(), objects=st.sets(st.integers(0, 1)))
    def write(self, last: bool, objects: set[int]) -> None:
        """A write arrives; of an INJECT, perhaps a part."""
        version, lengths, decision = self.late.pop(-1 if last else 0)
        if decision.step is RotationStep.INJECT:
            for n in objects:
                if lengths[n] == len(self.history[n]):
                    self.register(n, decision.bundle)
        elif decision.step is not RotationStep.REST and version == self.version:
            self.store(dict(decision.data))

    @rule()
    def work(self) -> None:
        self.look()
        self.write(last=True, objects={0, 1})

    @rule()
    def work_until_rest(self) -> None:
        for _ in range(4):
            self.work()

    @rule(replica=st.integers(0, 1))
    def load(self, replica: int) -> None:
        """A replica serves what is in the Secret, if certificate and key fit; it keeps what it has otherwise."""
        pair = self.data.get(CERTIFICATE, b""), self.data.get(KEY, b"")
        if trusted(*pair, self.data.get(BUNDLE, b"")):
            self.replicas[replica] = pair

    @rule(server=st.integers(0, 1))
    def watch(self, server: int) -> None:
        """An API server sees all changes."""
        for n, writes in enumerate(self.history):
            self.seen[server, n] = len(writes) - 1

    @rule(seconds=st.sampled_from([0.5, URGENT_SECONDS, SPREAD_SECONDS, 86_400.0, 86_400.0 * 100]))
    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        for (server, n), index in self.seen.items():
            old = [i for i, (at, _) in enumerate(self.history[n]) if (self.now - at).total_seconds() >= self.DELAY]
            self.seen[server, n] = max([index, *old])
        if seconds > SPREAD_SECONDS:
            for replica in range(2):
                self.load(replica)

    @rule()
    def rotate_by_hand(self) -> None:
        self.edit(self.data | {NEXT_CERTIFICATE: b""})

    @rule()
    def empty_by_hand(self) -> None:
        self.edit({})

    @rule(name=st.sampled_from([CERTIFICATE, KEY, BUNDLE, NEXT_CERTIFICATE, NEXT_KEY]), value=st.none() | st.just(b"?"))
    def spoil_by_hand(self, name: str, value: bytes | None) -> None:
        others = {each: self.data[each] for each in self.data if each != name}
        self.edit(others if value is None else others | {name: value})

    @rule(data=st.data())
    def restore_by_hand(self, data: st.DataObject) -> None:
        self.edit(data.draw(st.sampled_from(self.snapshots)))

    @rule(n=st.integers(0, 1))
    def put_without_bundle(self, n: int) -> None:
        others = [writes[-1][1] for m, writes in enumerate(self.history) if m != n]
        if self.remembered(self.data, others):
            self.register(n, b"")

    def edit(self, data: Data) -> None:
        if self.remembered(data, [writes[-1][1] for writes in self.history]):
            self.store(data)

    def store(self, data: Data) -> None:
        self.data, self.version = data, self.version + 1
        self.snapshots.append(data)

    def register(self, n: int, bundle: bytes) -> None:
        if self.history[n][-1][1] != bundle:
            self.history[n].append((self.now, bundle))

    def remembered(self, data: Data, registered: list[bytes]) -> bool:
        """Whether the CA of all that may be served is somewhere."""
        bundles = data.get(BUNDLE, b""), *registered
        pairs = {(each.get(CERTIFICATE, b""), each.get(KEY, b"")) for each in (data, *self.snapshots)}
        return all(trusted(*pair, *bundles) or not self.valid(*pair) for pair in (*self.replicas, *pairs))

    def valid(self, certificate: bytes, key: bytes) -> bool:
        """Whether clients look at more than its date."""
        bundles = sorted({each[BUNDLE] for each in self.snapshots if BUNDLE in each})
        leaf = trusted(certificate, key, *bundles)
        return leaf is not None and leaf.not_after > self.now

    def check_step(self, decision: RotationDecision) -> None:
        """One thing in one write."""
        changed = {name for name in {*self.data, *decision.data} if self.data.get(name) != decision.data.get(name)}
        if decision.step is RotationStep.BUNDLE:
            assert BUNDLE in changed
            assert not changed & {CERTIFICATE, KEY}
        elif decision.step is RotationStep.LEAF:
            assert BUNDLE not in changed
            assert CERTIFICATE in changed
        else:
            assert not changed

    @invariant()
    def what_is_served_is_trusted(self) -> None:
        for (server, n), index in self.seen.items():
            bundle = self.history[n][index][1]
            for pair in self.replicas:
                if bundle and self.valid(*pair):
                    assert trusted(*pair, bundle), f"API server {server} refuses a replica, by object {n}"

    @invariant()
    def no_step_forgets_a_ca(self) -> None:
        assert self.remembered(self.data, [writes[-1][1] for writes in self.history])

    def teardown(self) -> None:
        """From wherever it is, it comes to rest."""
        for _ in range(12):
            self.work()
            self.wait(SPREAD_SECONDS)
            self.what_is_served_is_trusted()
        bundles = {writes[-1][1] for writes in self.history}
        assert len(bundles) == 1
        assert read(self.data[CERTIFICATE], self.data[KEY], split(bundles.pop()))
        assert NEXT_CERTIFICATE not in self.data


TestRotationModel = RotationModel.TestCase
TestRotationModel.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
