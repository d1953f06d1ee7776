"""Kopf code: lists the handlers of an operator that is written with kopf, and the equivalent of each.

You need it to plan a port. The module is read, never imported, so kopf need not be installed. Decorators that are
reached in another way than by a name of kopf, such as `getattr(kopf.on, event)` or a helper in another file, are not
seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bonny.errors import UsageError

RECONCILE: Final = "reconcile"
FINALIZE: Final = "finalize"
# Decorators whose handlers become a method of the controller.
METHODS: Final = {
    "on.create": RECONCILE,
    "on.update": RECONCILE,
    "on.resume": RECONCILE,
    "on.field": RECONCILE,
    "timer": RECONCILE,
    "daemon": RECONCILE,
    "on.delete": FINALIZE,
}
COUNTERPARTS: Final = {
    "on.create": "reconcile",
    "on.update": "reconcile",
    "on.resume": "reconcile",
    "on.field": "reconcile: register the whole child; the runtime sends the fields that differ",
    "on.delete": "finalize",
    "on.event": "a Watcher, or a controller for that kind",
    "timer": "reconcile_every of the controller, or axn.requeue_after",
    "daemon": "reconcile, with axn.requeue_after where the daemon polls",
    "index": "Related(indexes=...) and axn.related",
    "on.validate": "a rule of the schema, a policy, or an Admission: invoke gen-webhook",
    "on.mutate": "a default of the schema, or an Admission: invoke gen-webhook",
    "on.startup": "lifespan of the controller",
    "on.cleanup": "lifespan of the controller",
    "on.login": "none: the kubeconfig or the ServiceAccount",
    "on.probe": "none: /healthz, /readyz and /metrics are built in",
    "subhandler": "after= of children, or stages",
    "on.subhandler": "after= of children, or stages",
}
OF_THE_PROCESS: Final = frozenset({"on.startup", "on.cleanup", "on.login", "on.probe"})
# Other names of kopf that a handler uses.
USES: Final = {
    "adopt": "owns and axn.register_descendant",
    "append_owner_reference": "owns and axn.register_descendant",
    "harmonize_naming": "name the child yourself",
    "adjust_namespace": "a child gets the namespace of its owner",
    "label": "write the labels into the child",
    "event": "axn.register_event",
    "info": "axn.success_event",
    "warn": "axn.failure_event",
    "exception": "axn.failure_event; an error of a handler sends one itself",
    "TemporaryError": "Retry(after=...), or Wait",
    "PermanentError": "Terminal",
    "AdmissionError": "raise Denied in an Admission",
    "register": "after= of children, or stages",
    "execute": "after= of children, or stages",
    "remove_owner_reference": "omit_owner_ref=True of a child leaves the reference out",
    "build_owner_reference": "axn.register_descendant, which sets it",
    "configure": "BONNY_LOG_LEVEL and BONNY_LOG_FORMAT",
    "OperatorRegistry": "none: controllers are discovered",
    "WebhookServer": "none: the operator serves its webhooks, and makes their certificate",
    "WebhookAutoServer": "none: the operator serves its webhooks, and makes their certificate",
    "AnnotationsDiffBaseStorage": "none: no state is stored in objects",
    "AnnotationsProgressStorage": "none: no state is stored in objects",
    "StatusDiffBaseStorage": "none: no state is stored in objects",
    "StatusProgressStorage": "none: no state is stored in objects",
    "spawn_tasks": "python -m <package>",
    "run": "python -m <package>",
    "operator": "python -m <package>",
}
# Parameters of a handler that have no namesake here.
PARAMETERS: Final = {
    "patch": "axn.update_status; the object itself is not patched",
    "memo": "attributes of the controller",
    "old": "none: the desired state is compared with the cluster",
    "new": "axn.spec",
    "diff": "none: the desired state is compared with the cluster",
    "retry": "axn.tries",
    "started": "none: keep a time in the status",
    "runtime": "none: keep a time in the status",
    "stopped": "none: a handler returns, and runs again after axn.requeue_after",
    "param": "attributes of the controller",
    "settings": "options of the controller and variables: docs/configuration.md of the template",
    "warnings": "review.warn of an Admission",
    "dryrun": "review.dry_run of an Admission",
    "userinfo": "review.user of an Admission",
}
# Options of a decorator that choose when it runs, or the tries after an error. The others name or describe the handler.
FILTER: Final = "none: the handler runs for each object and change, so write the condition into it"
ONE_TIMEOUT: Final = "timeout of the controller, for one run"
OPTIONS: Final = {
    "labels": "label_selector of the kind, or a condition in the handler",
    "annotations": FILTER,
    "when": FILTER,
    "field": FILTER,
    "value": FILTER,
    "old": "none: the cluster has no previous value",
    "new": FILTER,
    "operations": "operations of the Admission",
    "subresource": "none: an Admission reviews the object",
    "ignore_failures": "failure_policy of the Admission",
    "deleted": "none: an object under deletion is only given to finalize",
    "optional": "none: each object of a controller with finalize has the finalizer",
    "idle": "none: axn.requeue_after counts from the run before",
    "sharp": "none: axn.requeue_after counts from the end of a run",
    "initial_delay": "none: the first run follows the creation at once",
    "backoff": "none: waits between tries grow from 0.2 s to 300 s",
    "retries": "axn.tries, and raise Terminal",
    "timeout": ONE_TIMEOUT,
    "errors": "raise Terminal where no further try is wanted",
    "cancellation_timeout": ONE_TIMEOUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One decorator of a function: its line, and the kind in the words of kopf (empty for a handler of the process)."""

    line: int
    function: str
    decorator: str
    group: str = ""
    version: str = ""
    resource: str = ""
    is_async: bool = False
    interval: float | None = None

    @property
    def named(self) -> str:
        """The kind as a person reads it."""
        return ".".join(filter(None, (self.resource, self.version, self.group)))

    @property
    def method(self) -> str:
        """The method of a controller that it becomes; empty for none."""
        return METHODS.get(self.decorator, "")

    @property
    def counterpart(self) -> str:
        """Its equivalent."""
        return COUNTERPARTS.get(self.decorator, "none: there is no equivalent")


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """Another name of kopf, or a parameter that has no namesake here."""

    line: int
    name: str
    counterpart: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """The handlers and the other uses of kopf in one file."""

    path: Path
    handlers: tuple[Handler, ...]
    uses: tuple[Use, ...]


