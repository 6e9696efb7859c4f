"""A block of requests is one number per quantity, or the reason why there is none."""

from __future__ import annotations

from probes.contract.block import QUANTITIES, block_of, of_trouble
from probes.evidence import Direction, Missing, MissingReason, Per
from probes.load.kinds import KINDS
from probes.load.objective import UNSET, Objective
from probes.load.series import Series
from probes.sensors.server import absent, elsewhere
from tests.loading import DONE, STREAM_HEAD, WHOLE, answering, chunked, event, under_load
from tests.servers import http, talking

BAD = http("500 No", b'{"error": {"message": "out of order"}}')
UNCOUNTED = STREAM_HEAD + chunked(event({"content": "sea"}) + event({"content": "gull"}, "stop") + DONE) + b"0\r\n\r\n"


def test_every_quantity_has_a_value_or_a_reason() -> None:
    with talking(answering(WHOLE)) as port:
        found = block_of(under_load(port, requests=20), ())
    assert list(found.values) == [name for name in QUANTITIES if name not in {"vram_bytes", "memory_bytes", "power_w"}]
    assert all(isinstance(value, float | Missing) for value in found.values.values())
    assert found.values["error_rate"] == 0.0
    assert (found.values["completion_tokens"], found.values["attempts_per_request"]) == (2.0, 1.0)
    assert (found.measured, found.trouble) == (20, ())


def test_a_p95_takes_twenty_requests_in_the_block() -> None:
    with talking(answering(WHOLE)) as port:
        few, enough = (block_of(under_load(port, requests=n), ()).values["p95_latency_s"] for n in (19, 20))
    assert isinstance(few, Missing)
    assert (few.missing, few.detail[:27]) == (MissingReason.TOO_FEW_SAMPLES, "19 of the 20 requests that ")
    assert isinstance(enough, float)


def test_a_server_that_counts_no_tokens_has_no_throughput_in_tokens() -> None:
    with talking(answering(UNCOUNTED)) as port:
        found = block_of(under_load(port), ()).values["aggregate_tok_s"]
    assert isinstance(found, Missing)
    assert "chunks are not tokens" in found.detail


def test_failures_are_in_the_error_rate_and_in_nothing_else() -> None:
    with talking(answering(WHOLE, WHOLE, BAD, WHOLE)) as port:
        found = block_of(under_load(port, requests=4), ())
    assert found.values["error_rate"] == 0.25
    assert found.values["completion_tokens"] == 2.0
    assert found.trouble == ()


def test_a_server_that_only_fails_is_in_trouble_and_says_how_often_it_failed() -> None:
    with talking(answering(BAD)) as port:
        found = block_of(under_load(port, requests=4), ())
    assert not found.whole
    assert set(found.trouble) & {"nothing-succeeded", "run-of-errors"}
    assert "out of order" in " ".join(found.words) or "in a row" in " ".join(found.words)
    assert of_trouble(found)["error_rate"] == 1.0
    assert isinstance(found.values["ttft_s"], Missing)


def test_what_sensors_and_server_tell_stands_beside_it() -> None:
    lower = Direction.LOWER
    none = Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL here")
    seen = (
        Series(name="memory_bytes", unit="B", direction=lower, per=Per.RUN, samples=(5e8,)),
        Series(name="power_w", unit="W", direction=lower, per=Per.RUN, missing=none),
        Series(name="device_resets", unit="resets", direction=lower, per=Per.RUN, samples=(0.0,)),
    )
    with talking(answering(WHOLE)) as port:
        found = block_of(under_load(port), seen)
    assert (found.values["memory_bytes"], found.values["power_w"], found.values["device_resets"]) == (5e8, none, 0.0)
    assert found.kinds["device_resets"] == ("resets", lower)


def test_a_quantity_has_one_unit_wherever_it_is_written() -> None:
    with talking(answering(WHOLE)) as port:
        series = {one.name: (one.unit, one.direction) for one in under_load(port).series}
    assert series == KINDS
    sensors = {one.name: (one.unit, one.direction) for one in absent(elsewhere()).metrics}
    assert {name: kind for name, kind in QUANTITIES.items() if name != "p95_latency_s"}.items() <= (series | sensors).items()


def test_goodput_of_a_block_needs_an_objective() -> None:
    slo = Objective(bounds={"latency_s": 60.0}, origin="the SLO of workload chat (fleet.yml, as of 2026-07-10)")
    with talking(answering(WHOLE)) as port:
        with_one, without = (block_of(under_load(port, slo=given), ()).values for given in (slo, UNSET))
    assert with_one["goodput_share"] == 1.0
    assert without["goodput_share"] == without["goodput"] == UNSET
