"""The quality command from its words to its exit code: the corpus first, then permission, then the model, then the tasks."""

from __future__ import annotations

import argparse
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from probes.archive import write_run
from probes.context import Context
from probes.endpoints.address import ignored_proxies
from probes.errors import InputError, ProbeError, UsageError
from probes.files import read_bounded, write_atomic
from probes.fleet import Fleet, find_fleet
from probes.load.aim import Aim, aim_at
from probes.load.permission import Permission
from probes.load.serverside import authority
from probes.quality.agreement import Agreement, between, with_itself
from probes.quality.arguments import check
from probes.quality.asking import INTERRUPTED, Limits, measure
from probes.quality.chat import HttpChat
from probes.quality.corpus import grouped, read_tasks
from probes.quality.library import suites as built_in
from probes.quality.listing import Listing, list_models
from probes.quality.report import evidence, lines, reasons
from probes.quality.result import Quality
from probes.quality.task import Suite
from probes.schema import problems_of

EXIT_OK, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 130
_LIST_S: Final = 15.0
_MAX_FILE_BYTES: Final = 64 * 2**20


def quality(
    given: argparse.Namespace,
    environ: Mapping[str, str],
    context_for: Callable[[Fleet | None, Sequence[str]], Context],
    tell: Callable[[str], None],
) -> int:
    """Ask the suites of one address; 0 for a usable run, 1 for one in which something failed, 130 for Ctrl-C.

    Raises:
        UsageError: a word of the command line cannot be meant.
        InputError: the address, the key or a file cannot be used as written; nothing has been sent then.
        ProbeError: nothing answers at the address.
    """
    check(given)
    chosen = _suites(given.suite, given.tasks)
    earlier = None if given.baseline is None else _read(given.baseline)
    aim, context = aim_at(given, environ, find_fleet(given.fleet), context_for)
    if isinstance(aim.found, ProbeError):
        raise aim.found
    tls = authority(aim.gate)
    if proxies := ignored_proxies(environ):
        tell(proxies)
    aim, model, context_tokens = _model(aim, tls, given)
    limits, timeout_s, note = _limits(given, aim.permission, context_tokens)
    tell(f"{aim.quoter.model(model)} at {aim.shown}: {sum(len(s.tasks) for s in chosen)} tasks, {limits.concurrency} at a time")
    if note:
        tell(note)
    chat = HttpChat(aim.gate.address, model=model, key=aim.gate.key, tls=tls, timeout_s=timeout_s)
    started_at = context.clock()
    found = measure(chat, chosen, limits=limits, repetitions=given.repetitions, quote=aim.quoter.text, tell=tell)
    against = None if earlier is None else between(earlier, found)
    try:
        if given.json is not None:
            write_atomic(given.json, (found.model_dump_json(indent=1) + "\n").encode())
        if given.out is not None:
            run = evidence(
                context,
                found,
                started_at,
                subject=aim.subject,
                scope=aim.scope,
                url=aim.shown,
                model=aim.quoter.model(model),
                concurrency=limits.concurrency,
            )
            tell(f"evidence: {write_run(run, given.out)}")
    finally:
        # A disk that is full takes nothing away from the person who waited.
        for line in lines(found, against):
            tell(line)
    if earlier is not None and earlier.repetitions > 1:
        tell(f"the baseline with itself: {with_itself(earlier).words}")
    for line in _unlike(earlier, found, against):
        tell(line)
    if found.stopped == INTERRUPTED:
        return EXIT_INTERRUPTED
    return EXIT_INVALID if reasons(found) else EXIT_OK


def _suites(names: Sequence[str] | None, tasks: Path | None) -> tuple[Suite, ...]:
    """Choose among the suites of a file, or among the built-in ones without a file."""
    known = built_in() if tasks is None else grouped(read_tasks(tasks, str(tasks)))
    for name in names or ():
        if name not in [suite.name for suite in known]:
            raise UsageError(f"--suite {name}: is not a suite; expected {', '.join(suite.name for suite in known)}")
    return tuple(suite for suite in known if not names or suite.name in names)


def _model(aim: Aim, tls: ssl.SSLContext | None, given: argparse.Namespace) -> tuple[Aim, str, int | None]:
    """Settle which model is asked, under which prefix, and what it takes."""
    try:
        listing = list_models(aim.gate.address, key=aim.gate.key, tls=tls, within_s=min(_LIST_S, given.timeout_s))
    except ProbeError as exc:
        raise ProbeError(f"{aim.shown}: {aim.quoter.line(str(exc))}") from exc
    model = given.model or _only(listing, aim)
    ids = {one.id: one for one in listing.models}
    if ids and model not in ids:
        names = ", ".join(aim.quoter.model(id) for id in ids)
        raise UsageError(f"--model {aim.quoter.model(model)}: is not listed at {aim.shown}; expected one of {names}")
    gate = replace(aim.gate, address=replace(aim.gate.address, api=aim.gate.address.api or listing.api))
    return replace(aim, gate=gate), model, ids[model].context_tokens if model in ids else None


def _only(listing: Listing, aim: Aim) -> str:
    if len(listing.models) == 1:
        return listing.models[0].id
    if not listing.models:
        raise UsageError(f"--model: is needed, as {aim.shown} lists no model ({aim.quoter.line(listing.why_none)})")
    names = ", ".join(aim.quoter.model(one.id) for one in listing.models)
    raise UsageError(f"--model: is needed, as {aim.shown} lists several; expected one of {names}")


def _limits(given: argparse.Namespace, allowed: Permission, context_tokens: int | None) -> tuple[Limits, float, str]:
    """Hold what is asked for against what is allowed, and say what that leaves."""
    bound = allowed.limits
    limits = Limits.of(
        bound,
        context_tokens=min(given.context_tokens, context_tokens or given.context_tokens),
        thinking_tokens=given.thinking_tokens,
        concurrency=min(given.concurrency, bound.concurrency if bound else given.concurrency),
    )
    if bound is None:
        return limits, given.timeout_s, ""
    note = (
        f"limited to {bound.concurrency} at a time, {bound.requests} requests and {bound.max_tokens} tokens each: {allowed.why}"
    )
    return limits, min(given.timeout_s, bound.timeout_s), note


def _read(path: Path) -> Quality:
    """Read the file of another run."""
    place = str(path)
    raw = read_bounded(path, place, most=_MAX_FILE_BYTES, expected="a file of --json")
    try:
        return Quality.model_validate_json(raw)
    except ValidationError as exc:
        raise InputError(problems_of(exc, lambda loc: f"{place}: {'.'.join(map(str, loc))}")) from exc


def _unlike(earlier: Quality | None, found: Quality, against: Agreement | None) -> list[str]:
    """Say what makes two runs different questions."""
    if earlier is None or against is None:
        return []
    told = []
    if earlier.tasks_sha256 != found.tasks_sha256:
        told.append("NOT COMPARABLE: the scores of the two runs are of different tasks")
    if earlier.thinking_tokens != found.thinking_tokens:
        told.append("NOT COMPARABLE: the two runs granted different numbers of tokens for thinking")
    if against.unpaired:
        told.append(f"asked or answered on one side only: {', '.join(against.unpaired)}")
    return told
