"""An endpoint's findings as a run: standardised fields on one side, the server's own words on the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import JsonValue

from probes.context import Context
from probes.endpoints.asking import PROMPT, PROMPT_SHA256, Asked
from probes.endpoints.fault import Fault
from probes.endpoints.findings import Findings, conclude, why_unmeasured
from probes.endpoints.identity import device_of, model_of, quoted, runtime_of, serving_of, settings_of
from probes.endpoints.live import live_metrics
from probes.endpoints.measures import request_metrics
from probes.endpoints.metrics import Sample, Scrape, ScrapeState
from probes.endpoints.quoting import ITEMS, Quoter
from probes.endpoints.reading import METRICS, NotTold, Seen
from probes.endpoints.wire import Reply
from probes.evidence import (
    Decoding,
    Endpoint,
    KindClaim,
    Load,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    ModelKind,
    ModelState,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Technique,
    run_id,
)
from probes.fleet import RuntimeName
from probes.load.answer import Ending, FirstToken
from probes.schema import Model
from probes.told import Told

M = TypeVar("M", bound=Model)
_MAX_MODELS = 50
_MAX_JSON_BYTES = 2**16
_MAX_SAMPLES = 80


def record(context: Context, findings: Findings) -> Run:
    """Turn findings into a run; everything that came over the wire passes the quoter on its way."""
    target, reading = findings.target, findings.detection.reading
    quoter = Quoter(context.redact, key=target.key, address=findings.address, shown=target.shown_url)
    seen = (*reading.seen, *_proven(findings)) if reading else ()
    day = findings.started_at.date()
    source = run_id(findings.started_at, context.client.alias, f"{RunKind.ENDPOINT}-{target.subject}")
    observed = Provenance(kind=ProvenanceKind.OBSERVED, date=day, source=source)
    embedded = reading is not None and reading.runtime is RuntimeName.OPENVINO_GENAI_EMBEDDED
    return context.run(
        RunKind.ENDPOINT,
        target.subject,
        findings.started_at,
        scope=target.scope,
        # Any other address may be a tunnel, even one on 127.0.0.1.
        server=context.client if embedded else _untold("no answer tells which machine serves"),
        device=(device_of(reading, quoter) if reading else None) or _untold("no answer names the device"),
        runtime=runtime_of(reading, quoter) if reading else _untold("no inference server answered"),
        model=_model(findings, quoter),
        endpoint=endpoint_of(findings, quoter),
        serving_sha256=serving_of(seen) if seen else _untold("no answer shows a setting"),
        settings=settings_of(seen, day, source, quoter),
        kinds=tuple(
            KindClaim(kind=told.value, where=quoter.line(told.where), provenance=observed) for told in _kinds(findings)
        ),
        load=_load(findings),
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=False) if findings.asked else _none_sent(),
        metrics=tuple(_quoted_metric(metric, quoter) for metric in _metrics(findings)),
        native=_native(findings, seen, quoter),
    )


def endpoint_of(findings: Findings, quoter: Quoter) -> Endpoint:
    """Give the state of an address as the survey lists it."""
    state, detail = conclude(findings)
    models = findings.detection.reading.models[:_MAX_MODELS] if findings.detection.reading else ()
    return Endpoint(
        url=findings.target.shown_url,
        state=state,
        detail=quoter.line(detail),
        models=tuple(
            ModelState(id=quoter.model(m.id), state=quoter.line(m.state, 60), detail=quoter.line(m.detail)) for m in models
        ),
    )


def _proven(findings: Findings) -> Iterator[Seen]:
    """Read from cached prompt tokens of the repeated request that prefix caching is on; their absence proves nothing."""
    adapter, reading = findings.detection.adapter, findings.detection.reading
    control = adapter.prefix_control if adapter else None
    if control is None or reading is None or control in {one.control for one in reading.seen} or len(findings.asked) < 2:
        return
    usage = findings.asked[1].answer.usage
    if usage is not None and usage.cached_tokens:
        where = "usage.prompt_tokens_details.cached_tokens of a repeated request"
        yield Seen(technique=Technique.PREFIX_CACHING, control=control, value=True, where=where)


def _kinds(findings: Findings) -> Iterator[Told[ModelKind]]:
    """Say what the asked model is by the answers, or what all models of a server are that is asked for no text."""
    reading = findings.detection.reading
    if reading is None:
        return
    own = reading.kinds.get(findings.model or "") or reading.kinds.get("")
    alike = {told.value for told in reading.kinds.values()}
    if own is not None:
        yield own
    elif findings.model is None and len(alike) == 1 and set(reading.kinds) >= {model.id for model in reading.models}:
        yield next(iter(reading.kinds.values()))
    wrote = next((one.answer for one in findings.asked if one.answer.ending is Ending.COMPLETE and one.answer.text), None)
    if wrote is not None:
        many = wrote.usage.completion_tokens if wrote.usage and wrote.usage.completion_tokens else None
        said = f"{many} tokens" if many else f"text in {len(wrote.arrivals_s)} events"
        yield Told(value=ModelKind.GENERATOR, where=f"it answered a request for text with {said}")


def _metrics(findings: Findings) -> tuple[Metric, ...]:
    adapter, reading = findings.detection.adapter, findings.detection.reading
    first_token = reading.first_token if reading else FirstToken.FIRST_OUTPUT
    own = request_metrics(findings.asked, first_token, why_unmeasured(findings))
    if adapter is None or not adapter.quantities:
        return own
    before = findings.before or Scrape(state=ScrapeState.NOT_REACHABLE, detail="its metrics were not asked for")
    return own + live_metrics(adapter.quantities, before, findings.after, adapter.metrics_hint)


def _quoted_metric(metric: Metric, quoter: Quoter) -> Metric:
    return metric if metric.missing is None else metric.model_copy(update={"missing": quoted(metric.missing, quoter)})


def _model(findings: Findings, quoter: Quoter) -> ModelFacts | Missing:
    model, reading = findings.model, findings.detection.reading
    if model is None or reading is None:
        return _untold("no model was asked")
    silent = _untold("no answer tells it")
    facts = reading.facts.get(model) or ModelFacts(id=model, revision=silent, sha256=silent, quantization=silent, bytes=silent)
    return model_of(facts, quoter)


def _load(findings: Findings) -> Load | Missing:
    if not findings.asked:
        return _none_sent()
    counted = [one.answer.usage.prompt_tokens for one in findings.asked if one.answer.usage]
    prompt_tokens = tuple(value for value in counted if value is not None)
    return Load(
        schedule="one at a time: a fresh prompt, then the same again",
        concurrency=1,
        requests=len(findings.asked),
        warmup_requests=0,
        prompt_tokens=prompt_tokens or _untold("the server does not count prompt tokens"),
        max_tokens=findings.target.max_tokens,
        prompt_set_sha256=PROMPT_SHA256,
    )


def _native(findings: Findings, seen: tuple[Seen, ...], quoter: Quoter) -> dict[str, JsonValue]:
    detection, reading = findings.detection, findings.detection.reading
    private = detection.adapter.private if detection.adapter else frozenset()
    figures = detection.adapter.metrics if detection.adapter else METRICS
    native: dict[str, JsonValue] = {
        "answers": {
            path: _reply(reply, quoter, private=path in private, figures=path == figures)
            for path, reply in detection.replies.items()
        },
        "requests": [_request(one, quoter) for one in findings.asked],
        "read_from": {one.control: one.where for one in seen},
    }
    if reading is not None:
        known = {one.control for one in seen}
        native["not_told"] = [_not_told(one, quoter) for one in reading.not_told if one.control not in known]
        native["first_token"] = reading.first_token.value
    if findings.asked:
        native["prompt"] = PROMPT
    for name, scrape in (("metrics_before", findings.before), ("metrics_after", findings.after)):
        if scrape is not None:
            native[name] = _scrape(scrape, quoter)
    return native


def _not_told(one: NotTold, quoter: Quoter) -> JsonValue:
    told: dict[str, JsonValue] = {
        "technique": one.technique.value,
        "control": one.control,
        "why": quoter.line(one.why),
    }
    return told | {"default": one.default, "default_of": one.default_of} if one.default_of else told


def _reply(reply: Reply | Fault, quoter: Quoter, *, private: bool, figures: bool) -> JsonValue:
    """Keep an answer, but of figures, which stand elsewhere, and of private ones only how long they were."""
    if isinstance(reply, Fault):
        return {"fault": reply.kind.value, "words": quoter.line(reply.words)}
    kept: dict[str, JsonValue] = {"status": reply.status, "content_type": quoter.line(reply.content_type, 80)}
    if reply.server:
        kept["server"] = quoter.line(reply.server, 80)
    if private or figures:
        return {**kept, "bytes": len(reply.body)}
    as_text = reply.document is None or len(reply.body) > _MAX_JSON_BYTES
    return {**kept, "body": quoter.text(reply.text, 600) if as_text else quoter.json(reply.document)}


def _request(asked: Asked, quoter: Quoter) -> JsonValue:
    answer, usage = asked.answer, asked.answer.usage
    return {
        "ending": answer.ending.value,
        "words": quoter.line(answer.words),
        "status": asked.status,
        "out_of_memory": answer.out_of_memory,
        "streamed": answer.streamed,
        "text": quoter.text(answer.text),
        "reasoning": quoter.text(answer.reasoning),
        "finish_reason": None if answer.finish_reason is None else quoter.line(answer.finish_reason, 40),
        "tool_calls": [quoter.line(call.name, 80) for call in answer.tool_calls[:ITEMS]],
        "usage": None if usage is None else {**vars(usage)},
        "timings": quoter.json(answer.timings),
        "chunks": len(answer.arrivals_s),
        "coalesced_share": answer.coalesced_share,
        "unreadable_events": answer.unreadable_events,
        "comments": answer.comments,
        "without_usage_option": asked.without_usage,
    }


def _scrape(scrape: Scrape, quoter: Quoter) -> JsonValue:
    bad: list[JsonValue] = [
        {"line": one.number, "text": quoter.line(one.text, 120), "why": quoter.line(one.why, 120)} for one in scrape.bad
    ]
    unbucketed = [
        sample
        for sample in scrape.samples
        if scrape.kinds.get(sample.name) in {"counter", "gauge"} and not sample.name.startswith(("python_", "process_"))
    ]
    return {
        "state": scrape.state.value,
        "detail": quoter.line(scrape.detail),
        "bad_lines": bad,
        "samples": {quoter.line(_key(sample)): quoter.json(sample.value) for sample in unbucketed[:_MAX_SAMPLES]},
    }


def _key(sample: Sample) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def _untold(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)


def _none_sent() -> Missing:
    return _untold("no request for text was sent")
