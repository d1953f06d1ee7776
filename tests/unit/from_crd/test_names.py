"""Names of fields and classes: they can be written in Python, and lead back to the name on the wire."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.api import Model
from bonny_dev.from_crd.names import class_name, field_name, leads_back


@pytest.mark.parametrize(
    ("wire", "name", "alone"),
    [
        ("maxSize", "max_size", True),
        ("caBundle", "ca_bundle", True),
        ("clusterIP", "cluster_ip", False),
        ("podIPs", "pod_ips", False),
        ("isCA", "is_ca", False),
        ("URL", "url", False),
        ("class", "class_", True),
        ("from", "from_", True),
        ("schema", "schema_", True),
        ("register", "register_", True),
        ("list", "list_", True),
        ("date", "date_", True),
        ("l", "l_", True),
        ("$ref", "ref", False),
        ("a-b.c/d", "a_b_c_d", False),
        ("2nd", "field_2nd", False),
        ("größe", "gr_e", False),
        ("-", "field", False),
    ],
)
def test_a_field_has_a_name_of_python_and_an_alias_only_where_camel_case_does_not_lead_back(
    wire: str, name: str, alone: bool
) -> None:
    assert (field_name(wire), leads_back(field_name(wire), wire)) == (name, alone)


@given(st.lists(st.text(max_size=12), unique=True, max_size=6))
def test_fields_of_any_names_can_be_attributes_of_one_model(wires: list[str]) -> None:
    names: list[str] = []
    for wire in wires:
        names.append(field_name(wire, names))

    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) and not hasattr(Model, name) for name in names)


@pytest.mark.parametrize(
    ("path", "taken", "name"),
    [
        (["issuerRef"], (), "IssuerRef"),
        (["spec", "listeners", "[]"], (), "Listener"),
        (["policies", ".*"], (), "Policy"),
        (["addresses", "[]"], (), "Address"),
        (["status", "[]"], (), "AStatus"),
        (["tls", "ref"], ("Ref",), "TlsRef"),
        (["ref"], ("Ref",), "Ref2"),
        (["exception"], (), "AException"),
        (["condition"], (), "ACondition"),
        (["2nd"], (), "A2nd"),
        (["my-field"], (), "MyField"),
        (["egress", "[]", "to", "[]"], (), "EgressTo"),
        (["gates", "os"], (), "GatesOs"),
        (["os"], (), "Os"),
        (["tls", "[]"], (), "Tls"),
        (["dns", "[]"], (), "Dns"),
        (["envs", "[]"], (), "Env"),
        (["aliases", "[]"], (), "Alias"),
        (["status", "condition"], (), "StatusCondition"),
        (["spec", "storage"], ("Storage",), "SpecStorage"),
    ],
)
def test_a_class_is_named_by_its_field_and_by_more_of_its_path_on_a_clash(
    path: list[str], taken: tuple[str, ...], name: str
) -> None:
    assert class_name(path, taken) == name
