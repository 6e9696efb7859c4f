"""Addresses of services: what a person may write, and how paths are put onto it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from probes.errors import InputError, Problem, UsageError

_API = re.compile(r"(?:/v\d+)+$")
_ENDPOINT = re.compile(r"/(?:chat/)?completions$")
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_EXPECTED = "an http(s) address without user, password, query or fragment, such as http://host:8000/v3"


@dataclass(frozen=True, kw_only=True)
class Address:
    """A server and, when the address names it, the version prefix of its OpenAI-shaped API.

    `root` has no slash at its end; `api` is '' or begins with one.
    """

    root: str
    api: str

    def at(self, path: str) -> str:
        """Give the URL of a path of the server, '/metrics' or '/v3/models'."""
        return self.root + path

    @property
    def secure(self) -> bool:
        """Tell whether TLS is spoken."""
        return self.root.startswith("https:")

    @property
    def host(self) -> str:
        """The name or number of the server, in lower case."""
        return urlsplit(self.root).hostname or ""

    @property
    def names(self) -> tuple[str, ...]:
        """Give the ways in which a message may repeat this address; a bare word is too common to be one."""
        parts = urlsplit(self.root)
        return (self.root, *(name for name in (parts.netloc, parts.hostname or "") if re.search(r"[.:\d]", name)))


def parse_address(url: str, place: str) -> Address:
    """Split an address by one rule: trailing version segments are the API prefix, the rest is the server.

    ============================================  =========================  =======
    written                                       root                       api
    ============================================  =========================  =======
    http://h:8000, http://h:8000/                 http://h:8000              (found)
    http://h:8000/v3, http://h:8000/v3/           http://h:8000              /v3
    http://h:8000/v3/v1                           http://h:8000              /v3/v1
    http://h/proxy/ovms/v3                        http://h/proxy/ovms        /v3
    http://h/proxy/ovms                           http://h/proxy/ovms        (found)
    http://h:8000/v1/chat/completions             http://h:8000              /v1
    ============================================  =========================  =======

    `place` names the address in messages, which never repeat a password or a query.

    Raises:
        InputError: no http(s) address, or one that carries a user, a password, a query or a fragment.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InputError([Problem(place=place, found="is not a valid address", expected=_EXPECTED)]) from None
    if parts.username is not None or parts.password is not None:
        raise InputError([Problem(place=place, found="holds a user or a password", expected=_EXPECTED)])
    if parts.query or parts.fragment:
        raise InputError([Problem(place=place, found="holds a query or a fragment", expected=_EXPECTED)])
    if not usable or re.search(r"[\s\x00-\x1f]", url.strip()):
        raise InputError([Problem(place=place, found="is not an http(s) address", expected=_EXPECTED)])
    path = _ENDPOINT.sub("", parts.path.rstrip("/"))
    api = _API.search(path)
    prefix = api.group() if api else ""
    return Address(root=f"{parts.scheme}://{parts.netloc}{path.removesuffix(prefix)}".rstrip("/"), api=prefix)


def check_key(key: str, place: str) -> str:
    """Accept a key that fits into a header, or say what is wrong without repeating it.

    Raises:
        InputError: the key holds a space, a line break or a character outside ASCII.
    """
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        found = "holds a space, a line break or a character outside ASCII"
        raise InputError([Problem(place=place, found=found, expected="a key of printable ASCII characters")])
    return key


def key_from(environ: Mapping[str, str], variable: str) -> str:
    """Read the key that `--key-env` names.

    Raises:
        UsageError: the variable is unset or empty.
    """
    key = environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--key-env {variable}: is unset or empty; expected a variable that holds the key")
    return key


def ignored_proxies(environ: Mapping[str, str]) -> str | None:
    """Say which proxies of the environment are not used: they would see local calls and their keys."""
    names = [name for name in environ if name.upper() in _PROXY_VARIABLES and environ[name].strip()]
    return f"proxy in environment ignored: {', '.join(sorted(names))}" if names else None
