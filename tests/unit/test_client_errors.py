"""Errors of the client: what they say, and what they must not say."""

from __future__ import annotations

import contextvars
import json
from typing import Any, cast

import pytest
from invoke.exceptions import Exit

from bonny.client.api import Client, was_made
from bonny.client.errors import (
    LEFT_OUT,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    Refusal,
    ServerError,
    Throttled,
    Unauthorized,
    log_text_of,
    refusal,
    shows_values,
)
from bonny.client.request import retry_after
from bonny.core.objects import Cause, Failure
from bonny_dev.tasks.declaring import in_one_sentence


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (404, NotServed),
        (409, Conflict),
        (413, Invalid),
        (422, Invalid),
        (429, Throttled),
        (500, ServerError),
        (302, ServerError),
    ],
)
def test_a_status_has_the_class_that_says_what_to_do_next(code: int, kind: type[Exception]) -> None:
    reason = "NotFound" if kind is NotFound else ""
    error = refusal(Failure(code, reason, "what the server said"), verb="get", resource="configmaps default/w1")
    assert type(error) is kind
    assert str(error) == f"cannot get configmaps default/w1 ({code}): what the server said"


def test_the_causes_of_a_refusal_survive_the_cleaning_of_its_message() -> None:
    failure = Failure(403, "Forbidden", "no", 2.0, (Cause("NamespaceTerminating"),))

    error = refusal(failure, verb="create", resource="events.events.k8s.io w1.1")

    assert (error.causes, error.retry_after, error.reason) == (("NamespaceTerminating",), 2.0, "Forbidden")


def said(code: int, message: str, *causes: Cause, resource: str = "jobs.batch default/w1") -> str:
    """What an apply that was refused so says, after the words that are always there."""
    error = refusal(Failure(code, "", message, None, causes), verb="apply", resource=resource)
    assert str(error).partition("; missing rule: ")[0] == f"cannot apply {resource} ({code}): {error.message}"
    return error.message


