"""The contract command from its words to its evidence: get the sides ready, measure by turns, keep what there is."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from probes.archive import write_run
from probes.context import Context
from probes.contract.arguments import shape_of, slo_of
from probes.contract.block import Block, block_of
from probes.contract.course import Course, run_rounds
from probes.contract.opening import Access, Approach, Closed, Opened, World, allowed, approach, open_side
from probes.contract.quality import INTERRUPTED, Quality, ask
from probes.contract.report import BASELINE, CANDIDATE, Report, evidence
from probes.contract.shape import ContractShape, limited
from probes.contract.side import Side, SideKind, read_side
from probes.endpoints.address import ignored_proxies, key_from
from probes.errors import UsageError
from probes.evidence import Run
from probes.files import ensure_writable
from probes.fleet import Fleet, find_fleet
from probes.lock import alone

EXIT_OK, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 2, 130


def contract(
    given: argparse.Namespace,
    environ: Mapping[str, str],
    context_for: Callable[[Fleet | None, Sequence[str]], Context],
    show: Callable[[Run, Path], None],
) -> int:
    """Measure one side or two, write one evidence file, show it.

    Gives 0 for a run that may be used and for a side that is down or not configured, which is a state; 2 for a run
    that may not be used, which the file explains; 130 for one that was stopped by hand.

    Raises:
        UsageError, InputError: something cannot be meant, or may not be asked.
        HostError, ProbeError: an embedded side cannot be started, or refuses its settings.
    """
    shape = shape_of(given)
    fleet = find_fleet(given.fleet)
    sides = [read_side(word, fleet) for word in given.sides]
    shape = replace(shape, slo=slo_of(given, fleet, sides))
    access = _access(given, environ, sides)
    context = context_for(fleet, [access.key] if access.key else [])
    ensure_writable(given.out)
    if proxies := ignored_proxies(environ):
        context.say(proxies)
    world = World(context=context, fleet=fleet, environ=environ, access=access)
    holder = f"process {os.getpid()} since {context.clock():%Y-%m-%d %H:%M:%S} UTC ({context.tool.command})"
    with alone(context.cache, holder, context.say):
        report = measured(world, sides, shape)
    run = evidence(context, report)
    show(run, write_run(run, given.out))
    if report.course.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_OK if run.validity.valid or report.closed else EXIT_UNUSABLE


def named(sides: Sequence[Side]) -> dict[str, Side]:
    """Give the sides their arms; one alone is no arm."""
    return {"": sides[0]} if len(sides) == 1 else dict(zip((BASELINE, CANDIDATE), sides, strict=True))


def measured(world: World, sides: Sequence[Side], shape: ContractShape) -> Report:
    """Measure what can be measured and say of the rest why not; everything that was started has ended afterwards.

    Raises:
        KeyboardInterrupt: stopped before the first repetition; later it is a reason in the report.
    """
    context, asked = world.context, named(sides)
    started_at, began = context.clock(), time.monotonic()
    with contextlib.ExitStack() as stack:
        ready, shape, notes = _open(asked, shape, world, stack)
        opened = {arm: one for arm, one in ready.items() if isinstance(one, Opened)}
        closed = {arm: one for arm, one in ready.items() if isinstance(one, Closed)}
        course = Course() if closed else _rounds(opened, shape, context)
        quality = _quality(opened, shape, course, context, until=began + shape.budget_s)
    return Report(
        started_at=started_at,
        asked=asked,
        sides=opened,
        closed=closed,
        shape=shape,
        course=course,
        quality=quality,
        notes=notes,
    )


def _open(
    asked: Mapping[str, Side], shape: ContractShape, world: World, stack: contextlib.ExitStack
) -> tuple[dict[str, Opened | Closed], ContractShape, list[str]]:
    """Get the sides ready; the load is cut down to what every one of them may be asked."""
    found = {arm: approach(side, shape, world, stack) for arm, side in asked.items()}
    # Two words may lead to one address, whose limit then holds for both together.
    at = Counter(one.target.url for one in found.values() if isinstance(one, Approach))
    notes = []
    for one in found.values():
        if isinstance(one, Approach):
            cut = allowed(shape, one, at[one.target.url])
            notes += [limited(shape, cut, one.place)]
            shape = cut
    for note in filter(None, notes):
        world.context.say(note)
    ready: dict[str, Opened | Closed] = {}
    for arm, there in found.items():
        ready[arm] = open_side(there, shape, world.context) if isinstance(there, Approach) else there
        state = ready[arm]
        if isinstance(state, Closed):
            world.context.say(f"{state.side.word}: {state.why.missing}: {state.why.detail}")
    opened = [one for one in ready.values() if isinstance(one, Opened)]
    if not all(one.load.extra for one in opened):
        # A side that does not ignore the end of a sequence must not be held against one that does.
        notes += ["answers end by themselves: not every side ignores the end of a sequence"] if shape.full_length else []
        ready = {
            arm: replace(one, load=replace(one.load, extra="")) if isinstance(one, Opened) else one
            for arm, one in ready.items()
        }
    return ready, shape, [note for note in notes if note]


def _rounds(sides: Mapping[str, Opened], shape: ContractShape, context: Context) -> Course:
    def block(arm: str, number: int) -> Block:
        finding, seen = sides[arm].observer.measure(replace(sides[arm].load, seed=number), context.clock())
        return block_of(finding, seen.series)

    return run_rounds(
        list(sides), block, repetitions=shape.repetitions, budget_s=shape.budget_s, now=time.monotonic, tell=context.say
    )


def _quality(
    sides: Mapping[str, Opened], shape: ContractShape, course: Course, context: Context, *, until: float
) -> dict[str, Quality]:
    """Ask the task suites of each side, unless it must not be asked on or the time is up before a side's turn."""
    found: dict[str, Quality] = {}
    at = Counter(side.target.url for side in sides.values())
    for arm, side in sides.items() if shape.quality_repetitions else ():
        if course.stopped or not course.kept:
            break
        if time.monotonic() > until:
            course.no_time_for_quality = True
            break
        try:
            found[arm] = ask(side, shape, at[side.target.url], context)
        except KeyboardInterrupt:
            course.interrupted = True
        if course.interrupted or found[arm].stopped == INTERRUPTED:
            course.stopped, course.interrupted = "interrupted: stopped with Ctrl-C", True
    return found


def _access(given: argparse.Namespace, environ: Mapping[str, str], sides: Sequence[Side]) -> Access:
    """Read what was given for addresses; for a side of another kind it would be given in vain."""
    words = {"--model": given.model, "--key-env": given.key_env, "--ca-file": given.ca_file, "--insecure": given.insecure}
    vain = [word for word, value in words.items() if value]
    if vain and all(side.kind is not SideKind.ADDRESS for side in sides):
        raise UsageError(f"{vain[0]}: is for an address; a service of fleet.yml and the embedded engine bring their own")
    key = key_from(environ, given.key_env) if given.key_env else None
    if given.ca_file is not None and not Path(given.ca_file).is_file():
        raise UsageError(f"--ca-file {given.ca_file}: does not exist; expected a file of PEM certificates")
    return Access(model=given.model, key=key, ca_file=given.ca_file, insecure=given.insecure, allow_load=given.allow_load)
