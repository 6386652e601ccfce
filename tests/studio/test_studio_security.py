"""The gate: nobody gets in without the token, from another site, under another name, or by a trick; nothing leaks."""

import contextlib
import random
import re
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import anyio
import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from ifonly.errors import SchemaError
from ifonly.studio.security import LARGEST_BODY, Hosts, Keys
from ifonly.studio.server import Address, Studio
from studio_world import HOST, ORIGIN, classifier, opened

PATHS = [
    "/",
    "/row",
    "/predict",
    "/remember",
    "/random",
    "/events",
    "/export",
    "/bookmarks",
    "/bookmarks.json",
    "/static/studio.css",
]
POSTS = ["/ask", "/cancel", "/keep", "/forget", "/paste"]


@pytest.fixture(scope="module")
def studio() -> Iterator[tuple[TestClient, Keys]]:
    with opened(classifier()) as both:
        yield both


@pytest.fixture
def stranger(studio: tuple[TestClient, Keys]) -> Iterator[TestClient]:
    """A client without the cookie, of the same studio."""
    client, _ = studio
    kept = httpx.Cookies(client.cookies)
    client.cookies.clear()
    yield client
    client.cookies = kept


def leaks(response: httpx.Response) -> bool:
    return any(word in response.text for word in ("income", "Loans", "Traceback", "studio.css", "site-packages"))


def test_a_refusal_is_in_the_language_of_the_browser(stranger: TestClient) -> None:
    german = stranger.get("/row", headers={"Accept-Language": "de-AT,en;q=0.5"})
    assert german.status_code == 403
    assert '<html lang="de">' in german.text
    assert "Dieses Studio kennt Sie nicht" in german.text
    assert "Diese Seite gibt es nicht" in stranger.get("/%2e%2e/row", headers={"Cookie": "ifonly_language=de"}).text
    for other in ("fr", "../de", "<script>"):
        assert "does not know you" in stranger.get("/row", headers={"Accept-Language": other}).text
    assert not leaks(german)


@pytest.mark.parametrize("path", PATHS)
def test_without_a_token_there_is_nothing(stranger: TestClient, path: str) -> None:
    response = stranger.get(path)
    assert response.status_code == 403
    assert not leaks(response)


@pytest.mark.parametrize("path", POSTS)
def test_without_a_token_nothing_is_done(stranger: TestClient, path: str) -> None:
    assert stranger.post(path, data={"row": "1"}, headers=ORIGIN).status_code == 403


@pytest.mark.parametrize("token", ["", "x", "wrong" * 10, "%00", "ü"])
def test_a_wrong_token_opens_nothing(stranger: TestClient, token: str) -> None:
    response = stranger.get("/", params={"token": token})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert stranger.get("/", headers={"Authorization": f"token {token}x".encode("latin-1")}).status_code == 403


def test_a_link_opens_once_and_leaves_no_trace_in_the_address(
    studio: tuple[TestClient, Keys], stranger: TestClient
) -> None:
    token = studio[1].link()
    first = stranger.get("/", params={"token": token})
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert all(flag in cookie for flag in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert token not in cookie
    assert token not in first.text
    assert 'content="0;url=./"' in first.text
    assert stranger.get("/").status_code == 200
    stranger.cookies.clear()
    assert stranger.get("/", params={"token": token}).status_code == 403


def test_the_token_in_another_cookie_is_no_key(studio: tuple[TestClient, Keys], stranger: TestClient) -> None:
    name = next(iter(studio[0].cookies), "ifonly_8123")
    for cookie in (f"{name}={studio[1].token}", f"token={studio[1].token}", f"{name}=", f"{name}; ="):
        assert stranger.get("/", headers={"Cookie": cookie}).status_code == 403


def test_scripts_bring_the_token_in_a_header(studio: tuple[TestClient, Keys], stranger: TestClient) -> None:
    header = {"Authorization": f"token {studio[1].token}"}
    assert stranger.get("/", headers=header).status_code == 200
    assert stranger.post("/ask", data={"row": "1"}, headers=header).status_code == 200
    assert stranger.post("/ask", data={"row": "1"}, headers={**header, "Origin": "http://evil"}).status_code == 403
    assert stranger.get("/", headers={"Authorization": f"Bearer {studio[1].token}"}).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8123",
        "127.0.0.1:9999",
        "127.0.0.1",
        "",
        "127.0.0.1:8123@evil",
        "[::1",
        "127.0.0.1:8123.evil.example",
        "127.0.0.1:x",
        "localhost.evil:8123",
    ],
)
def test_under_another_name_it_does_not_answer(studio: tuple[TestClient, Keys], host: str) -> None:
    response = studio[0].get("/", headers={"Host": host})
    assert response.status_code == 400
    assert not leaks(response)


