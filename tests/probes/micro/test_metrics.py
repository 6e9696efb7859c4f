"""Samples per repetition and arm, and a reason for every contract metric that has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from probes.evidence import Arm, Metric, Missing, MissingReason, Per
from probes.micro.metrics import CONTRACT, measured, p95, unmeasured, waits
from probes.micro.rounds import Report, Request, Round, Skipped

NO_SENSOR = Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL package")
OFF = Arm(name="off", role="baseline", settings={"enable_prefix_caching": False})
ON = Arm(name="on", role="candidate", settings={"enable_prefix_caching": True})


def request(
    ttft_s: float = 0.5, latency_s: float = 1.0, tokens: tuple[int, ...] = (7, 8, 9, 10), steps: int | None = None
) -> Request:
    rate = (len(tokens) - 1) / (latency_s - ttft_s)
    return Request(
        prompt_tokens=160,
        tokens=tokens,
        steps=steps or len(tokens),
        steps_to_first=1,
        ttft_s=ttft_s,
        latency_s=latency_s,
        decode_tok_s=rate,
    )


def row(arm: str, *requests: Request, power_w: float | Missing = NO_SENSOR) -> Round:
    return Round(arm=arm, requests=requests or (request(),), cache_usage_percent=2.5, power_w=power_w)


def report(*rounds: Round) -> Report:
    return Report(
        arms=(OFF, ON),
        rounds=rounds,
        dumps={},
        schedule="one at a time",
        concurrency=1,
        warmup_requests=2,
        max_tokens=4,
        prompt_set_sha256="0" * 64,
    )


def found(metrics: tuple[Metric, ...], name: str, arm: str) -> Metric:
    (metric,) = [m for m in metrics if (m.name, m.arm) == (name, arm)]
    return metric


def test_each_repetition_is_one_sample_of_its_own_arm() -> None:
    metrics = measured(
        report(row("off", request(0.5, 1.0)), row("on", request(0.1, 0.6)), row("off", request(0.7, 1.2)), row("on")),
        [2.0, 1.0, 4.0, 1.0],
        peak_rss_bytes=1000,
        device="CPU",
    )
    assert found(metrics, "ttft_s", "off").samples == (0.5, 0.7)
    assert found(metrics, "ttft_s", "on").samples == (0.1, 0.5)
    assert found(metrics, "aggregate_tok_s", "off").samples == (2.0, 1.0)
    assert found(metrics, "aggregate_tok_s", "on").samples == (4.0, 4.0)
    assert found(metrics, "decode_tok_s", "off").samples == pytest.approx((6.0, 6.0))
    assert found(metrics, "error_rate", "on").samples == (0.0, 0.0)
    assert found(metrics, "cache_usage_percent", "on").samples == (2.5, 2.5)
    assert found(metrics, "memory_bytes", "").samples == (1000.0,)
    assert found(metrics, "memory_bytes", "").per is Per.RUN


def test_a_repetition_of_several_requests_gives_their_median_and_keeps_each_latency() -> None:
    several = (request(0.1, 1.0), request(0.2, 1.1), request(0.9, 1.9))
    metrics = measured(report(row("off", *several), row("on", *several)), [2.0, 2.0], 1, "CPU")
    assert found(metrics, "ttft_s", "off").samples == (0.2,)
    assert found(metrics, "latency_s", "off").samples == (1.0, 1.1, 1.9)
    assert found(metrics, "latency_s", "off").per is Per.REQUEST
    assert found(metrics, "aggregate_tok_s", "off").samples == (6.0,)


@pytest.mark.parametrize("rounds", [19, 20])
def test_a_p95_needs_twenty_requests(rounds: int) -> None:
    rows = [row(arm, request(0.1, 1.0 + n)) for n in range(rounds) for arm in ("off", "on")]
    metric = found(measured(report(*rows), [1.0] * len(rows), 1, "CPU"), "p95_latency_s", "off")
    if rounds < 20:
        assert metric.missing == Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail="19 requests; a p95 needs 20")
    else:
        assert metric.samples == (19.0,)


@pytest.mark.parametrize(("values", "expected"), [([10, 20, 30], 30), (list(range(1, 101)), 95), (list(range(1, 21)), 19)])
def test_p95_is_the_nearest_rank(values: list[float], expected: float) -> None:
    assert p95(values) == expected


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=1))
def test_p95_never_leaves_the_data(values: list[float]) -> None:
    assert p95(values) in values
    assert sum(value <= p95(values) for value in values) >= 0.95 * len(values)


def test_agreement_counts_tokens_before_the_first_difference() -> None:
    metrics = measured(report(row("off"), row("on", request(tokens=(7, 8, 0, 10))), row("off"), row("on")), [1.0] * 4, 1, "CPU")
    assert found(metrics, "token_agreement", "on").samples == (0.5, 1.0)
    assert not [m for m in metrics if m.name == "token_agreement" and m.arm != "on"]


def test_power_is_there_for_every_repetition_or_missing_with_its_reason() -> None:
    metrics = measured(
        report(row("off", power_w=40.0), row("on", power_w=50.0), row("off", power_w=41.0), row("on")), [1.0] * 4, 1, "CPU"
    )
    assert found(metrics, "power_w", "off").samples == (40.0, 41.0)
    assert found(metrics, "power_w", "on").missing == NO_SENSOR


@pytest.mark.parametrize(("device", "reason"), [("CPU", MissingReason.NOT_APPLICABLE), ("GPU.1", MissingReason.NOT_MEASURED)])
def test_the_whole_contract_is_answered(device: str, reason: MissingReason) -> None:
    metrics = measured(report(row("off"), row("on")), [1.0, 1.0], 1, device)
    vram = found(metrics, "vram_bytes", "").missing
    assert vram is not None
    assert vram.missing is reason
    for quantity in CONTRACT:
        held = [m for m in metrics if m.name == quantity.name]
        assert {m.arm for m in held} in ({""}, {"off", "on"}), quantity.name
        assert all(m.samples or (m.missing and m.missing.detail) for m in held)


def test_a_failed_benchmark_answers_the_whole_contract_with_its_words() -> None:
    metrics = unmeasured("timed out: no end after 300 s")
    assert [m.name for m in metrics] == [quantity.name for quantity in CONTRACT]
    assert {m.missing for m in metrics} == {Missing(missing=MissingReason.FAILED, detail="timed out: no end after 300 s")}


@pytest.mark.parametrize("arms", [("off", "off"), ("on", "off"), ("off",), ("off", "on", "off")])
def test_rounds_that_do_not_alternate_are_no_report(arms: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="rounds that alternate between off, on"):
        report(*(row(arm) for arm in arms))


PLAIN = Arm(name="plain", role="baseline")
DRAFTS = Arm(name="k=3", role="candidate", settings={"num_assistant_tokens": 3})
LATE = Arm(name="k=5", role="candidate", settings={"num_assistant_tokens": 5})


def drafting(*rounds: Round) -> tuple[Metric, ...]:
    made = report(row("off"), row("on")).model_copy(
        update={"arms": (PLAIN, DRAFTS), "rounds": rounds, "skipped": (Skipped(arm=LATE, reason="budget: too slow"),)}
    )
    return measured(made, [1.0] * len(rounds), peak_rss_bytes=1, device="CPU")


def test_drafts_that_are_never_right_give_the_price_of_a_step() -> None:
    """Three steps in 0.5 s without drafts, three in 1 s with them: each has to bring two tokens."""
    metrics = drafting(row("plain", request(0.5, 1.0)), row("k=3", request(0.5, 1.5)))
    assert found(metrics, "tokens_per_step", "k=3").samples == (1.0,)
    assert found(metrics, "break_even_tokens_per_step", "k=3").samples == (2.0,)
    assert found(metrics, "accepted_tokens", "k=3").samples == (0.0,)


def test_drafts_that_are_right_have_the_same_price() -> None:
    """One step of the same length brings all three tokens: the price of a step stays, and is exceeded."""
    metrics = drafting(row("plain", request(0.5, 1.0)), row("k=3", request(0.5, 0.5 + 1 / 3, steps=2)))
    assert found(metrics, "tokens_per_step", "k=3").samples == (3.0,)
    assert found(metrics, "break_even_tokens_per_step", "k=3").samples[0] == pytest.approx(2.0)
    assert found(metrics, "accepted_tokens", "k=3").samples == (2.0,)


def test_an_arm_that_was_left_out_says_so_in_every_metric_of_an_arm() -> None:
    metrics = drafting(row("plain"), row("k=3"))
    left_out = [metric for metric in metrics if metric.arm == "k=5"]
    assert {metric.name for metric in left_out} > {"ttft_s", "decode_tok_s", "break_even_tokens_per_step"}
    reasons = {(metric.missing.missing, metric.missing.detail) for metric in left_out if metric.missing}
    assert reasons == {(MissingReason.SKIPPED, "budget: too slow")}


def test_benchmarks_without_drafts_have_no_price() -> None:
    metrics = measured(report(row("off"), row("on")), [1.0, 1.0], peak_rss_bytes=1, device="CPU")
    assert not [metric for metric in metrics if "tokens_per_step" in metric.name]


def joined(*waits_s: float) -> Round:
    """A request whose tokens come at 1 s, 2 s and then after each wait; a long prompt joins at 2 s and is done at 4 s."""
    times = [1.0, 2.0]
    for wait in waits_s:
        times.append(times[-1] + wait)
    running = request(1.0, times[-1], tokens=tuple(range(len(times)))).model_copy(update={"token_s": tuple(times)})
    late = request(2.0, 3.0).model_copy(update={"added_s": 2.0, "token_s": (4.0, 5.0)})
    return row("off", running, late)


def test_a_wait_counts_while_the_long_prompt_is_computed_and_not_after() -> None:
    assert waits(joined(2.5, 9.0)) == (2.5,)
    assert waits(joined(0.5, 0.5, 1.5, 9.0)) == (0.5, 0.5, 1.5)
    assert waits(row("off")) == ()


def test_times_are_those_of_the_running_requests_and_the_late_one_stands_beside() -> None:
    calm = joined(0.5, 0.5, 1.0).model_copy(update={"arm": "on"})
    metrics = measured(report(joined(2.5), calm), [5.0, 5.0], peak_rss_bytes=1, device="CPU")
    assert found(metrics, "worst_itl_s", "off").samples == (2.5,)
    assert found(metrics, "worst_itl_s", "on").samples == (1.0,)
    assert found(metrics, "itl_s", "on").samples == (0.5,)
    assert found(metrics, "late_ttft_s", "on").samples == (2.0,)
    assert found(metrics, "ttft_s", "on").samples == (1.0,)


def test_bytes_per_token_are_told_only_where_they_are_exact() -> None:
    exact = [row(arm).model_copy(update={"kv_bytes_per_token": size}) for arm, size in (("off", 200), ("on", 100))]
    metrics = measured(report(*exact), [1.0, 1.0], peak_rss_bytes=1, device="CPU")
    assert found(metrics, "kv_bytes_per_token", "on").samples == (100.0,)
    metrics = measured(report(exact[0], row("on")), [1.0, 1.0], peak_rss_bytes=1, device="CPU")
    assert not [metric for metric in metrics if (metric.name, metric.arm) == ("kv_bytes_per_token", "on")]


def test_an_arm_that_the_runtime_refused_says_so_in_its_words() -> None:
    made = report(row("off"), row("on"))
    refused = Skipped(arm=Arm(name="u3", role="candidate"), reason="expect kvcache type f32", refused=True)
    metrics = measured(made.model_copy(update={"skipped": (refused,)}), [1.0, 1.0], peak_rss_bytes=1, device="CPU")
    assert found(metrics, "ttft_s", "u3").missing == Missing(missing=MissingReason.REFUSED, detail="expect kvcache type f32")
