"""Reference: writes docs/reference/ from the docstrings, and from the examples that tests run.

    python -m tools.reference

A page is made of classes and functions; what is public and has a docstring is on it. Its example is the function of
the same name (for a class: its name in snake_case) in docs/reference/examples/<page>.py, whose body stands on the page
as it is run. Nothing is imported, sources are only read.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent
RUNTIME: Final = ROOT / "runtime"
TARGET: Final = ROOT / "docs" / "reference"
EXAMPLES: Final = TARGET / "examples"
NOTE: Final = "<!-- Written by `invoke reference` from docstrings and examples/{page}.py: edit those. -->"
# A longer signature has a line for each parameter.
WIDTH: Final = 100
# This section comes last; its members need no example.
INTERNAL: Final = "For the runtime itself"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def snake_case(name: str) -> str:
    """The name of a class as that of a function: `AddMissingGVK` gives `add_missing_gvk`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# --- what is on which page --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Classes or functions of one module."""

    module: str
    names: tuple[str, ...]
    signed: bool = False
    """Whether the module's docstring comes first."""

    methods: bool = False
    """Whether the methods of the classes have entries of their own; else only fields are listed."""

    one_example: bool = False
    """Whether the example of the class is enough for its methods."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file, which begins with the docstring of the module `lead`."""

    name: str
    title: str
    lead: str
    parts: tuple[Part, ...]


def _step(name: str, module: str = "") -> Part:
    return Part(f"bonny/steps/{module or snake_case(name)}.py", (name,), signed=True)


ASSERTIONS: Final = ("descendant", "no_descendant", "pruned", "status", "condition", "event", "no_event", "requeued")

COMPAT_STEPS: Final = ("step", "SkipObservedGenerations", "AddManagedByLabelToDescendants", "AddMissingGVK")

SCORES: Final = ("least_allocated", "most_allocated", "balanced", "spread")

# In the order of the tree at the top of the module.
ERRORS: Final = (
    "Unreachable",
    "NotLeading",
    "Refusal",
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "NotServed",
    "Conflict",
    "Invalid",
    "Throttled",
    "ServerError",
)

