"""Settings carry the names of OVMS, and a wrong one says which are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.endpoints.embedded.settings import KNOWN, parse_settings, read_settings
from probes.errors import UsageError
from probes.fleet import load_fleet


def test_the_inventory_of_the_repository_can_be_served() -> None:
    settings = read_settings(load_fleet(Path(__file__).parents[3] / "fleet.yml").embedded.settings)
    assert (settings.kv_cache_precision, settings.device) == ("u8", "CPU")


def test_words_become_values() -> None:
    words = ["KV_CACHE_PRECISION=u8", "enable_prefix_caching=False", "cache_size=0", "device=GPU.1"]
    values = parse_settings(words)
    assert values == {"KV_CACHE_PRECISION": "u8", "enable_prefix_caching": False, "cache_size": 0, "device": "GPU.1"}
    assert read_settings(values).kv_cache_precision == "u8"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["cache_size"], "--setting cache_size: has no '='"),
        (["=1"], "--setting =1: has no '='"),
        (["cache_size=1", "cache_size=2"], "--setting cache_size: is given twice"),
    ],
)
def test_words_that_are_no_setting(words: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_settings(words)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        read_settings({"parallel": 4, "max_num_seqs": 0, "cache_size": "big", "enable_prefix_caching": 1})
    lines = str(caught.value).splitlines()
    assert lines[0] == f"setting parallel: is not known; expected one of {', '.join(KNOWN)}"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "setting enable_prefix_caching",
        "setting max_num_seqs",
        "setting cache_size",
    ]
    assert "'big'" in str(caught.value)
