"""What browser tests share: the windows they look through, the pages they sample, a witness of what a page does."""

from __future__ import annotations

import http.server
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import Dialog, Page, ViewportSize

Scheme = Literal["light", "dark"]

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 900}
SAMPLE = (
    "index.html",
    "coverage.html",
    "fleet.html",
    "how-to-read.html",
    "knowledge/by-age.html",
    "techniques/automatic-prefix-caching.html",
    "services/text-8b.html",
    "services/local-abc123abc123-embedded.html",
    "devices/local-abc123abc123-cpu.html",
    "runs/20261128t092000z-bench-micro-prefix-caching.html",
    "as-of/2026-07-10.html",
    "records/2026-07-10-automatic-prefix-caching-fleet.html",
)


def settled(page: Page) -> None:
    """Bring what the theme fades in to its end."""
    page.evaluate("""async () => {
      for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
      for (const motion of document.getAnimations()) motion.finish();
    }""")


@dataclass(kw_only=True)
class Witness:
    """Everything a page did that it should not."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> Page:
        page.on("console", lambda message: self.errors.append(message.text) if message.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))
        # A page that is left does not wait for what it had asked for.
        page.on(
            "requestfailed", lambda request: None if request.failure == "net::ERR_ABORTED" else self.errors.append(request.url)
        )
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def clean(self, base: str) -> None:
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith((base, "data:", "about:"))] == []


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when the browser leaves in the middle of an answer."""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
        """Say nothing about each request."""
