"""`invoke why` on a real API server: the ten answers about objects of operators that run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.kinds import Kind
from bonny.telemetry import attach, detach
from bonny_dev.inside.reading import AtAddress, object_query, with_ages
from bonny_dev.install import read_documents
from bonny_dev.prove.external import External
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.ports import free_ports
from bonny_dev.testing.running import RunningOperator, running
from bonny_dev.why.answers import Answer, State, answers, verdict
from bonny_dev.why.command import why
from bonny_dev.why.facts import facts, operator_facts
from tests.support.breaking import ROOT, edit, repository

GROUP = "desks.example.com"
TOKEN = "t0ken"
QUESTIONS = ["accepted", "conditions", "operator", "turn", "error", "children", "writers", "finalizers", "runs"]
QUESTIONS += ["permissions"]
DESK = '''
from bonny import Axn, Controller, Owned, Spec, Status, Version, Wait, WithConditions, WithObservedGeneration


class DeskSpec(Spec):
    """The desired state."""

    replicas: int = 1
    trouble: str = ""


class DeskStatus(Status, WithConditions, WithObservedGeneration):
    """The observed state."""


class Desk(Version):
    """Stands on its own feet."""

    kind = "Desk"
    version = "v1"
    storage = True
    hub = True
    spec: DeskSpec
    status: DeskStatus


class DeskController(Controller[Desk]):
    owns = (Owned("apps/v1", "Deployment"),)

    async def reconcile(self, axn: Axn[Desk]) -> None:
        labels = {"desk": axn.key.name}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "legs", "image": "legs"}]}}
        axn.register_descendant(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": axn.key.name, "namespace": axn.key.namespace},
                "spec": {"replicas": axn.spec.replicas, "selector": {"matchLabels": labels}, "template": pod},
            }
        )
        if axn.spec.trouble == "wait":
            raise Wait("the other legs are on their way", after=600)
        if axn.spec.trouble:
            raise RuntimeError(axn.spec.trouble)

    async def finalize(self, axn: Axn[Desk]) -> None:
        if axn.spec.trouble:
            raise Wait("somebody sits at it", after=600)
'''


@asynccontextmanager
async def desks(sandbox: Sandbox, folder: Path) -> AsyncIterator[RunningOperator]:
    root = repository(folder / "desks", "sound", package="desks")
    (root / "src" / "desks" / "controllers.py").write_text(DESK, "utf-8")
    # A group of its own: tests of `prove` leave lamps in a shared sandbox, and `why --all` shows all of them.
    edit(root / "src" / "desks" / "lamp.py", "broken.example.com", GROUP)
    async with running(sandbox, root) as at_work:
        yield at_work


def desk(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "oak", "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Desk", "metadata": metadata, "spec": spec}


async def answered(
    at_work: RunningOperator, plural: str, name: str, *, namespace: str = "default", port: int | None = None
) -> dict[str, Answer]:
    """The answers by their question, and the verdict under an empty one. `port`: that of the operator's console."""
    (kind,) = (
        kind
        for controller in at_work.operator.controllers
        for kind in controller.kinds(at_work.operator.group)
        if kind.plural == plural
    )
    overview, remembered = dict[str, Any](), dict[str, Any]()
    if port is not None:
        async with AtAddress(f"http://127.0.0.1:{port}", TOKEN) as inside:
            overview = with_ages(await inside.ask("/overview"))
            remembered = await inside.ask("/object", **object_query(at_work.operator, kind, namespace, name))
    of = await operator_facts(at_work.client, at_work.operator, at_work.operator.name, inside=overview)
    given = answers(await facts(at_work.client, kind, namespace, name, of=of, inside=remembered))
    return {each.question: each for each in given} | {"": verdict(given)}


def has_reason(reason: str) -> Any:
    return lambda live: any(
        (each["type"], each["reason"]) == ("Reconciled", reason)
        for each in (live.get("status") or {}).get("conditions", ())
    )


