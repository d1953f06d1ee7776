"""Fixtures of the template's tests: projects that are rendered once, and never changed by a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.baking import bake, install, invoke

# The default, and the two that differ most from it and from each other.
ANSWER_SETS: dict[str, dict[str, str]] = {
    "default": {},
    "namespaced": {
        "operator_name": "Ops für “Café” & 'Co' \"™\" 🚀",
        "operator_slug": "z",
        "description": 'Says "hello" \\ goodbye \\\\ {{ x }} ${{ y }} {# #} </script> `z`',
        "author": 'Zoë O\'Neil, "the" \\n & others',
        "api_group": "a1.b-2.example.org",
        "watches": "namespace",
        "image_repository": "localhost:5000/team/z__z",
        "licence": "MIT",
    },
    "unlicensed": {
        "operator_name": "x" * 100,
        "operator_slug": "a" + "-b1" * 16 + "c",
        "description": "y" * 200,
        "author": "z" * 100,
        "api_group": "example.com",
        "watches": "all",
        "image_repository": "operators",
        "licence": "none",
    },
}


@pytest.fixture(scope="session", params=sorted(ANSWER_SETS))
def rendered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project rendered from one of the answer sets."""
    baked = bake(tmp_path_factory.mktemp(request.param) / "bake", ANSWER_SETS[request.param])
    assert baked.code == 0, baked.said
    return baked.project


@pytest.fixture(scope="session")
def fresh(rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered project as a person first has it: installed with its dev packages, without a kind of its own."""
    project = Path(shutil.copytree(rendered, tmp_path_factory.mktemp("fresh") / rendered.name))
    install(project)
    return project


@pytest.fixture(scope="session")
def furnished(rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered project, installed, with two kinds, one of them in two versions and the other cluster-scoped."""
    project = Path(shutil.copytree(rendered, tmp_path_factory.mktemp("furnished") / rendered.name))
    install(project)
    for words in (
        "Widget widgets --version v2alpha1",
        "Widget widgets --version v1",
        "Fleet fleets --cluster-scoped --group fleets.example.org",
        f"W{'x' * 58} w{'x' * 62}",
    ):
        done = invoke(project, "gen-controller", *words.split())
        assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default project."""
    baked = bake(tmp_path_factory.mktemp("pristine") / "bake")
    assert baked.code == 0, baked.said
    return baked.project


@pytest.fixture
def project(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the default project to change."""
    return Path(shutil.copytree(pristine, tmp_path / pristine.name))
