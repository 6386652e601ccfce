"""The gate in front of the studio: who may ask, from where, and how much at once; pure ASGI, on ``scope["path"]``."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ifonly.studio.language import LANGUAGE_COOKIE, LANGUAGES, Words, negotiated, words_of

__all__ = ["Gate", "Hosts", "Keys"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 256 * 1024
LARGEST_QUERY = 32 * 1024
_SESSIONS, _LINKS = 1000, 100
_SAFE = {"GET", "HEAD"}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Keys:
    """The secrets of one run: a token for scripts, links that open once, and the cookies they were exchanged for."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._links: OrderedDict[str, None] = OrderedDict({self.token: None})
        self._sessions: OrderedDict[str, str] = OrderedDict()

    def link(self) -> str:
        """Return a fresh token that one browser can exchange for a cookie."""
        token = secrets.token_urlsafe(32)
        self._links[token] = None
        while len(self._links) > _LINKS:
            self._links.popitem(last=False)
        return token

    def exchange(self, token: str) -> str | None:
        """Use a link up: return a new cookie, or None when the link is unknown or was used."""
        found = next((known for known in self._links if _equal(known, token)), None)
        if found is None:
            return None
        del self._links[found]
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = secrets.token_hex(8)
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def visitor(self, cookie: str) -> str | None:
        """Return who holds a cookie."""
        return self._sessions.get(cookie)

    def is_script(self, authorization: str) -> bool:
        """Whether an ``Authorization`` header carries the token."""
        kind, _, given = authorization.partition(" ")
        return kind.lower() == "token" and _equal(self.token, given.strip())


def _equal(known: str, given: str) -> bool:
    return hmac.compare_digest(known.encode(), given.encode("utf-8", "replace"))


@dataclass(frozen=True)
class Hosts:
    """The names under which the studio answers.

    Attributes
    ----------
    port
        The port it listens on, which a ``Host`` header must name; None behind a proxy, which has a port of its own.
    names
        Further host names, as given by the user.
    """

    port: int | None
    names: frozenset[str] = field(default_factory=frozenset)

    def allows(self, host: str) -> bool:
        """Whether a ``Host`` header names us; a page elsewhere whose name was made to point here does not."""
        name, port = _split(host)
        if name in self.names:
            return True
        return name in _LOOPBACK and (self.port is None or port == self.port)

    def same_origin(self, origin: str, host: str) -> bool:
        """Whether an ``Origin`` is the page we served: the same host and port, or a name the user vouched for."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return False
        return parts.netloc.lower() == host.lower() or _split(parts.netloc)[0] in self.names


def _split(host: str) -> tuple[str, int | None]:
    """Return the name and the port of ``name:port``; the port is None when absent or no number."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "", None


