"""A run is held against the one before it that measured the same thing, by the rule, and what has changed is named."""

from __future__ import annotations

from typing import Any

import pytest

from gen.history import History, history, same
from gen.site import pages
from gen.words import Verdict
from probes.archive import seal
from probes.evidence import (
    Direction,
    Load,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Per,
    Run,
    RunKind,
    Runtime,
    Validity,
)
from probes.fleet import Gates
from tests.gen.compared import two_sides
from tests.gen.reading import Reader, read
from tests.gen.specimens import corpus, host, micro_run
from tests.gen.test_site import TODAY

GATES = Gates()


def later(factor: float = 1.0, **fields: Any) -> Run:
    """The same benchmark an hour later, its times multiplied."""
    first = micro_run()
    metrics = tuple(m.model_copy(update={"samples": tuple(v * factor for v in m.samples)}) for m in first.metrics)
    started = first.started_at.replace(hour=10)
    changes = {"id": "later", "metrics": metrics, "started_at": started, "ended_at": started, **fields}
    return seal(first.model_copy(update=changes))


def found(now: Run, *before: Run) -> History:
    held = history(now, before, GATES)
    assert held is not None
    return held


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.INCONCLUSIVE), (0.5, Verdict.BETTER), (2.0, Verdict.WORSE)])
def test_the_rule_of_comparison_speaks_for_each_arm(factor: float, verdict: Verdict) -> None:
    moved = found(later(factor), micro_run()).of("ttft_s")
    assert [one.arm for one in moved] == ["cold", "warm"]
    assert {one.comparison.verdict for one in moved} == {verdict}
    assert moved[0].comparison.baseline is not None
    assert moved[0].comparison.baseline.median == 0.412


def test_the_newest_earlier_run_counts_and_an_invalid_one_does_not() -> None:
    broken = later(validity=Validity(valid=False, reasons=("too few samples",)))
    newer = later(started_at=micro_run().started_at.replace(hour=9, minute=40), id="newer")
    now = later(started_at=micro_run().started_at.replace(hour=11), ended_at=micro_run().started_at.replace(hour=11), id="now")
    assert found(now, micro_run(), newer, broken, now).before.id == "newer"
    assert history(broken, [micro_run()], GATES) is None
    assert history(micro_run(), [later()], GATES) is None


def test_a_regression_that_went_away_again_is_still_told_where_it_was() -> None:
    """10, 20, 10 ms: the run in the middle stays worse than the one before it, whatever came after."""
    day = micro_run().started_at
    first = micro_run()
    middle, last = (
        later(factor, id=id, started_at=day.replace(hour=hour), ended_at=day.replace(hour=hour))
        for factor, id, hour in ((2.0, "middle", 10), (1.0, "last", 11))
    )
    for known in ([first, middle], [first, middle, last], [last, middle, first]):
        held = found(middle, *known)
        assert held.before.id == first.id
        assert {one.comparison.verdict for one in held.of("ttft_s")} == {Verdict.WORSE}
    recovered = found(last, first, middle)
    assert recovered.before.id == "middle"
    assert {one.comparison.verdict for one in recovered.of("ttft_s")} == {Verdict.BETTER}
    site = pages(corpus(local_runs=(first, middle, last)), TODAY)
    told = {name: " ".join(read(site[f"runs/{name}.md"].split("---\n", 2)[2]).text.split()) for name in ("middle", "last")}
    assert "worse" in told["middle"].partition("Against the run before")[2].partition("Conditions")[0]
    assert "better" in told["last"].partition("Against the run before")[2].partition("Conditions")[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "continuous-batching"},
        {"kind": RunKind.LOAD},
        {"runtime": Runtime(name="ovms", version="2026.4.1.0")},
        {"model": ModelFacts(id="SmolLM2-135M-Instruct", quantization="F16")},
        {"client": host().model_copy(update={"fingerprint": "0" * 12})},
        {"device": Missing(missing=MissingReason.NO_SENSOR)},
        {"load": Load(schedule="another", concurrency=1, requests=2, warmup_requests=1, prompt_tokens=(8,), max_tokens=4,
                      prompt_set_sha256="ab" * 32)},
    ],
)  # fmt: skip
def test_what_measured_something_else_is_not_the_run_before(fields: dict[str, Any]) -> None:
    assert history(later(**fields), [micro_run()], GATES) is None


