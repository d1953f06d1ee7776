"""Policies: rules about writers, objects and namespaces, which the API server evaluates itself.

You need it where a schema and its `Rule`s do not see enough: the user, the namespace and its labels, parameters,
deletions, objects of other kinds. You do not need it for conditions on the object alone: its version class has those.

    TIER = ValidatingAdmissionPolicy(
        "widget-tier",
        resource=Widget,
        match_conditions={"tier-changes": "oldObject == null || object.spec.tier != oldObject.spec.tier"},
        validations=(Validation("'sre' in request.userInfo.groups", message="only the group sre sets spec.tier"),),
    )

`discover` finds it, and `invoke manifest` writes the policy and its binding. No server of yours is involved: there is
nothing to keep running, and no certificate. Only the API server evaluates policies, about two seconds after they were
applied. Writes of the operator itself, and of objects that are being deleted, always pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, TypeAlias

from ..api import Version
from ..extras import Declaration
from ..kinds import Kind

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Validation:
    """A condition in CEL on a write. A policy answers with the first one that does not hold.

    It sees `object` (null for DELETE), `oldObject` (null for CREATE), `request`, `namespaceObject`, `params`,
    `variables` and `authorizer`.
    """

    expression: str
    """True for writes that are allowed."""

    _: KW_ONLY

    message: str = ""
    """The text for the user when a write is refused. One line. This or `message_expression` is required."""

    message_expression: str = ""
    """A CEL expression whose string replaces `message`. Default: none."""

    reason: Literal["Invalid", "Forbidden", "Unauthorized", "RequestEntityTooLarge"] = "Invalid"
    """The machine-readable reason, and with it the HTTP code. Default `Invalid` (422)."""


@dataclass(frozen=True, slots=True)
class Params:
    """Objects with parameters for the expressions of a policy, as `params`: `Params(Limits, name="widgets")`.

    Without a namespace, parameters of a namespaced kind come from the namespace of the object that is written.
    """

    kind: type[Version] | Kind
    """The kind of the parameters: a version class, or `Kind("v1", "ConfigMap")`."""

    _: KW_ONLY

    name: str = ""
    """The name of the one object. Default: every object that `selector` selects; all of them must allow the write."""

    selector: Mapping[str, str] = field(default_factory=dict)
    """The labels of the objects, without a name. Default: all objects of the kind."""

    namespace: str = ""
    """The namespace of the objects. Default: that of the object that is written."""

    not_found: Literal["Deny", "Allow"] = "Deny"
    """The answer to a write for which there are no parameters. Default `Deny`."""


@dataclass(frozen=True, slots=True)
class Policy(Declaration):
    """The options of both kinds of policy. Use `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy`."""

    extra: ClassVar[str] = "policies"

    name: str
    """A DNS label; in the cluster the policy is called `<name>.<group of the operator>`, and `.<namespace>` after that
    for an operator with `watch="namespace"`."""

    _: KW_ONLY

    resource: type[Version] | Kind | tuple[type[Version] | Kind, ...]
    """The kinds whose writes it sees, in all their versions."""

    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    """The writes that it sees. Default: CREATE and UPDATE."""

    subresources: tuple[str, ...] = ()
    """Subresources whose writes it sees too: `("status",)`. Default: only writes of the object itself."""

    match_conditions: Mapping[str, str] = field(default_factory=dict)
    """Conditions in CEL by name; a write for which one is false passes. Default: no conditions."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Expressions in CEL by name, which others use as `variables.<name>`. Default: none."""

    namespace_selector: Mapping[str, str] = field(default_factory=dict)
    """The labels of the namespaces in which it applies. Default: everywhere; only in its own for an operator with
    `watch="namespace"`."""

    params: Params | None = None
    """Parameters for the expressions. Default: none."""

    exempt_operator: bool = True
    """Let all writes of the operator's own ServiceAccount pass. Default True: a policy that refuses the operator's
    status or finalizer would block every reconcile."""

    failure_policy: Literal["", "Fail", "Ignore"] = ""
    """The answer to a write on which an expression fails. Default: `Fail` if all kinds are your own, or `Ignore`."""


@dataclass(frozen=True, slots=True)
class ValidatingAdmissionPolicy(Policy):
    """Refuses writes. Kubernetes 1.30 or newer.

    `invoke manifest` refuses a policy that the API server would refuse, and fields of your own kinds that do not exist,
    which the API server accepts.
    RBAC: none for the operator; who applies the manifest needs create on both kinds of object.
    """

    validations: tuple[Validation, ...] = ()
    """The conditions that a write must meet, in the order in which they are evaluated."""

    actions: tuple[Literal["Deny", "Warn", "Audit"], ...] = ("Deny",)
    """The reaction when one is not met. Default `("Deny",)`. `("Warn", "Audit")` lets the write pass, warns the user
    and notes it in the audit log: a trial before it is enforced."""


@dataclass(frozen=True, slots=True)
class MutatingAdmissionPolicy(Policy):
    """Changes objects that are written, such as defaults that depend on the namespace. Kubernetes 1.36 or newer.

    A default that is always the same belongs in the version class: `size: int = 1`.
    `invoke manifest` refuses a policy that the API server would refuse.
    RBAC: none for the operator; who applies the manifest needs create on both kinds of object.
    """

    apply: tuple[str, ...] = ()
    """CEL expressions of partial objects, which are merged as by server-side apply:
    `Object{spec: Object.spec{tier: namespaceObject.metadata.labels['tier']}}`."""

    json_patch: tuple[str, ...] = ()
    """CEL expressions of JSON patches, made after `apply`: `[JSONPatch{op: "add", path: "/spec/tier", value: "low"}]`.
    """

    again: bool = False
    """Evaluate the policy once more if another one changed the object after it. Default False; otherwise it must have
    no effect the second time."""
