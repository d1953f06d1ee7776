"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test. `testing` is
`bonny_dev.testing`. [How to write a webhook](../how-to/write-a-webhook.md) begins with when not to.
"""

from __future__ import annotations

from bonny.webhooks import Admission, Denied, Review
from bonny_dev import testing
from docs.reference.examples.widgets import Widget, widget


async def admission() -> None:
    class WidgetAdmission(Admission[Widget]):
        rules = ({"apiGroups": ["reference.example.com"], "resources": ["widgets"], "verbs": ["list"]},)
        match_conditions = {"spec-changes": "request.operation != 'UPDATE' || object.spec != oldObject.spec"}

        def default(self, review: Review[Widget]) -> None:
            review.resource["metadata"].setdefault("labels", {})["size"] = str(review.spec.size)

        async def validate(self, review: Review[Widget]) -> None:
            others = await review.client.list(Widget, namespace=review.namespace)
            if sum(Widget.spec_of(other).size for other in others) + review.spec.size > 100:
                raise Denied("is more than is left of the 100 in this namespace", field="spec.size")

    answers = {"list widgets.reference.example.com default": [widget("w0", size=99)]}
    reviewed = await testing.review(WidgetAdmission, widget("w1", size=3), answers=answers)
    assert reviewed.resource["metadata"]["labels"] == {"size": "3"}
    assert reviewed.causes == (("spec.size", "Invalid value: is more than is left of the 100 in this namespace"),)


async def review() -> None:
    class WidgetAdmission(Admission[Widget]):
        def validate(self, review: Review[Widget]) -> None:
            if review.old is not None and review.old_spec.size > review.spec.size:
                review.deny("must not shrink", field="spec.size")
            if not review.spec.secret:
                review.warn("spec.secret will be required")
            review.note("size", str(review.spec.size))

    reviewed = await testing.review(WidgetAdmission, widget("w1", size=3), old=widget("w1", size=4))
    assert (reviewed.code, reviewed.message) == (
        422,
        'Widget "w1" is invalid: spec.size: Invalid value: must not shrink',
    )
    assert reviewed.warnings == ["spec.secret will be required"]
    assert reviewed.notes == {"size": "3"}


async def denied() -> None:
    class WidgetAdmission(Admission[Widget]):
        def validate_delete(self, review: Review[Widget]) -> None:
            if "admins" not in review.user.groups:
                raise Denied("only admins delete widgets", forbidden=True)

    reviewed = await testing.review(WidgetAdmission, widget("w1", size=3), operation="DELETE", user="jane")
    assert (reviewed.code, reviewed.message) == (403, "only admins delete widgets")
