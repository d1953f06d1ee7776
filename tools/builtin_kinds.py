"""Makes `runtime/bonny/builtin_kinds.json`: plural and scope of every kind that a real API server serves by default.

    python tools/builtin_kinds.py                                     # starts a control plane of its own
    python tools/builtin_kinds.py --server URL --token T --ca-file F  # asks a running one, that has no CRDs

Run it when the newest supported Kubernetes minor changes. Kinds that the file has and the server no longer serves are
kept, so that operators on older minors go on; delete them by hand when no supported minor serves them.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "runtime" / "bonny" / "builtin_kinds.json"
# Aggregated discovery: one request for all groups, stable since Kubernetes 1.30.
ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Kinds = dict[str, dict[str, list[str]]]


def discovered(document: dict[str, Any]) -> Kinds:
    """The kinds of one APIGroupDiscoveryList: {apiVersion: {kind: [plural, scope]}}."""
    kinds: Kinds = {}
    for group in document["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for resource in version["resources"]:
                kind = resource["responseKind"]["kind"]
                kinds.setdefault(api_version, {})[kind] = [resource["resource"], resource["scope"]]
    return kinds


def fetch(url: str, *, token: str, ca_file: Path | None) -> Kinds:
    """Ask the API server at `url` for its kinds, those of the core group included."""
    context = ssl.create_default_context(cafile=str(ca_file)) if ca_file else ssl.create_default_context()
    kinds: Kinds = {}
    for path in ("/api", "/apis"):
        request = urllib.request.Request(url + path, headers={"Accept": ACCEPT, "Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            kinds |= discovered(json.load(answer))
    return kinds


def render(kinds: Kinds) -> str:
    """One line a kind, sorted, so that a change of the file reads as what Kubernetes changed."""
    blocks = []
    for api_version in sorted(kinds):
        lines = [f'    "{kind}": {json.dumps(entry)}' for kind, entry in sorted(kinds[api_version].items())]
        blocks.append(f'  "{api_version}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", help="URL of a running API server; default: start one")
    parser.add_argument("--token", default="", help="bearer token for --server")
    parser.add_argument("--ca-file", type=Path, help="certificate of --server")
    options = parser.parse_args()
    if options.server:
        fresh = fetch(options.server, token=options.token, ca_file=options.ca_file)
    else:
        from bonny.sandbox import Sandbox  # noqa: PLC0415  (only this branch needs a control plane)

        with Sandbox() as sandbox:
            fresh = fetch(sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file)
    known: Kinds = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    merged = {version: known.get(version, {}) | fresh.get(version, {}) for version in known.keys() | fresh.keys()}
    TABLE.write_text(render(merged), encoding="utf-8")
    print(f"{TABLE.name}: {sum(map(len, merged.values()))} kinds, {sum(map(len, fresh.values()))} served now")


if __name__ == "__main__":
    main()
