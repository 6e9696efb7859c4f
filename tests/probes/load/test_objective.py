"""Goodput is held against what somebody declared, and against nothing that nobody did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from probes.errors import UsageError
from probes.evidence import Missing, MissingReason
from probes.fleet import Fleet, Slo, Workload
from probes.load.objective import UNSET, Objective, of_workload, parse_slo
from tests.probing import fleet, service

SLOW = Slo(latency_s=30)
FAST = Slo(ttft_s=0.5, tpot_s=0.05)


def inventory(workloads: Mapping[str, Workload]) -> Fleet:
    return fleet(service("text", url="http://h") + service("code", url="http://i")).model_copy(update={"workloads": workloads})


def workload(*services: str, slo: Slo | None = None) -> Workload:
    return Workload(title="Some", services=services, slo=slo)


def test_the_workload_of_the_service_speaks_and_its_day_is_named() -> None:
    found = of_workload(inventory({"chat": workload("text", slo=FAST), "batch": workload("code", slo=SLOW)}), ["text"], None)
    assert isinstance(found, Objective)
    assert found.words == "against the SLO of workload chat (fleet.yml, as of 2026-07-10): ttft_s <= 0.5, tpot_s <= 0.05"


def test_nobody_who_declared_one_is_none() -> None:
    for known in (None, inventory({}), inventory({"chat": workload("text")}), inventory({"chat": workload("code", slo=FAST)})):
        assert of_workload(known, ["text"], None) == UNSET
    assert of_workload(inventory({"chat": workload("text", slo=FAST)}), [], None) == UNSET


def test_workloads_that_disagree_decide_nothing_until_one_is_named() -> None:
    both = inventory({"chat": workload("text", slo=FAST), "batch": workload("text", slo=SLOW)})
    undecided = of_workload(both, ["text"], None)
    assert isinstance(undecided, Missing)
    assert undecided.missing is MissingReason.NOT_CONFIGURED
    assert undecided.detail == "the workloads chat and batch have different SLOs; name one with --workload"
    named = of_workload(both, ["text"], "batch")
    assert isinstance(named, Objective)
    assert named.bounds == {"latency_s": 30}


def test_workloads_that_agree_are_both_named() -> None:
    alike = inventory({"chat": workload("text", slo=SLOW), "batch": workload("text", slo=SLOW.model_copy())})
    found = of_workload(alike, ["text"], None)
    assert isinstance(found, Objective)
    assert found.origin == "the SLO of the workloads chat, batch (fleet.yml, as of 2026-07-10)"


def test_sides_of_two_workloads_are_held_to_one_slo_only() -> None:
    both = inventory({"chat": workload("text", slo=FAST), "batch": workload("code", slo=SLOW)})
    assert isinstance(of_workload(both, ["text", "code"], None), Missing)


@pytest.mark.parametrize("name", ["plain", "cat"])
def test_a_name_that_has_none_is_a_misuse(name: str) -> None:
    with pytest.raises(UsageError, match=f"--workload {name}: .* expected chat"):
        of_workload(inventory({"chat": workload("text", slo=FAST), "plain": workload("text")}), ["text"], name)


def test_bounds_of_the_command_line() -> None:
    found = parse_slo(" ttft_s=0.5, decode_tok_s=20 ")
    assert isinstance(found, Objective)
    assert found.words == "against the SLO of --slo: ttft_s <= 0.5, decode_tok_s >= 20"
    assert parse_slo("") == parse_slo(" , ") == UNSET


@pytest.mark.parametrize(
    ("values", "met"),
    [
        ({"ttft_s": 0.5, "decode_tok_s": 20.0}, True),
        ({"ttft_s": 0.51, "decode_tok_s": 20.0}, False),
        ({"ttft_s": 0.5, "decode_tok_s": 19.9}, False),
        ({"ttft_s": 0.5, "decode_tok_s": None, "completion_tokens": 9.0}, False),
        ({"ttft_s": 0.5, "decode_tok_s": None, "completion_tokens": 1.0}, True),
        ({"ttft_s": None, "decode_tok_s": 20.0, "completion_tokens": 1.0}, False),
        ({}, False),
    ],
)
def test_a_good_request_keeps_every_bound(values: dict[str, Any], met: bool) -> None:
    assert Objective(bounds={"ttft_s": 0.5, "decode_tok_s": 20.0}, origin="x").met(values) is met
