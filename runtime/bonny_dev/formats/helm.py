"""Helm: the chart of an operator, and a chart of its CRDs alone.

Both are made from the objects of the manifest for a namespace and an image that no cluster has: where these stand in
a string, Helm's expression takes their place. A manifest for another namespace shows that nothing else depends on it.
The Namespace itself is Helm's. People set the values of `values`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

import yaml

from bonny.errors import OptionError, UsageError
from bonny.operator import Operator
from bonny.resource import Resource, identify

from ..manifest.bundle import documents
from ..manifest.optional_objects import PARTS, chosen
from .folder import Folder
from .grouping import CRD, CRDS, file_of
from .image import Image
from .templates import Expression, Text, When, filled, to_template
from .texts import EXTRA, HELMIGNORE, NOTES, README, README_OF_CRDS
from .values import ChartValue, flag, of_deployment, of_service_account, to_schema, to_values
from .version import semantic

NAMESPACE: Final = Expression("{{ .Release.Namespace }}")
# For the chart of the CRDs, which may be installed elsewhere.
OPERATOR_NAMESPACE: Final = Expression("{{ .Values.operatorNamespace | default .Release.Namespace }}")
IMAGE: Final = Expression(
    "{{ .Values.image.repository }}"
    "{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"
)

# Namespace and image. The second ones differ from the first in length and order.
MARKS: Final = ("bonny-release-namespace", "bonny.invalid/image:0")
OTHER_MARKS: Final = ("namespace-of-a-release", "x.invalid/another/image:1.2")

# The objects of each part of a manifest, for a person who has only the chart.
TEXTS: Final = {
    "roles": "ClusterRoles that add the kinds to the roles view, edit and admin",
    "network-policy": "a NetworkPolicy: the ports that the pods need, and no others",
    "service": "a Service for the metrics",
    "pdb": "a PodDisruptionBudget: one pod is evicted at a time; for several replicas",
    "service-monitor": "a ServiceMonitor; needs the CRDs of prometheus-operator, and service.enable",
    "alerts": "a PrometheusRule with alerts; needs the CRDs of prometheus-operator",
    "dashboards": "a ConfigMap with a dashboard, as the sidecar of Grafana's chart finds it",
}
KEEP: Final = "helm.sh/resource-policy"

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def charts(
    operator: Operator, *, image: str, version: str, include: Collection[str] = (), exclude: Collection[str] = ()
) -> Folder:
    """The files of both charts, in folders with their names: `<operator>` and, with kinds, `<operator>-crds`.

    `include` names the parts that are on by default, `exclude` parts that the chart does not have. `version` is that of
    the distribution, and the tag of the image unless that has another one.
    Raises: `OptionError` for a manifest that depends on its namespace in a way that Helm cannot compute; `UsageError`
    for an image without a tag, or a version that is not one of a chart; as `documents` does.
    """
    reference = Image.of(image)
    if not (reference.tag or reference.digest):
        raise UsageError(f"the image {image} has no tag, and a chart names one: write {image}:{version}, for example")
    chart_version = semantic(version)
    parts = _parts(exclude)
    objects = _objects(operator, parts, exclude)
    marks = dict(zip(MARKS, (NAMESPACE, IMAGE), strict=True))
    values = [
        ChartValue(
            "image.repository",
            reference.repository,
            {"type": "string", "minLength": 1},
            "Repository of the image, without tag.",
        ),
        ChartValue(
            "image.tag",
            "" if reference.tag == version else reference.tag,
            {"type": "string", "pattern": "^[A-Za-z0-9_.-]*$"},
            "Tag of the image. Empty: the version of the operator, `appVersion` of the chart.",
        ),
        ChartValue(
            "image.digest",
            reference.digest,
            {"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})?$"},
            "Digest of the image, instead of a tag: sha256:...",
        ),
    ]
    by_file: dict[str, list[Any]] = {}
    conditions = _conditions(operator, parts)
    for each in objects:
        node = filled(each, marks)
        values += _values_of(operator, node)
        if each["kind"] == CRD:
            node = When("if .Values.crd.enable", _kept(node))
        elif condition := conditions.get(_key(each)):
            node = When(f"if {condition}", node)
        by_file.setdefault(file_of(each), []).append(node)
    values += _flags(operator, parts, include, crds=CRDS in by_file)
    definitions = [each for each in objects if each["kind"] == CRD]
    files = {
        "Chart.yaml": _chart(operator.name, f"The operator {operator.name}", chart_version, version),
        "values.schema.json": _json(to_schema(values)),
        "README.md": README.format(name=operator.name),
        ".helmignore": HELMIGNORE,
        "templates/NOTES.txt": NOTES.format(name=operator.name),
        **{f"templates/{name}.yaml": to_template(nodes) for name, nodes in sorted(by_file.items())},
    }
    own = {"values.yaml": to_values(values), "templates/extra/_about.tpl": EXTRA}
    chart = Folder(generated=files, own=own).below(operator.name)
    if not definitions:
        return chart
    return chart | _crds_chart(operator, definitions, chart_version, version).below(f"{operator.name}-crds")


def _parts(exclude: Collection[str]) -> list[str]:
    """The parts of the chart: all that are not excluded, and whose needs are not."""
    found = ["pods"]
    for name, part in PARTS.items():
        if name not in exclude and (not part.needs or part.needs in found):
            found.append(name)
    return found[1:]


def _objects(operator: Operator, parts: Collection[str], exclude: Collection[str]) -> list[Resource]:
    """The objects of the manifest, for the first marks, without the Namespace."""
    made, other = (
        documents(operator, image=image, namespace=namespace, include=parts, exclude=exclude)
        for namespace, image in (MARKS, OTHER_MARKS)
    )
    expected = {_key(each): each for each in other}
    for each in made:
        moved = _moved(each)
        if expected.get(_key(moved)) != moved:
            raise OptionError(
                f"{identify(each)} depends on the namespace or the image in a way that a chart cannot follow: it would "
                "be wrong in another namespace; change Deploy(customize=...)"
            )
    return [each for each in made if each["kind"] != "Namespace"]


def _moved(node: Any) -> Any:
    """`node` with the other marks in place of the first."""
    if isinstance(node, dict):
        return {_moved(key): _moved(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_moved(value) for value in node]
    if isinstance(node, str):
        for mark, other in zip(MARKS, OTHER_MARKS, strict=True):
            node = node.replace(mark, other)
    return node


def _key(each: Resource) -> Key:
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


def _conditions(operator: Operator, parts: Iterable[str]) -> dict[Key, str]:
    """When the objects of parts are there."""
    found = {}
    for name in parts:
        part = PARTS[name]
        condition = f".Values.{_camel(name)}.enable"
        if part.needs in PARTS:
            condition = f"and .Values.{_camel(part.needs)}.enable {condition}"
        found.update({_key(each): condition for each in part.make(operator, MARKS[0])})
    return found


def _flags(operator: Operator, parts: Collection[str], include: Collection[str], *, crds: bool) -> Iterable[ChartValue]:
    on = [*chosen(operator, include=include, exclude=(), deployed=True)]
    if crds:
        yield flag("crd.enable", "Install and upgrade the CRDs. False: the chart of the CRDs does.", default=True)
        yield flag("crd.keep", "Keep the CRDs, and with them all objects, at an uninstall.", default=True)
    for name in parts:
        yield flag(f"{_camel(name)}.enable", f"Install {TEXTS[name]}.", default=PARTS[name] in on)


def _values_of(operator: Operator, each: Resource) -> Iterable[ChartValue]:
    """The values of an object, which gets expressions in their places."""
    if each["metadata"]["name"] != operator.name:
        return ()
    if each["kind"] == "Deployment":
        return of_deployment(each, Text((IMAGE,)), most=None if operator.deploy.leader_election else 1)
    return of_service_account(each) if each["kind"] == "ServiceAccount" else ()


def _kept(crd: Resource) -> Resource:
    """A CRD that an uninstall leaves."""
    annotations = crd["metadata"].get("annotations")
    keep = When("if .Values.crd.keep", "keep" if annotations else {KEEP: "keep"})
    metadata = {**crd["metadata"], "annotations": {**annotations, KEEP: keep} if annotations else keep}
    return {**crd, "metadata": metadata}


def _crds_chart(operator: Operator, definitions: list[Resource], chart_version: str, version: str) -> Folder:
    name = f"{operator.name}-crds"
    nodes = []
    for each in definitions:
        node = filled(each, {MARKS[0]: OPERATOR_NAMESPACE})
        node["metadata"]["annotations"] = {**node["metadata"].get("annotations", {}), KEEP: "keep"}
        nodes.append(node)
    text = "Namespace of the operator, which converts objects. Empty: that of this release."
    values = [ChartValue("operatorNamespace", "", {"type": "string"}, text)]
    files = {
        "Chart.yaml": _chart(name, f"The CRDs of the operator {operator.name}", chart_version, version),
        "values.schema.json": _json(to_schema(values)),
        "README.md": README_OF_CRDS.format(name=operator.name),
        ".helmignore": HELMIGNORE,
        "templates/crds.yaml": to_template(nodes),
    }
    return Folder(generated=files, own={"values.yaml": to_values(values)})


def _chart(name: str, description: str, chart_version: str, version: str) -> str:
    fields = {
        "apiVersion": "v2",
        "name": name,
        "description": description,
        "type": "application",
        "version": chart_version,
        "appVersion": version,
    }
    return str(yaml.safe_dump(fields, sort_keys=False))


def _camel(name: str) -> str:
    head, *rest = name.split("-")
    return head + "".join(word.capitalize() for word in rest)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
