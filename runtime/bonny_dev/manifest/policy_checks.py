"""Policy checks: refuses an admission policy that the API server would refuse, or that could have no effect.

Internal: `policies` calls `check_policy` for each policy that it writes. A running operator does nothing with a policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from bonny.api.policies import MutatingAdmissionPolicy, Policy, ValidatingAdmissionPolicy
from bonny.errors import OptionError
from bonny.kinds import Kind
from bonny.naming import check_dns_label, is_qualified_name

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")
ACTIONS: Final = ("Deny", "Warn", "Audit")


def check_policy(policy: Policy) -> None:
    """Raises: `UsageError` for its name, `OptionError` naming the policy for everything else."""
    check_dns_label(policy.name, "name of a policy", "widget-tier")
    if not policy.kinds:
        refuse(policy, "has no resource: name a version class or a Kind")
    for each in policy.kinds:
        if isinstance(each, Kind) and (each.namespace or each.label_selector or each.field_selector):
            refuse(policy, f"selects objects of {each.kind}: use match_conditions or namespace_selector instead")
    _check_words(policy, "operations", policy.operations, OPERATIONS)
    for name in policy.match_conditions:
        if not is_qualified_name(name):
            refuse(policy, f"has a match condition called {name!r}: use letters and digits, with - _ . between them")
    for name in policy.variables:
        if not (name.isascii() and name.isidentifier()):
            refuse(policy, f"has a variable called {name!r}: use letters, digits and _")
    if isinstance(policy, ValidatingAdmissionPolicy):
        _check_validating(policy)
    elif isinstance(policy, MutatingAdmissionPolicy):
        _check_mutating(policy)


def _check_validating(policy: ValidatingAdmissionPolicy) -> None:
    if not policy.validations:
        refuse(policy, "has no validations: add Validation(...), or leave the policy out")
    for each in policy.validations:
        if not (each.message or each.message_expression):
            refuse(policy, f"has the validation {each.expression!r} without a message: say what the user must change")
    _check_words(policy, "actions", policy.actions, ACTIONS)
    if {"Deny", "Warn"} <= set(policy.actions):
        refuse(policy, "both denies and warns: the user reads the refusal, so leave out Warn")


def _check_mutating(policy: MutatingAdmissionPolicy) -> None:
    if not (policy.apply or policy.json_patch):
        refuse(policy, "changes nothing: give `apply` or `json_patch`")
    for option, given in (("apply", policy.apply), ("json_patch", policy.json_patch)):
        if not isinstance(given, tuple):
            refuse(policy, f"has {option}={given!r}: write a tuple of expressions")
    if any("namespaceObject" in each for each in policy.match_conditions.values()):
        refuse(policy, "reads namespaceObject in a match condition, where the API server has none: use a variable")
    if "DELETE" in policy.operations:
        refuse(policy, "sees DELETE, where there is nothing to change: leave it out of the operations")


def _check_words(policy: Policy, option: str, given: Iterable[str], allowed: tuple[str, ...]) -> None:
    if not isinstance(given, tuple) or not given or not set(given) <= set(allowed):
        refuse(policy, f"has {option}={given!r}: write a tuple of {', '.join(allowed)}")


def refuse(policy: Policy, problem: str) -> NoReturn:
    raise OptionError(f"the policy {policy.name} {problem}")