class _Refused(Exception):
    """A request that goes no further; `why` names a text of the gate in the catalogues."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Gate:
    """Let through who holds the cookie or the token, from our own pages, on our own name, with a body of bounded size."""

    def __init__(self, app: App, *, keys: Keys, hosts: Hosts, secure: bool, used: Callable[[], None]) -> None:
        self.app, self.keys, self.hosts, self.secure, self._used = app, keys, hosts, secure, used
        self.cookie = f"ifonly_{hosts.port or 'studio'}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one connection."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        send = _with_headers(send)
        try:
            headers = _headers(scope)
            host = self._check_host(headers)
            _check_shape(scope)
            if await self._exchanged(scope, headers, send):
                return
            scope.setdefault("state", {})["visitor"] = self._visitor(scope, headers, host)
            await self.app(scope, await _bounded(receive, headers, scope["method"]), send)
        except _Refused as refusal:
            await _reply(send, refusal.status, _page(_words(scope), refusal.why))

    def _check_host(self, headers: dict[str, str]) -> str:
        host = headers.get("host", "")
        if not self.hosts.allows(host):
            raise _Refused(400, "name")
        return host

    async def _exchanged(self, scope: Scope, headers: dict[str, str], send: Send) -> bool:
        """Exchange the token of a first URL for a cookie, and have the browser forget the URL."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")
        if given is None:
            return False
        cookie = None if self._known(headers) else self.keys.exchange(given)
        if cookie is None and not self._known(headers):
            raise _Refused(403, "unknown")
        extra = []
        if cookie is not None:
            flags = "HttpOnly; SameSite=Strict; Path=/" + "; Secure" * self.secure
            extra = [(b"set-cookie", f"{self.cookie}={cookie}; {flags}".encode())]
            self._used()
        # A redirect would leave a SameSite cookie behind when the link was clicked on another site; a page does not.
        await _reply(send, 200, _onward(_words(scope)), extra)
        return True

    def _known(self, headers: dict[str, str]) -> str | None:
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return None
        return self.keys.visitor(jar[self.cookie].value) if self.cookie in jar else None

    def _visitor(self, scope: Scope, headers: dict[str, str], host: str) -> str:
        """Return who asks, or refuse."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if self.keys.is_script(headers.get("authorization", "")):
            if origin is not None and not self.hosts.same_origin(origin, host):
                raise _Refused(403, "elsewhere")
            return "script"
        visitor = self._known(headers)
        if visitor is None:
            raise _Refused(403, "unknown")
        navigates = scope["method"] in _SAFE and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if origin is not None and not self.hosts.same_origin(origin, host):
            raise _Refused(403, "elsewhere")
        if origin is None and scope["method"] not in _SAFE:
            raise _Refused(403, "silent")
        if site not in ("same-origin", "none") and not (navigates and scope["path"] != "/events"):
            raise _Refused(403, "elsewhere")
        return visitor


# Pages without scripts, and without anything that was asked for.
_FRAME = (
    '<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>ifonly studio</title>'
    '<link rel="icon" href="data:,">{head}</head><body>{body}</body></html>'
)


def _onward(words: Words) -> str:
    head, body = '<meta http-equiv="refresh" content="0;url=./">', f'<p><a href="./">{words("gate.onward")}</a></p>'
    return _FRAME.format(language=words.language, head=head, body=body)


def _page(words: Words, why: str) -> str:
    body = f'<main id="refused"><h1>ifonly studio</h1><p>{words(f"gate.{why}")}</p></main>'
    return _FRAME.format(language=words.language, head="", body=body)


def _words(scope: Scope) -> Words:
    """Return the texts in the language of whoever asks, known here or not."""
    given = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    chosen = next((name for name in LANGUAGES if f"{LANGUAGE_COOKIE}={name}" in given.get(b"cookie", "")), None)
    return words_of(negotiated(chosen, given.get(b"accept-language", "")))


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers in lower case; one that is there twice and must not be is refused."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "authorization", "content-length", "sec-fetch-site"):
            raise _Refused(400, "twice")
        text = value.decode("latin-1")
        found[name] = f"{found[name]}; {text}" if name in found and name == "cookie" else text
    return found


def _check_shape(scope: Scope) -> None:
    """Refuse paths that mean different things to different readers, other methods, and endless queries."""
    path: str = scope["path"]
    parts = path.split("/")[1:]
    raw = scope.get("raw_path") or path.encode()
    odd = any(c in path for c in "\\\0%") or not path.isprintable()
    if odd or not path.startswith("/") or "" in parts[:-1] or {".", ".."} & set(parts) or b"%2f" in raw.lower():
        raise _Refused(404, "missing")
    if scope["method"] not in ("GET", "HEAD", "POST"):
        raise _Refused(405, "method")
    if len(scope["query_string"]) > LARGEST_QUERY:
        raise _Refused(414, "long")


async def _bounded(receive: Receive, headers: dict[str, str], method: str) -> Receive:
    """Read a body here, up to the limit, whether it says its length or not; what follows gets it in one piece."""
    declared = headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > LARGEST_BODY:
        raise _Refused(413, "much")
    if method in _SAFE:
        return receive
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise _Refused(400, "broken")
        body, more = body + message.get("body", b""), message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            raise _Refused(413, "much")
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            extra: Iterable[tuple[bytes, bytes]] = _HEADERS
            if b"cache-control" not in names:
                extra = (*extra, (b"cache-control", b"no-store"))
            message["headers"] = [*message.get("headers", ()), *extra]
        await send(message)

    return wrapped


async def _reply(send: Send, status: int, text: str, extra: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
