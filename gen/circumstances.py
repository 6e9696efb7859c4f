"""What a contract run was made under, line by line: both sides, load, machine, engine, day, and the instrument itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC

from pydantic import JsonValue

from gen.arrival import host_facts
from gen.judgement import Judgement
from gen.prose import prose, sentence
from gen.spread import quantity, spread
from gen.techniques.wording import capital
from probes.evidence import Decoding, Missing, Run

# What says that a setting took effect, apart from speed: read where both sides have it.
_EFFECTS = {
    "cached_prompt_tokens": "prompt tokens from the cache",
    "server_prefix_cache_hit_ratio": "hits of the prefix cache",
    "server_draft_acceptance_ratio": "draft tokens that were right",
    "server_preemptions": "preemptions",
    "server_kv_cache_usage": "KV cache in use",
}


def circumstances(run: Run, judged: Judgement) -> Iterator[str]:
    """Tell one by one what a run was made under, as prose; `judged` are its two sides."""
    told = run.native.get("contract")
    own = told if isinstance(told, dict) else {}
    yield " ".join(_difference(judged))
    yield " ".join(_rounds(own))
    yield f"Load: {sentence(_load(run, own))}"
    yield f"Where: {sentence(_machine(run))}"
    yield f"Engine: {sentence(_engine(run))}"
    yield f"When: {sentence(_when(run))}"
    if effects := _effects(judged):
        yield f"Seen besides: {sentence(effects)}"
    if instrument := _instrument(run):
        yield f"The instrument: {sentence(instrument)}"
    yield from map(sentence, _remarks(own))
    yield "It speaks for this load, model, machine and release. How it does under another was not measured."


def _difference(judged: Judgement) -> Iterator[str]:
    alike = judged.likeness
    yield f"Under test: {'; '.join(prose(str(one)) for one in alike.under_test) or 'nothing, the same thing twice'}."
    if alike.apart:
        yield f"Also different, which bars a verdict: {'; '.join(prose(str(one)) for one in alike.apart)}."
    else:
        yield "Nothing else that is known of the two sides differs."
    if alike.unknown:
        yield f"Not known of both sides, and so not compared: {', '.join(map(prose, alike.unknown))}."


def _rounds(own: Mapping[str, JsonValue]) -> Iterator[str]:
    order, kept, left = own.get("order"), own.get("rounds_kept"), own.get("rounds_left_out")
    yield sentence(capital(order)) if isinstance(order, str) and order else "The sides were measured by turns."
    if isinstance(kept, int):
        yield f"Rounds kept: {kept}, left out: {len(left) if isinstance(left, list) else 0}."
    yield "One sample is one round, not one request."


def _load(run: Run, own: Mapping[str, JsonValue]) -> str:
    load = run.load
    if isinstance(load, Missing):
        return f"{load.missing.value}: {load.detail}"
    prompt = load.prompt_tokens
    tokens = "" if isinstance(prompt, Missing) or not prompt else f", prompts of {_range(prompt)} tokens"
    warm = f"{load.requests} requests after {load.warmup_requests} to warm up"
    asked = f"{load.schedule}; {warm}{tokens}{_sharing(own)}, answers of at most {load.max_tokens} tokens"
    return f"{asked}, {_decoding(run.decoding)}; prompt set {load.prompt_set_sha256[:12]}"


def _sharing(own: Mapping[str, JsonValue]) -> str:
    """Say how many prompts begin alike: what a prefix cache gains hangs on that alone."""
    shape = own.get("shape")
    shared = shape.get("shared_prefix") if isinstance(shape, dict) else None
    if not isinstance(shared, int | float):
        return ""
    if shared == 0:
        return " of which no two begin alike"
    many = "all of which begin" if shared == 1 else f"of which {quantity(shared, 'share')} begin"
    return f", {many} with one text, new in each round, and differ in their end"


def _decoding(found: Decoding | Missing) -> str:
    if isinstance(found, Missing):
        return f"decoding {found.missing.value}"
    how = f"sampled at temperature {found.temperature:g}" if found.do_sample else "decoded greedily"
    return f"{how}{' to their full length' if found.ignore_eos else ''}"


def _range(values: tuple[int, ...]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _machine(run: Run) -> str:
    device = run.device
    if isinstance(device, Missing):
        return host_facts(run.server)
    name = device.name if device.full_name in {"", device.name} else f"{device.name} ({device.full_name})"
    return f"{host_facts(run.server)}, device {name}"


def _engine(run: Run) -> str:
    runtime, model = run.runtime, run.model
    engine = runtime.missing.value if isinstance(runtime, Missing) else f"{runtime.name} {_known(runtime.version)}"
    if isinstance(model, Missing):
        return f"{engine}, model {model.missing.value}"
    return f"{engine} with {model.id}, weights {_known(model.quantization)}"


def _known(value: str | Missing) -> str:
    return f"({value.missing.value})" if isinstance(value, Missing) else value


def _when(run: Run) -> str:
    begun = run.started_at.astimezone(UTC)
    seconds = (run.ended_at - run.started_at).total_seconds()
    revision = "" if isinstance(run.tool.git_revision, Missing) else f" at {run.tool.git_revision[:12]}"
    return f"{begun:%Y-%m-%d %H:%M} UTC, in {seconds:.0f} s, by {run.tool.name} {run.tool.version}{revision}"


def _effects(judged: Judgement) -> str:
    """Tell by what else than speed the sides can be told apart."""
    told = []
    for name, words in _EFFECTS.items():
        found = [side.metric(name) for side in (judged.baseline, judged.candidate)]
        values = [(spread(one.samples, one.per).median, one.unit) for one in found if one is not None and one.samples]
        if len(values) == len(found):
            told.append(f"{words} {' against '.join(quantity(value, unit) for value, unit in values)}")
    return "; ".join(told)


def _instrument(run: Run) -> str:
    """Say how late the instrument itself was at worst, and how much of the load it carried at least."""
    blocks = run.native.get("instrument")
    sides = [side for block in blocks if isinstance(block, dict) for side in block.values()] if isinstance(blocks, list) else []
    lags, carried, waits = (
        [value for side in sides if isinstance(side, dict) and isinstance(value := side.get(name), int | float)]
        for name in ("lag_p95_s", "load_carried", "share_waiting_for_a_core")
    )
    if not lags or not carried:
        return ""
    late, share = quantity(max(lags), "s"), quantity(min(carried), "share")
    busy = f"; it waited for a core at most {quantity(max(waits), 'share')} of the time" if waits else ""
    return f"late by at most {late} (p95 of a round), and it carried at least {share} of the load{busy}"


def _remarks(told: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, lead in (("rounds_left_out", "Rounds left out: "), ("notes", "")):
        found = told.get(name)
        if isinstance(found, list) and found:
            yield f"{lead}{'; '.join(map(str, found))}"
