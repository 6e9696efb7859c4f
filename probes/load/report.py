"""What a load run says: a document with every number, a run as evidence, and a table for the person who waits."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from probes.archive import seal
from probes.context import Context
from probes.endpoints.identity import fields
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
    run_id,
)
from probes.load.answer import FirstToken
from probes.load.observation import Observation
from probes.load.outcome import Outcome
from probes.load.remarks import finish_reasons, remarks
from probes.load.rows import rows
from probes.load.run import Finding, Shape
from probes.load.series import Series, failures
from probes.load.statistics import percentiles
from probes.load.window import Phase

SCHEMA: Final = "inference-adr/load/1"
_EXAMPLES: Final = 3
_DIGITS: Final = 7
_SHOWN: Final = ("ttft_s", "itl_s", "tpot_s", "decode_tok_s", "latency_s")
_WHOLE: Final = (
    "aggregate_tok_s", "request_rate", "goodput", "error_rate", "oom_rate", "stalled_streams",
    "memory_bytes", "vram_bytes", "power_w", "energy_per_token_j", "device_resets",
    "server_requests_running", "server_requests_waiting", "server_kv_cache_usage", "server_prefix_cache_hit_ratio",
    "server_draft_acceptance_ratio", "server_preemptions",
)  # fmt: skip
_DISAGREEMENT_SHOWN: Final = 0.1
_NAME_WIDTH: Final = 30


def evidence(
    context: Context,
    finding: Finding,
    *,
    subject: str,
    scope: Scope,
    url: str,
    quoter: Quoter,
    observed: Observation | None = None,
) -> Run:
    """Give the run as evidence: one sample per request, and the instrument's own figures in its native part.

    `observed` adds what was seen round the run. The machine that serves is the one that asks only where that was seen.
    """
    shape, good = finding.shape, any(o.ok for o in finding.measured)
    what = f"{subject}-c{shape.concurrency}"
    source = run_id(finding.started_at, context.client.alias, f"{RunKind.LOAD}-{what}")
    here = observed is not None and observed.here
    known: dict[str, Any] = {
        "server": context.client if here else _untold("no answer tells which machine serves"),
        "device": _untold("no answer names the device"),
        "runtime": _untold("no answer tells what runs there"),
        "model": ModelFacts(id=quoter.model(shape.model)),
        "serving_sha256": _untold("no answer shows a setting"),
    }
    if observed is not None:
        known |= fields(observed.reading, shape.model, quoter, finding.started_at.date(), source)
    return context.run(
        RunKind.LOAD,
        what,
        finding.started_at,
        scope=scope,
        invalid=finding.reasons,
        endpoint=Endpoint(url=url, state=EndpointState.GENERATING if good else EndpointState.FAILED),
        load=_load(finding),
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos="ignore_eos" in shape.extra),
        metrics=tuple(_quoted(one.metric(), quoter) for one in _series(finding, observed)),
        **known,
        native={
            **({} if observed is None else {name: _quoted_native(part, quoter) for name, part in observed.native.items()}),
            "instrument": finding.soundness.document(),
            "percentiles": {one.name: dict(percentiles(one.samples)) for one in finding.series if one.per is not Per.RUN},
            "errors": _errors(finding.outcomes, quoter),
            "finish_reasons": _endings(finding, quoter),
            "remarks": list(remarks(finding, observed)),
            "phases": _phases(finding),
            "stopped": [{"reason": halt.reason, "words": quoter.line(halt.words)} for halt in finding.halts],
            "first_token": shape.first_token.value,
            "seed": shape.seed,
            "retries": shape.retries,
            "slo": None if isinstance(shape.slo, Missing) else shape.slo.document(),
            "token_source": finding.token_source.value if finding.token_source else None,
            "prompts": {"kind": shape.prompts.kind.value, "shared_prefix": shape.prompts.shared},
        },
    )


def document(
    finding: Finding, run: Run, quoter: Quoter, notes: Sequence[str], observed: Observation | None = None
) -> dict[str, JsonValue]:
    """Give everything as one JSON object; every metric stands under its name."""
    shape = finding.shape
    return {
        "schema": SCHEMA,
        "valid": run.validity.valid,
        "reasons": list(run.validity.reasons),
        "notes": [
            *notes,
            *remarks(finding, observed),
            *(f"{halt.reason}: {quoter.line(halt.words)}" for halt in finding.halts),
        ],
        "metrics": {one.name: _rounded(_worded(one, quoter)) for one in _series(finding, observed)},
        "errors": _errors(finding.outcomes, quoter),
        "finish_reasons": _endings(finding, quoter),
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
            "token_source": finding.token_source.value if finding.token_source else None,
            "slo": None if isinstance(shape.slo, Missing) else shape.slo.document(),
            "window_s": round(finding.window.seconds, _DIGITS),
            **_phases(finding),
        },
        "percentile_method": "nearest rank; p90 and p10 from 10 samples, p95 and p5 from 20, p99 and p1 from 100",
        "requests": list(rows(finding, quoter)),
        "run": seal(run).model_dump(mode="json"),
    }


def lines(finding: Finding, quoter: Quoter, notes: Sequence[str], observed: Observation | None = None) -> Iterator[str]:
    """Say in a few lines what was measured and whether it may be used; what a server said is quoted."""
    shape, phases = finding.shape, _phases(finding)
    yield f"{shape.words}; {phases['measured']} requests measured, {phases['warm_up']} warm-up, {phases['cool_down']} cool-down"
    yield f"{'':16}{'p50':>10}{'p90':>10}{'p95':>10}{'p99':>10}"
    by_name = {one.name: one for one in _series(finding, observed)}
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
        whole = by_name.get(name)
        if whole is not None and whole.missing is None:
            note = f"   ({whole.note})" if whole.note else ""
            yield f"{name:{_NAME_WIDTH}}{_amount(whole.samples[0], whole.unit)}{note}"
    yield from _counted(by_name)
    for failure, those in failures(finding.outcomes).items():
        yield f"{len(those)} of {len(finding.outcomes)} requests: {failure}"
    sound = finding.soundness
    if sound.lag_p50_s is not None and sound.lag_p95_s is not None:
        cores = "" if sound.cores is None else f", {sound.cores:.2f} cores used by {sound.workers} workers"
        yield f"instrument: bytes stamped {_ms(sound.lag_p50_s)} late at p50, {_ms(sound.lag_p95_s)} at p95{cores}"
    yield from (*notes, *remarks(finding, observed))
    verdict = "valid" if not finding.reasons else f"INVALID: {', '.join(finding.reasons)}"
    yield "; ".join((verdict, *(quoter.line(halt.words) for halt in finding.halts)))


def _series(finding: Finding, observed: Observation | None) -> tuple[Series, ...]:
    return finding.series + (() if observed is None else observed.series)


def _counted(by_name: Mapping[str, Series]) -> Iterator[str]:
    """Say how far two counts of the same tokens are from each other."""
    apart = by_name["token_disagreement"].samples
    if apart:
        middle = statistics.median(apart)
        doubt = "; do not trust either before you know why" if abs(middle) > _DISAGREEMENT_SHOWN else ""
        yield f"tokens: the server counts {middle:+.1%} against the tokenizer (median of {len(apart)} requests){doubt}"


def _amount(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 2**20:>10,.0f} MiB"
    return f"{value:>10.4g} {unit}"


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


def _endings(finding: Finding, quoter: Quoter) -> dict[str, JsonValue]:
    return {quoter.line(reason, 40): number for reason, number in finish_reasons(finding.measured).items()}


def _worded(one: Series, quoter: Quoter) -> dict[str, JsonValue]:
    shown = one.document()
    return shown | ({"detail": quoter.line(str(shown["detail"]))} if "detail" in shown else {})


def _quoted_native(part: JsonValue, quoter: Quoter) -> JsonValue:
    """Quote texts at any depth; lists of readings keep their length."""
    if isinstance(part, dict):
        return {quoter.line(key, 120): _quoted_native(item, quoter) for key, item in part.items()}
    if isinstance(part, list):
        return [_quoted_native(item, quoter) for item in part]
    return quoter.line(part) if isinstance(part, str) else part


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
