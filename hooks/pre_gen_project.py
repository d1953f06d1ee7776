"""Refuses answers that Python, Kubernetes or a registry would refuse later: one sentence each, nothing is left.

Every answer arrives percent-encoded, so that no quote, backslash or newline in it can become code here.
"""

import json
import keyword
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

GIVEN = json.loads(unquote("<< cookiecutter | tojson | urlencode >>"))
ANSWERS: dict[str, str] = {
    name: value for name, value in GIVEN.items() if isinstance(value, str) and not name.startswith("_")
}
# The archive for Windows has other marks than the repository.
CODE = re.compile(
    "|".join(re.escape(GIVEN["_jinja2_env_vars"][f"{kind}_start_string"]) for kind in ("block", "comment", "variable"))
)

# Longest answers. The slug names a namespace and starts other names (63 in Kubernetes): 13 are left for their endings.
LONGEST = {
    "operator_name": 100,
    "operator_slug": 50,
    "description": 200,
    "author": 100,
    "api_group": 189,
    "image_repository": 200,
    "code_owners": 200,
    "security_contact": 200,
}
# What a project takes, twice over. A disk that fills up while files are written would leave half of one behind.
ROOM = 8_000_000
OPTIONAL = {"code_owners", "security_contact"}

# What is beside the operator's own package: the packages that it needs, and what these need, by the names under which
# they are installed and imported (a test compares them with pyproject.toml), and files that Windows keeps.
TAKEN = {
    *("bonny", "bonny_dev", "kubernetes", "msgspec", "prometheus_client", "pydantic", "pyyaml", "yaml"),
    *("aiohttp", "cronsim", "cryptography", "httptools", "jinja2", "opentelemetry", "uvicorn", "uvloop", "watchfiles"),
    *("opentelemetry_api", "opentelemetry_exporter_otlp_proto_http", "opentelemetry_sdk"),
    *("hatchling", "invoke", "mypy", "pip", "pytest", "pytest_asyncio", "ruff", "types_pyyaml", "uv"),
    *("aiohappyeyeballs", "aiohttp_retry", "aiosignal", "annotated_types", "anyio", "ast_serialize", "async_timeout"),
    *("attr", "attrs", "backports", "backports_asyncio_runner", "certifi", "cffi", "charset_normalizer", "click"),
    *("colorama", "dateutil", "deprecated", "durationpy", "exceptiongroup", "frozenlist", "google", "googleapis"),
    *("googleapis_common_protos", "h11", "idna", "importlib_metadata", "iniconfig", "librt", "markupsafe", "multidict"),
    *("mypy_extensions", "mypyc", "oauthlib", "opentelemetry_exporter_otlp_proto_common", "opentelemetry_proto"),
    *("opentelemetry_semantic_conventions", "packaging", "pathspec", "pluggy", "propcache", "protobuf", "py"),
    *("pycparser", "pydantic_core", "pygments", "python_dateutil", "requests", "requests_oauthlib", "six", "tomli"),
    *("trove_classifiers", "typing_extensions", "typing_inspection", "tzdata", "urllib3", "websocket"),
    *("websocket_client", "wrapt", "yarl", "zipp"),
    *("aux", "con", "nul", "prn", *(f"{device}{number}" for device in ("com", "lpt") for number in range(10))),
    *("api", "controllers", "samples", "src", "tasks", "test", "tests", "vendor"),
}

WORD = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
SLUG = re.compile(r"[a-z](?:-?[a-z0-9])*")
GROUP = re.compile(rf"{WORD}(?:\.{WORD})+")
REGISTRY = rf"(?:{WORD}(?:\.{WORD})*(?::[0-9]{{1,5}})?/)?"
PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
IMAGE = re.compile(rf"{REGISTRY}{PATH}(?:/{PATH})*")
ADDRESS = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
OWNERS = re.compile(rf"(?:@[\w.-]+(?:/[\w.-]+)*|{ADDRESS})(?: (?:@[\w.-]+(?:/[\w.-]+)*|{ADDRESS}))*", re.ASCII)
CONTACT = re.compile(rf"{ADDRESS}|https://[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/[\w./~%+?&=-]*)?", re.ASCII)


def problem_of_text(name: str) -> str | None:
    """What any line of text must be: not empty, not too long, printable, and no template code."""
    text = ANSWERS[name]
    if not text and name in OPTIONAL:
        return None
    if not text.strip():
        return f"{name} is empty: give at least one word"
    if len(text) > LONGEST[name]:
        return f"{name} has {len(text)} characters: use at most {LONGEST[name]}"
    for character in text:
        if character != " " and unicodedata.category(character)[0] in "CZ":
            return f"{name} holds the character U+{ord(character):04X}: use one line of printable text and plain spaces"
    if code := CODE.search(text):
        return f"{name} holds {code[0]}, which begins template code here: leave it out"
    return None


