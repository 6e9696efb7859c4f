"""What a load run says: a document with every number, a run as evidence, and a table for the person who waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from probes.context import Context
from probes.endpoints.quoting import Quoter
from probes.evidence import (
    Decoding,
    Endpoint,
    EndpointState,
    Load,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Per,
    Run,
    RunKind,
    Scope,
    seal,
)
from probes.load.answer import FirstToken
from probes.load.outcome import Outcome
from probes.load.run import Finding, Shape
from probes.load.series import Series, failures, request_values
from probes.load.statistics import percentiles
from probes.load.window import Phase

SCHEMA: Final = "inference-adr/load/1"
_EXAMPLES: Final = 3
_DIGITS: Final = 7
_SHOWN: Final = ("ttft_s", "itl_s", "tpot_s", "decode_tok_s", "latency_s")
_WHOLE: Final = ("aggregate_tok_s", "request_rate", "goodput", "error_rate", "oom_rate", "stalled_streams")


def evidence(context: Context, finding: Finding, *, subject: str, scope: Scope, url: str, quoter: Quoter) -> Run:
    """Give the run as evidence: one sample per request, and the instrument's own figures in its native part."""
    shape, good = finding.shape, any(o.ok for o in finding.measured)
    return context.run(
        RunKind.LOAD,
        f"{subject}-c{shape.concurrency}",
        finding.started_at,
        scope=scope,
        invalid=finding.reasons,
        server=_untold("no answer tells which machine serves"),
        device=_untold("no answer names the device"),
        runtime=_untold("the load asks for text only; the endpoint probe asks what runs there"),
        model=ModelFacts(id=quoter.model(shape.model)),
        endpoint=Endpoint(url=url, state=EndpointState.GENERATING if good else EndpointState.FAILED),
        serving_sha256=_untold("the load asks for text only"),
        load=_load(finding),
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos="ignore_eos" in shape.extra),
        metrics=tuple(_quoted(one.metric(), quoter) for one in finding.series),
        native={
            "instrument": finding.soundness.document(),
            "percentiles": {one.name: dict(percentiles(one.samples)) for one in finding.series if one.per is not Per.RUN},
            "errors": _errors(finding.outcomes, quoter),
            "phases": _phases(finding),
            "stopped": [{"reason": halt.reason, "words": quoter.line(halt.words)} for halt in finding.halts],
            "first_token": shape.first_token.value,
            "seed": shape.seed,
            "retries": shape.retries,
            "slo": dict(shape.slo.bounds),
            "prompts": {"kind": shape.prompts.kind.value, "shared_prefix": shape.prompts.shared},
        },
    )


def document(finding: Finding, run: Run, quoter: Quoter, notes: Sequence[str]) -> dict[str, JsonValue]:
    """Give everything as one JSON object; every metric stands under its name."""
    shape = finding.shape
    return {
        "schema": SCHEMA,
        "valid": run.validity.valid,
        "reasons": list(run.validity.reasons),
        "notes": [*notes, *(f"{halt.reason}: {quoter.line(halt.words)}" for halt in finding.halts)],
        "metrics": {one.name: _rounded(_worded(one, quoter)) for one in finding.series},
        "errors": _errors(finding.outcomes, quoter),
        "instrument": _rounded(finding.soundness.document()),
        "load": {
            "schedule": shape.words,
            "arrivals": shape.arrivals.value,
            "concurrency": shape.concurrency,
            "rate": shape.rate or None,
            "max_tokens": shape.max_tokens,
            "prompt": shape.prompts.kind.value,
            "shared_prefix": shape.prompts.shared,
            "prompt_set_sha256": shape.prompts.sha256,
            "latency_counts_from": "the time a request was due" if shape.rate else "the time it was sent (service time)",
            "first_token": shape.first_token.value,
            "window_s": round(finding.window.seconds, _DIGITS),
            **_phases(finding),
        },
        "percentile_method": "nearest rank; p90 and p10 from 10 samples, p95 and p5 from 20, p99 and p1 from 100",
        "requests": _requests(finding, quoter),
        "run": seal(run).model_dump(mode="json"),
    }