POLICY = "deployments.apps \"w1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
WEBHOOK = 'admission webhook "a.example.com" denied the request'
# As API servers really write them (1.36); what hunter2 stands for is a password.
JOB = 'Invalid value: {"Spec":{"Containers":[{"Env":[{"Name":"PASSWORD","Value":"hunter2"}]}]}}: field is immutable'
POD = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.tolerations` (only "
    'additions to existing tolerations)\n@@ -13,7 +13,7 @@\n-     "Value": "hunter1",\n+     "Value": "hunter2",\n'
)
SELECTOR = 'Invalid value: {"a":"hunter2"}: `selector` does not match template `labels`'
NAME = 'Invalid value: "hunter2: x": name is neither a standard finalizer name nor is it fully qualified'
PATH = '.spec.containers[name="c"]'
MANAGER = 'conflict with "kubectl" with subresource "scale" using apps/v1'
UNCHECKED = "Invalid value: null: some validation rules were not checked because the object was invalid"


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        ([Cause("FieldValueInvalid", "spec.template", JOB)], "spec.template: Invalid: field is immutable"),
        (
            [Cause("FieldValueForbidden", "spec", POD)],
            "spec: Forbidden: field is immutable",
        ),
        (
            [Cause("FieldValueInvalid", "spec.template.metadata.labels", SELECTOR)],
            f"spec.template.metadata.labels: Invalid; {LEFT_OUT}",
        ),
        (
            [
                Cause("FieldValueInvalid", "metadata.finalizers[0]", NAME),
                Cause("FieldValueTooLong", "spec.pin", "Too long: may not be more than 10 bytes"),
                Cause("FieldValueInvalid", "<nil>", UNCHECKED),
            ],
            f"metadata.finalizers[0]: Invalid; spec.pin: TooLong; {LEFT_OUT}",
        ),
        (
            [Cause("FieldManagerConflict", f"{PATH}.image", MANAGER)],
            f"{PATH}.image: FieldManagerConflict; {LEFT_OUT}",
        ),
        (
            [Cause("FieldManagerConflict", '.spec.users[password="hunter2"].x', MANAGER)],
            f".spec.users[password=...].x: FieldManagerConflict; {LEFT_OUT}",
        ),
        # A webhook writes the whole answer, its reasons too.
        ([Cause("the password is hunter2", "spec.pin", "no")], f"spec.pin; {LEFT_OUT}"),
        (
            [Cause("FieldValueNotSupported", "spec.mode", 'Unsupported value: "hunter2": supported values: "A", "*"')],
            f"spec.mode: NotSupported; {LEFT_OUT}",
        ),
        (
            [Cause("FieldValueInvalid", "spec.x", 'Invalid value: "supported values: \\"hunter2\\"": must be odd')],
            f"spec.x: Invalid; {LEFT_OUT}",
        ),
        # The text of a rule in a CRD is its author's.
        (
            [Cause("FieldValueForbidden", "spec", "Forbidden: the password hunter2 is too short")],
            f"spec: Forbidden; {LEFT_OUT}",
        ),
        (
            [Cause("FieldValueDuplicate", f"spec.users[{n}]", 'Duplicate value: "hunter2"') for n in range(20)],
            "; ".join([*(f"spec.users[{n}]: Duplicate" for n in range(8)), "12 more", LEFT_OUT]),
        ),
    ],
)
def test_a_refusal_names_fields_and_reasons_and_no_values(causes: list[Cause], told: str) -> None:
    """Regression: values of objects, passwords among them, stood in status, events and log."""
    assert said(422, "Job.batch is invalid: " + ", ".join(cause.message for cause in causes), *causes) == told


@pytest.mark.parametrize("where", [' in the namespace "default"', " at the cluster scope", ""])
def test_the_text_of_rbac_is_repeated_without_what_follows_it(where: str) -> None:
    text = 'jobs.batch is forbidden: User "u:a:b" cannot patch resource "jobs" in API group "batch"' + where
    assert said(403, text) == text
    assert said(403, f"{text}: hunter2 is unknown to the authorizer") == text


@pytest.mark.parametrize(
    ("code", "reason", "message", "told"),
    [
        (404, "NotFound", 'namespaces "nope" not found', "NotFound"),
        (409, "AlreadyExists", 'configmaps "w1" already exists', "AlreadyExists"),
        (409, "Conflict", 'Operation cannot be fulfilled on configmaps "w1": hunter2 changed it', "Conflict"),
        (403, "Forbidden", 'pods "w1" is forbidden: exceeded quota: hunter2', f"Forbidden; {LEFT_OUT}"),
        (403, "Forbidden", 'pods "w1" is forbidden: violates PodSecurity "hunter2": x', f"Forbidden; {LEFT_OUT}"),
        (422, "Invalid", f"{POLICY}: the image hunter2 is bad", f"Invalid; {LEFT_OUT}"),
        (403, "the password is hunter2", f"{WEBHOOK}: hunter2", LEFT_OUT),
        (500, "InternalError", 'failed calling webhook "a.example.com": hunter2', f"InternalError; {LEFT_OUT}"),
        (500, "", "<html>hunter2 is blocked here</html>", LEFT_OUT),
        (500, "", "", "without a reason"),
    ],
)
def test_of_a_text_without_causes_the_reason_is_reported(code: int, reason: str, message: str, told: str) -> None:
    error = refusal(Failure(code, reason, message), verb="apply", resource="pods default/w1")
    assert str(error) == f"cannot apply pods default/w1 ({code}): {told}"
    assert "hunter2" not in str(vars(error))


def test_a_request_that_rbac_refused_names_the_rule_that_is_missing() -> None:
    message = (
        'deployments.apps "w1" is forbidden: User "system:serviceaccount:w:w" cannot patch resource '
        '"deployments/status" in API group "apps" in the namespace "default"'
    )
    error = refusal(Failure(403, "Forbidden", message, None, ()), verb="apply", resource="deployments.apps default/w1")

    assert str(error).endswith(
        '; missing rule: {"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["patch"]}'
    )
    assert "missing rule" not in str(
        refusal(Failure(403, "Forbidden", "exceeded quota", None, ()), verb="apply", resource="pods default/w1")
    )


# As kube-apiserver 1.36 writes it.
ESCALATION = (
    'roles.rbac.authorization.k8s.io "team" is forbidden: user "system:serviceaccount:op:op" (groups=['
    '"system:serviceaccounts" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
)
HELD = (
    '{APIGroups:[""], Resources:["configmaps"], Verbs:["get" "list"]}',
    '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
    '{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["x], \\"y"], Verbs:["patch"]}',
    '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
)


def test_a_role_that_grants_too_much_is_refused_with_the_rules_that_the_operator_misses() -> None:
    failure = Failure(403, "Forbidden", ESCALATION + "\n".join(HELD))
    error = refusal(failure, verb="apply", resource="roles.rbac.authorization.k8s.io default/team")

    fact, _, rules = str(error).partition("; missing rule: ")
    assert fact == (
        'cannot apply roles.rbac.authorization.k8s.io default/team (403): roles.rbac.authorization.k8s.io "team" is '
        'forbidden: user "system:serviceaccount:op:op" is attempting to grant RBAC permissions not currently held'
    )

    # Also where a developer sees values: the groups, and the rules as Go writes them, would only be longer.
    def locally() -> Refusal:
        shows_values.set(True)
        return refusal(failure, verb="apply", resource="roles.rbac.authorization.k8s.io default/team")

    assert log_text_of(contextvars.copy_context().run(locally)) == str(error)
    # As an author pastes them into `rules`, which is a tuple.
    assert json.loads(f"[{rules}]") == [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "resourceNames": ['x], \\"y'],
            "verbs": ["patch"],
        },
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]


@pytest.mark.parametrize("refuser", [f"{WEBHOOK}:", f"{POLICY}:", "x is bad:", 'pods "w1" is forbidden: x'])
def test_a_text_that_only_ends_like_one_of_rbac_is_left_out(refuser: str) -> None:
    """A policy and a webhook write any text, the words of RBAC among them."""
    grants = ESCALATION.replace("team", "t") + '{Verbs:["hunter2"]}'
    for words in (grants, 'User "u" cannot hunter2 resource "hunter2" in API group ""'):
        failure = Failure(403, "Forbidden", f"{refuser} {words}")
        error = refusal(failure, verb="apply", resource="configmaps default/w1")
        assert "hunter2" not in str(error)
        assert "missing rule" not in str(error)


def test_a_log_line_quotes_the_object_only_where_a_developer_runs_the_operator() -> None:
    def refused() -> Refusal:
        error = refusal(Failure(422, "Invalid", JOB, None, ()), verb="apply", resource="jobs.batch default/w1")
        error.add_note("in step ApplyDescendants")
        return error

    def locally() -> Refusal:
        shows_values.set(True)
        return refused()

    elsewhere, here = refused(), contextvars.copy_context().run(locally)
    assert "hunter2" not in f"{log_text_of(elsewhere)} {vars(elsewhere)}"
    assert '"Value":"hunter2"' in log_text_of(here)
    assert log_text_of(here).endswith("; in step ApplyDescendants")
    assert "hunter2" not in str(here)  # as in events and conditions


def test_an_answer_to_a_read_is_repeated_but_not_that_of_a_secret() -> None:
    """What reads is answered before anybody has sent an object."""
    failure = Failure(502, "", "<html>Bad Gateway</html>")

    assert refusal(failure, verb="list", resource="pods").message == "<html>Bad Gateway</html>"
    assert refusal(failure, verb="list", resource="secrets").message == "without a reason"


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        (401, "Unauthorized", "Unauthorized"),
        (404, "", "nothing is served there"),
        (413, "RequestEntityTooLarge", "RequestEntityTooLarge"),
        (429, "TooManyRequests", "TooManyRequests"),
        (503, "", "without a reason"),
    ],
)
def test_what_no_dry_run_would_show_is_reported_by_its_reason(code: int, reason: str, told: str) -> None:
    error = refusal(Failure(code, reason, "hunter2 is late"), verb="apply", resource="pods default/w1")
    assert str(error) == f"cannot apply pods default/w1 ({code}): {told}"


@pytest.mark.parametrize("wrote_it", [True, False])
def test_a_task_shows_the_whole_text_where_its_reader_wrote_the_object(wrote_it: bool) -> None:
    def run() -> str:
        shows_values.set(wrote_it)
        with pytest.raises(Exit) as raised, in_one_sentence():
            raise refusal(Failure(422, "Invalid", "rule: hunter2 is undeclared"), verb="apply", resource="crds a")
        return str(raised.value)

    left_out = f"Invalid; {LEFT_OUT}"
    told = "rule: hunter2 is undeclared" if wrote_it else left_out
    assert contextvars.copy_context().run(run) == f"cannot apply crds a (422): {told}"


@pytest.mark.parametrize(
    "message",
    [
        "failed to create typed patch object (/f; v1, Kind=F): .x: field not declared in schema",
        "failed to convert new object (/l) to proper version",
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)",
    ],
)
def test_what_does_not_fit_is_invalid_although_the_answer_is_a_500(message: str) -> None:
    error = refusal(Failure(500, "", f"{message}: hunter2"), verb="apply", resource="x")
    assert type(error) is Invalid
    begin = message.partition(" (")[0]
    assert str(error) == f"cannot apply x (500): {begin}; {LEFT_OUT}"
    assert type(refusal(Failure(500, "", "rpc error: code = Unavailable"), verb="apply", resource="x")) is ServerError


def test_of_a_secret_nothing_is_repeated() -> None:
    error = refusal(Failure(500, "", "data[pin]: hunter2 is no base64"), verb="apply", resource="secrets default/w1")
    assert "hunter2" not in str(error)
    assert "secrets default/w1 (500)" in str(error)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("120", 120.0),
        ("", None),
        ("1.5", None),
        ("-1", None),
        ("²", None),
        ("nan", None),
        ("1, 0", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_of_the_advice_when_to_come_back_seconds_are_read_and_nothing_else(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}) == seconds
    assert retry_after({}) is None


def test_an_object_under_deletion_is_not_taken_for_what_an_earlier_try_created() -> None:
    """Regression: `create` returned an object that was gone a moment later, and nothing was created."""
    sent = {"metadata": {"name": "c", "labels": {"bonny.dev/owner-uid": "u1"}}, "data": {"a": "1"}}
    live = {**sent, "metadata": {**sent["metadata"], "uid": "u2"}}
    assert was_made(live, sent)
    assert not was_made({**live, "metadata": {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, sent)
    assert not was_made({**live, "data": {"a": "2"}}, sent)
    assert not was_made({}, sent)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (
            '299 - "policy/v1beta1 Budget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 P"',
            "policy/v1beta1 Budget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 P",
        ),
        (
            '299 - "example.com/v1 Widget is deprecated; use example.com/v2 Widget"',
            "example.com/v1 Widget is deprecated; use example.com/v2 Widget",
        ),
        ('299 - "example.com/v1 Widget is deprecated"', "example.com/v1 Widget is deprecated"),
        (r'299 - "unknown field \"spec.colour\""', 'unknown field "spec.colour"'),
        # The text of a webhook or of a policy; the server does not say so.
        (r'299 - "the password \"hunter2\" is short"', LEFT_OUT),
    ],
)
async def test_a_warning_is_logged_without_what_may_quote_the_object(
    header: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(cast("Any", None), user_agent="test/1.0") as client:
        client._warn(header)
        client._warn(header)

    assert [vars(record)["warning"] for record in caplog.records] == [told]


def test_a_name_in_the_text_of_a_refusal_does_not_steer_the_terminal() -> None:
    error = refusal(Failure(404, "NotFound", "a\x1b[2J not found"), verb="get", resource="pods n/a")
    assert str(error) == "cannot get pods n/a (404): a\\u001b[2J not found"