async def test_an_object_whose_child_is_not_ready(sandbox: Sandbox, tmp_path: Path) -> None:
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk())
        await at_work.until(desk(), has_reason("Succeeded"))
        given = await answered(at_work, "desks", "oak")
        assert list(given)[:-1] == QUESTIONS
        assert given["accepted"].text == "generation 1 is stored, and the operator has handled it"
        assert given["conditions"].detail[0].startswith("Reconciled=True since ")
        assert given["children"].text == (
            "1 of 1 are not ready, the deepest is Deployment default/oak: it has no status yet: its controller has not "
            "handled it"
        )
        assert given[""].question == "children"
        assert given["permissions"] == Answer("permissions", State.GOOD, "none is missing")
        assert given["finalizers"].detail == (
            f"lamps.{GROUP}/desk-controller: this operator removes it when `finalize` returned",
        )
        assert any(line.startswith("integration-test (Apply, ") for line in given["writers"].detail)


async def test_an_object_whose_handler_fails_or_waits(sandbox: Sandbox, tmp_path: Path) -> None:
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk(trouble="a leg is missing"))
        await at_work.until(desk(), has_reason("HandlerFailed"))

        async def reported() -> bool:
            return bool((await answered(at_work, "desks", "oak"))["error"].detail)

        await at_work.eventually(reported, lambda: "the failure has no event")
        given = await answered(at_work, "desks", "oak")
        assert given[""].question == "error"
        assert given["error"].text.startswith("HandlerFailed, first seen ")
        assert "HandlerFailed/Reconcile" in given["error"].detail[0] == given["runs"].detail[0]
        assert "RuntimeError" in given["error"].text
        assert "a leg is missing" not in repr(given)

        await at_work.apply(desk(trouble="wait"))
        await at_work.until(desk(), has_reason("Waiting"))
        given = await answered(at_work, "desks", "oak")
        assert given["turn"].state is State.WAITING
        assert given["turn"].text.endswith("the other legs are on their way")
        assert given["error"].state is State.GOOD

        await at_work.delete(desk())
        await at_work.until(desk(), lambda live: "deletionTimestamp" in live["metadata"])
        given = await answered(at_work, "desks", "oak")
        assert given[""].question == "finalizers"
        assert given["finalizers"].state is State.WAITING
        await at_work.apply(desk())


