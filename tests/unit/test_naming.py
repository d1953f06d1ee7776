"""Naming: which names follow from a kind, and which names are refused with which sentence."""

from __future__ import annotations

import keyword
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import naming
from bonny.errors import UsageError
from bonny_dev.naming import (
    check_class,
    check_group,
    check_image,
    check_kind,
    check_plural,
    check_version,
    module_to_kind,
    module_version,
    snake_case,
)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Widget", "widgets"),
        ("CronTab", "crontabs"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Branch", "branches"),
        ("Mesh", "meshes"),
        ("Quiz", "quizes"),
    ],
)
def test_the_plural_of_a_kind_follows_the_rules_of_english(kind: str, plural: str) -> None:
    assert naming.plural_of(kind) == plural


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("Widget", "widget"),
        ("CronTab", "cron_tab"),
        ("HTTPRoute", "http_route"),
        ("S3Bucket", "s3_bucket"),
        ("V2", "v2"),
        ("Class", "class_"),
        ("Import", "import_"),
        ("Con", "con_"),
        ("Com1", "com1_"),
        ("Match", "match"),
    ],
)
def test_the_module_of_a_kind_can_be_imported_everywhere(kind: str, module: str) -> None:
    assert snake_case(kind) == module


@given(st.from_regex(r"[A-Z][A-Za-z0-9]{0,20}", fullmatch=True))
def test_every_kind_has_a_legal_module_name(kind: str) -> None:
    module = snake_case(kind)

    assert module.isidentifier()
    assert module == module.lower()
    assert not keyword.iskeyword(module)


@pytest.mark.parametrize(
    ("attribute", "wire"),
    [("size", "size"), ("max_size", "maxSize"), ("a_b_c", "aBC"), ("class_", "class"), ("maxSize", "maxSize")],
)
def test_the_wire_name_of_an_attribute_is_camel_case(attribute: str, wire: str) -> None:
    assert naming.camel_case(attribute) == wire


def test_a_module_tells_its_kind_and_its_version() -> None:
    assert module_to_kind("widgets_operator.api.v1.cron_tab") == "CronTab"
    assert module_version("widgets_operator.api.v2beta1.cron_tab") == "v2beta1"
    assert module_version("App.Controllers.V1Alpha1.Widget") == "v1alpha1"
    assert module_version("V1Alpha1") == "v1alpha1"


def test_a_module_without_a_version_is_v1() -> None:
    assert module_version("widgets_operator.controllers.widget") == "v1"


@pytest.mark.parametrize("kind", ["Widget", "W", "HTTPRoute", "W" + "a" * 58, "AllowList"])
def test_kinds_that_kubernetes_takes_are_taken(kind: str) -> None:
    assert check_kind(kind) == kind


@pytest.mark.parametrize("kind", ["", "widget", "Cron-Tab", "Cron Tab", "1W", "Wídget", "W" + "a" * 59, "W\n", "W'"])
def test_a_kind_that_is_not_camel_case_is_refused_with_the_rule(kind: str) -> None:
    with pytest.raises(UsageError, match=r"is not a kind: use CamelCase.*for example CronTab"):
        check_kind(kind)


@pytest.mark.parametrize("kind", ["None", "True", "False"])
def test_a_kind_that_python_cannot_define_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=f"a keyword of Python; use for example My{kind}"):
        check_class(kind)


@pytest.mark.parametrize("kind", ["Version", "Spec", "Controller", "Field"])
def test_a_kind_that_would_hide_a_class_of_the_runtime_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match="a class of the runtime has this name"):
        check_class(kind)


@pytest.mark.parametrize("plural", ["widgets", "w", "cron-tabs", "s3buckets", "a" * 63])
def test_plurals_that_kubernetes_takes_are_taken(plural: str) -> None:
    assert check_plural(plural) == plural


@pytest.mark.parametrize("plural", ["", "Widgets", "1w", "-w", "w-", "w.s", "w/s", "a" * 64, "wídgets"])
def test_a_plural_that_kubernetes_refuses_is_refused_with_the_rule(plural: str) -> None:
    with pytest.raises(UsageError, match=r"is not a plural: use lower-case letters.*for example crontabs"):
        check_plural(plural)


