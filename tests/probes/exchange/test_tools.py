"""Definitions of other tools on files that they wrote: the same quantity, another name for it, or a reason."""

from __future__ import annotations

import copy
import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from probes.errors import InputError
from probes.evidence import Metric, MissingReason, Per
from probes.exchange import aiperf, guidellm, vllm_bench
from probes.exchange.report import Report

DATA = Path(__file__).parents[2] / "data" / "exchange"


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / name).read_text(encoding="utf-8"))
    return found


def records() -> list[dict[str, Any]]:
    lines = (DATA / "aiperf-0.13.0" / "profile_export.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def metric(report: Report, name: str) -> Metric:
    return next(one for one in report.metrics() if one.name == name)


def why(report: Report, name: str) -> str:
    missing = metric(report, name).missing
    assert missing is not None
    assert missing.missing is MissingReason.NOT_MEASURED
    return missing.detail


def test_every_metric_is_samples_or_a_reason() -> None:
    reports = [
        *guidellm.read(document("guidellm-0.8.1.json"), "f"),
        *aiperf.read(document("aiperf-0.13.0/profile_export_aiperf.json"), records(), "f"),
        *vllm_bench.read(document("vllm-bench-0.32.0.json"), "f"),
        *vllm_bench.read(document("vllm-bench-0.32.0-detailed.json"), "f"),
    ]
    for report in reports:
        for one in report.metrics():
            assert bool(one.samples) != (one.missing is not None)
            assert one.missing is None or one.missing.detail
        assert metric(report, "error_rate").samples == (0.0,)
        assert metric(report, "aggregate_tok_s").samples[0] > 0


# guidellm


def test_what_guidellm_calls_inter_token_latency_is_tpot_and_its_tpot_is_nothing_here() -> None:
    """Its time per output token includes TTFT: 13 ms where tokens come 10 ms apart."""
    (report,) = guidellm.read(document("guidellm-0.8.1.json"), "f")
    given = document("guidellm-0.8.1.json")["benchmarks"][0]["requests"]["successful"]
    assert metric(report, "tpot_s").samples == pytest.approx([one["inter_token_latency_ms"] / 1e3 for one in given])
    assert statistics.median(metric(report, "tpot_s").samples) == pytest.approx(0.010, rel=0.05)
    theirs = statistics.median(one["time_per_output_token_ms"] / 1e3 for one in given)
    assert theirs > 1.2 * statistics.median(metric(report, "tpot_s").samples)
    assert "a mean for each request" in why(report, "itl_s")


def test_guidellm_has_one_sample_for_each_request_in_seconds() -> None:
    (report,) = guidellm.read(document("guidellm-0.8.1.json"), "f")
    for name in ("ttft_s", "first_text_s", "tpot_s", "decode_tok_s", "latency_s", "completion_tokens"):
        assert (len(metric(report, name).samples), metric(report, name).per) == (6, Per.REQUEST)
    assert statistics.median(metric(report, "ttft_s").samples) == pytest.approx(0.053, rel=0.1)
    assert metric(report, "aggregate_tok_s").samples == pytest.approx((96 / 0.8990688,), rel=1e-3)
    assert report.schedule == "closed loop: 2 at a time"
    assert report.notes[0].startswith("guidellm warns: mean generation delay")


def test_failed_requests_of_guidellm_are_in_the_error_rate_and_in_no_latency() -> None:
    given = document("guidellm-0.8.1.json")
    benchmark = given["benchmarks"][0]
    benchmark["metrics"]["request_totals"] = {"successful": 4, "errored": 2, "incomplete": 1, "total": 7}
    benchmark["requests"]["errored"] = benchmark["requests"]["successful"][:2]
    benchmark["requests"]["successful"] = benchmark["requests"]["successful"][2:]
    (report,) = guidellm.read(given, "f")
    assert metric(report, "error_rate").samples == pytest.approx((1 / 3,))
    assert len(metric(report, "latency_s").samples) == 4


def test_report_of_guidellm_without_its_requests_has_its_medians() -> None:
    given = document("guidellm-0.8.1.json")
    given["benchmarks"][0]["requests"]["successful"] = []
    (report,) = guidellm.read(given, "f")
    ttft = metric(report, "ttft_s")
    assert ttft.per is Per.RUN
    assert ttft.samples == pytest.approx((0.0533707,), rel=1e-4)


def test_benchmarks_of_one_file_are_runs_of_their_own() -> None:
    given = document("guidellm-0.8.1.json")
    given["benchmarks"].append(copy.deepcopy(given["benchmarks"][0]))
    assert len(guidellm.read(given, "f")) == 2


def test_other_version_of_guidellm_is_told() -> None:
    given = document("guidellm-0.8.1.json")
    given["metadata"]["version"] = 3
    with pytest.raises(InputError, match=r"f: metadata.version: is 3 \(guidellm 0.8.1\); expected 2"):
        guidellm.read(given, "f")


# aiperf


def test_what_aiperf_calls_inter_token_latency_is_tpot_and_its_gaps_are_itl() -> None:
    (report,) = aiperf.read(document("aiperf-0.13.0/profile_export_aiperf.json"), records(), "f")
    theirs = [one["metrics"]["inter_token_latency"]["value"] / 1e3 for one in records()]
    gaps = [statistics.median(one["metrics"]["inter_chunk_latency"]["value"]) / 1e3 for one in records()]
    assert metric(report, "tpot_s").samples == pytest.approx(theirs)
    assert metric(report, "itl_s").samples == pytest.approx(gaps)
    rates = [one["metrics"]["output_token_throughput_per_user"]["value"] for one in records()]
    assert metric(report, "decode_tok_s").samples == pytest.approx(rates)


def test_aiperf_counts_tokens_itself_and_the_servers_count_is_kept_apart() -> None:
    given = records()
    for one in given:
        one["metrics"]["output_sequence_length"]["value"] = 14
    (report,) = aiperf.read({}, given, "f")
    assert metric(report, "completion_tokens").samples == (16.0,) * 6
    assert metric(report, "counted_tokens").samples == (14.0,) * 6


def test_chunks_of_several_tokens_have_no_itl() -> None:
    given = records()
    for one in given:
        one["metrics"]["inter_chunk_latency"]["value"] = [40.0, 40.0, 40.0]
    (report,) = aiperf.read({}, given, "f")
    assert "several tokens" in why(report, "itl_s")


def test_warm_up_and_failed_records_of_aiperf_are_in_no_latency() -> None:
    given = records()
    given[0]["metadata"]["benchmark_phase"] = "warmup"
    given[1]["error"] = {"code": 500, "type": "ServerError", "message": "boom"}
    (report,) = aiperf.read({}, given, "f")
    assert len(metric(report, "latency_s").samples) == 4
    assert metric(report, "error_rate").samples == (0.2,)


def test_summary_of_aiperf_alone_has_one_number_for_the_run() -> None:
    (report,) = aiperf.read(document("aiperf-0.13.0/profile_export_aiperf.json"), [], "f")
    ttft = metric(report, "ttft_s")
    assert ttft.per is Per.RUN
    assert ttft.samples == pytest.approx((0.057913621,))
    assert "a mean" in why(report, "itl_s")
    assert "without a zone" in report.notes[0]


def test_records_of_aiperf_alone_name_no_model_and_no_rate() -> None:
    (report,) = aiperf.read({}, records(), "f")
    assert not isinstance(report.model, str)
    assert why(report, "aggregate_tok_s")


def test_cancelled_run_of_aiperf_is_invalid() -> None:
    given = document("aiperf-0.13.0/profile_export_aiperf.json") | {"was_cancelled": True}
    (report,) = aiperf.read(given, records(), "f")
    assert report.invalid == ("interrupted",)


def test_other_schema_of_aiperf_is_told() -> None:
    given = document("aiperf-0.13.0/profile_export_aiperf.json") | {"schema_version": "2.0"}
    with pytest.raises(InputError, match=r"f: schema_version: is '2.0' \(aiperf 0.13.0\); expected 1.x"):
        aiperf.read(given, [], "f")


# vllm bench serve


def test_ttft_of_vllm_bench_is_the_first_event_unless_the_server_is_known() -> None:
    """The chat backend takes the first chunk with a choice, and servers send one without text at once."""
    given = document("vllm-bench-0.32.0-detailed.json")
    (report,) = vllm_bench.read(given, "f")
    assert metric(report, "first_event_s").samples == pytest.approx(given["ttfts"])
    assert "may be empty" in why(report, "ttft_s")
    (known,) = vllm_bench.read(given, "f", first_event=True)
    assert metric(known, "ttft_s").samples == pytest.approx(given["ttfts"])
    (completions,) = vllm_bench.read(given | {"backend": "vllm"}, "f")
    assert metric(completions, "ttft_s").samples == pytest.approx(given["ttfts"])


def test_tpot_of_vllm_bench_is_ours() -> None:
    given = document("vllm-bench-0.32.0-detailed.json")
    (report,) = vllm_bench.read(given, "f")
    assert statistics.mean(metric(report, "tpot_s").samples) * 1e3 == pytest.approx(given["mean_tpot_ms"])
    assert metric(report, "latency_s").samples == pytest.approx(given["latencies"])
    assert statistics.median(metric(report, "itl_s").samples) == pytest.approx(0.010, rel=0.06)
    assert metric(report, "completion_tokens").samples == (16.0,) * 6


def test_failed_requests_of_vllm_bench_are_no_times_of_zero() -> None:
    given = document("vllm-bench-0.32.0-detailed.json")
    given["errors"][2], given["ttfts"][2], given["latencies"][2], given["itls"][2] = "Bad Gateway", 0.0, 0.0, []
    given |= {"completed": 5, "failed": 1}
    (report,) = vllm_bench.read(given, "f")
    assert len(metric(report, "first_event_s").samples) == 5
    assert min(metric(report, "first_event_s").samples) > 0
    assert metric(report, "error_rate").samples == pytest.approx((1 / 6,))


def test_chunks_of_several_tokens_have_no_itl_in_vllm_bench() -> None:
    given = document("vllm-bench-0.32.0-detailed.json") | {"output_lens": [64] * 6}
    (report,) = vllm_bench.read(given, "f")
    assert "several tokens" in why(report, "itl_s")


def test_result_without_its_requests_has_the_medians_and_no_gaps() -> None:
    given = document("vllm-bench-0.32.0.json")
    (report,) = vllm_bench.read(given, "f")
    first = metric(report, "first_event_s")
    assert first.per is Per.RUN
    assert first.samples == pytest.approx((given["median_ttft_ms"] / 1e3,))
    assert "--save-detailed" in why(report, "itl_s")
    (failing,) = vllm_bench.read(given | {"failed": 1}, "f")
    assert "cannot be told" in why(failing, "latency_s")


def test_what_was_said_is_in_no_native_part() -> None:
    (report,) = vllm_bench.read(document("vllm-bench-0.32.0-detailed.json"), "f")
    assert not {"generated_texts", "itls", "ttfts"} & set(report.native)
    assert report.native["mean_ttft_ms"] > 0  # type: ignore[operator]


@pytest.mark.parametrize(("key", "value"), [("date", "today"), ("date", None), ("completed", "many"), ("completed", -1)])
def test_result_that_is_broken_is_told(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"f: {key}: is "):
        vllm_bench.read(document("vllm-bench-0.32.0.json") | {key: value}, "f")
