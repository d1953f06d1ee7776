"""Config: the settings of one operator process.

`Config` holds and checks them; `VARIABLES` says which environment variable sets each, what it accepts and what it does.
The environment beats what `Operator` or a task says.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationError
from pydantic.dataclasses import dataclass

from ..carried import unused_variables
from ..errors import OptionError, UsageError
from ..extras import present
from ..naming import check_dns_label
from ..operator import LONGEST_GRACE

S = TypeVar("S")

ALL_NAMESPACES: Final = "__ALL__"
PREFIX: Final = "BONNY_"
# The loops that are installed, the fastest first.
EVENT_LOOPS: Final = [name for name in ("uvloop", "asyncio") if find_spec(name)]
# Up to the last @, because a password may contain one that should have been encoded.
CREDENTIALS: Final = re.compile(r"^(\w+://)?.*@")


class Variable(NamedTuple):
    """The environment variable of one field of `Config`. `words` are texts that stand for a value of another type."""

    field: str
    accepts: str
    default: str
    effect: str
    words: Mapping[str, Any] = MappingProxyType({})

    def spelled(self, value: object) -> str:
        """The text that sets `value`; empty for the value that no text sets."""
        word = next((word for word, meaning in self.words.items() if meaning == value), None)
        if word is not None or value is None:
            return word or ""
        return ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

# fmt: off
VARIABLES: Final[Mapping[str, Variable]] = {
    "BONNY_WATCH_NAMESPACE": Variable(
        "watch_namespaces", "one namespace, several with commas, or __ALL__",
        "BONNY_POD_NAMESPACE, else the value in the code of the operator: __ALL__", "Namespaces that are watched.",
        {ALL_NAMESPACES: None}),
    "BONNY_POD_NAMESPACE": Variable(
        "pod_namespace", "a namespace, or __ALL__", "the namespace of the service account, else default",
        "Namespace of the operator and of its Lease. The value __ALL__ affects only which namespaces are watched.",
        {ALL_NAMESPACES: None}),
    "BONNY_POD_NAME": Variable(
        "pod_name", "any text", "the host name", "Name of this replica in the Events that it sends."),
    "BONNY_KUBECONFIG": Variable(
        "kubeconfig", "a path", "KUBECONFIG, else the service account of the pod, else ~/.kube/config",
        "Kubeconfig file of the cluster."),
    "BONNY_CONTEXT": Variable(
        "context", "the name of a context", "the current context", "Context of the kubeconfig file."),
    "BONNY_HTTP_HOST": Variable(
        "http_host", "an IP address or host name of this machine", "0.0.0.0",  # noqa: S104
        "Address on which /healthz, /readyz and /metrics are served."),
    "BONNY_HTTP_PORT": Variable(
        "http_port", "a port from 1 to 65535, or 0 for any free one", "8080",
        "Port of /healthz, /readyz and /metrics; the log shows which one it is."),
    "BONNY_LOG_FORMAT": Variable(
        "log_json", "console or json", "console in a terminal, else json",
        "Format of the log on stderr. Without the developer tools, as in the image, it is always json.",
        {"console": False, "json": True}),
    "BONNY_LOG_LEVEL": Variable(
        "log_level", "debug, info, warning or error", "info", "Lowest level that is logged.", LEVELS),
    "BONNY_EVENT_LOOP": Variable(
        "event_loop", "asyncio, or uvloop if that is installed", "uvloop if it is installed, else asyncio",
        "Event loop that runs the operator. uvloop needs less CPU; choose asyncio to compare, or to look for a fault."),
    "BONNY_LEADER_ELECTION": Variable(
        "leader_election", "true or false", "false",
        "Whether this replica acts only while it holds the Lease; the manifest sets it.",
        {"true": True, "false": False}),
    "BONNY_GRACE_SECONDS": Variable(
        "grace", f"a number of seconds from 0 to {LONGEST_GRACE:.0f}", "value in the code of the operator: 25",
        "How long running handlers may continue after SIGTERM."),
}

INFORMATIVE: Final = {
    "BONNY_POD_SERVICE_ACCOUNT": "Service account of the pod; the manifest sets it.",
}
"""Variables that the runtime itself does not read."""

HONOURED: Final = {
    "KUBECONFIG": "Kubeconfig files, as for kubectl.",
    "NO_COLOR": "Not empty: no colours in the console format of the log.",
}
"""Variables of other tools that take effect here."""
# fmt: on


def namespaces_of(text: str, *, where: str) -> tuple[str, ...] | None:
    """Read one namespace, several with commas, or `__ALL__` (None). `where` names the setting in messages."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if names == (ALL_NAMESPACES,):
        return None
    if not names or any(name.startswith("__") for name in names):
        raise UsageError(f"{where} is {text!r}: use one namespace, several with commas, or {ALL_NAMESPACES}")
    for name in names:
        check_dns_label(name, f"namespace in {where}")
    return names


def _namespaces(value: object) -> object:
    return namespaces_of(value, where="BONNY_WATCH_NAMESPACE") if isinstance(value, str) else value


def _namespace(value: str | None) -> str | None:
    return value if value is None else check_dns_label(value, "namespace in BONNY_POD_NAMESPACE")


