"""Decision trees: every way through them, and the way that the users' fleet takes."""

from __future__ import annotations

from typing import Any

import pytest

from gen.assess import view
from gen.planners import bottleneck, disaggregation, parallelism
from gen.planners.plan import exactly
from gen.planners.tree import Answer, Leaf, Path, Question, Reply, leaves, walk
from gen.view import ServiceView, View
from probes.evidence import Direction, FleetScope, Metric, Per, Run, RunKind
from probes.fleet import Fleet, Topology
from tests.gen.ledger import NOVEMBER, inventory, ledger
from tests.gen.planners.test_kv_capacity import QWEN3_8B, reading
from tests.gen.specimens import FINGERPRINT, run

TREES = (disaggregation.TREE, parallelism.TREE, bottleneck.TREE)


def questions(tree: Question | Leaf) -> list[Question]:
    return [] if isinstance(tree, Leaf) else [tree, *questions(tree.yes), *questions(tree.no)]


def all_answered(tree: Question, reply: Reply) -> dict[str, Answer]:
    return {one.name: Answer(reply=reply, because="a test") for one in questions(tree)}


@pytest.mark.parametrize("tree", TREES)
def test_every_walk_of_a_tree_ends_in_a_leaf_or_says_which_stay_open(tree: Question) -> None:
    for reply in (Reply.YES, Reply.NO):
        path = walk(tree, all_answered(tree, reply))
        assert path.leaf in set(leaves(tree))
        assert path.open == (path.leaf,)
    path = walk(tree, all_answered(tree, Reply.UNKNOWN))
    assert path.leaf is None
    assert set(path.open) == set(leaves(tree))
    assert len(path.steps) == 1
    assert path.said().startswith("Open at ")


def test_an_open_question_between_equal_ends_decides_nothing_away() -> None:
    end = Leaf(name="end", advice="Stay")
    path = walk(Question(name="q", text="?", yes=end, no=end), {"q": Answer(reply=Reply.UNKNOWN, because="nobody knows")})
    assert path.leaf == end


@pytest.mark.parametrize("tree", TREES)
def test_names_of_questions_and_leaves_mean_one_thing(tree: Question) -> None:
    texts: dict[str, str] = {}
    for one in questions(tree):
        assert texts.setdefault(one.name, one.text) == one.text
        assert one.text.endswith("?")


# Disaggregation


def decided(topology: Topology | None = None, *runs: Run) -> Path:
    fleet: Fleet = inventory() if topology is None else inventory().model_copy(update={"topology": topology})
    return disaggregation.decide(view(ledger(fleet=fleet, runs=runs), "fleet", NOVEMBER))


def test_the_fleet_of_today_ends_at_the_pools() -> None:
    path = decided()
    assert [(question.name, answer.reply) for question, answer in path.steps] == [("cards", Reply.YES), ("pools", Reply.NO)]
    assert path.leaf == disaggregation.COLOCATED
    assert "lists 4" in path.steps[0][1].because


def test_fewer_than_four_cards_end_it_at_once() -> None:
    base = inventory()
    fleet = base.model_copy(update={"devices": {name: base.devices[name] for name in ("b60", "b580-1", "rtx-4090")}})
    path = disaggregation.decide(view(ledger(fleet=fleet), "fleet", NOVEMBER))
    assert [question.name for question, _ in path.steps] == ["cards"]
    assert path.leaf == disaggregation.COLOCATED


def loaded(service: str, metrics: tuple[Metric, ...]) -> Run:
    return run(RunKind.LOAD, service, scope=FleetScope(service=service), metrics=metrics)


def metric(name: str, unit: str, per: Per, samples: tuple[float, ...]) -> Metric:
    return Metric(name=name, unit=unit, direction=Direction.HIGHER, per=per, samples=samples)


def test_two_pools_and_a_link_lead_on_to_what_only_a_measurement_tells() -> None:
    pools = Topology(compatible_pools=(("text-8b", "text-8b-b580"),), interconnect_gbit_s=100.0, kv_transfer="RDMA")
    path = decided(pools)
    assert path.leaf is None
    assert path.steps[-1][0].name == "link"
    fast = loaded("text-8b", (metric("prefill_tok_s", "tok/s", Per.RUN, (3000.0,)),))
    path = decided(pools, reading("text-8b", **QWEN3_8B), fast)
    # 84,096 bytes at 100 Gbit/s take 6.7 microseconds, a token of prefill 333.
    assert [question.name for question, _ in path.steps] == ["cards", "pools", "link", "batch", "throughput"]
    slow = pools.model_copy(update={"interconnect_gbit_s": 1.0})
    assert decided(slow, reading("text-8b", **QWEN3_8B), fast).leaf == disaggregation.COLOCATED
    much = loaded("text-8b", (*fast.metrics, metric("aggregate_tok_s", "tok/s", Per.RUN, (12_000.0,))))
    assert decided(pools, reading("text-8b", **QWEN3_8B), much).leaf == disaggregation.SPLIT


