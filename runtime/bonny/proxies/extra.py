"""Extra: the variables that name a proxy. The client finds the package by itself."""

from __future__ import annotations

from ..extras import Extra


class Proxy(Extra):
    """HTTP proxies between the operator and the API server."""

    honoured = {
        "HTTPS_PROXY": "Proxy for an API server with https.",
        "https_proxy": "HTTPS_PROXY, where that is not set.",
        "HTTP_PROXY": "Proxy for an API server with http.",
        "http_proxy": "HTTP_PROXY, where that is not set.",
        "NO_PROXY": "Hosts and networks that are reached without the proxy.",
        "no_proxy": "NO_PROXY, where that is not set.",
    }


EXTRA = Proxy()