def read_kopf(path: Path) -> Module:
    """Read a file. Raises: `UsageError` when it is not Python, or has no handler of kopf."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--code {path} cannot be read ({error.strerror}): name a file with handlers") from error
    except (SyntaxError, ValueError) as error:
        where, why = (f"{path}:{error.lineno}", error.msg) if isinstance(error, SyntaxError) else (path, error)
        raise UsageError(f"--code {where} is not valid Python ({why}): correct it and try again") from error
    names = _names_of_kopf(tree)
    handlers = tuple(sorted(_handlers(tree, names), key=lambda each: each.line))
    if not handlers:
        raise UsageError(
            f"--code {path} has no handler of kopf, such as @kopf.on.create(...): name the file that has them"
        )
    return Module(path=path, handlers=handlers, uses=tuple(sorted({*_uses(tree, names)})))


def _names_of_kopf(tree: ast.Module) -> dict[str, str]:
    """The names that stand for kopf and its members: `{"kopf": "", "on": "on"}`."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names |= {each.asname or each.name: "" for each in aliases if each.name == "kopf"}
            case ast.ImportFrom(module="kopf", names=aliases):
                names |= {each.asname or each.name: each.name for each in aliases}
            case ast.ImportFrom(module="kopf.on", names=aliases):
                names |= {each.asname or each.name: f"on.{each.name}" for each in aliases}
    return names


