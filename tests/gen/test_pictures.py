"""Pictures on pages: drawn where the evidence has what they need, told in words beside them, and left out elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from gen.contract_runs import latencies
from gen.markdown import paragraphs
from gen.pages import drafts, sweeps, timelines
from gen.pages.atlas import Atlas
from gen.pages.timelines import MOST_RUNS, records_on
from gen.records import Record
from gen.site import pages
from gen.words import Status
from probes.archive import seal
from probes.evidence import (
    Arm,
    Direction,
    FleetScope,
    Load,
    LocalScope,
    Metric,
    Per,
    Run,
    RunKind,
    Runtime,
    Technique,
    Validity,
)
from tests.gen import compared, ledger, specimens
from tests.gen.reading import read
from tests.gen.specimens import FINGERPRINT, HOSTILE, START, corpus, micro_run, run

TODAY = date(2026, 11, 30)
UNITS = {"aggregate_tok_s": "tok/s", "decode_tok_s": "tok/s"}
HERE = "techniques/automatic-prefix-caching.md"


def metric(name: str, samples: Sequence[float], per: Per, arm: str = "") -> Metric:
    way = Direction.HIGHER if name in UNITS else Direction.LOWER
    return Metric(name=name, unit=UNITS.get(name, "s"), direction=way, per=per, arm=arm, samples=tuple(samples))


def load(concurrency: int, *, requests: int = 24, minute: int = 0, **fields: Any) -> Run:
    """One load of a sweep: throughput of the run, and times of each request."""
    times = [0.1 * concurrency + 0.001 * number for number in range(requests)]
    names = ("ttft_s", "itl_s", "latency_s", "first_event_s", "connect_s")
    shape = Load(
        schedule=f"closed loop: {concurrency} at a time",
        concurrency=concurrency,
        requests=requests,
        warmup_requests=1,
        prompt_tokens=(100,),
        max_tokens=32,
        prompt_set_sha256="ab" * 32,
    )
    given: dict[str, Any] = {
        "load": shape,
        "scope": FleetScope(service="text-8b"),
        "runtime": Runtime(name="ovms", version="2026.2"),
        "metrics": (
            metric("aggregate_tok_s", (40.0 * concurrency**0.5,), Per.RUN),
            *(metric(name, times, Per.REQUEST) for name in names),
        ),
    }
    return run(RunKind.LOAD, f"text-8b-c{concurrency}", minute=concurrency + minute, **(given | fields))


def of_page(path: str, **changes: Any) -> str:
    return pages(corpus(**changes), TODAY)[path]


def shown(markdown: str) -> str:
    return " ".join(read(markdown).text.split())


def atlas(**changes: Any) -> Atlas:
    return Atlas(corpus=corpus(**changes), today=TODAY)


def of_metric(atlas: Atlas, run: Run, metric: str, here: str, records: Sequence[Record]) -> str:
    """Give the picture over time and what belongs below it as one."""
    return paragraphs(*timelines.of_metric(atlas, run, metric, here, records))


def later(number: int, **fields: Any) -> Run:
    start = START + timedelta(days=10 * number, hours=1)
    return seal(micro_run().model_copy(update={"id": f"later-{number}", "started_at": start, "ended_at": start, **fields}))


def test_loads_of_three_sizes_are_a_sweep_and_fewer_are_not() -> None:
    every = [load(1), load(4), load(8)]
    drawn = sweeps.of_loads(atlas(runs=tuple(every)), every[::-1], HERE)
    assert drawn.count("<figure") == 3
    told = shown(drawn)
    assert "aggregate_tok_s at each number of requests at once: n = 1 loads a point, so no spread is known" in told
    assert "1 at once:" in told
    assert "ttft_s p95" in drawn
    assert not sweeps.of_loads(atlas(runs=tuple(every[:2])), every[:2], HERE)


def test_loads_that_differ_in_more_than_their_size_are_no_sweep() -> None:
    longer = load(8).load
    assert isinstance(longer, Load)
    every = [load(1), load(4), load(8, load=longer.model_copy(update={"max_tokens": 512}))]
    assert not sweeps.of_loads(atlas(runs=tuple(every)), every, HERE)
    invalid = load(8, validity=Validity(valid=False, reasons=("stopped",)))
    assert not sweeps.of_loads(atlas(runs=(load(1), load(4), invalid)), [load(1), load(4), invalid], HERE)


def test_a_p95_of_few_requests_is_not_drawn() -> None:
    every = [load(count, requests=8) for count in (1, 4, 8)]
    assert "p95" not in sweeps.of_loads(atlas(runs=tuple(every)), every, HERE).partition("A point is a run")[0]


def test_releases_are_lines_of_their_own() -> None:
    newer = Runtime(name="ovms", version="2026.4")
    every = [load(count, minute=30, runtime=newer) for count in (8, 4, 1)] + [load(count) for count in (8, 4, 1)]
    drawn = sweeps.of_loads(atlas(runs=tuple(every)), every, HERE)
    assert ">2026.4<" in drawn
    assert ">2026.2<" in drawn


def test_a_load_is_drawn_by_what_people_wait_for() -> None:
    made = pages(corpus(runs=(load(4),)), TODAY)
    page = next(content for path, content in made.items() if path.startswith("runs/") and "load-text-8b" in path)
    assert page.count("<figure") == 3, "time to first token, gaps, and the whole; not the connection"
    told = shown(page)
    assert "ttft_s of each request. text-8b-c4: p50 411 ms, p95 422 ms, range 400 ms to 423 ms, n = 24 requests." in told
    assert "A request stands with the median of its gaps." in told


def test_arms_that_differ_in_concurrency_are_a_sweep_of_their_own() -> None:
    counts = (1, 4, 2)
    arms = tuple(
        Arm(name=f"{count} at once", role="baseline" if count == 1 else "candidate", settings={"concurrency": count})
        for count in counts
    )
    metrics = tuple(
        metric("aggregate_tok_s", [50.0 * count + number for number in range(6)], Per.REPETITION, f"{count} at once")
        for count in counts
    )
    batching = run(RunKind.MICRO, "continuous-batching", arms=arms, metrics=metrics)
    drawn = sweeps.of_arms(batching)["aggregate_tok_s"]
    assert "50 tok/s to 55 tok/s, n = 6) at 1, 102 tok/s" in drawn.alternative
    other = arms[2].model_copy(update={"settings": {"concurrency": 2, "cache": "u8"}})
    assert not sweeps.of_arms(batching.model_copy(update={"arms": (*arms[:2], other)}))
    assert not sweeps.of_arms(micro_run())


def test_a_contract_is_drawn_as_ratios_with_the_rest_named() -> None:
    both = compared.two_sides()
    kept = {"baseline": [[0.9, 1.0] * 6, [0.95] * 4], "candidate": [[0.5] * 16]}
    both = seal(both.model_copy(update={"native": both.native | {"contract": {"latencies_s": kept}}}))
    made = pages(corpus(fleet=specimens.small_fleet(), local_runs=(both,)), TODAY)
    page = next(content for path, content in made.items() if "contract" in path and path.startswith("runs/"))
    part = page.partition("Measurement contract")[2].partition("## Results")[0]
    assert part.count("<figure") == 2
    assert "No ratio: Errors and out-of-memory, Power and Task quality" in shown(part)
    assert "Time to first token (less is better): better, 0.196 times" in part
    assert "baseline: p50 950 ms, range 900 ms to 1 s, n = 16 requests" in shown(part)


@pytest.mark.parametrize("kept", [None, [], {"baseline": 3}, {"baseline": [3, "x", ["y", None, True]]}, {"baseline": []}])
def test_latencies_of_another_shape_are_none(kept: Any) -> None:
    both = compared.two_sides()
    found = latencies(both.model_copy(update={"native": {"contract": {"latencies_s": kept}}}))
    assert all(isinstance(value, float) for samples in found.values() for value in samples)
    assert not [name for name, samples in found.items() if not samples]


def test_an_invalid_comparison_has_no_picture_of_ratios() -> None:
    stopped = compared.two_sides(validity=Validity(valid=False, reasons=("interrupted",)))
    made = pages(corpus(fleet=specimens.small_fleet(), local_runs=(stopped,)), TODAY)
    page = next(content for path, content in made.items() if "contract" in path and path.startswith("runs/"))
    assert "Candidate to baseline</title>" not in page


def test_two_comparable_runs_are_told_and_three_are_drawn() -> None:
    def over_time(*runs: Run) -> str:
        return of_metric(atlas(local_runs=runs), runs[-1], "ttft_s", HERE, [])

    assert not over_time(micro_run()).strip()
    assert "2 comparable runs so far; a picture takes 3" in over_time(micro_run(), later(1))
    drawn = over_time(micro_run(), later(1), later(2, runtime=Runtime(name="openvino-genai", version="2026.5")))
    assert drawn.count("<figure") == 1
    told = shown(drawn)
    assert "ttft_s in 3 comparable runs from 2026-11-28 to 2026-12-18: medians with their bounds. n = 7 a point." in told
    assert ">2026.5<" in drawn
    assert "2026-12-18 10:00" in told
    assert "median 412 ms" in told


def test_what_is_not_comparable_is_not_in_the_picture() -> None:
    broken = later(2, validity=Validity(valid=False, reasons=("too few samples",)))
    other = later(3, subject="split-fuse")
    runs = (micro_run(), later(1), broken, other)
    assert "2 comparable runs" in of_metric(atlas(local_runs=runs), later(1), "ttft_s", HERE, [])


def test_many_runs_are_drawn_up_to_a_limit_that_is_told() -> None:
    runs = tuple(later(number) for number in range(MOST_RUNS + 5))
    drawn = of_metric(atlas(local_runs=runs), runs[-1], "ttft_s", HERE, [])
    assert f"Of {MOST_RUNS + 5} runs the newest {MOST_RUNS} are drawn." in shown(drawn)


def test_records_stand_on_the_axis_of_what_they_may_have_moved() -> None:
    runs = (micro_run(), later(1), later(2))
    day = later(1).date
    local = f"local-{FINGERPRINT}"
    caching = ledger.record(scope=local, date=day, status=Status.ACCEPTED, technique=Technique.PREFIX_CACHING)
    one = atlas(local_runs=runs, local_records=(caching,))
    records = records_on(one, local, Technique.PREFIX_CACHING)
    assert records == [caching]
    assert not records_on(one, local, Technique.KV_CACHE)
    assert not records_on(one, "fleet", Technique.PREFIX_CACHING)
    drawn = of_metric(one, runs[-1], "ttft_s", HERE, records)
    assert f"1: {day.isoformat()}" in shown(drawn)
    assert caching.title in shown(drawn)


def test_the_page_of_a_service_shows_it_under_load_and_over_time() -> None:
    loads = tuple(load(count) for count in (1, 4, 8))
    made = of_page("services/text-8b.md", runs=loads)
    assert made.count("<figure") >= 3
    assert "## Under load" in made
    assert "## Over time" not in made, "a load of each size is no history"
    again = tuple(load(4, minute=60 * number, id=f"again-{number}") for number in range(3))
    made = of_page("services/text-8b.md", runs=again)
    assert "## Under load" not in made
    assert "aggregate_tok_s in 3 comparable runs on 2026-11-28" in shown(made)
    assert "Each run gave one number, so no spread is known." in shown(made)
    assert "ttft_s in 3 comparable runs on 2026-11-28: medians with their bounds. n = 24 a point." in shown(made)


def test_loads_of_no_service_stand_on_the_page_of_the_machine_that_sent_them() -> None:
    local = LocalScope(fingerprint=FINGERPRINT)
    made = pages(corpus(local_runs=tuple(load(count, scope=local) for count in (1, 4, 8))), TODAY)
    page = next(content for path, content in made.items() if path.startswith("machines/") and path != "machines/index.md")
    assert "## Under load" in page
    assert page.count("<figure") == 3


def test_pictures_stand_before_the_words_for_what_was_run_twice() -> None:
    """Pairs of runs, however many and new, never take the place of a picture."""
    pairs = [load(count, minute=100 * number, id=f"pair-{count}-{number}") for count in range(10, 20) for number in (4, 5)]
    often = [load(4, minute=100 * number, id=f"often-{number}") for number in (1, 2, 3)]
    runs = sorted((*pairs, *often), key=lambda one: one.started_at, reverse=True)
    drawn = timelines.of_runs(atlas(runs=tuple(runs)), runs, HERE, [])
    assert drawn.count("<figure") == 2
    assert "2 comparable runs so far" not in drawn


def test_drafts_on_several_kinds_of_text_stand_together() -> None:
    def on(kind: str, brought: float) -> Run:
        arm = Arm(name="prompt lookup, k=3", role="candidate", settings={"num_assistant_tokens": 3, "text": kind})
        found = (
            metric("break_even_tokens_per_step", (1.5, 1.6, 1.7), Per.REPETITION, arm.name),
            metric("tokens_per_step", (brought,) * 3, Per.REPETITION, arm.name),
        )
        return run(RunKind.MICRO, f"drafts-{kind}", arms=(arm,), metrics=found)

    both = drafts.by_text([on("chat", 1.1), on("repetitive", 3.2)])
    assert "chat: prompt lookup, k=3: does not pay" in both
    assert "repetitive: prompt lookup, k=3: pays" in both
    assert not drafts.by_text([on("chat", 1.1)])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arms_stay_text_in_every_picture_of_a_page(name: str) -> None:
    hostile = micro_run()
    arms = (hostile.arms[0].model_copy(update={"name": name}), hostile.arms[1])
    metrics = tuple(one.model_copy(update={"arm": name}) if one.arm == "cold" else one for one in hostile.metrics)
    runs = tuple(later(number, arms=arms, metrics=metrics) for number in range(3))
    page = of_metric(atlas(local_runs=runs), runs[-1], "ttft_s", HERE, [])
    tags = set(read(page).tags)
    assert not tags & {"script", "img", "style", "iframe"}
    assert tags >= {"svg", "figcaption"}