def test_moving_a_cache_by_hand() -> None:
    """128 KiB x 8192 tokens are 1 GiB, 8.59 Gbit: 86 ms at 100 Gbit/s."""
    span = disaggregation.transfer_s(exactly(131_072, "B"), 8192, exactly(100, "Gbit/s"))
    assert span.value == pytest.approx(2**30 * 8 / 1e11)


# Parallelism


def service_of(name: str, **changes: Any) -> tuple[View, ServiceView]:
    fleet = inventory()
    if changes:
        fleet = fleet.model_copy(update={"services": {**fleet.services, name: fleet.services[name].model_copy(update=changes)}})
    one = view(ledger(fleet=fleet), "fleet", NOVEMBER)
    return one, next(item for item in one.services if item.name == name)


def test_the_b580_service_fits_its_card_and_the_30b_depends_on_which() -> None:
    assert parallelism.decide(*service_of("text-8b-b580")).leaf == parallelism.REPLICAS
    path = parallelism.decide(*service_of("text-30b"))
    assert path.leaf is None
    assert "fit on Intel Arc Pro B60 and may not on Intel Arc B580" in path.steps[0][1].because
    assert parallelism.decide(*service_of("text-30b", device="b60")).leaf == parallelism.REPLICAS


def test_a_model_that_fits_nowhere_asks_for_its_kind() -> None:
    path = parallelism.decide(*service_of("text-30b", device="b580-1"))
    assert [(question.name, answer.reply) for question, answer in path.steps] == [
        ("fits", Reply.NO),
        ("experts", Reply.UNKNOWN),
    ]
    assert {leaf.name for leaf in path.open} == {"experts", "tensor", "pipeline"}


# What to optimise first


def asked(ttft: tuple[float, ...], latency: tuple[float, ...], *more: Metric) -> tuple[ServiceView, Path]:
    made = run(
        RunKind.LOAD,
        "embedded",
        metrics=(
            metric("ttft_s", "s", Per.REPETITION, ttft),
            metric("latency_s", "s", Per.REQUEST, latency),
            metric("error_rate", "share", Per.RUN, (0.0,)),
            *more,
        ),
    )
    one = view(ledger(runs=(made,)), f"local-{FINGERPRINT}", NOVEMBER)
    return one.services[0], bottleneck.decide(one.services[0])


def test_time_after_the_first_token_points_at_decode() -> None:
    service, path = asked((0.1,) * 6, (1.0,) * 100)
    assert path.leaf == bottleneck.DECODING
    share = bottleneck.plan(view(ledger(), "fleet", NOVEMBER), service).result(bottleneck.PREFILL)
    assert share is not None
    assert share.value == pytest.approx(0.1)


def test_time_before_it_points_at_prefill_or_at_the_queue() -> None:
    waiting = metric("requests_waiting", "requests", Per.RUN, (4.0,))
    none = metric("requests_waiting", "requests", Per.RUN, (0.0,))
    assert asked((0.8,) * 6, (1.0,) * 100, none)[1].leaf == bottleneck.PREFILLING
    assert asked((0.8,) * 6, (1.0,) * 100, waiting)[1].leaf == bottleneck.QUEUEING
    assert asked((0.8,) * 6, (1.0,) * 100)[1].leaf is None


def test_a_long_tail_comes_before_shares_of_time() -> None:
    tail = (1.0,) * 97 + (4.0,) * 3
    waiting = metric("requests_waiting", "requests", Per.RUN, (4.0,))
    assert asked((0.1,) * 6, tail, waiting)[1].leaf == bottleneck.QUEUEING


def test_too_few_requests_for_a_tail_are_told_how_many_it_takes() -> None:
    path = asked((0.1,) * 6, (1.0,) * 99)[1]
    assert path.leaf is None
    assert path.said().endswith("at least 100 requests to it would tell: python -m probes load.")


def test_failures_and_a_full_pool_come_first() -> None:
    full = metric("kv_cache_usage", "share", Per.RUN, (0.97,))
    assert asked((0.1,) * 6, (1.0,) * 100, full)[1].leaf == bottleneck.MEMORY


def test_without_requests_nothing_is_said() -> None:
    one, service = service_of("text-8b")
    plan = bottleneck.plan(one, service)
    assert not plan.worked
    assert "python -m probes load" in plan.gaps[0].fill
    assert bottleneck.decide(service).leaf is None