def _member(node: ast.expr, names: dict[str, str]) -> str:
    """The member of kopf that an expression names, as in `on.create`; empty if it names none."""
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if names.get(name) == "":
            return attribute
        case ast.Attribute(value=value, attr=attribute) if above := _member(value, names):
            return f"{above}.{attribute}"
    return ""


def _handlers(tree: ast.Module, names: dict[str, str]) -> Iterator[Handler]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for member, call in _decorators(node, names):
                    yield _handler(member, call, node.name, is_async=isinstance(node, ast.AsyncFunctionDef))
            case ast.Call(func=ast.Call() as call, args=[function]) if member := _decorator(call, names):
                yield _handler(member, call, ast.unparse(function))  # @ is not the only way to decorate


def _handler(member: str, call: ast.Call, function: str, *, is_async: bool = False) -> Handler:
    group, version, resource = _resource(call)
    return Handler(
        line=call.lineno,
        function=function,
        decorator=member,
        group=group,
        version=version,
        resource=resource,
        is_async=is_async,
        interval=_interval(call),
    )


def _resource(call: ast.Call) -> tuple[str, str, str]:
    """Group, version and name of a kind, by the rules of kopf's `Selector`."""
    words = [_text(each) for each in call.args]
    if len(words) == 1 and not isinstance(call.args[0], ast.Constant):
        return "", "", words[0]
    named = {each.arg: _text(each.value) for each in call.keywords if each.arg}
    group, version, name = named.get("group", ""), named.get("version", ""), ""
    match words:
        case [only] if "." in only:
            name, _, rest = only.partition(".")
            first, _, other = rest.partition(".")
            versioned = first[:1] == "v" and first[1:2].isdigit() and bool(other)
            version, group = (first, other) if versioned else ("", rest)
        case [only]:
            name = only
        case [first, name] if "/" in first:
            group, _, version = first.rpartition("/")
        case ["v1", name]:
            version = "v1"
        case [group, name]:
            pass
        case [group, version, name]:
            pass
    for keyword in ("plural", "kind", "singular", "shortcut", "category"):
        name = name or named.get(keyword, "")
    return group, version, name


def _text(node: ast.expr) -> str:
    """A text as it stands in the code, or the expression itself."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _interval(call: ast.Call) -> float | None:
    for each in call.keywords:
        value: Any = each.value
        if each.arg == "interval" and isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            return float(value.value)
    return None


def _uses(tree: ast.Module, names: dict[str, str]) -> Iterator[Use]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() | ast.Name() if (member := _member(node, names)) in USES:
                yield Use(node.lineno, f"kopf.{member}", USES[member])
            case ast.Call() if member := _decorator(node, names):
                # Handlers of the process have no objects; the options of `on.field` itself are part of its own line.
                own = {"on.field": {"field", "old", "new"}}.get(member, set[str]())
                for option in node.keywords if member not in OF_THE_PROCESS else ():
                    if option.arg in OPTIONS and option.arg not in own:
                        yield Use(option.value.lineno, f"the option {option.arg} of {member}", OPTIONS[option.arg])
            case ast.FunctionDef() | ast.AsyncFunctionDef() if any(_decorators(node, names)):
                for each in (*node.args.args, *node.args.kwonlyargs):
                    if each.arg in PARAMETERS:
                        mutates = each.arg == "patch" and any(
                            name == "on.mutate" for name, _ in _decorators(node, names)
                        )
                        counterpart = "review.spec and review.resource, in default" if mutates else PARAMETERS[each.arg]
                        yield Use(each.lineno, f"the parameter {each.arg}", counterpart)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, str]) -> Iterator[tuple[str, ast.Call]]:
    """The decorators of kopf on a function, each as a call."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [], lineno=decorator.lineno)
        if member := _decorator(call, names):
            yield member, call


def _decorator(call: ast.Call, names: dict[str, str]) -> str:
    """The decorator of kopf that is called; empty if it is another function."""
    member = _member(call.func, names)
    return member if member in COUNTERPARTS or member.startswith("on.") else ""
