"""One rule puts paths onto addresses, and nothing secret may stand in one."""

from __future__ import annotations

import pytest

from probes.endpoints.address import check_key, ignored_proxies, parse_address
from probes.errors import InputError


@pytest.mark.parametrize(
    ("written", "root", "api"),
    [
        ("http://h:8000", "http://h:8000", ""),
        ("http://h:8000/", "http://h:8000", ""),
        ("http://h:8000/v3", "http://h:8000", "/v3"),
        ("http://h:8000/v3/", "http://h:8000", "/v3"),
        ("http://h:8000/v3/v1", "http://h:8000", "/v3/v1"),
        ("http://h/proxy/ovms/v3", "http://h/proxy/ovms", "/v3"),
        ("http://h/proxy/ovms/", "http://h/proxy/ovms", ""),
        ("http://h/v1beta", "http://h/v1beta", ""),
        ("http://h:8000/v1/chat/completions", "http://h:8000", "/v1"),
        ("https://[::1]:8443/v1/completions", "https://[::1]:8443", "/v1"),
        (" http://h:8000 ", "http://h:8000", ""),
    ],
)
def test_trailing_version_is_the_api_and_the_rest_the_server(written: str, root: str, api: str) -> None:
    address = parse_address(written, "url")
    assert (address.root, address.api) == (root, api)
    assert address.at("/metrics") == f"{root}/metrics"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("h:8000", "is not an http(s) address"),
        ("", "is not an http(s) address"),
        ("ftp://h", "is not an http(s) address"),
        ("http://", "is not an http(s) address"),
        ("http://h:99999", "is not a valid address"),
        ("http://h:port", "is not a valid address"),
        ("http://[::1", "is not a valid address"),
        ("http://h:8000/a b", "is not an http(s) address"),
        ("http://user:s3cret@h/v1", "holds a user or a password"),
        ("http://s3cret@h", "holds a user or a password"),
        ("http://h/v1?api_key=s3cret", "holds a query or a fragment"),
        ("http://h/v1#s3cret", "holds a query or a fragment"),
    ],
)
def test_unusable_address_is_named_by_its_place_and_never_repeated(written: str, found: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_address(written, "environment variable OVMS_8B_URL")
    assert str(raised.value).startswith(f"environment variable OVMS_8B_URL: {found}; expected an http(s) address")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "", "tab\t"])
def test_key_that_fits_no_header_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(InputError) as raised:
        check_key(key, "key of text-8b")
    assert str(raised.value).startswith("key of text-8b: holds a space")
    assert not key or key not in str(raised.value)


def test_proxies_of_the_environment_are_named_as_ignored() -> None:
    environ = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://proxy:3128", "ALL_PROXY": " ", "NO_PROXY": "x"}
    assert ignored_proxies(environ) == "proxy in environment ignored: HTTP_PROXY, https_proxy"
    assert ignored_proxies({"NO_PROXY": "[::1]"}) is None
