"""The load command from its words to its exit code: permission first, then one request, then the load."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from probes.archive import write_run
from probes.context import Context
from probes.endpoints.address import ignored_proxies
from probes.endpoints.asking import names_usage
from probes.endpoints.reading import Reading
from probes.errors import HostError, ProbeError, UsageError
from probes.files import ensure_target, ensure_writable, write_atomic
from probes.fleet import Fleet, RuntimeName, find_fleet
from probes.load.aim import Aim, aim_at
from probes.load.arguments import AUTO, settled, shapes
from probes.load.counting import check_tokenizer
from probes.load.crew import dismiss, hire
from probes.load.intention import intention
from probes.load.observation import Observer
from probes.load.outcome import Failure, Outcome
from probes.load.permission import Permission
from probes.load.report import SCHEMA, document, evidence, first_token_note, lines
from probes.load.rows import Row, as_csv, rows
from probes.load.run import PREFIXES, Finding, Gate, Shape, ask_once
from probes.load.task import Door
from probes.model import find_source

EXIT_OK, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 130
_FIRST_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class Way:
    """A gate that one request went through, how requests have to be written for it, and what a reader must know."""

    gate: Gate
    door: Door
    usage: bool
    notes: tuple[str, ...]


def load(
    given: argparse.Namespace,
    environ: Mapping[str, str],
    context_for: Callable[[Fleet | None, Sequence[str]], Context],
    tell: Callable[[str], None],
) -> int:
    """Measure one address; 0 for a valid run, 1 for one that may not be used, 130 for one that was stopped by hand.

    Raises:
        UsageError: a word of the command line cannot be meant.
        InputError: the address or the key cannot be used as written.
        HostError: a file cannot be written, or the workers cannot be started.
        ProbeError: the first request was not answered; the file says so too.
    """
    asked = shapes(given)
    fleet = find_fleet(given.fleet)
    _check_targets(given)
    if given.tokenizer is not None:
        given.tokenizer = check_tokenizer(given.tokenizer)
    aim, context = aim_at(given, environ, fleet, context_for)
    cut = [bounded(settled(one, given, fleet, aim.permission), aim.permission) for one in asked]
    asked, limited = [shape for shape, _ in cut], cut[0][1]
    if proxies := ignored_proxies(environ):
        tell(proxies)
    for line in intention(aim, asked, limited):
        (tell if given.dry_run else context.say)(line)
    if given.dry_run:
        return EXIT_OK
    # They start while the first request is out, so that the load follows it without a gap.
    hired = hire(asked[0].processes)
    try:
        if isinstance(aim.found, ProbeError):
            raise aim.found
        way = _knock(aim, asked[0], aim.found, context)
        way = replace(way, notes=(*filter(None, [limited]), *way.notes))
        return _measure_all(asked, way, aim=aim, hired=hired, context=context, given=given, tell=tell)
    except ProbeError as exc:
        words = aim.quoter.line(str(exc))
        _write(given.json, [_nothing(words, aim.shown)])
        raise ProbeError(f"{aim.shown}: {words}") from exc
    finally:
        dismiss(hired)


def _measure_all(
    asked: Sequence[Shape],
    way: Way,
    *,
    aim: Aim,
    hired: Sequence[subprocess.Popen[bytes]],
    context: Context,
    given: argparse.Namespace,
    tell: Callable[[str], None],
) -> int:
    """Run one shape after the other; the file is written after each, and one that was stopped is the last."""
    documents: list[dict[str, JsonValue]] = []
    listed: list[tuple[int, Sequence[Row]]] = []
    codes = [EXIT_OK]
    service = aim.permission.service
    observer = Observer(way.gate, way.door, expected=service.runtime if service else None, during=aim.permission.limits is None)
    reading = observer.detection.reading
    tokenizer = given.tokenizer or _embedded_tokenizer(reading)
    for shape in asked:
        allowed = replace(shape, usage=way.usage)
        if given.first_token == AUTO and reading is not None:
            allowed = replace(allowed, first_token=reading.first_token)
        notes = (*way.notes, first_token_note(allowed))
        started_at = context.clock()
        finding, seen = observer.measure(allowed, started_at, hired if shape is asked[0] else (), tokenizer)
        run = evidence(context, finding, subject=aim.subject, scope=aim.scope, url=aim.shown, quoter=aim.quoter, observed=seen)
        documents.append(document(finding, run, aim.quoter, notes, seen))
        try:
            _write(given.json, documents)
            if given.csv is not None:
                listed.append((allowed.concurrency, rows(finding, aim.quoter)))
                write_atomic(given.csv, as_csv(listed))
            if given.out is not None:
                tell(f"evidence: {write_run(run, given.out)}")
        finally:
            # A disk that is full takes nothing away from the person who waited, and a closed pipe nothing from the files.
            for line in lines(finding, aim.quoter, notes if shape is asked[0] else (), seen):
                tell(line)
        codes.append(_code(finding))
        if finding.halts:
            break
    return max(codes)


def bounded(shape: Shape, allowed: Permission) -> tuple[Shape, str]:
    """Cut a shape down to what is allowed, and say so; the first request of all counts too."""
    limits = allowed.limits
    if limits is None:
        return shape, ""
    if limits.requests < 2:
        raise UsageError(f"--url: may be sent {limits.requests} requests and a load needs at least two ({allowed.why})")
    most = limits.requests - 1
    warmup = min(shape.warmup, max(0, most - (shape.requests or most)))
    cut = replace(
        shape,
        concurrency=min(shape.concurrency, limits.concurrency),
        max_tokens=min(shape.max_tokens, limits.max_tokens),
        requests=min(shape.requests or most, most - warmup),
        warmup=warmup,
        at_most=most,
    )
    wanted = (shape.concurrency, shape.max_tokens, shape.requests or most, shape.warmup)
    if (cut.concurrency, cut.max_tokens, cut.requests, cut.warmup) == wanted:
        return cut, ""
    return cut, (
        f"limited to {cut.concurrency} at a time, {limits.requests} requests and {cut.max_tokens} tokens each: {allowed.why}"
    )


def _knock(aim: Aim, shape: Shape, found: Sequence[Door], context: Context) -> Way:
    """Send one small request before any load, and learn address, API prefix and whether usage may be asked for.

    Raises:
        ProbeError: it was not answered; the words are the server's.
    """
    small = replace(shape, max_tokens=min(shape.max_tokens, _FIRST_TOKENS))
    notes: list[str] = []
    words = "its name leads to no address"
    for door in found:
        for api in (aim.gate.address.api,) if aim.gate.address.api else PREFIXES:
            gate = replace(aim.gate, address=replace(aim.gate.address, api=api))
            outcome, usage = _ask(gate, small, door, context)
            if outcome.failure is None:
                if not usage:
                    notes.append("the server refuses to be asked for token counts in a stream")
                return Way(gate=gate, door=door, usage=usage, notes=tuple(notes))
            words = f"{outcome.failure}: {outcome.words}"
            if outcome.failure is not Failure.NOT_FOUND or "model" in outcome.words.lower():
                break
        if outcome.failure is not Failure.UNREACHABLE:
            break
        notes.append(f"{door.address[0]} was tried first: {outcome.words}")
    raise ProbeError(words)


def _ask(gate: Gate, shape: Shape, door: Door, context: Context) -> tuple[Outcome, bool]:
    """Ask for token counts too; a server that refuses is asked once more without, as not all say what they refuse."""
    outcome = ask_once(gate, shape, door, context.clock())
    if outcome.status not in {400, 422}:
        return outcome, True
    again = ask_once(gate, replace(shape, usage=False), door, context.clock())
    return (again, False) if again.ok or names_usage(outcome.words) else (outcome, True)


def _code(finding: Finding) -> int:
    if finding.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_INVALID if finding.reasons else EXIT_OK


def _check_targets(given: argparse.Namespace) -> None:
    """Find out before the load, not after it, that there is nowhere to write."""
    if given.dry_run:
        return
    for option, path in (("--json", given.json), ("--csv", given.csv)):
        if path is not None:
            ensure_target(option, path)
    if given.out is not None:
        ensure_writable(given.out)


def _embedded_tokenizer(reading: Reading | None) -> Path | None:
    """Take the tokenizer of the embedded service, whose model is at hand; of no other server is that known."""
    if reading is None or reading.runtime is not RuntimeName.OPENVINO_GENAI_EMBEDDED:
        return None
    with contextlib.suppress(HostError):
        return find_source().gguf
    return None


def _nothing(words: str, url: str) -> dict[str, JsonValue]:
    return {"schema": SCHEMA, "valid": False, "reasons": ["nothing-answered"], "notes": [words], "url": url, "metrics": {}}


def _write(path: Path | None, documents: Sequence[dict[str, JsonValue]]) -> None:
    """Write one run as itself and a sweep as the list of its runs."""
    if path is None or not documents:
        return
    whole: JsonValue = dict(documents[0]) if len(documents) == 1 else {"schema": SCHEMA, "sweep": list(documents)}
    write_atomic(path, (json.dumps(whole, allow_nan=False) + "\n").encode())