@pytest.mark.parametrize(
    "host", ["localhost:8123", "127.0.0.1:8123", "[::1]:8123", "studio.example", "STUDIO.example:1"]
)
def test_under_its_own_names_it_does(host: str) -> None:
    assert Hosts(8123, frozenset({"studio.example"})).allows(host)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "https://127.0.0.1:8123.evil",
        "file://",
        "",
        "http://[",
        f"ftp://{HOST}",
    ],
)
@pytest.mark.parametrize("path", POSTS)
def test_another_site_can_post_nothing(studio: tuple[TestClient, Keys], path: str, origin: str) -> None:
    assert studio[0].post(path, data={"row": "1"}, headers={"Origin": origin}).status_code == 403


def test_a_post_must_say_where_it_comes_from(studio: tuple[TestClient, Keys]) -> None:
    assert studio[0].post("/ask", data={"row": "1"}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing_and_no_events(studio: tuple[TestClient, Keys], site: str) -> None:
    fetch = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    assert studio[0].get("/predict", headers=fetch).status_code == 403
    events = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert studio[0].get("/events", params={"job": "x"}, headers=events).status_code == 403
    assert studio[0].get("/events", params={"job": "x"}, headers={"Origin": "http://evil"}).status_code == 403
    # A person who clicks a link elsewhere still gets the page: a page by itself does nothing.
    assert studio[0].get("/", headers=events).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "//row",
        "/row//",
        "/static/../row",
        "/static/%2e%2e/row",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/static/....//app.py",
        "/static/\\..\\app.py",
        "/static/%5c..%5capp.py",
        "/static/%00",
        "/static//etc/passwd",
        "/static/%252e%252e/app.py",
        "/row/",
        "/row%2f",
        "/.",
        "/./row",
        "/static",
        "/static/",
        "/nowhere",
        "/static/none.js",
    ],
)
def test_tricks_with_paths_find_nothing(studio: tuple[TestClient, Keys], path: str) -> None:
    status, text = raw_get(studio[0], path)
    assert 400 <= status < 500
    assert "import" not in text
    assert "root:" not in text


