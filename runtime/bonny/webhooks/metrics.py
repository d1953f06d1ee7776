"""Metrics: what the API server asked, and how it was answered; a part of /metrics (`bonny.run.metrics`)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from ..telemetry.prometheus import counter, histogram
from .app import WebhookApp


def families(app: WebhookApp) -> Iterator[Metric]:
    """All metrics of the webhooks of `app`. The label `webhook` is the path, as in controller-runtime."""
    answers = {(path, str(status)): n for (path, status), n in app.answers.items()}
    text = "Requests of the API server to webhooks by status code."
    yield counter("controller_runtime_webhook_requests_total", text, ("webhook", "code"), answers)
    seconds = {(path,): taken for path, taken in app.seconds.items()}
    text = "Seconds that the answer to a request of the API server took."
    yield histogram("controller_runtime_webhook_latency_seconds", text, ("webhook",), seconds)
    reviews = {labels: n for reviewer in app.reviewers for labels, n in reviewer.reviews.items()}
    text = "Reviews of writes by outcome; the failure policy decides after error and timeout."
    yield counter("bonny_webhook_reviews_total", text, ("webhook", "operation", "outcome"), reviews)
    converted = app.converter.objects if app.converter is not None else {}
    text = "Objects that were converted, by outcome: with `carried` an annotation holds values without a field."
    yield counter("bonny_webhook_conversions_total", text, ("kind", "outcome"), converted)
