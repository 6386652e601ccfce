"""Running the studio: one socket, one loop, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from ifonly import SchemaError
from ifonly.studio.app import build
from ifonly.studio.desk import Desk, Shelf
from ifonly.studio.security import Hosts, Keys
from ifonly.studio.subject import Subject

__all__ = ["Address", "Studio"]

_MOST_CONNECTIONS = 500


@dataclass(frozen=True)
class Address:
    """Address at which a studio listens.

    Attributes
    ----------
    host, port
        The interface and the port; 0 takes a free one.
    names
        Further host names under which it may be asked for.
    certificate, key
        Files for TLS.
    behind_proxy
        Whether something in front of it speaks to the network; then it may be asked for under any port.
    """

    host: str = "127.0.0.1"
    port: int = 0
    names: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

    def check(self) -> None:
        """Refuse to be reachable from elsewhere without encryption."""
        if not self.is_loopback and self.certificate is None and not self.behind_proxy:
            raise SchemaError(
                f"Listening on {self.host} lets other machines in, and without a certificate anybody on the way can read "
                "along. Give --certificate and --key, or --behind-proxy if a proxy encrypts; or leave the host out."
            )
        if (self.certificate is None) != (self.key is None):
            raise SchemaError("A certificate needs its key, and a key its certificate. Give both.")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Studio:
    """A studio that listens; use it as a context, or call `serve`.

    Parameters
    ----------
    subjects
        The models.
    address
        Where to listen.
    workers
        How many questions are answered at the same time.
    keep
        A file for bookmarks; without one they last as long as the studio.
    on_link
        Called with a fresh link whenever one has been used.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        address: Address | None = None,
        *,
        workers: int = 2,
        keep: Path | None = None,
        on_link: Callable[[str], None] = lambda _: None,
    ) -> None:
        address = address or Address()
        address.check()
        self.address = address
        self._socket = _bound(address)
        self.port: int = self._socket.getsockname()[1]
        self.keys = Keys()
        names = {name.lower() for name in address.names} | (set() if address.is_loopback else {address.host.lower()})
        hosts = Hosts(None if address.behind_proxy else self.port, frozenset(names))
        self.desk = Desk(tuple(subjects), Shelf(keep), workers)
        secure = address.certificate is not None
        app = build(self.desk, keys=self.keys, hosts=hosts, secure=secure, used=lambda: on_link(self.link()))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,
            limit_concurrency=_MOST_CONNECTIONS,
            ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def base(self) -> str:
        """The address without a token."""
        host = self.address.names[0] if self.address.names and not self.address.is_loopback else self.address.host
        shown = f"[{host}]" if ":" in host else host
        return f"http{'s' * (self.address.certificate is not None)}://{shown}:{self.port}/"

    @property
    def url(self) -> str:
        """The first link, with the token that scripts may also send as ``Authorization: token ...``."""
        return f"{self.base}?token={self.keys.token}"

    def link(self) -> str:
        """Return a fresh link, which opens once."""
        return f"{self.base}?token={self.keys.link()}"

    def serve(self) -> None:
        """Answer until Ctrl-C, which ends the workers too."""
        with contextlib.suppress(KeyboardInterrupt):  # raised again by uvicorn once everything is shut down
            self._server.run(sockets=[self._socket])

    def open(self) -> None:
        """Open the studio in the browser."""
        webbrowser.open(self.link())

    def start(self) -> Self:
        """Listen in the background, and return when it does."""
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        waiting = threading.Event()
        while not self._server.started and self._thread.is_alive():
            waiting.wait(0.02)
        if not self._server.started:
            raise SchemaError("The studio could not be started; the reason stands above.")
        return self

    def stop(self) -> None:
        """Stop listening and end the workers."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=10)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Studio at {self.base}; a link to open it: .link(), its end: .stop()>"


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        # Whoever has read the address may come at once: he waits in line until the pages are served.
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise SchemaError(
            f"Port {address.port} of {address.host} cannot be listened on: {error.strerror}. Give another --port, or none."
        ) from None
    return listening