def problem_of_slug(name: str) -> str | None:
    """The slug is a namespace, a ServiceAccount, a distribution and, with `_` for `-`, a Python package."""
    slug = ANSWERS[name]
    if not SLUG.fullmatch(slug):
        return (
            f"{name} {slug!r} cannot be the name of a namespace and a Python package: begin with a letter and use "
            "lower-case letters, digits and single '-' between them, for example widgets-operator"
        )
    package = slug.replace("-", "_")
    words = {*TAKEN, *sys.stdlib_module_names, *keyword.kwlist, *keyword.softkwlist}
    if package in words:
        return f"{name} {slug!r} is taken by Python, by Windows or by a package that the operator needs: try my-{slug}"
    if slug == "default" or slug.startswith("kube-"):
        return f"{name} {slug!r} would be one of Kubernetes' own namespaces: try my-{slug}"
    return None


def problem_of_group(name: str) -> str | None:
    """The group is a domain; Kubernetes keeps some for itself."""
    group = ANSWERS[name]
    if not GROUP.fullmatch(group) or any(len(label) > 63 for label in group.split(".")):
        return (
            f"{name} {group!r} is not a lower-case domain with a dot in it: use one of yours, for example example.com"
        )
    if re.search(r"(^|\.)(k8s|kubernetes)\.io$", group):
        return f"{name} {group!r} is kept for Kubernetes itself: use a domain of yours, for example example.com"
    return None


def problem_of_image(name: str) -> str | None:
    """The repository only: the tag is chosen when an image is built."""
    image = ANSWERS[name]
    if not IMAGE.fullmatch(image):
        return (
            f"{name} {image!r} is not a lower-case image name without tag and digest: write for example "
            "registry.example.com/team/widgets-operator"
        )
    return None


def problem_of_owners(name: str) -> str | None:
    """What the forges read in CODEOWNERS behind a pattern."""
    owners = ANSWERS[name]
    if owners and not OWNERS.fullmatch(owners):
        return f"{name} {owners!r} is not a list of owners: write for example @ann @my-org/my-team, or leave it empty"
    return None


def problem_of_contact(name: str) -> str | None:
    """It becomes a link in Markdown."""
    contact = ANSWERS[name]
    if contact and not CONTACT.fullmatch(contact):
        return (
            f"{name} {contact!r} is neither an address nor an https URL: write for example security@example.com, or "
            "leave it empty"
        )
    return None


CHECKS: dict[str, tuple[Callable[[str], str | None], ...]] = {
    "operator_name": (problem_of_text,),
    "operator_slug": (problem_of_text, problem_of_slug),
    "description": (problem_of_text,),
    "author": (problem_of_text,),
    "api_group": (problem_of_text, problem_of_group),
    "image_repository": (problem_of_text, problem_of_image),
    "code_owners": (problem_of_text, problem_of_owners),
    "security_contact": (problem_of_text, problem_of_contact),
}


def problems() -> Iterator[str]:
    """The first problem of each answer; one that only repeats a refused answer is not mentioned again."""
    refused: list[str] = []
    for name, checks in CHECKS.items():
        if any(text in ANSWERS[name] for text in refused):
            continue
        found = next(filter(None, (check(name) for check in checks)), None)
        if found:
            yield found
            refused += filter(None, [ANSWERS[name]])


def remove_nested_folders() -> None:
    """Remove what a slug such as `a/b/c` made above the project: cookiecutter itself removes only the last folder."""
    parts = Path(ANSWERS["operator_slug"]).parts
    if len(parts) > 1 and not Path(*parts).is_absolute() and ".." not in parts:
        project = Path.cwd()
        for folder in (project, *project.parents[: len(parts) - 1]):
            try:
                folder.rmdir()  # only empty ones go
            except OSError:
                return


def problem_of_room() -> Iterator[str]:
    """Files are written only after this hook."""
    free = shutil.disk_usage(".").free
    if free < ROOM:
        yield f"there are {free / 1e6:.1f} MB left on the disk and {ROOM / 1e6:.0f} are needed: render it elsewhere"


if found := [*problems(), *problem_of_room()]:
    for sentence in found:
        print(f"Refused: {sentence}.", file=sys.stderr)
    remove_nested_folders()
    sys.exit(1)