async def test_another_writer_of_a_field_of_a_child(sandbox: Sandbox, tmp_path: Path) -> None:
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk(replicas=2))
        await at_work.until(desk(replicas=2), has_reason("Succeeded"))
        child = Kind("apps/v1", "Deployment")
        scaled = {**desk(), "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}
        await at_work.client.apply(child, scaled, manager="autoscaler")
        given = await answered(at_work, "desks", "oak")
        assert given["writers"].state is State.BAD
        assert given["writers"].detail[0].startswith("Deployment default/oak: autoscaler (Apply, ")
        assert given["writers"].detail[0].endswith("): spec.replicas")


async def test_a_finalizer_of_another_client(sandbox: Sandbox, tmp_path: Path) -> None:
    held = desk()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(held)
        await at_work.until(desk(), has_reason("Succeeded"))
        await at_work.delete(desk())

        async def alone() -> bool:
            live = await at_work.read(desk())
            return live is not None and live["metadata"]["finalizers"] == ["example.com/hold"]

        await at_work.eventually(alone, lambda: "the operator's own finalizer is still there")
        given = await answered(at_work, "desks", "oak")
        assert (given[""].question, given[""].state) == ("finalizers", State.BAD)
        assert given["finalizers"].detail == (
            "example.com/hold: not of this operator; integration-test set it, and has to remove it",
        )
        await at_work.client.json_patch(
            at_work.operator.controllers[0].kinds(at_work.operator.group)[0],
            ("default", "oak"),
            [{"op": "remove", "path": "/metadata/finalizers"}],
        )


async def test_a_permission_that_was_taken_away(sandbox: Sandbox, tmp_path: Path) -> None:
    async with desks(sandbox, tmp_path) as at_work:
        role = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
        live = await at_work.client.get(role, "lamps")
        rules = [rule for rule in live["rules"] if "deployments" not in rule["resources"]]
        await at_work.client.merge_patch(role, ("", "lamps"), {"rules": rules})
        await at_work.apply(desk())

        async def noticed() -> bool:
            return (await answered(at_work, "desks", "oak"))["permissions"].state is State.BAD

        await at_work.eventually(noticed, lambda: "the missing permission is not noticed")
        given = await answered(at_work, "desks", "oak")
        assert given["permissions"].text.startswith("ServiceAccount lamps/lamps lacks ")
        assert any('"deployments"' in line for line in given["permissions"].detail)
        # Without it the finalizer stays, if the operator had not opened its watch before.
        await at_work.client.merge_patch(role, ("", "lamps"), {"rules": live["rules"]})


async def test_an_object_that_does_not_exist_and_an_unknown_kind(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk())

        async def asked(target: str, *, everything: bool = False, as_json: bool = False) -> bool:
            where = at_work.operator.name
            return await why(cluster, at_work.operator, target, namespace=where, everything=everything, as_json=as_json)

        assert not await asked("desk/elm")
        assert "desks/elm: there is no such object; there are default/oak; " in capsys.readouterr().out
        await at_work.until(desk(), has_reason("Succeeded"))
        assert not await asked("Desk/default/oak", as_json=True)
        shown = json.loads(capsys.readouterr().out)
        assert [each["question"] for each in shown["answers"]] == QUESTIONS
        assert (shown["object"], shown["verdict"]["question"]) == ("desks/default/oak", "children")
        assert not await asked("", everything=True)
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("wait  desks/default/oak: 1 of 1 are not ready")
        for wrong, sentence in (
            ("chair/oak", "'chair/oak' names no kind of lamps: it has desks, lamps; write for example lamps/default/x"),
            ("desk", "'desk' names no object: write for example desks/default/x, or --all"),
            ("desk/a/b/c", "'desk/a/b/c' names no object: write for example desks/default/x, or --all"),
        ):
            with pytest.raises(UsageError) as raised:
                await asked(wrong)
            assert str(raised.value) == sentence


async def test_the_command_line(sandbox: Sandbox, tmp_path: Path) -> None:
    """Regression: `invoke why widgets/default/x` took no argument; only the function behind it was tested."""
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk())
        await at_work.until(desk(), has_reason("Succeeded"))
        root = tmp_path / "desks"
        shutil.copy(ROOT / "<<cookiecutter.operator_slug>>" / "tasks.py", root)

        async def run(*words: str) -> tuple[int, str]:
            command = [sys.executable, "-m", "invoke", *words]
            environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=root, env=environ, capture_output=True, text=True, check=False
            )
            return done.returncode, done.stdout or done.stderr

        for words, code, beginning in (
            (("why", "desks/default/oak"), 1, "wait  desks/default/oak: 1 of 1 are not ready"),
            (("why", "desk/oak", "--json"), 1, '{\n  "object": "desks/default/oak"'),
            (("why", "--all"), 1, "wait  desks/default/oak: "),
            (("why", "desks", "--all"), 1, "wait  desks/default/oak: "),
            (("why", "--all", "desks"), 1, "wait  desks/default/oak: "),
            (("why", "--all", "--json"), 1, '[\n  {\n    "object": "desks/default/oak"'),
            (("why", "--all", "desks", "--json"), 1, '[\n  {\n    "object": "desks/default/oak"'),
            (("why", "lamps", "--all"), 0, "there are no lamps"),
            (("why", "--all", "lamps"), 0, "there are no lamps"),
            (("why", "--all", "chairs"), 2, "'chairs' names no kind of lamps"),
            (("why", "desks", "--all=lamps"), 2, "--all names 'lamps', and 'desks' stands before it: leave one of"),
            (("why",), 2, "why needs TARGET"),
            (("why", "chair/oak"), 2, "'chair/oak' names no kind of lamps"),
            (
                ("top", "--once"),
                1,
                "the operator's memory is not shown: no pod of lamps is ready",
            ),
            (("top", "--url", "http://127.0.0.1:1", "--once"), 1, "the operator at http://127.0.0.1:1 does not answer"),
            (("console", "--url", "http://example.com"), 2, "the operator's console is 'http://example.com'"),
        ):
            found, text = await run(*words)
            assert (found, text[: len(beginning)]) == (code, beginning), words


