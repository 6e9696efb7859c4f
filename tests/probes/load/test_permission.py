"""Load goes where the inventory, the machine itself or the user allows it, and nowhere else in more than small amounts."""

from __future__ import annotations

import pytest

from probes.endpoints.address import parse_address
from probes.errors import UsageError
from probes.fleet import Fleet, ProbeLimits
from probes.load.command import bounded
from probes.load.permission import Permission, is_this_machine, permission
from probes.load.run import Shape
from tests.probing import fleet

ENTRY = """
  text-8b:
    title: 8B text
    kind: text generation
    runtime: ovms
    runtime_version: "2026.4"
    host: {unknown: "?"}
    device: {unknown: "?"}
    url: ${OVMS_8B_URL}
    probing: {concurrency: 4, requests: 40, max_tokens: 128}
"""
BIG = Shape(model="m", max_tokens=512, concurrency=32, requests=200, warmup=32)


def asked(url: str, host: str, *, allow_load: bool = False, known: Fleet | None = None) -> Permission:
    environ = {"OVMS_8B_URL": "http://10.9.8.7:8000/v3"}
    return permission(parse_address(url, "--url"), [host], known, environ, allow_load=allow_load)


def test_this_machine_may_be_loaded() -> None:
    assert asked("http://localhost:8000", "127.0.0.1").limits is None
    assert asked("http://[::1]:8000", "::1").limits is None


def test_stranger_gets_the_default_limits_unless_the_user_says_otherwise() -> None:
    assert asked("http://192.0.2.1:8000", "192.0.2.1").limits == ProbeLimits()
    assert asked("http://192.0.2.1:8000", "192.0.2.1", allow_load=True).limits is None


def test_name_that_leads_here_and_elsewhere_is_a_stranger() -> None:
    address = parse_address("http://both.example:8000", "--url")
    assert permission(address, ["127.0.0.1", "192.0.2.1"], None, {}, allow_load=False).limits == ProbeLimits()


@pytest.mark.parametrize("allow_load", [False, True])
def test_inventory_has_the_last_word(allow_load: bool) -> None:
    found = asked("http://10.9.8.7:8000/v3/", "10.9.8.7", allow_load=allow_load, known=fleet(ENTRY))
    assert found.limits == ProbeLimits(concurrency=4, requests=40, max_tokens=128)
    assert (found.name, "fleet.yml" in found.why) == ("text-8b", True)


def test_addresses_are_told_apart_by_what_they_are() -> None:
    assert is_this_machine("127.8.8.8")
    assert is_this_machine("::1")
    assert not is_this_machine("192.0.2.1")
    assert not is_this_machine("2001:db8::1")
    assert not is_this_machine("224.0.0.1")


def test_shape_is_cut_down_and_the_first_request_counts_too() -> None:
    cut, note = bounded(BIG, Permission(limits=ProbeLimits(), why="a stranger"))
    assert (cut.concurrency, cut.requests, cut.warmup, cut.max_tokens, cut.at_most) == (1, 1, 0, 16, 1)
    assert "limited to 1 at a time, 2 requests and 16 tokens" in note
    whole, silence = bounded(BIG, Permission(limits=None, why="this machine"))
    assert (whole, silence) == (BIG, "")


def test_limits_that_allow_no_load_are_told() -> None:
    with pytest.raises(UsageError, match="needs at least two"):
        bounded(BIG, Permission(limits=ProbeLimits(requests=0), why="fleet.yml allows no more"))
