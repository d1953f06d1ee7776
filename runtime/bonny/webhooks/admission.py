"""Admission: sets defaults in objects and refuses objects, before the API server stores them.

You write a subclass beside the controllers, and `discover` finds it:

    class WidgetAdmission(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            review.spec.size = review.spec.size or 3

        async def validate(self, review: Review[Widget]) -> None:
            if review.spec.size % 2:
                raise Denied("must be even", field="spec.size")

You need it for rules that depend on other objects or on other systems. You do not need it for what a schema, a `Rule`,
a default of a field or a policy can say: those need no server and no certificate (rules-without-a-server.md).

Handlers may be `async def` (on the event loop) or `def` (in a thread). Every replica answers, also the ones that do not
lead. A handler may be called several times for one write, and for writes that are then refused, so it changes nothing
outside of its review.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Generic, Literal, TypeAlias, get_args

from ..api.names_kinds import NamesKinds
from ..api.version import Version
from ..errors import OptionError
from ..extras import Part
from ..kinds import Kind
from ..naming import check_rules, check_tuple, kebab_case
from ..resource import Resource
from .review import Operation, Review, V_co

Action: TypeAlias = Literal["mutate", "validate"]

# The API server allows 30. A person waits, and so does every client that writes.
LONGEST_SECONDS: Final = 10


class Admission(Part, NamesKinds, Generic[V_co]):
    """Reviews the writes of one or several kinds. One instance serves all of them.

    Guarantees: writes of the operator itself, in its own namespace and in kube-system, and of objects that are being
    deleted are never held up. An operator with `watch="namespace"` reviews the writes of other clients in its own
    namespace, and no others. An error that a handler raises by mistake changes nothing: it is logged and counted, and
    `failure_policy` decides on the write.
    """

    resource: ClassVar[type[Version] | Kind | tuple[type[Version] | Kind, ...]] = ()
    """The kinds whose writes it reviews, in all their versions. Default: the version class in brackets. Writes in other
    versions are converted to this one first."""

    operations: ClassVar[tuple[Operation, ...]] = ("CREATE", "UPDATE")
    """The writes that it reviews. Default: CREATE and UPDATE, and DELETE if `validate_delete` is defined."""

    subresources: ClassVar[tuple[str, ...]] = ()
    """Subresources whose writes it reviews too: `("status",)`. Default: only writes of the object itself."""

    match_conditions: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Conditions in CEL by name; a write for which one is false is not sent. Default: all writes. Most calls are spared
    by `{"spec-changes": "request.operation != 'UPDATE' || object.spec != oldObject.spec"}`."""

    object_selector: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The labels of the objects. Default: all. Users choose the labels of what they write: this is not a protection."""

    namespace_selector: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The labels of the namespaces. Default: everywhere but in the operator's own and in kube-system; only in its own
    for an operator with `watch="namespace"`."""

    failure_policy: ClassVar[Literal["", "Fail", "Ignore"]] = ""
    """The answer to a write when this webhook fails or does not answer. Default: `Fail` if all kinds are your own, or
    `Ignore`. `Fail` for other kinds needs a reason in `because`: while no replica answers, users cannot write them."""

    because: ClassVar[str] = ""
    """Why kinds that are not your own may fail closed. One sentence."""

    side_effects: ClassVar[Literal["None", "NoneOnDryRun"]] = "None"
    """Whether a review changes something elsewhere. Default `None`; with `NoneOnDryRun` check `review.dry_run`."""

    timeout: ClassVar[int] = 5
    """Seconds that the API server waits, from 1 to 10. Default 5. A handler is ended half a second earlier."""

    again: ClassVar[bool] = False
    """Call `default` once more if another webhook changed the object after it. Default False; otherwise it must have no
    effect the second time."""

    rules: ClassVar[tuple[Resource, ...]] = ()
    """RBAC rules for `review.client`, as a Role writes them; granted where the operator watches. Default: none."""

    # --- your methods ---
    # Typed so that both an `async def` and a `def` fit as what overrides them.

    def default(self, review: Review[V_co]) -> Awaitable[None] | None:
        """Change `review.spec`, or `review.resource` for metadata. Called for CREATE and UPDATE, before validation."""
        raise NotImplementedError

    def validate(self, review: Review[V_co]) -> Awaitable[None] | None:
        """Raise `Denied` to refuse the write. Called for CREATE and UPDATE, after the schema was checked."""
        raise NotImplementedError

    def validate_delete(self, review: Review[V_co]) -> Awaitable[None] | None:
        """Raise `Denied` to refuse the deletion of `review.resource`. An object with `Fail` can then only be deleted
        while a replica answers."""
        raise NotImplementedError

    # --- called by the runtime ---

    extra = "webhooks"
    _without_kinds = "reviews nothing: write Admission[YourVersion]"

    @classmethod
    def _check(cls) -> None:
        name = cls.__name__
        check_tuple(name, "operations", cls.operations, str, '"CREATE"')
        check_tuple(name, "subresources", cls.subresources, str, '"status"')
        check_rules(name, cls.rules)
        if unknown := set(cls.operations) - set(get_args(Operation)):
            raise OptionError(
                f"{name}.operations has {sorted(unknown)[0]!r}: use {', '.join(get_args(Operation))}; a webhook sees "
                "no reads"
            )
        timeout: object = cls.timeout
        if not (isinstance(timeout, int) and 1 <= timeout <= LONGEST_SECONDS):
            raise OptionError(f"{name}.timeout is {timeout!r}: use 1 to {LONGEST_SECONDS} whole seconds")
        foreign = cls.resource and not all(isinstance(each, type) for each in cls.resources())
        if foreign and cls.failure_policy == "Fail" and not cls.because:
            raise OptionError(
                f"{name} reviews kinds that are not your own and fails closed, so users cannot write them while "
                "no replica answers: leave failure_policy out, or give the reason in `because`"
            )

    @classmethod
    def is_complete(cls) -> bool:
        return bool(cls.resource)

    @classmethod
    def fails_closed(cls) -> bool:
        """Whether a write is refused when this webhook fails or does not answer."""
        own = all(isinstance(each, type) for each in cls.resources())
        return cls.failure_policy == "Fail" or (own and not cls.failure_policy)

    @classmethod
    def handlers(cls) -> dict[tuple[Action, Operation], str]:
        """The methods that are defined, by the action and the operation of the reviews that they get."""
        written = [each for each in cls.operations if each != "DELETE"]
        names: dict[tuple[Action, Operation], str] = {("mutate", each): "default" for each in written}
        names |= {("validate", each): "validate" for each in written} | {("validate", "DELETE"): "validate_delete"}
        return {called: name for called, name in names.items() if getattr(cls, name) is not getattr(Admission, name)}

    @classmethod
    def path(cls, action: Action) -> str:
        """The path of its reviews on the server."""
        return f"/{action}/{kebab_case(cls.__name__)}"
