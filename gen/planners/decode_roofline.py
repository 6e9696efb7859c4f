"""How fast decoding can be: the bytes that a token reads against the speed of memory, and the share reached."""

from __future__ import annotations

from collections.abc import Iterator

from gen.planners import load
from gen.planners.kv_capacity import PER_TOKEN, weigh
from gen.planners.model import shape_of
from gen.planners.plan import Gap, Given, Plan, Planner, Span, Worked, derived, exactly, of_metric
from gen.spread import Spread, spread
from gen.view import ServiceView, View, of_its_release
from probes.evidence import ProvenanceKind, Run, RunKind

BENCHMARK, BATCHING = "memory-bandwidth", "continuous-batching"
CONTEXTS = (0, 2048, 8192, 32768)
FORMULA = "tokens per second <= bytes per second of memory / (bytes of weights + bytes of KV cache per token x tokens in it)"
SPEED = "decode speed that was measured"
REACHED = "share of the limit that decoding reached"


def limit_tok_s(bytes_s: Span, weight_bytes: Span, kv_bytes_per_token: Span, context_tokens: int, sequences: int = 1) -> Span:
    """Bound the decode speed of all sequences together: a step reads all weights once, and the whole cache of each."""
    return derived(
        "tok/s",
        lambda speed, weights, kv: sequences * speed / (weights + sequences * kv * context_tokens),
        bytes_s,
        weight_bytes,
        kv_bytes_per_token,
    )


def plan(view: View, service: ServiceView) -> Plan:
    """Bound the decode speed of a service at several contexts, by measured memory where there is a measurement."""
    shape = shape_of(service)
    run = _measured(service)
    given: list[Given] = []
    gaps: list[Gap] = []
    speed = _speed(view, service, run)
    if speed is None:
        fill = "nox -s probe -- micro on that host" if service.devices else f"services.{service.name}.device names the card"
        gaps.append(Gap(name="speed of memory", fill=fill))
    else:
        given.append(speed)
    if shape.weight_bytes is None:
        fill = f"services.{service.name}.model.parameters and its weight precision, or its files under config"
        gaps.append(Gap(name="bytes of the weights", fill=fill))
    else:
        given.append(shape.weight_bytes)
    kv = weigh(view, service).token
    if kv is None:
        fill = "layers, KV heads and head size, as for the KV capacity; without them only an empty cache is bounded"
        gaps.append(Gap(name=PER_TOKEN, fill=fill))
    else:
        given.append(kv)
    worked: list[Worked] = []
    if speed is not None and shape.weight_bytes is not None:
        per_token = exactly(0, "B") if kv is None else kv.span
        worked = [
            Worked(
                name=f"limit with {context} tokens in the cache" if context else "limit with an empty cache",
                span=limit_tok_s(speed.span, shape.weight_bytes.span, per_token, context),
                formula=FORMULA,
            )
            for context in (shape.within(CONTEXTS) if kv is not None else CONTEXTS[:1])
        ]
        reached = list(_reached(service, run, worked[0].span))
        worked += reached
        if not reached:
            gaps.append(Gap(name=REACHED, fill=f"measured decode speed: nox -s probe -- --service {service.name}"))
    nominal = speed is not None and speed.known is ProvenanceKind.DOCUMENTED
    return Plan(
        planner=Planner.DECODE_ROOFLINE,
        subject=service.name,
        given=tuple(given),
        worked=tuple(worked),
        gaps=tuple(gaps),
        sources=tuple(dict.fromkeys(card.source for card in view.cards_known(service))) if nominal else (),
        notes=(
            "One sequence and a dense model: a batch reads the weights once for all of its sequences, and a token reads only "
            "those experts of a mixture that it is sent to, so both may be faster.",
        ),
    )


def batches(service: ServiceView) -> dict[str, dict[int, Spread]]:
    """Give how fast a service's device decoded one sequence, and several at once, by benchmark and number of sequences.

    Of several sequences it is the speed of one of them times their number. Only runs of one model stand together.
    """
    alone, found = _measured(service), {}
    if alone is None:
        return {}
    if single := _samples(alone, ""):
        found["reached by one sequence"] = {1: spread(single)}
    runs = [run for run in service.runs if run.subject == BATCHING and run.validity.valid and of_its_release(run, service)]
    run = max(runs, key=lambda run: (run.started_at, run.id), default=None)
    if run is None or (run.model, run.device, run.client.fingerprint) != (alone.model, alone.device, alone.client.fingerprint):
        return found
    many = {}
    for arm in run.arms:
        count = arm.settings.get("concurrency")
        if isinstance(count, int) and count > 0 and (samples := _samples(run, arm.name)):
            many[count] = spread([count * sample for sample in samples])
    return found | ({"reached by batches": many} if many else {})


def _samples(run: Run, arm: str) -> tuple[float, ...]:
    metric = run.metric("decode_tok_s", arm)
    return () if metric is None else metric.samples


def _reached(service: ServiceView, run: Run | None, limit: Span) -> Iterator[Worked]:
    """Tell how fast it decoded: beside its memory in one benchmark, else when the service was asked a request at a time."""
    share = None if run is None else of_metric(run.metric("share_of_limit"))
    decoding = _asked(service) if run is None or share is None else of_metric(run.metric("decode_tok_s"))
    if decoding is not None:
        yield Worked(name=SPEED, span=decoding, formula="measured, one request at a time")
    if share is not None:
        yield Worked(name=REACHED, span=share, formula="measured decode speed / limit, turn by turn")
    elif decoding is not None:
        part = derived("share", lambda speed, most: speed / most, decoding, limit)
        yield Worked(name=REACHED, span=part, formula="measured decode speed / limit with an empty cache")


def _asked(service: ServiceView) -> Span | None:
    alone = (run for run in load.asking(service) if run.kind is RunKind.ENDPOINT)
    return next((span for run in alone if (span := load.samples(run, "decode_tok_s")) is not None), None)


def _measured(service: ServiceView) -> Run | None:
    runs = [run for run in service.runs if run.subject == BENCHMARK and run.validity.valid and of_its_release(run, service)]
    return max(runs, key=lambda run: (run.started_at, run.id), default=None)


def _speed(view: View, service: ServiceView, run: Run | None) -> Given | None:
    """Take the measured speed of reading, or of copying where a device offers nothing else, before the maker's word."""
    for name in ("memory_read_bytes_s", "memory_copy_bytes_s"):
        span = None if run is None else load.samples(run, name)
        if run is not None and span is not None:
            known, n = ProvenanceKind.MEASURED, load.size(run, name)
            return Given(name="speed of memory", span=span, known=known, source=name, run=run.id, samples=n)
    cards = view.cards_known(service)
    if not cards:
        return None
    speeds = [card.memory_gb_s * 1e9 for card in cards]
    span = Span(low=min(speeds), value=min(speeds), high=max(speeds), unit="B/s")
    titles = " or ".join(dict.fromkeys(card.title for card in cards))
    return Given(name="speed of memory", span=span, known=ProvenanceKind.DOCUMENTED, source=f"nominal, {titles}")