PAGES: Final = (
    Page(
        "axn",
        "Axn",
        "bonny/axn.py",
        (
            Part("bonny/axn.py", ("Axn",), methods=True),
            Part("bonny/core/records.py", ("Action",)),
            Part("bonny/core/conditions.py", ("ReconcileFailure",)),
            Part("bonny/core/queue.py", ("Reason",)),
            Part("bonny/events.py", ("Event", "EventType")),
            Part("bonny/engine/reconcile.py", ("Reconcile",), signed=True, methods=True),
        ),
    ),
    Page(
        "controller",
        "Controller and operator",
        "bonny/controller.py",
        (
            Part("bonny/controller.py", ("Controller",), methods=True),
            Part("bonny/api/names_kinds.py", ("NamesKinds",), methods=True),
            Part("bonny/controller.py", ("Restart",)),
            Part("bonny/run/discovery.py", ("discover",)),
            Part("bonny/lifespan.py", ("HasLifespan",), methods=True),
            Part("bonny/kinds.py", ("Kind", "Owned", "Related", "List")),
            Part("bonny/errors.py", ("Retry", "Throttled", "Wait", "Terminal")),
            Part("bonny/readiness.py", ("is_ready",)),
            Part("bonny/operator.py", ("Operator",)),
            Part("bonny/deploy.py", ("Deploy", "FromSecret", "FromConfigMap")),
        ),
    ),
    Page(
        "steps",
        "Steps",
        "bonny/pipeline.py",
        (
            Part("bonny/steps/__init__.py", ("default_steps",), signed=True),
            _step("Logger"),
            _step("Finalizer"),
            _step("DelegateToController", "delegate"),
            _step("ApplyDescendants"),
            _step("PruneDescendants"),
            _step("ApplyStatus"),
        ),
    ),
    Page(
        "stages",
        "Stages",
        "bonny/stages/__init__.py",
        (
            Part("bonny/stages/controller.py", ("StagedController",)),
            Part("bonny/stages/axn.py", ("StagedAxn",), signed=True, methods=True),
        ),
    ),
    Page(
        "compat",
        "Compat",
        "bonny/compat/__init__.py",
        (
            Part("bonny/compat/axn.py", ("Axn",), signed=True, methods=True),
            Part("bonny/compat/axn.py", ("State",)),
            Part("bonny/compat/controller.py", ("Controller",), signed=True),
            Part("bonny/compat/steps.py", COMPAT_STEPS, signed=True),
            Part("bonny/compat/telemetry.py", ("attach_logger", "span", "measure", "metadata"), signed=True),
        ),
    ),
    Page(
        "servers",
        "Reconcilers, watchers and periodic tasks",
        "bonny/servers/__init__.py",
        (
            Part("bonny/servers/reconciler.py", ("Reconciler",), signed=True, methods=True, one_example=True),
            Part("bonny/servers/watcher.py", ("Watcher",), signed=True, methods=True, one_example=True),
            Part("bonny/servers/visitor.py", ("ObjectVisitor",)),
            Part("bonny/servers/periodic.py", ("PeriodicTask",), signed=True),
            Part("bonny/servers/periodic.py", ("Next", "Stop", "TaskRun")),
        ),
    ),
    Page(
        "schedulers",
        "Schedulers",
        "bonny/scheduler/__init__.py",
        (
            Part("bonny/scheduler/scheduler.py", ("Scheduler",), signed=True, methods=True, one_example=True),
            Part("bonny/scheduler/views.py", ("PodView", "NodeView"), methods=True, one_example=True),
            Part("bonny/scheduler/nodes.py", ("Nodes", "Fitting"), signed=True, methods=True, one_example=True),
            Part("bonny/scheduler/nodes.py", ("Fit",)),
            Part("bonny/scheduler/binding.py", ("Binding",), methods=True, one_example=True),
        ),
    ),
    Page(
        "filters",
        "Filters and scores of schedulers",
        "bonny/filters/__init__.py",
        (
            Part("bonny/filters/index.py", ("Fits",), one_example=True),
            Part("bonny/filters/room.py", ("Usage",), one_example=True),
            Part("bonny/filters/score.py", SCORES, signed=True),
        ),
    ),
    Page(
        "webhooks",
        "Webhooks",
        "bonny/webhooks/__init__.py",
        (
            Part("bonny/webhooks/admission.py", ("Admission",), signed=True, methods=True, one_example=True),
            Part("bonny/api/names_kinds.py", ("NamesKinds",), methods=True),
            Part("bonny/webhooks/review.py", ("Review",), signed=True, methods=True, one_example=True),
            Part("bonny/webhooks/review.py", ("Denied",)),
            Part("bonny/webhooks/review.py", ("User",)),
        ),
    ),
    Page(
        "client",
        "Client",
        "bonny/client/api.py",
        (
            Part("bonny/client/api.py", ("Client",), methods=True),
            Part("bonny/errors.py", ("ApiError",)),
            Part("bonny/client/errors.py", ERRORS),
        ),
    ),
    Page(
        "testing",
        "Testing",
        "bonny_dev/testing/__init__.py",
        (
            Part("bonny_dev/testing/token.py", ("axn", "handle"), signed=True),
            Part("bonny_dev/testing/shown.py", ("child_of",), signed=True),
            Part("bonny_dev/testing/token.py", ("Handled",)),
            Part("bonny_dev/testing/ticks.py", ("Ticks",), signed=True, methods=True),
            Part("bonny_dev/testing/external.py", ("External",), signed=True, methods=True),
            Part("bonny_dev/testing/answers.py", ("Answers",), signed=True),
            Part("bonny_dev/testing/answers.py", ("SentRequest",)),
            Part("bonny_dev/testing/assertions.py", tuple(f"assert_{word}" for word in ASSERTIONS), signed=True),
            Part("bonny_dev/testing/scheduling.py", ("schedule",), signed=True),
            Part("bonny_dev/testing/servers.py", ("run_task", "reconcile"), signed=True),
            Part("bonny_dev/testing/admission.py", ("review",), signed=True),
            Part("bonny_dev/testing/admission.py", ("Reviewed",)),
            Part("bonny_dev/testing/running.py", ("RunningOperator",), signed=True, methods=True, one_example=True),
            Part("bonny_dev/sandbox/workloads.py", ("Workloads",), signed=True, methods=True, one_example=True),
            Part("bonny_dev/manifest/recorder.py", ("record_permissions",), signed=True),
            Part("bonny_dev/manifest/recorder.py", ("PermissionRecorder",), methods=True),
            Part("bonny_dev/manifest/recorder.py", ("Comparison",)),
        ),
    ),
)


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member:
    """What a class has: a method or property, which is called as `code` says, or a field, whose type `code` is."""

    name: str
    code: str
    text: str
    section: str
    is_field: bool = False


@cache
def read(path: Path) -> tuple[ast.Module, list[str]]:
    """The syntax tree of a file, and its lines."""
    text = path.read_text("utf-8")
    return ast.parse(text), text.splitlines()


def docstring_of(module: str) -> str:
    """A module's docstring without its own name in front: `Axn: the token ...` gives `The token ...`."""
    text = re.sub(r"^\w+: ", "", ast.get_docstring(read(RUNTIME / module)[0]) or "")
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.islower() else text


def definition(module: str, name: str) -> ast.ClassDef | Function:
    """The class or function of that name; of an overloaded one the last, which has the docstring."""
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree, _ = read(RUNTIME / module)
    return [node for node in tree.body if isinstance(node, named) and node.name == name][-1]


