"""Configuration: writes docs/configuration.md from `bonny.run.config` and the extras.

python -m tools.configuration
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bonny.carried import listed
from bonny.extras import Extra, present
from bonny.run.config import HONOURED, INFORMATIVE, VARIABLES
from tools.reference import ROOT

PAGE: Final = ROOT / "docs" / "configuration.md"

LEAD: Final = """\
<!-- Written by `invoke reference` from runtime/bonny/run/config.py and the extras: edit those. -->

# Configuration

An operator reads its settings from environment variables, once, when it starts. A variable overrides the value in
`Operator(...)`; an empty variable counts as not set. `python -m <package> config` prints the settings in force and
where each comes from; `python -m <package> help` prints the list below.

A value that is not accepted, or a `BONNY_` variable that does not exist, ends the process with exit code 2 and one
sentence on stderr that names the variable and its accepted values. In a cluster, variables belong to the container of
the Deployment: [manifest](reference/manifest.md) shows which ones the manifest sets."""

EXTRAS_LEAD: Final = """\
## Variables of extras

An operator has these variables if its repository carries the extra; `invoke extras` shows and changes that. Without the
extra, such a variable ends the process, as one that does not exist does; the sentence on stderr names the extra."""

INFORMATIVE_LEAD: Final = """\
## For handlers

The runtime does not read these variables; the code of handlers may."""

HONOURED_LEAD: Final = """\
## Variables of other tools

They have the meaning that they have elsewhere. `python -m <package> config` prints the variables that are set, with
passwords masked. The variables of OpenTelemetry belong to the extra `otel`, the variables of proxies to the extra
`proxy`; where it is absent, one line of the log at start warns that they have no effect. OpenTelemetry's SDK reads more
variables of its own; [traces](reference/telemetry.md#traces) explains when it is used."""


def page() -> str:
    """The page as Markdown."""
    rows = [(f"`{name}`", of.accepts, of.default, of.effect) for name, of in VARIABLES.items()]
    blocks = [LEAD, _table(("variable", "accepted values", "default", "effect"), rows)]
    of_extras = [
        (f"`{name}`", f"`{_name(extra)}`", of.accepts, of.default, of.effect)
        for extra in present().values()
        for name, of in extra.variables.items()
    ]
    blocks += [EXTRAS_LEAD, _table(("variable", "extra", "accepted values", "default", "effect"), of_extras)]
    honoured = HONOURED | {name: effect for extra in present().values() for name, effect in extra.honoured.items()}
    for lead, variables in ((INFORMATIVE_LEAD, INFORMATIVE), (HONOURED_LEAD, honoured)):
        blocks += [lead, _table(("variable", "effect"), [(f"`{name}`", effect) for name, effect in variables.items()])]
    return "\n\n".join(blocks) + "\n"


def _name(extra: Extra) -> str:
    """The name of an extra, by the folder that defines it."""
    folder = type(extra).__module__.split(".")[-2]
    return next(name for name, each in listed().items() if each.folders[:1] == (folder,))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"|{'---|' * len(head)}", *(f"| {' | '.join(map(_marked, cells))} |" for cells in rows)]
    return "\n".join([f"| {' | '.join(head)} |", *lines])


def _marked(text: str) -> str:
    """`text` with names of variables, and what stands for all namespaces, as code."""
    return re.sub(r"(?<!`)\b(?:BONNY_\w+|KUBECONFIG|\w+_PROXY|__ALL__)\b(?!`)", r"`\g<0>`", text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
