"""What a contract run proves, for a reviewer who believes nothing: its conditions, its numbers, and its noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from gen.arrival import host_facts
from gen.comparability import Side, sides_of
from gen.comparison_text import bounds, gate, noise_words, ratio, why
from gen.contract import QUANTITIES
from gen.judgement import Judgement, judge_run
from gen.prose import bullets, prose, sentence, table
from gen.spread import Spread, quantity, spread
from gen.techniques.wording import capital
from gen.verdict import Comparison
from probes.evidence import Missing, Run, RunKind
from probes.fleet import Gates


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How a run with two sides was made, and a table of what it measured and how much each quantity moves by itself."""

    run: str
    conditions: str
    numbers: str


def newest_proof(runs: Iterable[Run], gates: Gates) -> Proof | None:
    """Tell the newest valid contract run with two sides; None where there is none."""
    found = [run for run in runs if run.kind is RunKind.CONTRACT and run.validity.valid and sides_of(run) is not None]
    run = max(found, key=lambda run: (run.started_at, run.id), default=None)
    if run is None:
        return None
    judged = judge_run(run, gates)
    return Proof(run=run.id, conditions=bullets([*_conditions(run, judged)]), numbers=_numbers(judged))


def _conditions(run: Run, judged: Judgement) -> Iterator[str]:
    alike = judged.likeness
    yield f"Under test: {'; '.join(prose(str(one)) for one in alike.under_test) or 'nothing, the same thing twice'}."
    if alike.apart:
        yield f"Also different, which bars a verdict: {'; '.join(prose(str(one)) for one in alike.apart)}."
    else:
        yield "Nothing else that is known of the two sides differs."
    if alike.unknown:
        yield f"Not known of both sides, and so not compared: {', '.join(alike.unknown)}."
    own = run.native.get("contract")
    told = own if isinstance(own, dict) else {}
    order = told.get("order")
    by_turns = sentence(capital(order)) if isinstance(order, str) and order else "The sides were measured by turns."
    yield f"{by_turns} One sample is one round, not one request."
    yield f"Load: {sentence(_load(run))}"
    yield f"Where: {sentence(_machine(run))}"
    yield f"Engine: {sentence(_engine(run))}"
    yield from map(sentence, _remarks(told))


def _load(run: Run) -> str:
    load = run.load
    if isinstance(load, Missing):
        return f"{load.missing.value}: {load.detail}"
    prompt = load.prompt_tokens
    tokens = "" if isinstance(prompt, Missing) or not prompt else f", prompts of {_range(prompt)} tokens"
    warm = f"{load.requests} requests after {load.warmup_requests} to warm up"
    return f"{load.schedule}; {warm}{tokens}, answers of at most {load.max_tokens}; prompt set {load.prompt_set_sha256[:12]}"


def _range(values: tuple[int, ...]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _machine(run: Run) -> str:
    device = run.device
    on = "" if isinstance(device, Missing) else f", device {device.name} ({device.full_name})"
    return f"{host_facts(run.server)}{on}"


def _engine(run: Run) -> str:
    runtime, model = run.runtime, run.model
    engine = runtime.missing.value if isinstance(runtime, Missing) else f"{runtime.name} {_known(runtime.version)}"
    if isinstance(model, Missing):
        return f"{engine}, model {model.missing.value}"
    return f"{engine} with {model.id}, weights {_known(model.quantization)}"


def _known(value: str | Missing) -> str:
    return f"({value.missing.value})" if isinstance(value, Missing) else value


def _remarks(told: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, lead in (("rounds_left_out", "Rounds left out: "), ("notes", "")):
        found = told.get(name)
        if isinstance(found, list) and found:
            yield f"{lead}{'; '.join(map(str, found))}"


def _numbers(judged: Judgement) -> str:
    noise = judged.noise
    head = ("Metric", "Baseline", "Candidate", "Candidate is", "Verdict", "Moves by itself", "Would be told")
    rows = []
    named = [(QUANTITIES[metric].title, row, noise.get(metric)) for metric, row in judged.rows.items()]
    named += [(row.metric, row, None) for row in judged.further]
    for title, row, own in named:
        moves, told = ("", "") if own is None else noise_words(own, row.unit)
        rows.append(
            (
                prose(title),
                _side(judged.baseline, row, row.baseline),
                _side(judged.candidate, row, row.candidate),
                prose(ratio(row)),
                _verdict(row),
                prose(moves),
                prose(told),
            )
        )
    return table(head, rows)


def _side(side: Side, row: Comparison, found: Spread | None) -> str:
    metric = side.metric(row.metric)
    if found is None and metric is not None and metric.samples:
        found = spread(metric.samples, metric.per)
    if found is None:
        return "none" if metric is None or metric.missing is None else f"*{metric.missing.missing}*"
    interval, kind = bounds(found, row.unit), "95 % interval" if found.bounds_median else "range"
    size = f"{kind} {interval}, n = {found.n}" if interval else f"n = {found.n}"
    return f"{prose(quantity(found.median, row.unit))} ({size})"


def _verdict(row: Comparison) -> str:
    doubt = why(row)
    return f"**{row.verdict.value}**, gate {gate(row)}" + (f"; {prose(doubt)}" if doubt else "")
