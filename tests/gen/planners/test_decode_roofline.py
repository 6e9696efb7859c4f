"""How fast decoding can be, by hand."""

from __future__ import annotations

from gen.assess import view
from gen.planners import decode_roofline
from gen.planners.decode_roofline import limit_tok_s
from gen.planners.plan import exactly
from probes.evidence import Device, Direction, FleetScope, Metric, Per, ProvenanceKind, Run, RunKind, Runtime
from tests.gen.ledger import NOVEMBER, ledger
from tests.gen.specimens import FINGERPRINT, micro_run, run

SERVICE = "text-8b-b580"


def test_bytes_of_a_token_against_bytes_per_second() -> None:
    """16 GB of f16 weights at 3,350 GB/s: 209 tokens a second; 8192 tokens of 128 KiB each add 1.07 GB."""
    speed, weights, kv = exactly(3350e9, "B/s"), exactly(16e9, "B"), exactly(131_072, "B")
    assert limit_tok_s(speed, weights, kv, 0).value == 209.375
    assert round(limit_tok_s(speed, weights, kv, 8192).value, 1) == 196.2


def test_the_b580_service_is_bounded_by_the_makers_figure_and_its_declared_size() -> None:
    """8e9 numbers of 4 to 5 bits are 4 to 5 GB; 456 GB/s read them 91.2 to 114 times a second."""
    one = view(ledger(), "fleet", NOVEMBER)
    plan = decode_roofline.plan(one, next(item for item in one.services if item.name == SERVICE))
    limit = plan.result("limit with an empty cache")
    assert limit is not None
    assert (limit.low, limit.high) == (91.2, 114.0)
    assert {given.known for given in plan.given} == {ProvenanceKind.DOCUMENTED, ProvenanceKind.DECLARED}
    assert [gap.name for gap in plan.gaps] == ["KV cache per token", decode_roofline.REACHED]
    assert plan.sources == ("arc-b580-figures",)


def metric(name: str, unit: str, *samples: float) -> Metric:
    return Metric(name=name, unit=unit, direction=Direction.HIGHER, per=Per.REPETITION, samples=samples)


def test_measured_memory_speaks_before_the_maker_and_gives_the_share_reached() -> None:
    measured = run(
        RunKind.MICRO,
        "memory-bandwidth",
        device=Device(name="CPU", full_name="Example CPU 3000"),
        metrics=(
            metric("memory_read_bytes_s", "B/s", *[20e9] * 6),
            metric("share_of_limit", "share", 0.31, 0.3, 0.32, 0.3, 0.33, 0.29),
        ),
        native={"report": {"weight_bytes": 100_000_000}},
    )
    one = view(ledger(runs=(micro_run(), measured)), f"local-{FINGERPRINT}", NOVEMBER)
    plan = decode_roofline.plan(one, one.services[0])
    limit, reached = plan.result("limit with an empty cache"), plan.result(decode_roofline.REACHED)
    assert limit == exactly(200.0, "tok/s")
    assert reached is not None
    assert (reached.low, reached.high) == (0.29, 0.33)
    assert plan.given[0].known is ProvenanceKind.MEASURED


def test_a_service_that_was_asked_shows_the_share_of_the_makers_limit_that_it_reached() -> None:
    """91.2 to 114 tokens a second are allowed; 57 of them are 50 to 62.5 %."""
    asked = run(
        RunKind.ENDPOINT,
        SERVICE,
        scope=FleetScope(service=SERVICE),
        metrics=(metric("decode_tok_s", "tok/s", *[57.0] * 6),),
    )
    one = view(ledger(runs=(asked,)), "fleet", NOVEMBER)
    plan = decode_roofline.plan(one, next(item for item in one.services if item.name == SERVICE))
    reached = plan.result(decode_roofline.REACHED)
    assert plan.result(decode_roofline.SPEED) == exactly(57.0, "tok/s")
    assert reached is not None
    assert (reached.low, reached.high) == (0.5, 0.625)
    assert [gap.name for gap in plan.gaps] == ["KV cache per token"]


def test_a_measurement_of_another_release_says_nothing_of_this_one() -> None:
    def bandwidth(version: str, minute: int) -> Run:
        return run(
            RunKind.MICRO,
            "memory-bandwidth",
            minute=minute,
            runtime=Runtime(name="openvino-genai", version=version),
            device=Device(name="CPU", full_name="Example CPU 3000"),
            metrics=(metric("memory_read_bytes_s", "B/s", *[20e9] * 6),),
            native={"report": {"weight_bytes": 100_000_000}},
        )

    old = bandwidth("2026.3.1", 0)
    newer = run(RunKind.ENDPOINT, "embedded", minute=10, runtime=Runtime(name="openvino-genai", version="2026.4.1.0"))
    one = view(ledger(runs=(old, newer)), f"local-{FINGERPRINT}", NOVEMBER)
    assert "speed of memory" in {gap.name for gap in decode_roofline.plan(one, one.services[0]).gaps}
    two = view(ledger(runs=(old, newer, bandwidth("2026.4.1", 20))), f"local-{FINGERPRINT}", NOVEMBER)
    assert decode_roofline.plan(two, two.services[0]).result("limit with an empty cache") == exactly(200.0, "tok/s")