def _digits(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


Port: TypeAlias = Annotated[int, Strict(), BeforeValidator(_digits), Field(ge=0, le=65_535)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one process. Times are seconds; `VARIABLES` explains each of them."""

    watch_namespaces: Annotated[tuple[str, ...] | None, BeforeValidator(_namespaces)] = None
    """None: all."""

    pod_namespace: Annotated[str | None, AfterValidator(_namespace)] = None
    pod_name: str = Field(default_factory=socket.gethostname)
    kubeconfig: str | None = None
    context: str | None = None
    http_host: str = "0.0.0.0"  # noqa: S104  the kubelet uses the address of the pod
    http_port: Port = 8080
    log_json: Annotated[bool, Strict()] = Field(default_factory=lambda: not sys.stderr.isatty())
    log_level: Annotated[int, Strict()] = logging.INFO
    event_loop: Annotated[str, Field(pattern=f"^({'|'.join(EVENT_LOOPS)})$")] = EVENT_LOOPS[0]
    leader_election: Annotated[bool, Strict()] = False
    grace: Annotated[float, Field(ge=0, le=LONGEST_GRACE)] = 25.0
    extras: tuple[Any, ...] = ()
    """Settings of extras, by their types; a type that is not here has its defaults."""

    def of(self, settings: type[S]) -> S:
        """The settings of an extra; for `Config`, the settings of the core."""
        return next((each for each in (self, *self.extras) if isinstance(each, settings)), None) or settings()

    def with_(self, settings: type[Any], **values: Any) -> Config:
        """A copy with other values of `settings`, which is `Config` or the type of an extra's settings.

        Raises: pydantic's `ValidationError` for a value that is not accepted.
        """
        if settings is Config:
            return replace(self, **values)
        others = tuple(each for each in self.extras if not isinstance(each, settings))
        return replace(self, extras=(*others, replace(self.of(settings), **values)))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, *, base: Config | None = None) -> Config:
        """Read the settings of `environ` (default: of the process); what it does not set is as in `base`.

        Raises: `UsageError` for an unknown BONNY_ variable and for a value that is not accepted.
        """
        environ = os.environ if environ is None else environ
        config = base or cls()
        for name, text in _given(environ).items():
            settings, variable = variables()[name]
            try:
                config = config.with_(settings, **{variable.field: variable.words.get(text, text)})
            except (ValidationError, OptionError):
                raise UsageError(f"{name} is {text!r}: use {variable.accepts}") from None
        if environ.get("BONNY_POD_NAMESPACE") and not environ.get("BONNY_WATCH_NAMESPACE"):
            config = replace(config, watch_namespaces=None if config.pod_namespace is None else (config.pod_namespace,))
        for extra in present().values():
            config = extra.configured(config, environ)
        return config

    @property
    def watched(self) -> str:
        """The watched namespaces, in words."""
        return "all namespaces" if self.watch_namespaces is None else "namespace " + ", ".join(self.watch_namespaces)


def variables() -> dict[str, tuple[type[Any], Variable]]:
    """All variables, of the extras that are present too, each with the type of settings that has its field."""
    found: dict[str, tuple[type[Any], Variable]] = {name: (Config, variable) for name, variable in VARIABLES.items()}
    for extra in present().values():
        found |= {name: (extra.settings or Config, variable) for name, variable in extra.variables.items()}
    return found


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in `environ`.

    Raises: `UsageError` for a BONNY_ variable that does not exist, `MissingExtra` for one of an extra that is absent.
    """
    known = variables()
    given = {name: text for name, text in environ.items() if name.startswith(PREFIX) and text}
    for error in unused_variables(given):
        raise error
    for name in given:
        if name not in {*known, *INFORMATIVE}:
            names = ", ".join(sorted({*known, *INFORMATIVE}))
            raise UsageError(f"the environment variable {name} is unknown: correct it to one of {names}")
    return {name: text for name, text in given.items() if name in known}


class Setting(NamedTuple):
    """A setting in force, spelled as its variable would be; `source`: default, operator, or a variable."""

    name: str
    value: str
    source: str


def settings(environ: Mapping[str, str] | None = None, *, base: Config | None = None) -> list[Setting]:
    """Every setting as `Config.from_environment` reads it, and where it comes from; passwords are masked.

    Raises: as that method.
    """
    environ = os.environ if environ is None else environ
    config, before, default = Config.from_environment(environ, base=base), base or Config(), Config()
    in_force = []
    for name, (of, variable) in variables().items():
        value, declared, usual = (getattr(each.of(of), variable.field) for each in (config, before, default))
        sources = [name, "BONNY_POD_NAMESPACE"] if name == "BONNY_WATCH_NAMESPACE" else [name]
        set_by = next((source for source in sources if environ.get(source)), None)
        source = set_by or ("default" if declared == usual else "operator")
        in_force.append(Setting(name, variable.spelled(value), source))
    honoured = [name for extra in present().values() for name in extra.honoured]
    others = (name for name in (*INFORMATIVE, *HONOURED, *honoured) if environ.get(name))
    return in_force + [Setting(name, CREDENTIALS.sub(r"\1***@", environ[name]), name) for name in others]
