"""The studio as an ASGI application: its addresses, all on one level, so that links are relative and any prefix will do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ifonly import IfOnlyError
from ifonly.studio import asking, keeping, pages
from ifonly.studio.desk import Desk, render, words_for
from ifonly.studio.security import App, Gate, Hosts, Keys
from ifonly.studio.told import Told

__all__ = ["build"]

_STATIC = Path(__file__).parent / "static"


def build(
    desk: Desk, *, keys: Keys, hosts: Hosts, secure: bool = False, used: Callable[[], None] = lambda: None
) -> App:
    """Return the application behind its gate."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.desk = desk
        await desk.pool.start()
        yield
        await desk.pool.stop()

    app = Starlette(
        routes=[
            Route("/", pages.rows),
            Route("/random", pages.some_row),
            Route("/row", pages.the_row),
            Route("/predict", pages.predict),
            Route("/remember", pages.remember),
            Route("/paste", pages.paste, methods=["POST"]),
            Route("/ask", asking.ask, methods=["POST"]),
            Route("/events", asking.events),
            Route("/cancel", asking.cancel, methods=["POST"]),
            Route("/export", keeping.export),
            Route("/keep", keeping.keep, methods=["POST"]),
            Route("/bookmarks", keeping.bookmarks),
            Route("/bookmarks.json", keeping.bookmarks_file),
            Route("/forget", keeping.forget, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        lifespan=life,
        exception_handlers={IfOnlyError: _explained, 404: _missing},
    )
    app.router.redirect_slashes = False
    return Gate(app, keys=keys, hosts=hosts, secure=secure, used=used)


def _explained(request: Request, error: Exception) -> Response:
    """Say what was wrong with a request; the library's own sentences are English and marked so."""
    words = words_for(request)
    text, language = (error.text(words), words.language) if isinstance(error, Told) else (str(error), "en")
    return render(request, _template(request), 422, title=words("error.title"), text=text, language=language)


def _missing(request: Request, error: Exception) -> Response:
    del error
    words = words_for(request)
    return render(
        request,
        _template(request),
        404,
        title=words("error.title"),
        text=words("error.missing"),
        language=words.language,
    )


def _template(request: Request) -> str:
    return "problem.html" if "hx-request" in request.headers else "problem_page.html"
