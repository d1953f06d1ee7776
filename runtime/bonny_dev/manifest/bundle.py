"""Bundle: all objects of a manifest, in the order in which one pass of `kubectl apply` accepts them, as YAML.

You need it to install an operator or only its definitions: `documents(operator, ...)`, `to_yaml(...)`.
Elsewhere: parts that may be left out or added (`optional_objects`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any, Final

import yaml
from yaml.representer import RepresenterError

from bonny.errors import OptionError, UsageError
from bonny.naming import check_dns_label
from bonny.operator import Operator
from bonny.resource import Resource

from ..crd.definition import crds
from ..install import is_object
from ..naming import check_image
from ..operator_checks import check_operator
from ..uses import has_webhooks, selector_of
from .deploy_checks import check_deploy
from .deployment import deployment
from .labels import labels
from .optional_objects import chosen
from .policies import policies
from .rbac import CLUSTER, SELECTED, grants
from .template import read_object

# Up to so many letters stand in one line: lists of plain values, such as verbs; and mappings of those, such as rules.
LIST: Final = 60
MAPPING: Final = 90


def documents(
    operator: Operator,
    *,
    image: str | None = None,
    namespace: str | None = None,
    local: bool = False,
    crds_only: bool = False,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    grant_in: Collection[str] = (),
) -> list[Resource]:
    """The objects that an operator needs in a cluster, each after the objects that it refers to.

    Without an image, or for `local` work, there is no Deployment: the operator runs outside of the cluster, where the
    API server cannot call its webhooks. `crds_only` leaves out everything but the definitions of its kinds. `include`
    and `exclude` name parts of `optional_objects`. An operator that watches namespaces by their labels gets its
    permissions in the namespaces `grant_in` by a RoleBinding each (default: in all namespaces).
    `Deploy(customize=...)` has the last word. `namespace` is where the operator is deployed (default: its own name).
    Raises: `OptionError` when the declarations do not fit together; `UsageError` for an impossible image, namespace or
    part.
    """
    check_operator(operator)
    check_deploy(operator.deploy)
    if image is not None:
        check_image(image)
    namespace = check_dns_label(operator.name if namespace is None else namespace, "namespace")
    if namespace == "default" or namespace.startswith("kube-"):
        raise UsageError(
            f"the operator cannot be deployed to {namespace}: the manifest sets the pod security of its namespace, and "
            f"others use this namespace; choose another, for example --namespace {operator.name}"
        )
    _check_grants(operator, grant_in)
    if crds_only and include:
        raise UsageError("--crds-only leaves out the parts of --with: use one of the two")
    deployed = image is not None and not (local or crds_only)
    optional = list(chosen(operator, include=include, exclude=exclude, deployed=deployed))
    called = deployed and has_webhooks(operator)
    objects = [*(own := definitions(operator, namespace))]
    if not crds_only:
        objects += policies(operator, namespace, own)
        objects[:0] = [
            read_object("namespace", operator, namespace),
            *(_served(operator, namespace) if deployed else ()),
        ]
        objects.append(read_object("service-account", operator, namespace))
        objects += _roles(operator, namespace=namespace, deployed=deployed, grant_in=grant_in)
        for part in optional:
            objects += part.make(operator, namespace)
    if image is not None and deployed:
        objects.append(deployment(operator, image=image, namespace=namespace))
    if called:
        from .webhooks import webhooks  # noqa: PLC0415  its extra may be absent

        # The last, so that no write waits for a webhook that is not there yet.
        objects += webhooks(operator, namespace)
    marks = labels(operator)
    for each in objects:
        each["metadata"]["labels"] = {**marks, **each["metadata"].get("labels", {})}
    return _customized(operator, objects)


def definitions(operator: Operator, namespace: str) -> list[Resource]:
    """The CRDs of an operator that is deployed to `namespace`."""
    made = crds(operator.crds, operator.group)
    if not operator.converted:
        return [*made]
    from .webhooks import with_conversion  # noqa: PLC0415  its extra may be absent

    return [*with_conversion(operator, namespace, made)]


def _served(operator: Operator, namespace: str) -> Iterable[Resource]:
    """The objects that clients of the operator need."""
    if has_webhooks(operator):
        from .serving import called  # noqa: PLC0415  its extra may be absent

        yield from called(operator, namespace)
    if operator.deploy.secure_metrics:
        from .secure_metrics import scraped  # noqa: PLC0415  its extra may be absent

        yield from scraped(operator, namespace)


def to_yaml(objects: Iterable[Resource]) -> str:
    """The objects as one YAML text; equal objects give equal bytes.

    Raises: `OptionError` for a value that YAML has no word for.
    """
    try:
        return "---\n".join(yaml.dump(each, Dumper=Dumper, sort_keys=False, width=140) for each in objects)
    except RepresenterError as error:
        raise OptionError(
            f"the manifest holds {error.args[-1]!r}, which is not text, a number, a list or a mapping: convert it"
        ) from None


def _customized(operator: Operator, objects: list[Resource]) -> list[Resource]:
    """The objects that the hook `customize` returns."""
    if operator.deploy.customize is None:
        return objects
    customized: object = operator.deploy.customize(objects)
    where = f"customize of operator {operator.name} returned"
    if not isinstance(customized, list):
        raise OptionError(f"{where} {type(customized).__name__}: return the list of objects")
    for number, each in enumerate(customized):
        if not is_object(each):
            raise OptionError(f"{where} no object at {number}: it needs apiVersion, kind and metadata.name")
    return customized


def _check_grants(operator: Operator, grant_in: Iterable[str]) -> None:
    for each in grant_in:
        check_dns_label(each, "namespace in --grant-in")
        if not selector_of(operator):
            raise UsageError("--grant-in is for an operator that watches a NamespaceSelector: leave it out")


def _roles(operator: Operator, *, namespace: str, deployed: bool, grant_in: Collection[str]) -> Iterable[Resource]:
    """The permissions of the operator, and where it has them."""
    selected = (SELECTED,) if grant_in else ()
    for scope, rules in grants(operator, namespace=namespace, deployed=deployed, selected=selected).items():
        if scope == SELECTED:
            yield from _bound_in(operator, rules, grant_in, namespace=namespace)
        else:
            yield from _role(operator, rules, scope=scope, namespace=namespace)


def _role(operator: Operator, rules: list[Resource], *, scope: str, namespace: str) -> list[Resource]:
    """A role with these rules, and its binding to the operator: for a namespace, or for the whole cluster."""
    kind = "ClusterRole" if scope == CLUSTER else "Role"
    role, binding = (read_object(name, operator, namespace, kind=kind) for name in ("role", "role-binding"))
    name = operator.name if scope == namespace else operator.outside(operator.name, namespace)
    for each in (role, binding):
        each["metadata"] = {"name": name, **({} if scope == CLUSTER else {"namespace": scope})}
    binding["roleRef"]["name"] = name
    return [{**role, "rules": rules}, binding]


def _bound_in(
    operator: Operator, rules: list[Resource], namespaces: Collection[str], *, namespace: str
) -> Iterable[Resource]:
    """A ClusterRole with these rules, and a binding to the operator in each of the namespaces."""
    role = read_object("role", operator, namespace, kind="ClusterRole")
    name = f"{operator.name}-in-namespace"
    yield {**role, "metadata": {"name": name}, "rules": rules}
    for each in namespaces:
        binding = read_object("role-binding", operator, namespace, kind="ClusterRole")
        binding["kind"], binding["metadata"] = "RoleBinding", {"name": name, "namespace": each}
        binding["roleRef"]["name"] = name
        yield binding


class Dumper(yaml.SafeDumper):
    """Written for readers: no anchors, several lines as a block, short lists and mappings in one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """No object is written as an alias of an equal one."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Items of a list are indented below their key."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if _like_a_number(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _like_a_number(text: str) -> bool:
    """Kubernetes reads more strings as numbers than PyYAML does, `1e3` and `0o7` among them."""
    readers: tuple[Callable[[str], float], ...] = (float, lambda digits: int(digits, 0))
    for read in readers:
        with contextlib.suppress(ValueError):
            read(text)
            return True
    return False


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=_is_short(items, LIST))


def _mapping(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.MappingNode:
    lists = [value for value in items.values() if isinstance(value, list)]
    words = [*items, *(value for value in items.values() if not isinstance(value, list)), *chain.from_iterable(lists)]
    short = all(_is_short(value, LIST) for value in lists) and _is_short(words, MAPPING)
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=short)


def _is_short(words: Sequence[Any], limit: int) -> bool:
    plain = not any(isinstance(word, dict | list) or "\n" in str(word) for word in words)
    return plain and sum(len(str(word)) for word in words) < limit


Dumper.add_representer(str, _text)
Dumper.add_representer(dict, _mapping)
Dumper.add_representer(list, _list)
