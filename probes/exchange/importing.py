"""Result files of other tools from their names to evidence files."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from probes.archive import read_runs, write_run
from probes.context import Context
from probes.errors import InputError, Problem, UsageError
from probes.evidence import (
    Endpoint,
    EndpointState,
    FleetScope,
    Host,
    HostTuning,
    Missing,
    MissingReason,
    ModelFacts,
    Run,
    RunKind,
    Scope,
    slug,
)
from probes.exchange import aiperf, guidellm, vllm_bench
from probes.exchange.report import Report, mapping
from probes.files import read_bounded
from probes.fleet import INVENTORY, Fleet, load_fleet
from probes.load.untrusted import one_line

MAX_FILE_BYTES: Final = 256 * 2**20
_TOOLS: Final = "guidellm 0.8 (JSON), aiperf 0.13 (profile_export_aiperf.json, profile_export.jsonl), vllm bench serve (JSON)"
_UNNAMED: Final = "not-described"
_TEXT_CHARACTERS: Final = 300
_ITEMS: Final = 200
_DEPTH: Final = 12
_EVENT: Final = "event"
# What a tool was started with may hold a secret, and so may the command line.
_SECRET: Final = re.compile(
    r"api_?key|secret|password|authorization|headers?$|cookie|(access|auth|hf|bearer)_?token|cli_command", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One run's files: the one that is named in messages, its hash, and what it holds."""

    path: Path
    sha256: str
    reports: tuple[Report, ...]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of the import to its parser."""
    add = command.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"result files of {_TOOLS}")
    add("--out", type=Path, default=Path("adr/local/evidence"), metavar="DIR", help="where evidence goes")
    add("--service", metavar="NAME", help="the service of the inventory that was measured")
    add("--fleet", type=Path, default=INVENTORY, metavar="FILE", help="the inventory")
    machine = command.add_mutually_exclusive_group()
    machine.add_argument("--here", action="store_true", help="the tool ran on this machine")
    machine.add_argument("--host", default=_UNNAMED, metavar="ALIAS", help="what to call the machine that ran the tool")
    add(
        "--first-token",
        choices=["output", _EVENT],
        default="output",
        help="event: the server sends its first chunk with its first token, so that the TTFT of vllm bench is one",
    )


def import_files(
    given: argparse.Namespace, context_for: Callable[[Fleet | None, Sequence[str]], Context], tell: Callable[[str], None]
) -> int:
    """Read every file before one is written, then write one evidence file for each run in them.

    Raises:
        InputError: a file is none of these tools', of a version that is not known, or was imported before.
        UsageError: a service that the inventory does not know.
        HostError: the folder cannot be written.
    """
    fleet = load_fleet(given.fleet) if given.service is not None else None
    if fleet is not None and given.service not in fleet.services:
        raise UsageError(f"--service {given.service}: is not in the inventory; expected one of {', '.join(fleet.services)}")
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in _runs_of(given.files):
        try:
            sources.append(read_source(path, first_event=given.first_token == _EVENT))
        except InputError as exc:
            problems.extend(exc.problems)
    if problems:
        raise InputError(problems)
    _check_new(sources, given.out)
    context = context_for(fleet, ())
    host = context.client if given.here else undescribed(given.host)
    scope: Scope | None = FleetScope(service=given.service) if given.service else None
    for source in sources:
        for number, report in enumerate(source.reports, 1):
            run = evidence(context, report, source, number, host=host, scope=scope, service=given.service)
            for line in lines(report, run, write_run(run, given.out)):
                tell(line)
    return 0


def _check_new(sources: Sequence[Source], folder: Path) -> None:
    """Refuse a file that was imported before: the same measurement twice would count as two."""
    known: dict[JsonValue, str] = {}
    for run in read_runs(folder)[0]:
        told = run.native.get("imported")
        if isinstance(told, dict):
            known[told.get("sha256")] = run.id
    problems = []
    for source in sources:
        if source.sha256 in known:
            found = f"is imported already, as {known[source.sha256]}"
            problems.append(Problem(place=source.path.name, found=found, expected="a new result file"))
        known[source.sha256] = source.path.name
    if problems:
        raise InputError(problems)


def read_source(path: Path, *, first_event: bool = False) -> Source:
    """Read one result file, and with it the other of a pair that aiperf writes.

    Raises:
        InputError: it is no file of a tool that is known.
    """
    place, raw = path.name, _bytes(path)
    document, records = _documents(raw, place)
    beside = _beside(path)
    if beside is not None:
        more, more_records = _documents(_bytes(beside), beside.name)
        document, records = document or more, records or more_records
    if aiperf.recognises(document) or any(aiperf.recognises_record(one) for one in records[:1]):
        reports = aiperf.read(document, records, place)
    elif guidellm.recognises(document):
        reports = guidellm.read(document, place)
    elif vllm_bench.recognises(document):
        reports = vllm_bench.read(document, place, first_event=first_event)
    else:
        keys = ", ".join(list(document)[:6]) or "no JSON object"
        found = f"is of no tool that is known (it holds {one_line(keys)[:_TEXT_CHARACTERS]})"
        raise InputError([Problem(place=place, found=found, expected=_TOOLS)])
    return Source(path=path, sha256=hashlib.sha256(raw).hexdigest(), reports=tuple(reports))


def evidence(
    context: Context,
    report: Report,
    source: Source,
    number: int,
    *,
    host: Host,
    scope: Scope | None,
    service: str | None,
) -> Run:
    """Give one run of another tool as evidence: what it has in common with others, and the tool's own part."""
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail=f"a result file of {report.tool} does not tell it")
    model = report.model
    there = replace(context, client=host, clock=lambda: report.ended_at)
    what = service or (model if isinstance(model, str) else "model")
    answered = bool(report.values.get("latency_s")) or not report.invalid
    return there.run(
        RunKind.LOAD,
        f"{what}-{slug(report.tool)}-{number}",
        report.started_at,
        scope=scope,
        invalid=report.invalid,
        server=silent,
        device=silent,
        runtime=silent,
        model=ModelFacts(id=one_line(model)) if isinstance(model, str) else model,
        endpoint=Endpoint(
            url=_address(report.url) if isinstance(report.url, str) else report.url,
            state=EndpointState.GENERATING if answered else EndpointState.FAILED,
        ),
        serving_sha256=silent,
        load=Missing(missing=MissingReason.NOT_MEASURED, detail=f"{report.schedule}; the file does not tell what was asked"),
        decoding=silent,
        metrics=report.metrics(),
        native={
            "imported": {
                "tool": report.tool,
                "version": report.tool_version if isinstance(report.tool_version, str) else None,
                "file": source.path.name,
                "sha256": source.sha256,
                "schedule": report.schedule,
                "definitions": dict(report.definitions),
                "notes": list(report.notes),
            },
            **({"token_source": report.token_source.value} if report.token_source else {}),
            "report": bounded(dict(report.native)),
        },
    )


