"""docs/security.md: its table of permissions is that of a fresh project, and its example does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from bonny_dev.manifest.bundle import documents, to_yaml
from tests.support.baking import uninstalled
from tests.support.pages import SECURITY, rows


def granted(manifest: str) -> set[tuple[str, str, str]]:
    """Role, resource and verbs of all that the operator's own ServiceAccount may do."""
    objects = [each for each in yaml.safe_load_all(manifest) if each]
    bound = {each["roleRef"]["name"] for each in objects if each["kind"].endswith("RoleBinding")}
    return {
        (each["kind"], _resource(rule, resource), " ".join(rule["verbs"]))
        for each in objects
        if each["kind"] in {"Role", "ClusterRole"} and each["metadata"]["name"] in bound
        for rule in each["rules"]
        for resource in rule["resources"]
    }


def _resource(rule: dict[str, Any], resource: str) -> str:
    (group,) = rule["apiGroups"]
    named = f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
    return f"{group}/{resource}{named}".removeprefix("/")


def test_every_permission_of_a_fresh_project_has_a_reason_and_no_reason_is_left_over(with_widgets: Path) -> None:
    table = rows(SECURITY, "role")
    reasons = {(role, rule, verbs): (because, worst) for role, rule, verbs, because, worst in table}

    assert granted(uninstalled(with_widgets, "manifest", "--out", "-")) == reasons.keys()
    assert len(table) == len(reasons)
    assert all(because and worst for because, worst in reasons.values())


def test_the_ports_of_the_policy_are_those_of_the_page(with_widgets: Path) -> None:
    objects = list(yaml.safe_load_all(uninstalled(with_widgets, "manifest", "--out", "-")))
    (policy,) = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    opened = {
        (direction, port["protocol"], port["port"])
        for direction, rules in (("in", policy["ingress"]), ("out", policy["egress"]))
        for rule in rules
        for port in rule["ports"]
    }

    told = {
        (direction, protocol, int(number))
        for direction, ports, *_ in rows(SECURITY, "direction")
        for protocol in re.findall("TCP|UDP", ports)
        for number in re.findall(r"\d+", ports)
    }
    assert told == opened


def test_the_example_of_the_page_closes_the_policy_further() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", SECURITY, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)

    objects = list(yaml.safe_load_all(to_yaml(documents(names["operator"], image="registry.example.com/x:1"))))

    (policy,) = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    assert [rule.get("to") for rule in policy["egress"]] == [
        [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
        None,
        [{"ipBlock": {"cidr": "10.0.9.9/32"}}],
    ]
    assert policy["egress"][2]["ports"] == [{"protocol": "TCP", "port": 5432}]


def test_a_manifest_that_somebody_shall_read_is_short(with_widgets: Path) -> None:
    assert len(uninstalled(with_widgets, "manifest", "--out", "-").splitlines()) < 300
