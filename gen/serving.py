"""What `mkdocs serve` does when a rebuild fails: it says why, in the terminal and on pages, and shows the last good site."""

from __future__ import annotations

import html
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

ROOT = Path(__file__).parents[1]


class Server(Protocol):
    """What of mkdocs' server is used here; `root` holds the site as it is served."""

    root: str
    builder: Callable[[], None]

    def get_app(self) -> WSGIApplication | None: ...

    def set_app(self, application: WSGIApplication | None) -> None: ...


def on_serve(server: Server, config: Any, builder: Callable[..., None]) -> Server:  # noqa: ARG001 (given by name)
    """Put a keeper between mkdocs and its builds: alone it empties the site first, and answers nothing while one is broken."""
    # Bytecode that is written beside a changed rule would be seen as one more change.
    sys.pycache_prefix = str(ROOT / ".cache" / "bytecode")
    keeper = Keeper(server, builder)
    server.builder = keeper.build
    server.set_app(keeper.answer)
    return server


class Keeper:
    """Holds the last good site while the next one is built, and why there is none where that failed."""

    def __init__(self, server: Server, builder: Callable[..., None]) -> None:
        self.site = Path(server.root)
        self.why = ""
        self._builder = builder
        self._app = server.get_app()

    def build(self) -> None:
        """Build the site anew, or say why not and leave the last good one."""
        with _set_aside(self.site) as put_back:
            try:
                self._builder()
            # Whatever may be wrong with a rule that is being written.
            except (Exception, SystemExit) as exc:
                put_back()
                self.why = _why(exc)
                sys.stderr.write(f"{self.why}\nThe site is shown as it was before; mend the file and save it.\n")
            else:
                self.why = ""

    def answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer as mkdocs does; a page is told apart from the newest files while those give none."""
        if self._app is None:
            raise ValueError("a server that answers")
        if not self.why or not environ["PATH_INFO"].endswith((".html", "/")):
            return self._app(environ, start_response)
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def hold(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
            begun.append((status, headers))
            return lambda _: None

        page = _told(b"".join(self._app(environ, hold)), self.why)
        status, headers = begun[-1]
        start_response(status, [(name, value) for name, value in headers if name != "Content-Length"])
        return [page]


@contextmanager
def _set_aside(site: Path) -> Iterator[Callable[[], None]]:
    """Empty a folder, and give what brings its content back until the block ends."""
    with tempfile.TemporaryDirectory(prefix="last-good-site-", dir=site.parent) as name:
        aside = Path(name)
        for path in list(site.iterdir()):
            path.rename(aside / path.name)

        def put_back() -> None:
            for path in list(site.iterdir()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for path in list(aside.iterdir()):
                path.rename(site / path.name)

        yield put_back


def _told(page: bytes, why: str) -> bytes:
    """Put the reason above everything else on a page."""
    start = page.find(b">", page.find(b"<body")) + 1
    shown = f'<div class="md-banner" role="alert"><pre class="md-banner__inner md-grid">{html.escape(why)}</pre></div>'
    return page[:start] + shown.encode() + page[start:]


def _why(exc: BaseException) -> str:
    """Say what is wrong: a message of ours as it is, a fault in a rule or a page with its place."""
    # mkdocs ends with "Aborted" and has what it is about in the context.
    cause = exc.__context__ if isinstance(exc, SystemExit) and exc.__context__ is not None else exc
    said = "".join(traceback.format_exception_only(cause)).strip()
    if isinstance(cause, SystemExit) or type(cause).__module__.startswith("mkdocs"):
        return str(cause)
    ours = [frame for frame in traceback.extract_tb(cause.__traceback__) if Path(frame.filename).is_relative_to(ROOT)]
    return f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno}: {said}" if ours else said
