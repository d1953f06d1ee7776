"""Lines: counts the runtime's lines of code, without blanks, comments and docstrings, against its budgets.

python tools/lines.py        prints a table; exit code 1 when a budget is exceeded
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path
from typing import Final

RUNTIME: Final = Path(__file__).resolve().parent.parent / "runtime" / "bonny"

# From a watch line to the user's handler and back to the API: can be read in one sitting.
# How credentials and proxies are found is not on the way, nor what tells and counts it, nor who leads.
PATH: Final = ("core", "calling.py", "conditions.py", "client/api.py", "client/errors.py", "client/transport.py",
               "axn.py", "pipeline.py", "steps", "servers/reflector.py", "servers/intake.py", "servers/worker.py",
               "servers/workplace.py")  # fmt: skip
ASIDE: Final = ("core/lease.py", "core/meters.py", "core/series.py")
DEVELOPMENT: Final = ("tasks", "scaffold", "sandbox", "testing", "manifest")
# What a running operator takes from there: it asks for the permissions that its manifest grants.
IN_PRODUCTION: Final = ("manifest/operatorlike.py", "manifest/rbac.py", "manifest/reviews.py")
BUDGETS: Final = {"watch line to handler and back": 4_400, "runs in production": 10_900, "everything vendored": 15_300}


def code_lines(path: Path) -> int:
    """Lines that hold code; a docstring is any string that stands alone."""
    source = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
               tokenize.ENDMARKER)  # fmt: skip
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def main() -> int:
    counts = {path.relative_to(RUNTIME): code_lines(path) for path in sorted(RUNTIME.rglob("*.py"))}

    def total(*, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> int:
        def within(path: Path, rooms: tuple[str, ...]) -> bool:
            return any(path.as_posix() == room or path.parts[0] == room for room in rooms)

        return sum(n for path, n in counts.items() if (not only or within(path, only)) and not within(path, without))

    totals = (total(only=PATH, without=ASIDE), total(without=DEVELOPMENT) + total(only=IN_PRODUCTION), total())
    print(f"{'lines of code':34}{'now':>8}{'budget':>8}")
    for (name, budget), now in zip(BUDGETS.items(), totals, strict=True):
        print(f"{name:34}{now:8,}{budget:8,}{'  over budget' if now > budget else ''}")
    return int(any(now > budget for now, budget in zip(totals, BUDGETS.values(), strict=True)))


if __name__ == "__main__":
    sys.exit(main())
