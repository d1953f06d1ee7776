"""Classes from a definition that a real API server holds: the definition made of them takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.crd.definition import crds
from bonny_dev.from_crd.compare import differences
from bonny_dev.from_crd.port import port
from bonny_dev.from_crd.reading import read_crd
from bonny_dev.from_crd.sample import sample
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator

pytestmark = pytest.mark.server

AQUARIUMS = Path(__file__).parents[1] / "corpus" / "aquariums.yaml"
NAME = "aquaria.sea.example.org"


def test_a_definition_in_the_cluster_becomes_classes_whose_definition_replaces_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(sandbox.kubeconfig))
    original, _ = read_crd(str(AQUARIUMS))
    with Administrator(sandbox) as administrator, administrator.installed([original]):
        found, _ = read_crd(NAME)
        ported = port(found, group="example.com", version="v1")
        (ours,) = crds([ported.hub_class], "example.com")
        resource, _ = sample(ported.hub_class, "example.com")
        path = "/apis/sea.example.org/v1/namespaces/default/aquaria"

        replaced = administrator.apply(ours)
        # While the server puts the new schema in place, it answers that it shuts down.
        Sandbox.eventually(
            lambda: administrator.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", resource).status == 201
        )

    assert differences(original, found) == []
    assert ported.differences == ["v1beta1: is missing"]
    assert (replaced.status, replaced.warnings) == (200, ()), replaced.message


def test_a_name_that_the_cluster_does_not_have_is_refused(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(sandbox.kubeconfig))

    with pytest.raises(UsageError, match=r"the cluster has no definition foos\.example\.com, and"):
        read_crd("foos.example.com")
