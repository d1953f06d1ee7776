"""Reading YAML: as the API server's own tools read it."""

from __future__ import annotations

import pytest

from bonny.errors import UsageError
from bonny_dev.install import read_documents


def test_times_and_equals_signs_in_an_object_are_texts() -> None:
    """Regression: an equals sign without quotes was refused as invalid YAML."""
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {day: 2026-01-01, sign: =}}"

    (config_map,) = read_documents("a.yaml", text)

    assert config_map["data"] == {"day": "2026-01-01", "sign": "="}


def test_what_is_not_yaml_is_named_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"^a\.yaml is not valid YAML at line 2 \(.*\): correct it$"):
        read_documents("a.yaml", "a: 1\nb: [")


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^a\.yaml is not valid YAML"):
        read_documents("a.yaml", b"\xff\xfe\xff")
