"""The suites against engines that really generate: a weak model scores low, and the same twice."""

from __future__ import annotations

import dataclasses

import pytest

from probes.endpoints.address import parse_address
from probes.endpoints.embedded.server import EmbeddedAddress
from probes.evidence import MissingReason
from probes.quality.agreement import between, with_itself
from probes.quality.asking import Limits, measure
from probes.quality.chat import HttpChat
from probes.quality.library import suites
from probes.quality.result import Outcome
from probes.quality.task import Suite
from tests.engines.llamacpp import llamacpp

pytestmark = pytest.mark.engine


def few(**wanted: tuple[str, ...]) -> tuple[Suite, ...]:
    """Take a few of the built-in tasks."""
    return tuple(
        dataclasses.replace(suite, tasks=tuple(task for task in suite.tasks if task.id in wanted[suite.name]))
        for suite in suites()
        if suite.name in wanted
    )


FEW = few(
    exact=("capital-france", "colour", "product"),
    json=("copy-object",),
    tools=("one-weather", "none-needed"),
    retrieval=("at-64-50",),
    open=("tide", "bread"),
)


def test_embedded_service_is_scored_and_says_that_it_has_no_tools(embedded: EmbeddedAddress) -> None:
    chat = HttpChat(parse_address(f"{embedded.url}/v3", "test"), model=embedded.model)
    found = measure(chat, FEW, limits=Limits(), repetitions=2)
    by_name = {suite.name: suite for suite in found.suites}
    assert not found.stopped
    assert not any(mark.outcome is Outcome.ERROR for mark in found.marked)
    tools = by_name["tools"].missing
    assert tools is not None
    assert (tools.missing, "tools is not supported" in tools.detail) == (MissingReason.UNSUPPORTED, True)
    assert len(by_name["exact"].shares) == len(by_name["retrieval"].shares) == 2
    assert 0 < by_name["exact"].shares[0] < 1
    assert found.metrics()[-2].samples
    # One at a time and with a cache of full precision, nothing that the engine adds up comes in another order.
    assert found.repeat_agreement == with_itself(found).identical_share == 1.0


def test_llama_cpp_names_its_tokens_and_does_not_read_tools_that_the_template_has_no_place_for() -> None:
    with llamacpp("use_jinja=True", "n_parallel=1", "cpuparams.n_threads=1", "cpuparams_batch.n_threads=1") as url:
        chat = HttpChat(parse_address(f"{url}/v1", "test"), model="smollm2-135m", timeout_s=300)
        found = measure(chat, [suite for suite in FEW if suite.name in {"tools", "open"}], limits=Limits())
    assert not any(mark.outcome is Outcome.ERROR for mark in found.marked), found.marked
    (tools, answers) = found.suites
    assert tools.missing is not None
    assert (tools.missing.missing, "ignores them" in tools.missing.detail) == (MissingReason.UNSUPPORTED, True)
    assert answers.outcomes == {Outcome.ANSWERED.value: 2}
    assert {mark.unit for mark in found.marked if mark.pieces} == {"token"}
    assert between(found, found).identical_share == 1.0
