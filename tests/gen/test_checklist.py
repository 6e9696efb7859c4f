"""The review of a service: a box is ticked by a dated fact and by nothing else, and an open one says what would fill it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gen.checklist import _TESTS, Answer, answers
from gen.corpus import Corpus
from gen.knowledge.review import Check, Item
from gen.pages import checklist as page
from gen.pages.atlas import Atlas, Spot
from gen.records.record import Move
from gen.view import FLEET
from gen.words import Decision, Status
from probes import strictyaml
from probes.errors import InputError
from probes.evidence import (
    Direction,
    Endpoint,
    EndpointState,
    FleetScope,
    Metric,
    Per,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Technique,
    Validity,
)
from probes.fleet import ServiceKind
from tests.gen.compared import one_side, two_sides
from tests.gen.ledger import JULY, NOVEMBER, inventory, knowledge, ledger, record
from tests.gen.specimens import FINGERPRINT, START, endpoint_run

SERVICE = "text-8b-b580"


def boxes(corpus: Corpus, name: str = SERVICE, scope: str = FLEET) -> dict[str, Answer]:
    subject = page.subject_of(Atlas(corpus=corpus, today=NOVEMBER), Spot(scope=scope, name=name))
    assert subject is not None
    return {answer.item.id: answer for answer in answers(subject)}


def ticked(corpus: Corpus, name: str = SERVICE) -> set[str]:
    return {key for key, answer in boxes(corpus, name).items() if answer.tick is not None}


def measured(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "scope": FleetScope(service=SERVICE),
        "runtime": Runtime(name="OpenVINO Model Server", version="2026.2"),
    }
    return one_side(**(values | changes))


def signed(technique: Technique, **changes: Any) -> Any:
    move = Move(status=Status.ACCEPTED, on=JULY, by="platform team")
    return record(name=f"2026-07-10-{technique.value}-fleet", technique=technique, assessment=None, history=(move,), **changes)


SEVEN = tuple(signed(technique) for technique in Technique)


def test_every_kind_of_box_has_a_test_and_is_asked() -> None:
    assert set(_TESTS) == set(Check)
    assert {item.check for item in knowledge().checklist} == set(Check)


def test_every_tick_names_a_fact_a_way_and_a_day() -> None:
    corpus = ledger(*SEVEN, runs=(measured(), two_sides(minute=5, scope=FleetScope(service=SERVICE))))
    for name in inventory().services:
        if inventory().services[name].kind is ServiceKind.MEDIA:
            continue
        for answer in boxes(corpus, name).values():
            tick = answer.tick
            if tick is None:
                assert answer.run or answer.fill
                assert "{service}" not in answer.run + answer.fill
            else:
                assert tick.text.strip()
                assert tick.known in ProvenanceKind
                assert tick.day <= NOVEMBER
                assert tick.run or tick.record or tick.source


@pytest.mark.parametrize(("count", "said"), [(19, None), (20, "p95 19 s of 20 requests")])
def test_a_p95_is_made_of_twenty_requests_and_is_no_median(count: int, said: str | None) -> None:
    latency = Metric(
        name="latency_s",
        unit="s",
        direction=Direction.LOWER,
        per=Per.REQUEST,
        samples=tuple(float(number) for number in range(1, count + 1)),
    )
    tick = boxes(ledger(runs=(measured(metrics=(latency,)),)))["p95"].tick
    assert (tick.text if tick else None) == said


def test_nothing_measured_leaves_every_number_open() -> None:
    open_boxes = set(boxes(ledger())) - ticked(ledger())
    assert {
        "ttft",
        "decode",
        "p95",
        "throughput",
        "memory",
        "quality",
        "power",
        "energy",
        "errors",
        "drift",
        "stale",
    } <= open_boxes
    assert {"decided", "review-date", "sign-off", "rollback", "guesswork"} <= open_boxes


def test_a_run_ticks_what_it_measured_and_nothing_that_it_did_not() -> None:
    came = ticked(ledger(runs=(measured(),))) - ticked(ledger())
    assert {"ttft", "decode", "throughput", "memory", "quality", "errors", "stale", "p95"} <= came
    assert not came & {"power", "energy", "concurrency", "caching-compared", "decided", "sign-off"}
    assert ticked(ledger(runs=(measured(),)), "text-30b") == ticked(ledger(), "text-30b")


def test_an_invalid_run_ticks_nothing() -> None:
    bad = measured(validity=Validity(valid=False, reasons=("busy",)))
    assert ticked(ledger(runs=(bad,))) == ticked(ledger())


def test_a_comparison_ticks_the_technique_whose_setting_differs() -> None:
    run = two_sides(scope=FleetScope(service=SERVICE))
    came = ticked(ledger(runs=(run,)))
    assert "caching-compared" in came
    assert "quantization-quality" not in came


def test_what_quantization_costs_in_quality_takes_scores_of_both_sides() -> None:
    sides = ({"KV_CACHE_PRECISION": "f16"}, {"KV_CACHE_PRECISION": "u8"})
    run = two_sides(scope=FleetScope(service=SERVICE), settings=sides)
    assert "quantization-quality" in ticked(ledger(runs=(run,)))
    unscored = tuple(metric for metric in run.metrics if metric.name != "task_quality")
    assert "quantization-quality" not in ticked(ledger(runs=(run.model_copy(update={"metrics": unscored}),)))


def test_a_machine_outside_the_inventory_is_not_asked_what_only_that_could_answer() -> None:
    found = boxes(ledger(runs=(endpoint_run(),)), "embedded", f"local-{FINGERPRINT}")
    assert not {"admission", "headroom", "alert-queue", "model-size", "over-commit"} & set(found)
    assert found["model"].tick is not None


def test_an_error_under_load_opens_the_box_again() -> None:
    clean = measured()
    failing = measured(
        minute=10,
        metrics=tuple(
            metric.model_copy(update={"samples": (0.0, 0.25)}) if metric.name == "error_rate" else metric
            for metric in clean.metrics
        ),
    )
    assert "errors" in ticked(ledger(runs=(clean,)))
    assert "errors" not in ticked(ledger(runs=(clean, failing)))


def test_a_service_that_stopped_answering_is_no_longer_ticked() -> None:
    def asked(state: EndpointState, minute: int) -> Run:
        run = measured(minute=minute, endpoint=Endpoint(url="http://x", state=state))
        return run.model_copy(update={"kind": RunKind.ENDPOINT})

    up, down = asked(EndpointState.GENERATING, 0), asked(EndpointState.NOT_REACHABLE, 5)
    assert "reachable" in ticked(ledger(runs=(up,)))
    assert "reachable" not in ticked(ledger(runs=(up, down)))


def test_decisions_are_ticked_by_records_in_force_alone() -> None:
    assert {"decided", "review-date", "sign-off"} <= ticked(ledger(*SEVEN))
    assert "decided" not in ticked(ledger(*SEVEN[1:]))
    unsigned = tuple(one.model_copy(update={"history": ()}) for one in SEVEN)
    assert "sign-off" not in ticked(ledger(*unsigned))
    due = SEVEN[0].model_copy(update={"review_by": NOVEMBER - timedelta(days=1)})
    assert "review-date" not in ticked(ledger(due, *SEVEN[1:]))


def test_a_change_without_a_comparison_and_one_without_a_way_back_stay_open() -> None:
    changed = SEVEN[0].model_copy(update={"decision": Decision.TUNE})
    assert not {"guesswork", "rollback"} & ticked(ledger(changed, *SEVEN[1:]))
    described = changed.model_copy(update={"body": "## How to roll back\n\nSo."})
    assert "rollback" in ticked(ledger(described, *SEVEN[1:]))


def test_what_the_inventory_does_not_know_stays_open() -> None:
    assert not {"model", "device", "over-commit"} & ticked(ledger())
    services = dict(inventory().services)
    services[SERVICE] = services[SERVICE].model_copy(update={"device": "b60"})
    corpus = ledger(fleet=inventory().model_copy(update={"services": services}))
    assert "device" in ticked(corpus)
    assert "over-commit" not in ticked(corpus), "the B60 has an incident that only people can settle"


def test_a_kind_of_service_is_asked_what_concerns_it() -> None:
    assert "ttft" not in boxes(ledger(), "comfyui")
    assert page.subject_of(Atlas(corpus=ledger(), today=NOVEMBER), Spot(scope=FLEET, name="jellyfin")) is None


def test_old_numbers_are_no_fresh_ones() -> None:
    run = measured()
    subject = page.subject_of(Atlas(corpus=ledger(runs=(run,)), today=NOVEMBER), Spot(scope=FLEET, name=SERVICE))
    assert subject is not None
    later = replace(subject, today=START.date() + timedelta(days=91))
    assert {a.item.id: a.tick for a in answers(later)}["stale"] is None


def test_pages_show_facts_and_commands() -> None:
    atlas = Atlas(corpus=ledger(*SEVEN, runs=(measured(),)), today=NOVEMBER)
    written = {one.path: one.render() for one in page.pages(atlas)}
    assert "checklists/index.md" in written
    body = written[f"checklists/{SERVICE}.md"]
    assert "python -m probes contract" in body
    assert "ttft&#95;s" in body
    assert body.count('class="ok"') == len(ticked(atlas.corpus))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("{id: x, part: cost, check: metric, text: X, run: y}", "the names of a metric"),
        ("{id: x, part: cost, check: role, of: magic, text: X, run: y}", "one of attention kernel"),
        ("{id: x, part: cost, check: model, text: X}", "what would fill the box"),
        ("{id: x, part: costs, check: model, text: X, run: y}", "part: is 'costs'"),
        ("{id: x, part: cost, check: vibes, text: X, run: y}", "check: is 'vibes'"),
    ],
)
def test_an_item_that_no_test_can_tick_is_refused(item: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        strictyaml.loads(item, Item, "checklist.yaml")


def test_a_metric_without_samples_ticks_nothing() -> None:
    from tests.gen.compared import NO_POWER

    run = measured()
    assert any(isinstance(metric, Metric) and metric.missing == NO_POWER for metric in run.metrics)
    assert boxes(ledger(runs=(run,)))["power"].tick is None