@pytest.mark.parametrize("version", ["v1", "v10", "v1beta1", "v2alpha1", "v1alpha12"])
def test_versions_of_the_usual_form_are_taken(version: str) -> None:
    assert check_version(version) == version


@pytest.mark.parametrize("version", ["", "1", "v", "v0", "V1", "v1beta", "v1gamma1", "v1.0", "v1alpha01", "stable"])
def test_a_version_of_another_form_is_refused_with_the_rule(version: str) -> None:
    with pytest.raises(UsageError, match=r"is not an API version.*for example v1, v1beta1 or v2alpha1"):
        check_version(version)


@pytest.mark.parametrize("group", ["example.com", "a.b", "1a.example-2.io", "xk8s.io"])
def test_groups_of_ones_own_are_taken(group: str) -> None:
    assert check_group(group) == group


@pytest.mark.parametrize(
    "group", ["", "example", "Example.com", ".com", "example.", "a..b", "a_b.c", "-a.b", "a.b-", "a" * 250 + ".com"]
)
def test_a_group_that_is_no_domain_is_refused_with_the_rule(group: str) -> None:
    with pytest.raises(UsageError, match=r"is not an API group: use a domain name that you own.*for example"):
        check_group(group)


@pytest.mark.parametrize("group", ["k8s.io", "apps.k8s.io", "kubernetes.io", "x.kubernetes.io"])
def test_a_group_of_the_kubernetes_project_is_refused(group: str) -> None:
    with pytest.raises(UsageError, match="reserved for the Kubernetes project"):
        check_group(group)


@pytest.mark.parametrize("name", ["a", "1a", "widgets-operator", "a" * 63])
def test_dns_labels_are_taken(name: str) -> None:
    assert naming.check_dns_label(name) == name


@pytest.mark.parametrize("name", ["", "A", "a.b", "a_b", "-a", "a-", "a" * 64, "a\n", "é"])
def test_a_name_that_is_no_dns_label_is_refused_by_what_it_names(name: str) -> None:
    with pytest.raises(UsageError, match=r"is not a namespace: use lower-case"):
        naming.check_dns_label(name, "namespace")


DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "team/app",
        "registry.example.com/app:1.0.0",
        "registry.example.com:5000/team/app:1.0.0",
        "localhost:5000/app",
        "localhost/app",
        "[::1]:5000/app",
        f"registry.example.com/app@{DIGEST}",
        f"registry.example.com:5000/a/b/c:1.0@{DIGEST}",
        "a.b-c/d__e/f-g.h_i:UPPER.tag_1",
    ],
)
def test_image_references_are_taken(image: str) -> None:
    assert check_image(image) == image


@pytest.mark.parametrize(
    "image",
    [
        "",
        "registry.example.com/App:1.0",
        "app:",
        "app:tag with space",
        "app:-x",
        "app:" + "a" * 129,
        "app@sha256:1234",
        f"app@{DIGEST.upper()}",
        "/app",
        "app/",
        "a//b",
        "https://registry.example.com/app",
        "registry.example.com:port/app",
        "app\n",
        "<image>",
        "x" * 256,
    ],
)
def test_an_image_that_runtimes_cannot_read_is_refused_with_the_form(image: str) -> None:
    with pytest.raises(UsageError, match=r"is not a container image: use .*for example registry.example.com"):
        check_image(image)


def test_a_finalizer_with_a_domain_that_is_too_long_is_refused() -> None:
    """Regression: the operator's name and a long group make one; each patch that added it was refused."""
    domain = ".".join(["d" * 62] * 4) + ".e"
    assert naming.check_finalizer(f"{domain}/cleanup") == f"{domain}/cleanup"
    with pytest.raises(UsageError, match="253 and 63 characters at most"):
        naming.check_finalizer(f"{domain}e/cleanup")


CHECKS = (
    check_kind,
    check_plural,
    check_version,
    check_group,
    naming.check_dns_label,
    check_image,
)


@pytest.mark.parametrize("check", CHECKS)
def test_every_refusal_is_one_line(check: Callable[[str], str]) -> None:
    with pytest.raises(UsageError) as refused:
        check("\n bad\t")
    assert "\n" not in str(refused.value)
