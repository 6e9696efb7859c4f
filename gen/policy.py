"""The content-security policy of each page, with a hash for each script that stands in it; mkdocs loads this file as a hook."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser

CHARSET = '<meta charset="utf-8">'
# Browsers differ in whether a page from disk has an origin that 'self' could match (w3c/webappsec-csp#459). A page that is
# served cannot load files, so naming them gives nothing away.
OWN = "'self' file:"
# Types of script elements that hold data; nothing runs them, and so no policy asks for them.
_DATA = frozenset({"application/json", "application/ld+json"})


def policy(page: str) -> str:
    """Write the policy of a page: its own files and its own inline scripts, unaltered, and nothing else.

    What `frame-ancestors` refuses cannot be refused from within a page (CSP 3, 3.3): it takes a header.
    """
    found = _Inline()
    found.feed(page)
    found.close()
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(("script-src", OWN, *_hashes(found.scripts))),
            " ".join(("style-src", OWN, *_hashes(found.styles))),
            f"img-src {OWN} data:",
            f"connect-src {OWN}",
            f"worker-src {OWN}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def guarded(page: str) -> str:
    """Put its policy into a page, before anything that the policy speaks of.

    Raises:
        ValueError: the page does not begin as the theme's pages do, and a policy would come too late or nowhere.
    """
    if page.count(CHARSET) != 1:
        raise ValueError(f"a page with {CHARSET} once, not {page.count(CHARSET)} times")
    return page.replace(CHARSET, f'{CHARSET}\n      <meta http-equiv="Content-Security-Policy" content="{policy(page)}">')


class _Inline(HTMLParser):
    """Collects what runs or styles without a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "style":
            self._into = self.styles
        elif tag == "script" and "src" not in found and found.get("type") not in _DATA:
            self._into = self.scripts
        if self._into is not None and tag in {"script", "style"}:
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data


def _hashes(sources: list[str]) -> list[str]:
    """Hash each source once, as CSP 3 (2.3.1) writes it."""
    digests = (hashlib.sha256(source.encode()).digest() for source in sources)
    return sorted({f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests})


class _Build:
    """What mkdocs is about: `serve` puts a script that differs with each answer into every page, so it goes without."""

    def __init__(self) -> None:
        self._serving = False

    def on_startup(self, *, command: str, dirty: bool) -> None:  # noqa: ARG002 (mkdocs names them)
        self._serving = command == "serve"

    def on_post_page(self, output: str, **_: object) -> str:
        return output if self._serving else guarded(output)

    def on_post_template(self, output_content: str, *, template_name: str, **_: object) -> str:
        return guarded(output_content) if template_name.endswith(".html") and not self._serving else output_content


_BUILD = _Build()
on_startup, on_post_page, on_post_template = _BUILD.on_startup, _BUILD.on_post_page, _BUILD.on_post_template
