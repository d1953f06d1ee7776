"""gen-controller --from-crd and gen-api: a kind that has a definition gets classes that say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bonny_dev.crd.builtin import builtin_schema
from tests.support.generating import run_task, state

CORPUS = Path(__file__).parents[1] / "corpus"
AQUARIUMS, LABELS = CORPUS / "aquariums.yaml", CORPUS / "labels.yaml"
KEPT = "tests/crds/aquaria.sea.example.org.yaml"


def test_a_kind_gets_classes_of_each_version_a_sample_a_controller_a_test_and_its_definition(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(project)

    assert run_task(project, f"gen-controller --from-crd {AQUARIUMS}") == 0

    after = state(project)
    assert {name: after[name] for name in before} == before
    assert sorted(after.keys() - before.keys()) == [
        "samples/aquarium-v1.yaml",
        "src/widgets_operator/api/v1/__init__.py",
        "src/widgets_operator/api/v1/aquarium.py",
        "src/widgets_operator/api/v1beta1/__init__.py",
        "src/widgets_operator/api/v1beta1/aquarium.py",
        "src/widgets_operator/controllers/aquarium.py",
        KEPT,
        "tests/unit/test_aquarium_crd.py",
    ]
    assert after[KEPT] == AQUARIUMS.read_text("utf-8")
    said = capsys.readouterr().out
    assert "The classes express the whole definition of Aquarium.\n" in said
    assert "Next: write the handler; `invoke test --unit` compares the classes with the definition." in said


def test_what_is_generated_passes_lint_types_and_tests_at_the_first_run(project: Path) -> None:
    for words in (
        f"gen-controller --from-crd {AQUARIUMS}",
        f"gen-controller --from-crd {LABELS}",
        f"gen-api --from-crd {CORPUS / 'tickets.yaml'}",
        f"gen-api --from-crd {CORPUS / 'boxes.yaml'}",
    ):
        assert run_task(project, words) == 0

    for command in (
        ("ruff", "check", "src", "tests"),
        ("ruff", "format", "--check", "src", "tests"),
        ("mypy",),
        ("pytest", "-q", "tests/unit"),
    ):
        line = [sys.executable, "-m", *command]
        done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_generated_test_fails_when_a_class_says_something_else(project: Path) -> None:
    run_task(project, f"gen-api --from-crd {LABELS}")
    path = project / "src/widgets_operator/api/v1/label.py"
    path.write_text(path.read_text("utf-8").replace("    shelf: str\n", "    shelf: int\n"), "utf-8")

    line = [sys.executable, "-m", "pytest", "-q", "tests/unit/test_label_crd.py"]
    done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert 'v1 .places[].shelf: type is "integer", not "string"' in done.stdout


def test_differences_are_printed_and_listed_in_the_test(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_task(project, f"gen-controller --from-crd {CORPUS / 'tickets.yaml'}") == 0

    said = capsys.readouterr().out
    assert "The classes express the whole definition of Ticket but this:\n" in said
    sentence = "v1: lacks metadata"
    assert f"\n  {sentence}\n" in said
    assert sentence in (project / "tests/unit/test_ticket_crd.py").read_text("utf-8")


def test_schemas_of_types_of_kubernetes_stand_in_a_file_beside_the_module(project: Path, tmp_path: Path) -> None:
    crd = yaml.safe_load(LABELS.read_text("utf-8"))
    template = {**builtin_schema("v1", "PodTemplateSpec"), "description": "A pod."}
    template["properties"]["spec"]["description"] = "Its spec."
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["template"] = template
    (tmp_path / "labels.yaml").write_text(yaml.safe_dump(crd), encoding="utf-8")

    assert run_task(project, f"gen-api --from-crd {tmp_path / 'labels.yaml'}") == 0

    schemas = json.loads((project / "src/widgets_operator/api/v1/label.json").read_text("utf-8"))
    assert [*schemas] == ["PodTemplateSpec at template"]
    for command in (("ruff", "check", "src", "tests"), ("mypy",), ("pytest", "-q", "tests/unit/test_label_crd.py")):
        line = [sys.executable, "-m", *command]
        done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_definition_again_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_task(project, f"gen-controller --from-crd {LABELS}")
    before = state(project)

    assert run_task(project, f"gen-controller --from-crd {LABELS}") == 0

    assert state(project) == before
    kept = "tests/crds/labels.sea.example.org.yaml"
    assert capsys.readouterr().out.endswith(f"nothing to do: {LABELS} equals {kept}\n")


def test_a_newer_definition_is_compared_and_changes_nothing(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_task(project, f"gen-controller --from-crd {LABELS}")
    before = state(project)
    newer = tmp_path / "newer.yaml"
    newer.write_text(LABELS.read_text("utf-8").replace("shelf: {type: string}", "shelf: {type: string}, row: {}"))
    capsys.readouterr()

    assert run_task(project, f"gen-controller --from-crd {newer}") == 1

    assert state(project) == before
    assert "  v1 .places[]: adds row\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["gen-api --from-crd", "gen-controller --no-controller --from-crd"])
def test_a_kind_without_a_controller(project: Path, words: str) -> None:
    assert run_task(project, f"{words} {LABELS}") == 0

    assert not (project / "src/widgets_operator/controllers/label.py").exists()
    assert (project / "samples/label-v1.yaml").exists()


def test_a_new_kind_without_a_controller_is_asked_for_by_either_name(project: Path, pristine: Path) -> None:
    assert run_task(project, "gen-api Widget widgets --short-name wd") == 0
    one = state(project)
    for name in set(one) - set(state(pristine)):
        (project / name).unlink()

    assert run_task(project, "gen-controller Widget widgets --short-name wd --no-controller") == 0
    assert state(project) == one


def test_one_of_several_kinds_and_versions_is_chosen(project: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.yaml"
    both.write_text(f"{AQUARIUMS.read_text('utf-8')}---\n{LABELS.read_text('utf-8')}", "utf-8")

    words = f"gen-api --from-crd {both} --kind Aquarium --version v1beta1"
    assert run_task(project, words) == 0

    assert (project / "src/widgets_operator/api/v1beta1/aquarium.py").exists()
    assert not (project / "src/widgets_operator/api/v1").exists()
    kept = yaml.safe_load((project / KEPT).read_text("utf-8"))
    assert kept["spec"]["names"]["kind"] == "Aquarium"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("gen-controller --from-crd no.yaml", "there is no file no.yaml: name one, - for the standard input"),
        (f"gen-controller --from-crd {LABELS} --group x.example.org", "--from-crd takes names and options from"),
        (f"gen-controller Label labels --from-crd {LABELS}", "--from-crd takes names and options from the definition"),
        (f"gen-api Label labels --from-crd {LABELS}", "--from-crd takes names and options from the definition: remove"),
        (
            f"gen-controller --from-crd {LABELS} --version v3",
            "labels.sea.example.org has no version v3: name one of v1",
        ),
        (
            "gen-api --from-crd {folder}/gadgets.yaml",
            "Gadget exists already (src/widgets_operator/api/v1/gadget.py), so nothing",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence_and_changes_nothing(
    with_gadget: Path, words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gadgets.yaml").write_text(
        LABELS.read_text("utf-8").replace("Label", "Gadget").replace("labels", "gadgets"), "utf-8"
    )
    before = state(with_gadget)

    assert run_task(with_gadget, words.format(folder=tmp_path)) == 2

    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert len(said.splitlines()) == 1
    assert state(with_gadget) == before


def test_without_a_kind_or_a_definition_the_arguments_are_still_demanded(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_task(project, "gen-controller Widget") == 1
    assert "'plural'" in capsys.readouterr().err