def lines(finding: Finding, quoter: Quoter, notes: Sequence[str]) -> Iterator[str]:
    """Say in a few lines what was measured and whether it may be used; what a server said is quoted."""
    shape, phases = finding.shape, _phases(finding)
    yield f"{shape.words}; {phases['measured']} requests measured, {phases['warm_up']} warm-up, {phases['cool_down']} cool-down"
    yield f"{'':16}{'p50':>10}{'p90':>10}{'p95':>10}{'p99':>10}"
    by_name = {one.name: one for one in finding.series}
    for name in _SHOWN:
        one = by_name[name]
        if one.missing is not None:
            yield f"{name:16}{one.missing.missing}: {quoter.line(one.missing.detail)}"
            continue
        tails = percentiles(one.samples)
        higher = ("p50", "p10", "p5", "p1") if name == "decode_tok_s" else ("p50", "p90", "p95", "p99")
        cells = "".join(f"{_number(tails[tail], one.unit):>10}" for tail in higher)
        yield f"{name:16}{cells}{'   (slow tail: p10, p5, p1)' if name == 'decode_tok_s' else ''}"
    for name in _WHOLE:
        one = by_name[name]
        if one.missing is None:
            yield f"{name:16}{one.samples[0]:>10.4g} {one.unit}"
    for failure, those in failures(finding.outcomes).items():
        yield f"{len(those)} of {len(finding.outcomes)} requests: {failure}"
    sound = finding.soundness
    if sound.lag_p50_s is not None and sound.lag_p95_s is not None:
        cores = "" if sound.cores is None else f", {sound.cores:.2f} cores used by {sound.workers} workers"
        yield f"instrument: bytes stamped {_ms(sound.lag_p50_s)} late at p50, {_ms(sound.lag_p95_s)} at p95{cores}"
    yield from notes
    verdict = "valid" if not finding.reasons else f"INVALID: {', '.join(finding.reasons)}"
    yield "; ".join((verdict, *(quoter.line(halt.words) for halt in finding.halts)))


def _load(finding: Finding) -> Load:
    shape = finding.shape
    counted = [o.answer.usage.prompt_tokens for o in finding.measured if o.answer.usage and o.answer.usage.prompt_tokens]
    phases = _phases(finding)
    return Load(
        schedule=shape.words,
        concurrency=shape.concurrency,
        requests=int(str(phases["measured"])),
        warmup_requests=int(str(phases["warm_up"])),
        prompt_tokens=tuple(counted) or _untold("the server does not count prompt tokens"),
        max_tokens=shape.max_tokens,
        prompt_set_sha256=shape.prompts.sha256,
    )


def _phases(finding: Finding) -> dict[str, JsonValue]:
    phases = finding.window.phases
    unsent = sum(int(one.get("unsent", 0)) for one in finding.course.stats)
    names = {Phase.WARM_UP: "warm_up", Phase.MEASURED: "measured", Phase.COOL_DOWN: "cool_down"}
    return {**{name: phases.count(phase) for phase, name in names.items()}, "sent": len(phases), "due_but_unsent": unsent}


def _errors(outcomes: Sequence[Outcome], quoter: Quoter) -> dict[str, JsonValue]:
    """Count failures of all phases by class, with a few of the words that came."""
    found: dict[str, JsonValue] = {}
    for failure, those in failures(outcomes).items():
        words: list[JsonValue] = list(dict.fromkeys(quoter.line(outcome.words) for outcome in those))
        found[failure.value] = {"requests": len(those), "words": words[:_EXAMPLES]}
    return found


def _requests(finding: Finding, quoter: Quoter) -> list[JsonValue]:
    """Give one row per request, in the order in which they were due; times are seconds since the run began."""
    began = finding.course.began_ns
    rows: list[JsonValue] = []
    both = zip(finding.outcomes, finding.window.phases, strict=True)
    for outcome, phase in sorted(both, key=lambda pair: (pair[0].due_ns, pair[0].index)):
        values = request_values(outcome, finding.shape.first_token) if outcome.ok else {}
        row: dict[str, JsonValue] = {
            "index": outcome.index,
            "phase": phase.value,
            "due_s": (outcome.due_ns - began) / 1e9,
            "sent_s": (outcome.sent_ns - began) / 1e9,
            "end_s": (outcome.end_ns - began) / 1e9,
            "attempts": outcome.attempts,
            "status": outcome.status,
            "error": None if outcome.failure is None else outcome.failure.value,
            "stalled": outcome.stalled,
            "finish_reason": None if outcome.answer.finish_reason is None else quoter.line(outcome.answer.finish_reason, 40),
            **{name: values.get(name) for name in ("ttft_s", "tpot_s", "latency_s", "completion_tokens", "chunks")},
        }
        rows.append(_rounded(row))
    return rows


def _worded(one: Series, quoter: Quoter) -> dict[str, JsonValue]:
    shown = one.document()
    return shown | ({"detail": quoter.line(str(shown["detail"]))} if "detail" in shown else {})


def _quoted(metric: Metric, quoter: Quoter) -> Metric:
    if metric.missing is None:
        return metric.model_copy(update={"samples": tuple(round(value, _DIGITS) for value in metric.samples)})
    detail = quoter.line(metric.missing.detail)
    return metric.model_copy(update={"missing": Missing(missing=metric.missing.missing, detail=detail)})


def _rounded(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Round to a tenth of a microsecond, which is finer than any stamp."""
    return {key: _round(item) for key, item in value.items()}


def _round(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_round(item) for item in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return _ms(value) if unit == "s" else f"{value:.4g}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"


def _untold(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)


def first_token_note(shape: Shape) -> str:
    """Say which arrival stands for the first token."""
    if shape.first_token is FirstToken.FIRST_EVENT:
        return "ttft_s counts to the first event, as the runtime sends one when its first token exists"
    return "ttft_s counts to the first output of any channel: text, reasoning or a tool call"