async def test_many_objects_take_as_many_requests_as_a_few(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: `why --all` sent its requests again for each object."""

    async def requests() -> int:
        sent: list[str] = []
        attach("requests", "bonny.client.request.answered", lambda *given: sent.append(given[2]["path"]))
        try:
            cluster = Kubeconfig(str(sandbox.kubeconfig))
            await why(cluster, at_work.operator, "desks", namespace="lamps", everything=True, as_json=True)
        finally:
            detach("requests")
        return len(sent)

    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk())
        few = await requests()
        alone = json.loads(capsys.readouterr().out)[0]
        for number in range(12):
            metadata = {"name": f"oak-{number}", "namespace": "default"}
            await at_work.apply({**desk(), "metadata": metadata})
            await at_work.until({**desk(), "metadata": metadata}, has_reason("Succeeded"))
        assert await requests() == few
        everything = json.loads(capsys.readouterr().out)
        assert len(everything) == 13
        # And they are the answers of each object.
        await why(
            Kubeconfig(str(sandbox.kubeconfig)),
            at_work.operator,
            "desks/oak-3",
            namespace="lamps",
            everything=False,
            as_json=True,
        )
        one = json.loads(capsys.readouterr().out)
        (same,) = (each for each in everything if each["object"] == "desks/default/oak-3")
        told = [[(each["question"], each["state"]) for each in given["answers"]] for given in (same, one)]
        assert told[0] == told[1]
        assert [each["question"] for each in alone["answers"]] == QUESTIONS


async def test_it_changes_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    async with desks(sandbox, tmp_path) as at_work:
        await at_work.apply(desk())
        before = await at_work.until(desk(), has_reason("Succeeded"))
        await answered(at_work, "desks", "oak")
        assert await at_work.read(desk()) == before


# What is seen from outside of each broken operator while nothing fails: most of their bugs need `invoke prove`.
SEEN = {
    "call_before_finalizer": "",
    "counter": "",
    "delete_by_name": "",
    "early_finalizer": "",
    "lost_effect": "",
    "random_child_name": "",
    "recreated_child": "",
    "removed_field": "",
    "stale_cache": "",
    "status_before_children": "",
    "too_many_children": "",
    "two_controllers": "writers",
}
QUICK = ("early_finalizer", "two_controllers")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SEEN])
async def test_the_ten_questions_about_each_broken_operator(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = repository(tmp_path / name, name, package=f"why_{name}")
    (sample,) = read_documents("desk.yaml", (root / "samples" / "desk.yaml").read_text("utf-8"))
    (port,) = free_ports(1)
    main = root / "src" / f"why_{name}" / "__main__.py"
    settings = {"BONNY_CONSOLE_PORT": str(port), "BONNY_CONSOLE_TOKEN": TOKEN}
    main.write_text(f"import os\n\nos.environ |= {settings}\n{main.read_text('utf-8')}", "utf-8")
    with External(ca_file=sandbox.ca_file, folder=tmp_path).serving() as service:
        monkeypatch.setenv("LAMPS_URL", service.url)
        async with running(sandbox, root) as at_work:
            # Nothing collects the children in a sandbox, so each lamp has a namespace without those of another.
            where = f"why-{name.replace('_', '-')}"
            sandbox.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where}}])
            await at_work.apply({**sample, "metadata": {"name": "desk", "namespace": where}})

            async def handled() -> bool:
                children = await at_work.client.list(Kind("v1", "ConfigMap"), namespace=where)
                return bool(service.records or children)

            await at_work.eventually(handled, lambda: "the lamp was not handled")

            async def look() -> dict[str, Answer]:
                return await answered(at_work, "lamps", "desk", namespace=where, port=port)

            async def seen() -> bool:
                return (await look())[""].question == SEEN[name]

            await at_work.eventually(seen, lambda: "the verdict is another one")
            given = await look()
            assert list(given)[:-1] == QUESTIONS
            # What the lamps do not say: their status has no conditions, and most controllers declare no children.
            unsaid = {"conditions"} if name == "two_controllers" else {"conditions", "children"}
            assert {question for question, each in given.items() if each.state is State.UNKNOWN} == unsaid
            assert given["conditions"].text.startswith("its status has no conditions")
            assert given["accepted"].text == "generation 1 is stored, and the operator has handled it"
            assert given["operator"].text.startswith("it runs, and answers; all ")
            assert given["turn"].text.startswith(
                ("nothing is due", "its handler runs", "it is ", "it waits for its own")
            )
            assert given["error"].text.startswith("reported" if SEEN[name] else "none is reported")
            assert given["children"].text.startswith(("ready: ", "LampController declares no kinds in `owns`"))
            assert any(line.startswith("integration-test (Apply, ") for line in given["writers"].detail) or SEEN[name]
            assert given["finalizers"].text.startswith(("none", "1, and the object is not being deleted"))
            assert " ago: " in given["runs"].detail[0]
            assert "succeeded after " in given["runs"].detail[0]
            assert "; wrote P" in "".join(given["runs"].detail)
            assert given["permissions"].text == "none is missing"