def raw_get(client: TestClient, path: str) -> tuple[int, str]:
    """Ask for a path as it is, which no client library does; the scope is built as uvicorn builds it."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", HOST.encode()), (b"cookie", cookie_of(client).encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "server": ("127.0.0.1", 8123),
    }
    anyio.run(client.app, scope, receive, send)
    body = b"".join(m.get("body", b"") for m in sent)
    return sent[0]["status"], body.decode(errors="replace")


def cookie_of(client: TestClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(studio: tuple[TestClient, Keys], method: str) -> None:
    assert studio[0].request(method, "/row", headers=ORIGIN).status_code == 405


def test_large_and_malformed_bodies_are_refused(studio: tuple[TestClient, Keys]) -> None:
    client, large = studio[0], b"x" * (LARGEST_BODY + 1)
    form = {**ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/ask", content=large, headers=form).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 10_000

    assert client.post("/ask", content=pieces(), headers=form).status_code == 413
    assert client.post("/ask", content=b"\xff\xfe=%zz", headers=form).status_code == 422
    assert client.post("/ask", content=b"{}", headers={**ORIGIN, "Content-Type": "application/json"}).status_code == 422
    assert client.post("/ask", content=b"a=1&" * 5000, headers=form).status_code == 422
    assert client.get("/row?" + "x" * 40_000).status_code == 414
    assert client.post("/ask", content=b"a", headers={**form, "Content-Length": "-1"}).status_code == 413


def test_every_answer_carries_the_policy(studio: tuple[TestClient, Keys], stranger: TestClient) -> None:
    header = {"Authorization": f"token {studio[1].token}"}
    for response in (stranger.get("/"), stranger.get("/", headers=header), stranger.get("/nowhere", headers=header)):
        policy = response.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
        assert response.headers["cache-control"]


def test_no_page_has_a_script_of_its_own_or_from_elsewhere(studio: tuple[TestClient, Keys]) -> None:
    for path in ("/", "/row?row=3", "/bookmarks"):
        text = studio[0].get(path).text
        assert text.count("<script") == text.count('<script src="static/')
        assert "style=" not in text
        assert " on" + "click" not in text
        assert "//" not in text.replace("://www.w3.org", "")


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.browser)])
def test_hundreds_of_requests_of_nonsense_and_it_lives(studio: tuple[TestClient, Keys], times: int) -> None:
    rng, client = random.Random(times), studio[0]
    alphabet = "abz019%&=?/.;:<>\"'\\ {}[]é\u202e-"
    names = [
        "s",
        "row",
        "v0",
        "v1",
        "v2",
        "m0",
        "lo0",
        "hi0",
        "st1",
        "lv2",
        "e3",
        "want",
        "p",
        "n",
        "k",
        "on",
        "t",
        "sort",
        "page",
        "q",
        "o",
        "a0",
        "b1",
        "l2",
        "job",
        "as",
        "lang",
        "ask",
        "down",
        "pmin",
    ]
    seen = set()
    for i in range(times):
        value = "".join(rng.choice(alphabet) for _ in range(rng.randrange(12)))
        number = rng.choice([value, str(rng.randrange(-5, 300)), "nan", "inf", "1e400", "-0", "1e-320", "9" * 40])
        params = [(rng.choice(names), rng.choice([value, number])) for _ in range(rng.randrange(4))]
        path = rng.choice([*PATHS, f"/{quote(value)}"])
        headers = {"HX-Request": "true"} if i % 2 else {}
        if i % 50 == 0:
            response = client.post(rng.choice(POSTS), data=dict(params), headers=ORIGIN, follow_redirects=False)
        else:
            response = client.get(path, params=params, headers=headers, follow_redirects=False)
        seen.add(response.status_code)
        assert response.status_code < 500, (path, params)
        assert "Traceback" not in response.text
    assert {200, 404, 422} <= seen
    assert client.get("/").status_code == 200


def test_other_machines_are_let_in_only_with_encryption() -> None:
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(SchemaError, match="certificate"):
            Address(host).check()
        Address(host, behind_proxy=True).check()
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        Address(host).check()


def _garbage(rng: random.Random, port: int) -> bytes:
    """Return one request of a stranger: almost right, or hardly HTTP at all."""
    junk = lambda n: bytes(rng.randrange(256) for _ in range(rng.randrange(n)))  # noqa: E731
    method = rng.choice([b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"TRACE", b"get", junk(6)])
    path = rng.choice(
        [
            b"/",
            b"/row?row=1",
            b"//",
            b"/%2e%2e/row",
            b"/static/../row",
            b"/events?job=1",
            b"/ask",
            b"*",
            b"/" + junk(30),
        ]
    )
    lines = [method + b" " + path + b" " + rng.choice([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9", junk(5)])]
    host = rng.choice([b"127.0.0.1:%d" % port, b"localhost:%d" % port, b"evil.example", b"127.0.0.1", junk(20)])
    lines += [b"Host: " + host] * rng.choice([0, 1, 1, 1, 1, 2])
    extra = [
        b"Authorization: token " + junk(40),
        b"Authorization: Bearer x",
        b"Cookie: ifonly_%d=" % port + junk(30).hex().encode(),
        b"Origin: http://127.0.0.1:%d" % port,
        b"Origin: null",
        b"Content-Length: " + rng.choice([b"-1", b"99999999999", b"5", junk(4)]),
        b"Transfer-Encoding: chunked",
        b"X-" + junk(10) + b": " + junk(200),
        b"Accept-Language: " + rng.choice([b"de", b"de;q=nan,en;q=x", b"," * 50, junk(60)]),
        b"Cookie: ifonly_language=" + rng.choice([b"de", b"../de", junk(20)]),
        b"Upgrade: websocket",
    ]
    lines += rng.sample(extra, rng.randrange(4))
    return b"\r\n".join([*lines, b"Connection: close", b"", rng.choice([b"", b"row=1", junk(300)])])


@pytest.mark.parametrize("times", [150, pytest.param(10_000, marks=pytest.mark.browser)])
def test_a_stranger_on_the_wire_gets_nothing_but_refusals(times: int) -> None:
    rng = random.Random(times)
    subject = classifier()
    with Studio([subject], workers=1) as running:
        secrets = [running.keys.token.encode(), b"income", b"Loans", b"Traceback", b"ifonly/"]
        seen: set[int] = set()
        for _ in range(times):
            request = _garbage(rng, running.port)
            with socket.create_connection(("127.0.0.1", running.port), timeout=20) as wire:
                answer = b""
                with contextlib.suppress(ConnectionError, BrokenPipeError):
                    wire.sendall(request)
                    wire.shutdown(socket.SHUT_WR)
                    while piece := wire.recv(65536):
                        answer += piece
            found = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer)
            if found is not None:  # what is no HTTP at all is hung up on
                seen.add(int(found[1]))
                assert 400 <= int(found[1]) < 500, (request, answer[:300])
            else:
                assert not answer, (request, answer[:300])
            assert not any(secret in answer for secret in secrets), (request, answer[:300])
        assert {400, 403, 404, 405} <= seen
        ready = urllib.request.Request(running.base, headers={"Authorization": f"token {running.keys.token}"})
        with urllib.request.urlopen(ready, timeout=30) as response:
            assert response.status == 200
