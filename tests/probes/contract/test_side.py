"""What a side is, from its word; a word that means nothing or two things is told."""

from __future__ import annotations

import pytest

from probes.contract.side import SideKind, read_side
from probes.errors import AdrError
from tests.probing import fleet, service

FLEET = fleet(service("text-8b", url="http://text:8000/v3") + service("silent"))
BOTH = fleet(service("embedded", url="http://text:8000/v3"))


def test_a_service_an_address_and_a_setting() -> None:
    assert read_side("text-8b", FLEET).kind is SideKind.SERVICE
    address = read_side("http://127.0.0.1:9/v3", None)
    assert (address.kind, address.name) == (SideKind.ADDRESS, "127.0.0.1:9")
    embedded = read_side("embedded:enable_prefix_caching=false, cache_size=2", FLEET)
    assert (embedded.kind, embedded.name) == (SideKind.EMBEDDED, "embedded")
    assert embedded.settings == {"enable_prefix_caching": False, "cache_size": 2}


def test_a_setting_lies_over_those_of_the_inventory() -> None:
    declared = FLEET.model_copy(
        update={"embedded": FLEET.embedded.model_copy(update={"settings": {"cache_size": 1, "max_num_seqs": 8}})}
    )
    assert read_side("embedded:cache_size=2", declared).settings == {"cache_size": 2, "max_num_seqs": 8}
    assert read_side("embedded", declared).settings == {"cache_size": 1, "max_num_seqs": 8}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("text-9b", "text-9b: is not a side; did you mean text-8b? Expected a service of fleet.yml, an address"),
        ("silent", "silent: has no 'url' in fleet.yml"),
        ("embedded:", "embedded:: names no setting; expected embedded, or embedded:NAME=VALUE"),
        ("embedded:warp=9", "embedded:warp=9: setting warp: is not known; expected one of device, KV_CACHE_PRECISION"),
        ("embedded:max_num_seqs=0", "embedded:max_num_seqs=0: setting max_num_seqs:"),
        ("embedded:cache_size", "embedded:cache_size: setting cache_size: has no '='"),
        ("embedded:cache_size=1,cache_size=2", "setting cache_size: is given twice"),
        ("ftp://h", "h: is not an http(s) address"),
        ("http://user:canary-pass@h", "holds a user or a password"),
        ("http://h?api_key=canary-pass", "holds a query"),
        ("", "is not a side"),
    ],
)
def test_a_word_that_cannot_be_meant_is_told(word: str, said: str) -> None:
    with pytest.raises(AdrError) as told:
        read_side(word, FLEET)
    assert said in str(told.value)
    assert "canary" not in str(told.value)


def test_a_word_that_is_both_a_service_and_the_engine_is_told() -> None:
    with pytest.raises(AdrError, match=r"is both a service of fleet\.yml and the embedded engine"):
        read_side("embedded", BOTH)


def test_without_an_inventory_a_name_means_nothing() -> None:
    with pytest.raises(AdrError, match="there is no inventory here"):
        read_side("text-8b", None)
