"""Policy checks: refuses an admission policy that the API server accepts, and that would have another effect.

Internal: `policies` calls `check_policy` for each policy that it writes. A running operator does nothing with a policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bonny.api.version import Version
from bonny.kinds import Kind

from .field_checks import refuse

if TYPE_CHECKING:
    # The extra may be absent; there are no policies then.
    from bonny.policies import Policy


def kinds_of(policy: Policy) -> tuple[type[Version] | Kind, ...]:
    """The kinds whose writes it sees, always as a tuple."""
    return policy.resource if isinstance(policy.resource, tuple) else (policy.resource,)


def check_policy(policy: Policy, owner: str) -> None:
    """Raises: `OptionError`, which begins with the `owner`."""
    from bonny.policies import MutatingAdmissionPolicy, ValidatingAdmissionPolicy  # noqa: PLC0415  see above

    for each in kinds_of(policy):
        if isinstance(each, Kind) and (each.namespace or each.label_selector or each.field_selector):
            refuse(owner, f"selects objects of {each.kind}: use match_conditions or namespace_selector instead")
    for option in ("operations", "actions", "apply", "json_patch"):
        if isinstance(given := getattr(policy, option, ()), str):
            refuse(owner, f"has {option}={given!r}: write a tuple")
    if isinstance(policy, MutatingAdmissionPolicy):
        if any("namespaceObject" in each for each in policy.match_conditions.values()):
            refuse(owner, "reads namespaceObject in a match condition, where the API server has none: use a variable")
        if "DELETE" in policy.operations:
            refuse(owner, "sees DELETE, where there is nothing to change: leave it out of the operations")
    for validation in policy.validations if isinstance(policy, ValidatingAdmissionPolicy) else ():
        if not (validation.message or validation.message_expression):
            problem = f"has the validation {validation.expression!r} without a message"
            refuse(owner, f"{problem}: name the value that the user must change")
