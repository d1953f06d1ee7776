"""Charts: the same objects as in the manifest, behind few and typed values."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest
import yaml

from bonny import Deploy, Operator
from bonny.errors import OptionError, UsageError
from bonny.resource import Resource
from bonny_dev.formats.folder import Folder
from bonny_dev.formats.helm import IMAGE, TEXTS, charts
from bonny_dev.formats.values import lacking
from bonny_dev.formats.version import semantic
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.optional_objects import PARTS
from tests.support.lamps import Lamp, LampAdmission, OldLamp

REPOSITORY = "registry.example.com:5000/lamps-operator"
# Every action of a template; a new one is added here and to what the real Helm is asked.
ACTIONS = (
    r"if \.Values\.\w+\.(enable|keep)",
    r"if and \.Values\.service\.enable \.Values\.serviceMonitor\.enable",
    r"with \.Values(\.\w+)+",
    r"range \.Values\.env",
    "end",
    r"toJson \.",
    r"\.Release\.Namespace",
    r"\.Values\.operatorNamespace \| default \.Release\.Namespace",
    r"\.Values\.replicas",
    '"{{"',
)


def operator(**options: Any) -> Operator:
    return Operator(
        **{
            "name": "lamps-operator",
            "group": "example.com",
            "crds": [Lamp, OldLamp],
            "controllers": [LampAdmission],
            **options,
        }
    )


def made(declared: Operator, image: str = f"{REPOSITORY}:1.0.0", **options: Any) -> Folder:
    return charts(declared, image=image, version="1.0.0", **options)


def templates(folder: Folder, chart: str = "lamps-operator") -> str:
    names = [name for name in folder.generated if name.startswith(f"{chart}/templates/") and name.endswith(".yaml")]
    return "".join(folder.generated[name] for name in names)


def without_conditions(template: str, namespace: str) -> list[Resource]:
    """The objects of a template whose conditions all hold, with null at the places of values."""
    text = template.replace(IMAGE.text, f"{REPOSITORY}:1.0.0").replace("{{ .Values.replicas }}", "1")
    lines = [line for line in text.splitlines() if not re.match(r" *\{\{- ", line) and "- {{ toJson . }}" not in line]
    text = "\n".join(lines).replace("{{ toJson . }}", "null").replace('{{ "{{" }}', "{{")
    return [*yaml.safe_load_all(text.replace("{{ .Release.Namespace }}", namespace))]


def bare(node: Any) -> Any:
    """An object without what its values set, and without the mark that an uninstall leaves it."""
    if isinstance(node, dict):
        left = {key: bare(value) for key, value in node.items() if key not in ("resources", "helm.sh/resource-policy")}
        return {key: value for key, value in left.items() if value is not None and (value or key != "annotations")}
    return [bare(each) for each in node] if isinstance(node, list) else node


def by_name(objects: list[Resource]) -> dict[str, Resource]:
    keys = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]
    assert len(set(keys)) == len(keys)
    return {str(key): bare(each) for key, each in zip(keys, objects, strict=True)}


def test_each_part_of_a_manifest_has_a_text_for_a_person_who_has_only_the_chart() -> None:
    assert [*TEXTS] == [*PARTS]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"watch": "namespace"},
        {"deploy": Deploy(replicas=3, labels={"team": "light"}, env={"A": "$(B) {{ x }}"})},
        {"deploy": Deploy(certificates="cert-manager", secure_metrics=True)},
        {"controllers": [], "crds": []},
    ],
    ids=["default", "namespace", "replicas", "cert-manager", "no-kinds"],
)
def test_templates_hold_the_objects_of_the_manifest_for_any_namespace(options: dict[str, Any]) -> None:
    declared = operator(**options)
    found = without_conditions(templates(made(declared)), "shop")

    expected = documents(declared, image=f"{REPOSITORY}:1.0.0", namespace="shop", include=[*PARTS])
    for each in expected:
        if each["kind"] == "Deployment":
            each["spec"]["replicas"] = 1
    assert by_name(found) == by_name([each for each in expected if each["kind"] != "Namespace"])


def test_actions_of_templates_are_few() -> None:
    folder = made(operator())
    for text in (templates(folder), templates(folder, "lamps-operator-crds")):
        rest = text.replace(IMAGE.text, "")
        for action in re.findall(r'\{\{-? (".*?"|.*?) \}\}', rest):
            assert any(re.fullmatch(each, action) for each in ACTIONS), action


def test_crds_stay_at_an_uninstall_and_can_be_left_to_a_chart_of_their_own() -> None:
    folder = made(operator())
    crds = folder.generated["lamps-operator/templates/crds.yaml"]
    assert crds.startswith("{{- if .Values.crd.enable }}\n---\n")
    assert "    {{- if .Values.crd.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n" in crds

    apart = folder.generated["lamps-operator-crds/templates/crds.yaml"]
    assert "helm.sh/resource-policy: keep\n" in apart
    assert 'namespace: "{{ .Values.operatorNamespace | default .Release.Namespace }}"' in apart
    assert "crds/" not in {name.partition("/")[2][:5] for name in folder.generated}, "Helm never upgrades that folder"
    assert not any("-crds/" in name for name in made(operator(crds=[], controllers=[])).generated)


def test_a_part_is_there_if_its_value_says_so() -> None:
    folder = made(operator(), include=["alerts"], exclude=["network-policy"])
    values = yaml.safe_load(folder.own["lamps-operator/values.yaml"])

    assert {name: values[name]["enable"] for name in ("roles", "service", "pdb", "serviceMonitor", "alerts")} == {
        "roles": True,
        "service": True,
        "pdb": False,
        "serviceMonitor": False,
        "alerts": True,
    }
    assert "networkPolicy" not in values
    assert "lamps-operator/templates/network-policy.yaml" not in folder.generated
    monitor = folder.generated["lamps-operator/templates/service-monitor.yaml"]
    assert monitor.startswith("{{- if and .Values.service.enable .Values.serviceMonitor.enable }}\n")
    rules = folder.generated["lamps-operator/templates/rbac.yaml"]
    assert rules.count("{{- if .Values.roles.enable }}\n") == 3


def test_defaults_are_what_the_manifest_says_also_after_customize() -> None:
    def customize(objects: list[Resource]) -> list[Resource]:
        (pod,) = (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment")
        pod["nodeSelector"] = {"kubernetes.io/arch": "arm64"}
        pod["affinity"] = {"podAffinity": {"namespaces": [objects[0]["metadata"]["name"]]}}
        pod["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
        return objects

    folder = made(operator(deploy=Deploy(replicas=2, customize=customize)))

    values = yaml.safe_load(folder.own["lamps-operator/values.yaml"])
    assert (values["replicas"], values["pdb"]["enable"]) == (2, True)
    assert values["nodeSelector"] == {"kubernetes.io/arch": "arm64"}
    assert values["resources"] == {"limits": {"memory": "1Gi"}}
    assert "affinity" not in values, "it names the namespace, which a value cannot"
    assert '- "{{ .Release.Namespace }}"' in folder.generated["lamps-operator/templates/operator.yaml"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (f"{REPOSITORY}:1.0.0", ("", "")),
        (f"{REPOSITORY}:1.0.0-rc1", ("1.0.0-rc1", "")),
        (f"{REPOSITORY}@sha256:{'a' * 64}", ("", f"sha256:{'a' * 64}")),
    ],
)
def test_the_image_is_three_values(image: str, expected: tuple[str, str]) -> None:
    values = yaml.safe_load(made(operator(), image).own["lamps-operator/values.yaml"])

    assert values["image"]["repository"] == REPOSITORY
    assert (values["image"]["tag"], values["image"]["digest"]) == expected


def test_an_image_without_a_tag_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the image registry.example.com:5000/lamps-operator has no tag"):
        made(operator(), REPOSITORY)


def test_values_are_typed_and_each_has_to_be_there() -> None:
    folder = made(operator(deploy=Deploy(leader_election=False)))
    schema = json.loads(folder.generated["lamps-operator/values.schema.json"])
    values = yaml.safe_load(folder.own["lamps-operator/values.yaml"])

    def check(part: Resource, given: Resource, *, extra: set[str]) -> None:
        assert part["additionalProperties"] is False
        assert sorted(part["required"]) == sorted(given)
        assert part["properties"].keys() - given.keys() == extra
        for name, each in part["properties"].items():
            if "properties" in each and "description" not in each:
                check(each, given[name], extra=set())
            elif name not in extra:
                assert each["type"]

    check(schema, values, extra={"extra", "global"})
    assert schema["properties"]["replicas"] | {"description": ""} == {
        "description": "",
        "type": "integer",
        "minimum": 0,
        "maximum": 1,
    }


def test_each_value_is_explained_above_it() -> None:
    lines = made(operator()).own["lamps-operator/values.yaml"].splitlines()

    assert lines[:2] == [
        "# Pods of the operator. One acts at a time; the others take over when it fails.",
        "replicas: 1",
    ]
    assert not any(line.endswith(" ") for line in lines)


def test_a_manifest_that_looks_at_its_namespace_is_refused() -> None:
    def customize(objects: list[Resource]) -> list[Resource]:
        changed = deepcopy(objects)
        changed[0]["metadata"]["labels"]["length"] = str(len(changed[0]["metadata"]["name"]))
        return changed

    with pytest.raises(OptionError, match="Namespace bonny-release-namespace depends on the namespace or the image"):
        made(operator(deploy=Deploy(customize=customize)))


def test_a_value_that_an_edited_file_lacks_is_named_with_its_default() -> None:
    defaults = made(operator()).own["lamps-operator/values.yaml"]

    assert lacking(defaults, defaults) == []
    edited = defaults.replace("  keep: true\n", "").replace("env: []\n", "")
    assert lacking(defaults, edited) == ["env: []", "crd.keep: true"]
    assert lacking(defaults, "{") == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.2.3", "1.2.3"), ("1.2", "1.2.0"), ("2", "2.0.0"), ("1.2.3rc1", "1.2.3-rc.1"), ("0.1.0.dev04", "0.1.0-dev.4")],
)
def test_a_version_becomes_a_semantic_one(version: str, expected: str) -> None:
    assert semantic(version) == expected


def test_a_version_without_an_equal_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the version 1!2.0 in pyproject.toml is not one that a chart"):
        semantic("1!2.0")