def examples(page: str) -> Mapping[str, str]:
    """The bodies of the functions in the page's file of examples."""
    tree, lines = read(EXAMPLES / f"{page}.py")
    found = {}
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            body = lines[node.body[0].lineno - 1 : node.end_lineno]
            found[node.name] = inspect.cleandoc("\n".join(["", *body]))
    return found


def members(module: str, node: ast.ClassDef) -> list[Member]:
    """Public names that have a docstring: fields, then methods and properties, in the order of the source.

    The members of a private base in the same module come first.
    """
    bases = [definition(module, name) for name in map(ast.unparse, node.bases) if re.match(r"_[A-Z]\w+$", name)]
    children = [child for each in (*bases, node) for child in each.body]
    inits = [child for child in children if isinstance(child, Function) and child.name == "__init__"]
    found = [field for body in (children, *(init.body for init in inits)) for field in _fields(body)]
    headings = _headings(module)
    for child in children:
        text = ast.get_docstring(child) if isinstance(child, Function) else None
        if isinstance(child, Function) and text and not child.name.startswith("_"):
            section = next((title for at, title in headings if node.lineno < at < child.lineno), "")
            code = signature(child, called=f"{snake_case(node.name)}.{child.name}", bound=True)
            found.append(Member(child.name, code, text, _section(section, text)))
    return found


def _headings(module: str) -> list[tuple[int, str]]:
    """The comments that part a class, with their lines; the last one first."""
    _, lines = read(RUNTIME / module)
    matches = ((number, re.match(r"    # --- (.+?) -+$", line)) for number, line in enumerate(lines, 1))
    return [(number, match[1]) for number, match in matches if match][::-1]


def _section(section: str, text: str) -> str:
    return INTERNAL if text.startswith("For the ") or section == "called by the runtime" else section


def _fields(body: list[ast.stmt]) -> Iterator[Member]:
    """Assignments that a docstring follows."""
    for node, following in pairwise(body):
        if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
            continue
        match node:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation):
                code = re.sub(r"^ClassVar\[(.*)\]$", r"\1", ast.unparse(annotation))
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                code = ""
            case _:
                continue
        if not name.startswith("_"):
            yield Member(name, code, inspect.cleandoc(str(following.value.value)), "", is_field=True)


def signature(node: Function, *, called: str, bound: bool = False) -> str:
    """How `node` is called; without its first parameter when it is `bound`."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    if {"property", "cached_property"} & set(map(ast.unparse, node.decorator_list)):
        return called + returns
    called = f"await {called}" if isinstance(node, ast.AsyncFunctionDef) else called
    return _call(called, _parameters(node.args)[int(bound) :], returns)


def instance(module: str, node: ast.ClassDef) -> str | None:
    """How an instance is made: by `__init__`, or as a dataclass; None for others."""
    for child in node.body:
        if isinstance(child, Function) and child.name == "__init__":
            return signature(child, called=node.name, bound=True)
    parameters = _dataclass_fields(module, node)
    return _call(node.name, list(dict.fromkeys(parameters))) if parameters else None


def _call(called: str, parameters: list[str], returns: str = "") -> str:
    line = f"{called}({', '.join(parameters)}){returns}"
    return line if len(line) <= WIDTH else f"{called}(\n    " + ",\n    ".join(parameters) + f",\n){returns}"


def _parameters(arguments: ast.arguments) -> list[str]:
    """Each parameter as it is written, with its default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = list(zip(positional, [*missing, *arguments.defaults], strict=True))
    parts = [_written(ast.unparse(parameter), default) for parameter, default in pairs]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parts.append(f"*{ast.unparse(arguments.vararg)}")
    if arguments.kwonlyargs:
        parts += [] if arguments.vararg else ["*"]
        pairs = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        parts += [_written(ast.unparse(parameter), default) for parameter, default in pairs]
    return parts + ([f"**{ast.unparse(arguments.kwarg)}"] if arguments.kwarg else [])


def _dataclass_fields(module: str, node: ast.ClassDef) -> list[str]:
    """The parameters of a dataclass, those of its base in the same module first."""
    if not any(ast.unparse(each).startswith("dataclass") for each in node.decorator_list):
        return []
    siblings = {each.name: each for each in read(RUNTIME / module)[0].body if isinstance(each, ast.ClassDef)}
    bases = [siblings[name] for name in map(ast.unparse, node.bases) if name in siblings]
    inherited = [field for base in bases for field in _dataclass_fields(module, base)]
    own = [child for child in node.body if isinstance(child, ast.AnnAssign)]
    # `_: KW_ONLY` parts them as `*` does.
    named = [(ast.unparse(each.target), ast.unparse(each.annotation), each.value) for each in own]
    return inherited + ["*" if name == "_" else _written(f"{name}: {kind}", value) for name, kind, value in named]


