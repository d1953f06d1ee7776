"""The Lease of one bucket: when it is renewed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.clock import clock
from bonny.core import lease
from bonny.core.lease import JITTER, Candidate, LeaseRecord, LeaseTiming
from bonny.run import leader
from bonny.sharding import terms
from bonny.sharding.terms import BucketTerm, Deadlines

TIMINGS = st.sampled_from(
    [
        LeaseTiming(),
        LeaseTiming(lease_duration=4, renew_deadline=2.5, retry_period=0.5),
        LeaseTiming(lease_duration=60, renew_deadline=40.0, retry_period=7.3),
    ]
)
MOMENTS = st.floats(0.0, 1e7)
PHASES = st.floats(0.0, 1.0, exclude_max=True)


def claiming(timing: LeaseTiming) -> BucketTerm:
    """A free bucket, of which the claim is under way."""
    term = BucketTerm(
        None,
        namespace="default",
        name="op-bucket-0",
        deadlines=Deadlines("op"),
        candidate=Candidate("r1", timing),
        live={},
        reads=False,
        label="op",
    )
    assert isinstance(term._step(lease.LeaseTick()), lease.Read)
    assert isinstance(term._step(lease.Found(LeaseRecord())), lease.Write)
    return term


def stored(timing: LeaseTiming, phase: float, *, sent: float, answered: float) -> tuple[Candidate, lease.LeaseCommand]:
    """A bucket whose claim was sent and stored at these moments, and the command that follows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "PHASE", phase)
        for module in (leader, terms):
            patch.setattr(module, "clock", lambda: answered)
        term = claiming(timing)
        command = term._step(lease.Stored(LeaseRecord("7", "r1", timing.lease_duration), sent))
    assert term.candidate.until == sent + timing.renew_deadline
    return term.candidate, command


@given(
    timing=TIMINGS,
    phase=PHASES,
    first=MOMENTS,
    second=MOMENTS,
    latency=st.floats(0.0, 1.0 - JITTER, exclude_max=True),
)
def test_all_buckets_of_a_process_are_renewed_at_the_same_moments(
    timing: LeaseTiming, phase: float, first: float, second: float, latency: float
) -> None:
    """`latency` is a part of the period."""
    renewals = []
    for sent in (first, second):
        answered = sent + latency * timing.retry_period
        candidate, command = stored(timing, phase, sent=sent, answered=answered)
        assert isinstance(command, lease.LeaseWait)
        assert command.seconds == pytest.approx(candidate.renews - answered, abs=1e-6)
        assert sent <= candidate.renews <= sent + timing.retry_period, "never later than a single leader renews"
        renewals.append(candidate.renews)

    periods = (renewals[0] - renewals[1]) / timing.retry_period
    assert periods == pytest.approx(round(periods), abs=1e-6)


@given(timing=TIMINGS, phase=PHASES, sent=MOMENTS)
def test_an_answer_that_comes_later_than_a_period_is_followed_by_a_renewal_at_once(
    timing: LeaseTiming, phase: float, sent: float
) -> None:
    _, command = stored(timing, phase, sent=sent, answered=sent + 1.1 * timing.retry_period)

    assert isinstance(command, lease.Write)


def test_a_lease_that_was_stored_in_another_form_does_not_count_as_renewed() -> None:
    term = claiming(LeaseTiming())

    command = term._step(lease.Stored(LeaseRecord("7", "somebody", 15), clock()))

    assert isinstance(command, lease.LeaseWait)
    assert term.candidate.renews == lease.NEVER
    assert isinstance(term._step(lease.LeaseTick()), lease.Read)
