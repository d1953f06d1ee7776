"""Traffic: the requests of one life, to the API server and to the external service, and the silence between them."""

from __future__ import annotations

import time

from ..testing.faults import FaultProxy, ProxiedRequest
from .life import REST_SECONDS, Reference
from .points import API, PATH, SERVICE, Chapter, Sort, is_step, object_in, sort_of
from .state import NAMESPACE, UUID


class Traffic:
    """The requests that went through the proxies, with words that are the same in each life."""

    def __init__(self, proxy: FaultProxy, outside: FaultProxy | None) -> None:
        self._proxy, self._outside = proxy, outside
        self._namespace = ""
        self.chapter = Chapter.START
        self.began: list[tuple[float, Chapter]] = []
        """When each chapter began; monotonic."""

    def renew(self, namespace: str) -> None:
        """Begin with another life, in a namespace of its own."""
        self._namespace = namespace
        self.chapter, self.began = Chapter.START, [(0.0, Chapter.START)]
        for proxy in self.proxies():
            proxy.requests.clear()
            proxy.clear()

    def enter(self, chapter: Chapter) -> None:
        """Begin with a chapter."""
        self.chapter = chapter
        self.began.append((time.monotonic(), chapter))

    def proxies(self) -> list[FaultProxy]:
        """The proxy before the API server, and another one before the external service, if there is any."""
        return [self._proxy, *([self._outside] if self._outside else [])]

    def proxy_of(self, server: str) -> FaultProxy:
        """The proxy before a server."""
        return self._proxy if server == API or self._outside is None else self._outside

    def cut(self) -> None:
        """Reset all connections."""
        for proxy in self.proxies():
            proxy.cut_all()

    def requests(self) -> list[tuple[str, ProxiedRequest]]:
        """All requests of this life, in their order, with the server that they go to."""
        sent = [(API, each) for each in list(self._proxy.requests)]
        sent += [(SERVICE, each) for each in list(self._outside.requests)] if self._outside else []
        return sorted(sent, key=lambda each: each[1].time)

    def sorted(self, reference: Reference | None) -> list[tuple[ProxiedRequest, Sort]]:
        """The requests that count, each with its sort."""
        named = reference.named if reference else str
        return [
            (request, sort_of(self.like(request), self._chapter_at(request.time), server, named))
            for server, request in self.requests()
            if server == SERVICE or is_step(request) or _is_read(request)
        ]

    def sort_of(self, request: ProxiedRequest, server: str, reference: Reference) -> Sort:
        """The sort of a request that is sent now."""
        return sort_of(self.like(request), self.chapter, server, reference.named)

    def last_path(self) -> str:
        """The path of the last write to the API server, without its subresource."""
        paths = [PATH.fullmatch(each.path) for each in list(self._proxy.requests) if is_step(each)]
        return next((f"{each.string[: each.end('name')]}" for each in reversed(paths) if each and each["name"]), "")

    def writes(self, what: str, who: str) -> int:
        """How often the field manager `who` wrote the object `what` in this chapter, with success."""
        return sum(
            request.time >= self.began[-1][0]
            and request.ended is not None
            and (request.status or 500) < 400
            and self.is_write(request, what, who)
            for request in list(self._proxy.requests)
        )

    def is_write(self, request: ProxiedRequest, what: str, who: str) -> bool:
        """Whether a request to the API server is a write of the object `what` by the field manager `who`."""
        if request.manager != who or not is_step(request):
            return False
        return object_in(sort_of(self.like(request), self.chapter, API)[3]) == what

    def like(self, request: ProxiedRequest) -> ProxiedRequest:
        """The request with words that are the same in each life, also while a UID is not known yet."""

        def same(text: str) -> str:
            return UUID.sub("(UID)", text.replace(self._namespace, NAMESPACE))

        path, body = same(request.path), same(request.body.decode(errors="replace")).encode()
        return ProxiedRequest(request.method, path, request.query, request.time, request.status, body)

    def silence(self) -> float:
        """Seconds since the last request of the operator; watches do not count. 0 while it waits for an answer."""
        last = self.began[-1][0]
        for server, request in self.requests():
            if request.is_watch or (server == API and not (is_step(request) or _is_read(request))):
                continue
            if request.ended is None:
                return 0.0
            last = max(last, request.ended)
        return time.monotonic() - last

    def loop(self, *, since: float | None = None) -> str:
        """Writes that are repeated, as the end of a sentence; empty if there are none."""
        begin = time.monotonic() - REST_SECONDS if since is None else since
        writes = [
            sort_of(self.like(each), self.chapter, server)
            for server, each in self.requests()
            if each.time >= begin and (is_step(each) if server == API else each.method != "GET")
        ]
        if not writes:
            return ""
        counts = {sort: writes.count(sort) for sort in dict.fromkeys(writes)}
        told = ", ".join(f"the {sort[2]} of {sort[3]} {count} times" for sort, count in counts.items())
        return f"it does not come to rest: within {REST_SECONDS:g} s, while nothing changed, {told}"

    def _chapter_at(self, moment: float) -> Chapter:
        return next(chapter for began, chapter in reversed(self.began) if began <= moment)


def _is_read(request: ProxiedRequest) -> bool:
    return request.method == "GET" and PATH.fullmatch(request.path) is not None