def undescribed(alias: str) -> Host:
    """Stand for a machine of which a file tells nothing; equal aliases are one machine."""
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail="the imported file does not describe the machine")
    return Host(
        alias=alias,
        fingerprint=hashlib.sha256(f"a machine that no file describes: {alias}".encode()).hexdigest()[:12],
        cpu="not described",
        isa=(),
        physical_cores=silent,
        logical_cores=silent,
        memory_bytes=silent,
        os="not described",
        kernel="not described",
        driver=silent,
        tuning=HostTuning(
            governor=silent,
            huge_pages=silent,
            transparent_huge_pages=silent,
            swap_bytes=silent,
            numa_nodes=silent,
            container_cpu_limit=silent,
            container_memory_bytes=silent,
        ),
    )


def bounded(value: JsonValue, depth: int = _DEPTH) -> JsonValue:
    """Keep a tool's own part small and free of what it was given as a secret; numbers that are none become null."""
    if isinstance(value, dict):
        if not depth:
            return "…"
        return {
            one_line(key)[:_TEXT_CHARACTERS]: "[redacted]"
            if item is not None and _SECRET.search(key)
            else bounded(item, depth - 1)
            for key, item in list(value.items())[:_ITEMS]
        }
    if isinstance(value, list):
        return [bounded(item, depth - 1) for item in value[:_ITEMS]] if depth else "…"
    if isinstance(value, str):
        return one_line(value)[:_TEXT_CHARACTERS]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def lines(report: Report, run: Run, path: Path) -> Iterator[str]:
    """Say in a few lines what was taken over and what was not."""
    taken = [metric for metric in run.metrics if metric.missing is None]
    yield f"{report.tool}: {report.schedule}; {len(taken)} of {len(run.metrics)} metrics, evidence: {path}"
    for metric in run.metrics:
        if metric.missing is not None and metric.name in report.why:
            yield f"{metric.name}: {metric.missing.detail}"
    yield from report.notes
    if report.invalid:
        yield f"INVALID: {', '.join(report.invalid)}"


def _address(url: str) -> str | Missing:
    """Keep scheme, host and path; a password or a query stays out."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return Missing(missing=MissingReason.NOT_MEASURED, detail="the file names no address that can be read")
    return one_line(f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}")


def _runs_of(files: Sequence[Path]) -> list[Path]:
    """Leave out the records of a run whose summary is named too."""
    named = {path.resolve() for path in files}
    return [path for path in files if not (path.suffix == ".jsonl" and (other := _beside(path)) and other.resolve() in named)]


def _beside(path: Path) -> Path | None:
    """Find the other file of an aiperf pair: profile_export.jsonl and profile_export_aiperf.json."""
    if path.suffix == ".jsonl":
        other = path.with_name(f"{path.stem}_aiperf.json")
    elif path.name.endswith("_aiperf.json"):
        other = path.with_name(f"{path.name.removesuffix('_aiperf.json')}.jsonl")
    else:
        return None
    return other if other.is_file() else None


def _bytes(path: Path) -> bytes:
    return read_bounded(path, path.name, most=MAX_FILE_BYTES, expected="a result file")


def _documents(raw: bytes, place: str) -> tuple[Mapping[str, JsonValue], list[Mapping[str, JsonValue]]]:
    """Read a JSON object, or the objects of a file with one on each line.

    Raises:
        InputError: it is neither; the line is named.
    """
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        if raw.count(b"\n") < 1 or not raw.lstrip().startswith(b"{"):
            raise InputError([Problem(place=place, found=f"is not JSON ({exc})", expected=_TOOLS)]) from exc
    else:
        one = mapping(whole)
        return ({}, [one]) if aiperf.recognises_record(one) else (one, [])
    records = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            records.append(mapping(json.loads(line)))
        except (ValueError, RecursionError) as exc:
            found = f"is not JSON ({exc})"
            raise InputError([Problem(place=f"{place}: line {number}", found=found, expected="one record")]) from exc
    return {}, records
