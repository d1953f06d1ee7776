"""The judge of the soak of sharing: which writes it counts, and which it calls late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bonny.sharding.assignment import bucket_of
from tests.soak.sharing import NAME, check_writes
from tests.support.sharing import BUCKETS

UID = "0f6b2c1e-1c2d-4a6b-9d8e-5a4b3c2d1e0f"


def stored(revision: int, pod: str, kind: str, name: str, **more: Any) -> str:
    metadata = {"name": name, "resourceVersion": str(revision), "labels": {"bonny.dev/owner-uid": UID}}
    body = {"kind": kind, "metadata": metadata, **more}
    agent = f"{NAME}/1.0.0-{pod} bonny"
    event = {"stage": "ResponseComplete", "responseStatus": {"code": 200}, "userAgent": agent, "responseObject": body}
    return json.dumps(event) + "\n"


def granted(revision: int, pod: str, name: str) -> str:
    holder = f"shared-{BUCKETS}" if name == NAME else f"{pod}_1"
    return stored(revision, pod, "Lease", name, spec={"holderIdentity": holder})


def test_grants_in_an_earlier_file_count_and_a_write_after_the_next_grant_is_late(tmp_path: Path) -> None:
    """Regression: after 100 MB the API server begins another file, and writes seemed to have no grant."""
    bucket = f"{NAME}-bucket-{bucket_of(UID, BUCKETS)}"
    (tmp_path / "audit-2026-01-01T00-00-00.000.log").write_text(granted(1, "r1", NAME) + granted(2, "r1", bucket))
    (tmp_path / "audit.log").write_text(
        stored(3, "r1", "ConfigMap", "a-child") + granted(4, "r2", bucket) + stored(5, "r1", "ConfigMap", "a-child")
    )

    writes, grants, late = check_writes(tmp_path)

    assert (writes, grants) == (2, 3)
    assert late == [f"revision 5: r1 wrote a-child, and {bucket} belonged to r2_1"]