def _written(parameter: str, default: ast.expr | None) -> str:
    return parameter if default is None else f"{parameter} = {_quoted(default)}"


def _quoted(value: ast.expr) -> str:
    return ast.unparse(value).replace("'", '"')


def values(node: ast.ClassDef) -> list[str]:
    """The values of an enumeration."""
    if not any(ast.unparse(base).endswith("Enum") for base in node.bases):
        return []
    return [
        f"{ast.unparse(each.targets[0])} = {_quoted(each.value)}" for each in node.body if isinstance(each, ast.Assign)
    ]


# --- writing ----------------------------------------------------------------------------------------------------------


def markdown(text: str) -> str:
    """A docstring as Markdown: what it promises stands out, and no placeholder is taken for HTML."""
    return "\n".join(line if line.startswith("    ") else _prose(line) for line in text.splitlines())


def _prose(line: str) -> str:
    marked = re.sub(r"(?<![\w`])(Raises|RBAC|Guarantees|Does not|Usage):", r"**\1:**", line)
    return "".join(part if part[:1] == "`" else part.replace("<", "&lt;") for part in re.split(r"(`[^`]*`)", marked))


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def bullet(member: Member) -> str:
    """A member in a list; a field with its type."""
    named = f"**`{member.name}`**: `{member.code}`. " if member.is_field and member.code else f"**`{member.name}`**: "
    return f"- {named}{markdown(member.text)}".replace("\n", "\n  ")


def page(wanted: Page) -> str:
    """The page as Markdown."""
    shown = examples(wanted.name)
    about = ast.get_docstring(read(EXAMPLES / f"{wanted.name}.py")[0]) or ""
    blocks = [NOTE.format(page=wanted.name), f"# {wanted.title}", markdown(docstring_of(wanted.lead)), about]
    if "own_step" in shown:
        blocks += ["## Your own", fenced(shown["own_step"]), fenced(shown["own_step_with_options"])]
    for part in wanted.parts:
        for name in part.names:
            blocks += _entry(part, name, shown)
    return "\n\n".join(blocks) + "\n"


def _entry(part: Part, name: str, shown: Mapping[str, str]) -> Iterator[str]:
    node = definition(part.module, name)
    yield f"## `{name}`"
    if part.signed and name == part.names[0]:
        yield markdown(docstring_of(part.module))
    made = instance(part.module, node) if isinstance(node, ast.ClassDef) else signature(node, called=name)
    if made and not part.methods:
        yield fenced(made)
    yield from map(markdown, _promises(node))
    if isinstance(node, ast.ClassDef) and values(node):
        yield "\n".join(f"- `{value}`" for value in values(node))
    if snake_case(name) in shown:
        yield fenced(shown[snake_case(name)])
    if isinstance(node, ast.ClassDef):
        # A method may have the name of another class of the page.
        own = {} if part.one_example else shown
        yield from _members(members(part.module, node), own, methods=part.methods)


def _promises(node: ast.ClassDef | Function) -> Iterator[str]:
    """What the docstring says; that of a class, of making an instance, and of calling that."""
    special = [each for each in node.body if isinstance(each, Function) and each.name in ("__init__", "__call__")]
    for each in (node, *(special if isinstance(node, ast.ClassDef) else ())):
        text = ast.get_docstring(each)
        if text:
            yield text


def _members(found: list[Member], shown: Mapping[str, str], *, methods: bool) -> Iterator[str]:
    fields = [bullet(member) for member in found if member.is_field]
    if fields:
        yield "\n".join(fields)
    if not methods:
        return
    sections = dict.fromkeys(member.section for member in found if not member.is_field)
    for section in sorted(sections, key=INTERNAL.__eq__):
        title = section or "methods"
        yield f"### {title[:1].upper()}{title[1:]}"
        within = [member for member in found if member.section == section and not member.is_field]
        if section == INTERNAL:
            yield "\n".join(map(bullet, within))
            continue
        for member in within:
            yield f"#### `{member.name}`"
            yield fenced(member.code)
            yield markdown(member.text)
            if member.name in shown:
                yield fenced(shown[member.name])


def wanting_examples(wanted: Page) -> set[str]:
    """The names that must have an example: functions, methods and properties, and steps."""
    names: set[str] = set()
    for part in wanted.parts:
        for name in part.names:
            node = definition(part.module, name)
            if part.signed or part.one_example or not isinstance(node, ast.ClassDef):
                names.add(snake_case(name))
            elif part.methods:
                found = members(part.module, node)
                names |= {member.name for member in found if not member.is_field and member.section != INTERNAL}
    return names


def main() -> None:
    """Write every page."""
    for wanted in PAGES:
        (TARGET / f"{wanted.name}.md").write_text(page(wanted), "utf-8")


if __name__ == "__main__":
    main()
