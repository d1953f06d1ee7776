"""Handler asserts: finds `assert` in the handlers that tests define.

An AssertionError in a handler is one more failed reconcile: it is retried, and the test passes. Record in the handler,
and assert in the test.

python tools/handler_asserts.py        names each; exit code 1 when there are some
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
# What the runtime calls: these methods of such classes, and functions that take one of these arguments.
BASES: Final = ("Controller", "Reconciler", "Scheduler", "Watcher", "Admission", "Version")
METHODS: Final = ("add", "modify", "delete", "reconcile", "finalize", "select_node_for_pod", "bind", "default",
                  "validate", "validate_delete", "to_hub", "from_hub")  # fmt: skip
ARGUMENTS: Final = ("Axn", "TaskRun")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def handler_asserts(node: ast.AST, *, within: ast.AST | None = None, handler: bool = False) -> Iterator[int]:
    """The lines of asserts in handlers below `node`. `assert x is not None` is for type checkers, and is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assert) and handler and not ast.unparse(child.test).endswith(" is not None"):
            yield child.lineno
        inside = isinstance(child, Function) and _is_handler(child, within)
        scope = child if isinstance(child, Function | ast.ClassDef) else within
        yield from handler_asserts(child, within=scope, handler=handler or inside)


def _is_handler(function: Function, within: ast.AST | None) -> bool:
    if isinstance(within, ast.ClassDef):
        return function.name in METHODS and any(
            ast.unparse(base).partition("[")[0].endswith(BASES) for base in within.bases
        )
    # A helper of a module that takes an axn may well assert; a function in a test is given away.
    named = (argument.annotation for argument in function.args.args if argument.annotation is not None)
    return isinstance(within, Function) and any(ast.unparse(name).partition("[")[0] in ARGUMENTS for name in named)


def main() -> int:
    found = [
        f"{path.relative_to(TESTS.parent)}:{line}: an assert in a handler fails no test: record, and assert in the test"
        for path in sorted(TESTS.rglob("*.py"))
        for line in handler_asserts(ast.parse(path.read_text("utf-8")))
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
