"""The Lease of one bucket: when it is renewed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.clock import clock
from bonny.core import lease
from bonny.core.lease import Candidate, LeaseRecord, LeaseTiming
from bonny.run import leader
from bonny.sharding import terms
from bonny.sharding.terms import BucketTerm, Deadlines

TIMING = LeaseTiming()
MOMENTS = st.floats(0.0, 1e7)


def claiming() -> BucketTerm:
    """A free bucket, of which the claim is under way."""
    term = BucketTerm(
        None,
        namespace="default",
        name="op-bucket-0",
        deadlines=Deadlines("op"),
        candidate=Candidate("r1", TIMING),
        live={},
        reads=False,
        label="op",
    )
    assert isinstance(term._step(lease.LeaseTick()), lease.Read)
    assert isinstance(term._step(lease.Found(LeaseRecord())), lease.Write)
    return term


def renewal(*, sent: float, answered: float) -> float:
    """When a bucket is renewed next whose claim was sent and stored at these moments."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (leader, terms):
            patch.setattr(module, "clock", lambda: answered)
        term = claiming()
        command = term._step(lease.Stored(LeaseRecord("7", "r1", TIMING.lease_duration), sent))
    assert isinstance(command, lease.LeaseWait)
    assert command.seconds == pytest.approx(term.candidate.renews - answered, abs=1e-6)
    assert term.candidate.until == sent + TIMING.renew_deadline
    return term.candidate.renews


@given(first=MOMENTS, second=MOMENTS, latency=st.floats(0.0, 1.0))
def test_all_buckets_of_a_process_are_renewed_at_the_same_moments(first: float, second: float, latency: float) -> None:
    renewals = [renewal(sent=sent, answered=sent + latency) for sent in (first, second)]

    for sent, renews in zip((first, second), renewals, strict=True):
        assert sent <= renews <= sent + TIMING.retry_period, "never later than a single leader renews"
    periods = (renewals[0] - renewals[1]) / TIMING.retry_period
    assert periods == pytest.approx(round(periods), abs=1e-6)


def test_a_lease_that_was_stored_in_another_form_does_not_count_as_renewed() -> None:
    term = claiming()

    command = term._step(lease.Stored(LeaseRecord("7", "somebody", TIMING.lease_duration), clock()))

    assert isinstance(command, lease.LeaseWait)
    assert term.candidate.renews == lease.NEVER
    assert isinstance(term._step(lease.LeaseTick()), lease.Read)
