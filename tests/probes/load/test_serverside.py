"""The server's own metrics over the measured window: gauges in it, counters round it, and a restart between."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from probes.endpoints.adapters import ADAPTERS
from probes.endpoints.address import parse_address
from probes.endpoints.metrics import Scrape, parse, scrape
from probes.evidence import MissingReason
from probes.fleet import RuntimeName
from probes.load.run import Gate
from probes.load.series import Series
from probes.load.serverside import Scraper, identify, tell
from probes.load.window import Phase, Window
from tests.captures import capture
from tests.probing import metrics_reply
from tests.servers import hear, http, talking

S = 10**9


def vllm(**values: float) -> Scrape:
    given = {
        "num_requests_running": 0.0,
        "num_requests_waiting": 0.0,
        "kv_cache_usage_perc": 0.0,
        "prefix_cache_queries_total": 0.0,
        "prefix_cache_hits_total": 0.0,
        "spec_decode_num_draft_tokens_total": 0.0,
        "spec_decode_num_accepted_tokens_total": 0.0,
        "num_preemptions_total": 0.0,
        "generation_tokens_total": 0.0,
    } | values
    lines = []
    for name, value in given.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE vllm:{name} {kind}\nvllm:{name} {value}")
    return parse("\n".join(lines) + "\n")


def told(*scrapes: tuple[float, Scrape], runtime: RuntimeName = RuntimeName.VLLM) -> dict[str, Series]:
    window = Window(phases=(Phase.MEASURED,), start_ns=10 * S, end_ns=20 * S)
    adapter = ADAPTERS[runtime]
    read = [(round(at * S), one) for at, one in scrapes]
    return {one.name: one for one in tell(read, window, runtime, adapter.quantities, adapter.metrics_hint).series}


def test_counters_speak_of_the_readings_round_the_window_and_gauges_of_those_in_it() -> None:
    found = told(
        (1, vllm(generation_tokens_total=5, num_requests_running=99)),
        (9, vllm(generation_tokens_total=100, prefix_cache_queries_total=1000, prefix_cache_hits_total=900)),
        (12, vllm(num_requests_running=4, num_requests_waiting=0, kv_cache_usage_perc=0.2, generation_tokens_total=200,
                  prefix_cache_queries_total=1100, prefix_cache_hits_total=900)),
        (18, vllm(num_requests_running=8, num_requests_waiting=3, kv_cache_usage_perc=0.5, generation_tokens_total=700,
                  prefix_cache_queries_total=1300, prefix_cache_hits_total=1000)),
        (21, vllm(generation_tokens_total=900, prefix_cache_queries_total=1400, prefix_cache_hits_total=1000,
                  num_preemptions_total=2)),
        (30, vllm(generation_tokens_total=5000, prefix_cache_queries_total=9000, prefix_cache_hits_total=1000,
                  num_preemptions_total=9)),
    )  # fmt: skip
    values = {name: one.samples[0] for name, one in found.items() if one.samples}
    assert values["server_requests_running"] == 6.0
    assert values["server_requests_waiting"] == 3.0
    assert values["server_kv_cache_usage"] == 0.5
    assert values["server_generated_tokens"] == 800.0
    assert values["server_prefix_cache_hit_ratio"] == 0.25
    assert values["server_preemptions"] == 2.0


def test_drafts_and_what_was_taken_of_them() -> None:
    after = vllm(spec_decode_num_draft_tokens_total=40, spec_decode_num_accepted_tokens_total=10)
    found = told((9, vllm()), (21, after))
    assert [found[f"server_{name}"].samples for name in ("draft_tokens", "accepted_tokens", "draft_acceptance_ratio")] == [
        (40.0,), (10.0,), (0.25,),
    ]  # fmt: skip


def test_restart_in_between_is_told_though_the_counter_overtook_its_old_value() -> None:
    found = told(
        (9, vllm(generation_tokens_total=100)),
        (15, vllm(generation_tokens_total=3)),
        (21, vllm(generation_tokens_total=500)),
    )
    missing = found["server_generated_tokens"].missing
    assert missing is not None
    assert (missing.missing, "the server was restarted" in missing.detail) == (MissingReason.FAILED, True)


def test_window_between_two_readings_has_counters_and_no_gauge() -> None:
    found = told((9, vllm()), (21, vllm(generation_tokens_total=10)))
    assert found["server_generated_tokens"].samples == (10.0,)
    missing = found["server_requests_running"].missing
    assert missing is not None
    assert missing.missing is MissingReason.TOO_FEW_SAMPLES


@pytest.mark.parametrize(("engine", "runtime"), [("vllm", RuntimeName.VLLM), ("llamacpp", RuntimeName.LLAMACPP)])
def test_captures_of_real_servers_give_a_figure_or_a_reason_for_every_name(engine: str, runtime: RuntimeName) -> None:
    before, after = (parse(capture(engine, name).body.decode()) for name in ("get_metrics", "get_metrics_after"))
    found = told((9, before), (15, after), (21, after), runtime=runtime)
    assert len(found) == 10
    assert found["server_generated_tokens"].samples
    assert all(bool(one.samples) != (one.missing is not None) for one in found.values())
    for one in found.values():
        assert one.missing is None or one.missing.detail


def test_metrics_that_are_off_say_how_to_switch_them_on() -> None:
    off = scrape(metrics_reply("", status=501))
    missing = told((9, off), (21, off), runtime=RuntimeName.LLAMACPP)["server_generated_tokens"].missing
    assert missing is not None
    assert missing.missing is MissingReason.NOT_CONFIGURED
    assert "start llama-server with --metrics" in missing.detail


def serving(models: dict[str, Any], metrics: list[bytes], asked: list[str]) -> Any:
    lock = threading.Lock()
    counter = iter(range(10**6))

    def script(connection: Any) -> None:
        path = hear(connection).split()[1].decode()
        with lock:
            asked.append(path)
            if path == "/v1/models":
                connection.sendall(http("200 OK", json.dumps(models).encode(), "Content-Type: application/json"))
            elif path == "/metrics":
                body = metrics[min(next(counter), len(metrics) - 1)]
                connection.sendall(http("200 OK", body, "Content-Type: text/plain"))
            else:
                connection.sendall(http("404 No"))

    return script


def moment() -> Window:
    """A measured window of a millisecond that begins now."""
    start_ns = time.perf_counter_ns()
    time.sleep(0.001)
    return Window(phases=(Phase.MEASURED,), start_ns=start_ns, end_ns=time.perf_counter_ns())


def models(owner: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]}


def test_known_server_is_read_before_and_after() -> None:
    asked: list[str] = []
    bodies = [b"# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total %d\n" % n for n in (0, 7, 9)]
    with talking(serving(models("vllm"), bodies, asked)) as port:
        gate = Gate(address=parse_address(f"http://127.0.0.1:{port}/v1", "test"))
        detection = identify(gate, None)
        before = asked.count("/metrics")
        scraper = Scraper(gate, None, detection)
        with scraper:
            window = moment()
    assert asked.count("/metrics") - before == 2
    found = {one.name: one for one in scraper.told(window).series}
    assert found["server_generated_tokens"].samples == (2.0,)


def test_metrics_that_a_reading_empties_are_not_read() -> None:
    """TensorRT-LLM empties `/metrics` with each reading, and an unknown server may do the same."""
    asked: list[str] = []
    with talking(serving(models("somebody"), [b"[]"], asked)) as port:
        gate = Gate(address=parse_address(f"http://127.0.0.1:{port}/v1", "test"))
        scraper = Scraper(gate, None, identify(gate, None))
        with scraper:
            window = moment()
    assert "/metrics" not in asked
    for one in scraper.told(window).series:
        assert one.missing is not None
        assert one.missing.missing is MissingReason.UNSUPPORTED
