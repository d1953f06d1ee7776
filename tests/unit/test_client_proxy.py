"""Which proxy leads to the API server: the rules of Go's net/http, row by row."""

from __future__ import annotations

import pytest

from bonny.errors import UsageError
from bonny.proxies import environment_proxy, usable_proxy

PROXY = "http://proxy.example.com:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://api.example.com:6443", "", True),
        ("https://10.0.0.1:443", "", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://127.1.2.3", "", False),
        ("https://[::1]:6443", "", False),
        # names
        ("https://api.example.com", "api.example.com", False),
        ("https://API.example.com", "api.EXAMPLE.com", False),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://example.com", "example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com", "*.example.com", True),
        ("https://badexample.com", "example.com", True),
        ("https://kubernetes.default.svc", "localhost, .svc ,.cluster.local", False),
        # ports
        ("https://api.example.com:6443", "api.example.com:6443", False),
        ("https://api.example.com:6443", "api.example.com:443", True),
        ("https://api.example.com", "api.example.com:443", False),
        ("http://api.example.com", "api.example.com:80", False),
        ("https://10.0.0.1:6443", "10.0.0.1:6443", False),
        ("https://10.0.0.1:6443", "10.0.0.1:443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        # addresses and networks
        ("https://10.0.0.1", "10.0.0.1", False),
        ("https://10.0.0.1", "10.0.0.2", True),
        ("https://10.96.0.1", "10.0.0.0/8", False),
        ("https://10.96.0.1:443", "192.168.0.0/16,10.96.0.0/12", False),
        ("https://11.0.0.1", "10.0.0.0/8", True),
        ("https://[fd00::1]", "fd00::/8", False),
        ("https://[fd00::1]", "fd00::1", False),
        ("https://10.0.0.1", "fd00::/8", True),
        # all and nothing
        ("https://api.example.com", "*", False),
        ("https://10.0.0.1", "*", False),
        ("https://api.example.com", ", ,.,*.,/", True),
        ("https://10.0.0.1", ",10.0.0.0/99,:443", True),
    ],
)
def test_no_proxy_names_hosts_addresses_and_networks(server: str, no_proxy: str, proxied: bool) -> None:
    environ = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": no_proxy}

    assert environment_proxy(server, environ) == (PROXY if proxied else None)
    assert environment_proxy(server, {name.lower(): value for name, value in environ.items()}) == (
        PROXY if proxied else None
    )


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"HTTP_PROXY": PROXY}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": "proxy:3128"}, "http://proxy:3128"),
        ({"HTTPS_PROXY": "https://proxy"}, "https://proxy"),
        ({"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, "http://upper"),
        ({"https_proxy": "http://bob:hunter2@lower:1/"}, "http://bob:hunter2@lower:1/"),
    ],
)
def test_the_variable_of_the_servers_scheme_counts(environ: dict[str, str], expected: str | None) -> None:
    assert environment_proxy("https://api.example.com", environ) == expected


def test_a_server_without_tls_has_a_variable_of_its_own() -> None:
    environ = {"HTTPS_PROXY": "http://secure", "HTTP_PROXY": "http://plain"}

    assert environment_proxy("http://api.example.com", environ) == "http://plain"


@pytest.mark.parametrize(
    "proxy",
    ["socks5://bob:hunter2@p:1", "http://", "http://bob:hunter2@[x", "ftp://hunter2", "http://p:hunter2", "x://"],
)
def test_what_is_no_http_proxy_is_refused_without_its_password(proxy: str) -> None:
    with pytest.raises(UsageError) as caught:
        usable_proxy(proxy, where="HTTPS_PROXY")

    assert str(caught.value) == (
        "HTTPS_PROXY is not the URL of an HTTP proxy: use http://host:port or https://host:port"
    )
    assert caught.value.__cause__ is None