def test_a_contract_of_other_sides_measured_something_else() -> None:
    caching = two_sides()
    precision = two_sides(settings=({"KV_CACHE_PRECISION": "f16"}, {"KV_CACHE_PRECISION": "u8"}))
    assert same(caching) == same(two_sides(minute=30))
    assert same(caching) != same(precision)


def test_a_quick_run_is_another_load() -> None:
    load = Load(
        schedule="one at a time", concurrency=1, requests=2, warmup_requests=1, prompt_tokens=(8, 8), max_tokens=4,
        prompt_set_sha256="ab" * 32,
    )  # fmt: skip
    quick = load.model_copy(update={"quick": True})
    more = load.model_copy(update={"requests": 4, "prompt_tokens": (8, 8, 8, 8)})
    before = micro_run().model_copy(update={"load": load})
    assert history(later(load=quick), [before], GATES) is None
    assert found(later(load=more), before).before.id == before.id


def test_releases_and_the_mood_of_the_machine_are_named() -> None:
    now = later(
        runtime=Runtime(name="openvino-genai", version="2026.5.0.0"),
        client=host().model_copy(update={"kernel": "6.6.0"}),
        native={"load_average_before": 7.25},
    )
    before = micro_run().model_copy(update={"native": {"load_average_before": 0.5}})
    assert found(now, before).differences == (
        "runtime: 2026.4.1.0 then, 2026.5.0.0 now",
        "kernel: 6.1.0 then, 6.6.0 now",
        "load average before the run: 0.5 then, 7.2 now",
    )
    assert found(later(), micro_run()).differences == ()


@pytest.fixture(scope="module")
def shown() -> dict[str, Reader]:
    now = later(0.5, runtime=Runtime(name="openvino-genai", version="2026.5.0.0"))
    site = pages(corpus(local_runs=(micro_run(), now)), TODAY)
    return {path: read(content.split("---\n", 2)[2]) for path, content in site.items() if path.endswith(".md")}


def test_the_page_of_a_run_shows_what_has_moved(shown: dict[str, Reader]) -> None:
    told = " ".join(shown["runs/later.md"].text.split())
    assert "Against the run before" in told
    assert "runtime: 2026.4.1.0 then, 2026.5.0.0 now." in told
    earlier = next(page for path, page in shown.items() if path.startswith("runs/2026"))
    assert "Against the run before" not in earlier.text


@pytest.mark.parametrize("path", ["techniques/automatic-prefix-caching.md", "devices/local-abc123abc123-cpu.md"])
def test_pages_of_technique_and_device_show_the_pair_and_since_when(shown: dict[str, Reader], path: str) -> None:
    told = " ".join(shown[path].text.split())
    assert "cold: median 206 ms" in told
    assert "n = 7 repetitions" in told
    assert "Against the run of 2026-11-28 : better in both arms (runtime: 2026.4.1.0 then, 2026.5.0.0 now)" in told.replace(
        "2026-11-28:", "2026-11-28 :"
    )
    assert "again: python -m probes run micro" in told
    assert "svg" in shown[path].tags


def test_the_page_of_a_device_shows_the_limit_and_how_it_is_reached() -> None:
    def metric(name: str, unit: str, value: float) -> Metric:
        samples = tuple(value * step for step in (0.98, 1.0, 1.02, 1.01, 0.99, 1.0))
        return Metric(name=name, unit=unit, direction=Direction.HIGHER, per=Per.REPETITION, samples=samples)

    found = (metric("memory_read_bytes_s", "B/s", 2e10), metric("share_of_limit", "share", 0.25))
    measured = later(subject="memory-bandwidth", arms=(), metrics=found)
    site = pages(corpus(local_runs=(measured,)), TODAY)
    told = " ".join(read(site["devices/local-abc123abc123-cpu.md"].split("---\n", 2)[2]).text.split())
    assert "memory_read_bytes_s median 20 GB/s (95 % interval 19.6 to 20.4; n = 6 repetitions)" in told
    assert "share_of_limit median 25 %" in told
    assert "A token multiplies with every weight once" in told


def test_an_attempt_that_may_not_be_used_is_told_beside_the_last_good_one() -> None:
    broken = later(validity=Validity(valid=False, reasons=("skipped: budget: 6 repetitions take about 90 s of 30 s",)))
    site = pages(corpus(local_runs=(micro_run(), broken)), TODAY)
    told = " ".join(read(site["techniques/automatic-prefix-caching.md"].split("---\n", 2)[2]).text.split())
    assert "cold: median 412 ms" in told
    assert "The last attempt may not be used: skipped: budget: 6 repetitions take about 90 s of 30 s." in told
