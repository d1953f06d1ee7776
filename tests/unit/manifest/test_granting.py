"""Granting: a handler test refuses a Role that the API server would refuse, and a manifest warns of it."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from bonny import Axn, Controller, Operator, Owned, Resource
from bonny_dev import testing
from bonny_dev.manifest.granting import API_VERSION, warnings
from tests.support.widget import Widget, widget

GROUP = "rbac.authorization.k8s.io"
READS: Resource = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
BINDS: Resource = {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]}
VIEW: Resource = {"apiVersion": API_VERSION, "kind": "ClusterRole", "metadata": {"name": "view"}, "rules": [READS]}


class Grants(Controller[Widget]):
    """Registers what the test says."""

    owns = (Owned(API_VERSION, "Role"), Owned(API_VERSION, "RoleBinding"))
    registered: ClassVar[Resource] = {}

    async def reconcile(self, axn: Axn[Any]) -> None:
        """One child."""
        axn.register_descendant({"apiVersion": API_VERSION, "metadata": {"name": "child"}, **self.registered})


ROLE = Grants.configured(registered={"kind": "Role", "rules": [READS]})
BINDING = Grants.configured(
    registered={"kind": "RoleBinding", "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}}
)


@pytest.mark.parametrize(
    ("controller", "observed", "missing"),
    [
        (ROLE, [], READS),
        (ROLE.configured(rules=(READS,)), [], None),
        # It may list Secrets because it owns them, and grant that.
        (ROLE.configured(owns=(*Grants.owns, Owned("v1", "Secret"))), [], None),
        (ROLE.configured(rules=(BINDS,)), [], READS),
        (BINDING, [], BINDS),
        (BINDING.configured(rules=(BINDS,)), [], None),
        (BINDING, [VIEW], READS),
        (BINDING.configured(rules=(READS,)), [VIEW], None),
        (BINDING.configured(rules=(READS,)), [], BINDS),
    ],
)
async def test_a_handler_test_names_the_rule_that_the_operator_lacks(
    controller: type[Controller[Any]], observed: list[Resource], missing: Resource | None
) -> None:
    if missing is None:
        await testing.handle(controller, widget(), observed=observed)
        return
    with pytest.raises(AssertionError, match="which grants rules that the operator does not have") as raised:
        await testing.handle(controller, widget(), observed=observed)
    assert str(raised.value).endswith(f": add to its `rules`: {json.dumps(missing)}")


def test_a_manifest_warns_of_a_controller_that_owns_roles_and_has_no_rules() -> None:
    def warned(controller: type[Controller[Any]]) -> list[str]:
        return [*warnings(Operator(name="w", group="example.com", controllers=[controller]))]

    (sentence,) = warned(ROLE)
    assert sentence.startswith(
        "Grants owns Role, RoleBinding, and an operator may grant only rules that it has: add the rules"
    )
    assert warned(ROLE.configured(rules=(READS,))) == []
    assert warned(ROLE.configured(owns=(Owned("v1", "ConfigMap"),))) == []
