"""Everything that can be wrong or due in inventory, evidence and records; no finding stops another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from gen.assess import engine_of
from gen.audit import Books, audit
from gen.changes import propose
from gen.corpus import Corpus
from gen.findings import Finding, Rule, Severity
from gen.knowledge import Checked, Engine
from gen.knowledge.control import Control, Role
from gen.knowledge.schema import ENGINE_TITLES, ENGINES, Source
from gen.recheck import Unverified, running, unverified
from gen.records import Record, status_on
from gen.words import Status
from probes.evidence import Run, RunKind, Scalar, Technique
from probes.fleet import Ignored

_NUMBERS = frozenset({Role.SEQUENCES, Role.TOKENS})
# YAML 1.2 has no booleans but true and false; the others are how people of YAML 1.1 write them.
_SPELLED_SWITCHES = frozenset({"yes", "no", "y", "n", "true", "false"})
_WORDS = frozenset({"on", "off", "auto", "none", "default"})


def check(corpus: Corpus, today: date) -> tuple[Finding, ...]:
    """Find everything that is wrong or due on a day, errors first."""
    found = [
        *_damage(corpus),
        *_names(corpus),
        *_inventory(corpus, today),
        *_sources(corpus, today),
        *_unverified(corpus, today),
        *_runs(corpus, today),
        *_unknown_settings(corpus),
        *check_records(corpus, today),
    ]
    # A record that cannot be read may be the one that says it all already.
    if not corpus.problems:
        found += _undrafted(corpus, today)
    passed = {entry: [finding for finding in found if _hits(entry, finding)] for entry in _in_force_until(corpus, today)}
    left = [finding for finding in found if not any(finding in some for some in passed.values())]
    return _in_order([*left, *_ignore_list(corpus, passed, today)])


def check_records(corpus: Corpus, today: date) -> tuple[Finding, ...]:
    """Find what is wrong with the records, one by one and with each other."""
    books = Books(corpus=corpus)
    found = [finding for record in books.records.values() for finding in audit(books, record, today)]
    return _in_order([*found, *_in_force(books, today), *_loops(books)])


def _in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    errors_first = list(Severity)
    return tuple(sorted(set(found), key=lambda f: (errors_first.index(f.severity), f.rule.number, f.place, f.message)))


def _damage(corpus: Corpus) -> Iterator[Finding]:
    for problem in corpus.problems:
        fix = f"give {problem.expected}" if problem.expected else "mend the file, or take it out"
        yield Finding(rule=Rule.DAMAGED, place=problem.place, message=problem.found or "is damaged", fix=fix)


def _in_force_until(corpus: Corpus, today: date) -> Iterator[Ignored]:
    allowed = {rule.number for rule in Rule if rule.may_be_ignored}
    return (entry for entry in corpus.fleet.policies.ignore if entry.rule in allowed and today <= entry.until)


def _hits(entry: Ignored, finding: Finding) -> bool:
    return entry.rule == finding.rule.number and entry.about in {finding.about, finding.place, finding.place.partition(":")[0]}


def _ignore_list(corpus: Corpus, passed: Mapping[Ignored, Sequence[Finding]], today: date) -> Iterator[Finding]:
    """Find entries that must not be there, and those that outlived what they were for."""
    allowed = [rule.number for rule in Rule if rule.may_be_ignored]
    for entry in corpus.fleet.policies.ignore:
        where = f"policies.ignore: {entry.rule} about {entry.about}"
        if entry.rule not in allowed:
            message = f"{where} is not one of {', '.join(allowed)}"
            yield Finding(
                rule=Rule.NOT_IGNORABLE, place="fleet.yml", about=entry.about, message=message, fix=Rule.NOT_IGNORABLE.mend
            )
        elif entry.until < today or not passed[entry]:
            message = f"{where} {f'ended on {entry.until}' if entry.until < today else 'hits nothing'}"
            yield Finding(
                rule=Rule.IGNORES_NOTHING, place="fleet.yml", about=entry.about, message=message, fix=Rule.IGNORES_NOTHING.mend
            )


def _names(corpus: Corpus) -> Iterator[Finding]:
    alike: dict[str, set[str]] = {}
    for run in corpus.runs + corpus.local_runs:
        alike.setdefault(run.id.casefold(), set()).add(run.id)
    for first, *others in (sorted(names) for names in alike.values() if len(names) > 1):
        message = f"is one file with {', '.join(others)} on a disk that ignores case"
        fix = "measure one of them again with nox -s probe"
        yield Finding(rule=Rule.CASE, place=f"adr/evidence/{first}.json", message=message, fix=fix)


def _inventory(corpus: Corpus, today: date) -> Iterator[Finding]:
    fleet, limit = corpus.fleet, corpus.fleet.policies.freshness.declaration_days
    old: dict[date, set[str]] = {}
    for name, service in fleet.services.items():
        controls = corpus.knowledge.controls.get(ENGINES[service.runtime], ()) if service.runtime in ENGINES else ()
        known = {setting: control for control in controls for setting in control.settings}
        for control, declared in fleet.declared(name).items():
            if known and control not in known:
                message = f"services.{name}.settings.{control} is not a known control of {service.runtime.value}"
                fix = f"use one of {', '.join(sorted(known))}, or add it to the knowledge base with its source"
                yield Finding(rule=Rule.UNKNOWN_CONTROL, place="fleet.yml", about=control, message=message, fix=fix)
            if expected := _expected(declared.value, known.get(control)):
                message = f"services.{name}.settings.{control} is {declared.value!r}"
                fix = f"write {expected}; YAML reads yes, no and quoted words as text"
                yield Finding(rule=Rule.WRONG_VALUE, place="fleet.yml", about=control, message=message, fix=fix)
            if declared.as_of > today:
                message = f"services.{name}.settings.{control} is declared on {declared.as_of}, after today, {today}"
                fix = "give it the day on which somebody looked"
                yield Finding(rule=Rule.FUTURE_DECLARATION, place="fleet.yml", about=control, message=message, fix=fix)
            if (today - declared.as_of).days > limit:
                old.setdefault(declared.as_of, set()).add(name)
    for day, services in sorted(old.items()):
        message = f"settings of {', '.join(sorted(services))} were declared on {day}, over {limit} days ago"
        fix = "look at the services again and give the declarations the day of that look"
        yield Finding(rule=Rule.STALE_DECLARATION, place="fleet.yml", message=message, fix=fix)


def _expected(value: Scalar, control: Control | None) -> str:
    """Say what a control takes where a value is of another kind; '' where nothing speaks against it."""
    role = control.role if control is not None else None
    spelled = value.strip().casefold() if isinstance(value, str) else ""
    if role in _NUMBERS:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if number or spelled in _WORDS else "a number"
    if spelled in _SPELLED_SWITCHES:
        return "true or false"
    if control is not None and role is Role.SWITCH and spelled:
        told = re.findall(r"[\w.-]+", control.values.casefold())
        words = {*_WORDS, *told, *(str(one).casefold() for one in control.off)}
        return "" if spelled in words else "true or false"
    return ""


def _sources(corpus: Corpus, today: date) -> Iterator[Finding]:
    limit = corpus.fleet.policies.freshness.source_days
    old: dict[date, list[str]] = {}
    for source in corpus.knowledge.sources.values():
        if (today - source.checked).days > limit:
            old.setdefault(source.checked, []).append(source.id)
    for day, ids in sorted(old.items()):
        message = f"{len(ids)} sources were last checked on {day}, over {limit} days ago: {', '.join(sorted(ids))}"
        fix = "read them again and date what they say"
        yield Finding(rule=Rule.STALE_SOURCE, place="gen/knowledge", message=message, fix=fix)


def _unverified(corpus: Corpus, today: date) -> Iterator[Finding]:
    """Ask for a new check of all that one source says of a release which is older than one that runs."""
    groups: dict[tuple[Engine, str, Checked], list[Unverified]] = {}
    for one in unverified(corpus.knowledge, running(corpus, today), today):
        if one.comparable:
            groups.setdefault((one.by.engine, one.by.version, one.checked), []).append(one)
    for (engine, version, checked), found in groups.items():
        titles = ", ".join(dict.fromkeys(one.by.title for one in found))
        ids = list(dict.fromkeys(one.id for one in found))
        known = f"{ids[0]} was" if len(ids) == 1 else f"{len(ids)} facts were"
        those = f": {', '.join(ids)}" if len(ids) > 1 else ""
        since = f"checked for {checked.release}" if checked.release else "checked for no release that its source names"
        message = f"{ENGINE_TITLES[engine]} {version} runs as {titles}; {known} {since}{those}"
        where = f"{checked.source} looked ({_where(corpus.knowledge.sources[checked.source])})"
        fix = f"look for {version} where {where}, and name what you read as a source of what still holds"
        yield Finding(rule=Rule.UNVERIFIED, place="gen/knowledge", about=checked.source, message=message, fix=fix)


def _where(source: Source) -> str:
    return source.url or source.repository or source.measurement or source.title


def _unknown_settings(corpus: Corpus) -> Iterator[Finding]:
    """Tell what the newest run of a service shows and the knowledge base has no control for."""
    newest: dict[tuple[str, str, str], tuple[str, Run]] = {}
    for folder, runs in (("adr/local/evidence", corpus.local_runs), ("adr/evidence", corpus.runs)):
        for run in sorted(runs, key=lambda run: (run.started_at, run.id)):
            if run.kind in {RunKind.ENDPOINT, RunKind.DECLARED}:
                newest[run.kind, run.scope.model_dump_json(), run.subject] = (folder, run)
    for folder, run in newest.values():
        engine = engine_of(run, corpus.fleet)
        for setting in run.settings:
            if engine in corpus.knowledge.controls and corpus.knowledge.control(engine, setting.control) is None:
                message = f"{run.subject} shows {setting.control}, which is not a known control of {engine}"
                fix = f"look up what it does, and add it to gen/knowledge/controls/{engine}.yaml with its source"
                place = f"{folder}/{run.id}.json"
                yield Finding(rule=Rule.UNKNOWN_SETTING, place=place, about=setting.control, message=message, fix=fix)


def _runs(corpus: Corpus, today: date) -> Iterator[Finding]:
    for folder, runs in (("adr/evidence", corpus.runs), ("adr/local/evidence", corpus.local_runs)):
        for run in runs:
            if run.date > today:
                message = f"started on {run.date}, after today, {today}"
                fix = f"check the clock of {run.client.alias}, or give --today"
                yield Finding(rule=Rule.FUTURE, place=f"{folder}/{run.id}.json", about=run.id, message=message, fix=fix)


def _in_force(books: Books, today: date) -> Iterator[Finding]:
    holding: dict[tuple[Technique, str], list[Record]] = {}
    for record in books.records.values():
        if record.technique is not None and status_on(record, today) is Status.ACCEPTED:
            holding.setdefault((record.technique, record.scope), []).append(record)
    for (technique, scope), records in holding.items():
        newest, *older = sorted(records, key=lambda record: (record.date, record.name), reverse=True)
        for record in older:
            message = f"is in force for {technique.value} in {scope}, and so is {record.name}"
            fix = f"nox -s adr -- supersede {record.name} {newest.name} --by WHO"
            yield Finding(rule=Rule.TWO_IN_FORCE, place=books.place(newest), about=record.name, message=message, fix=fix)


def _loops(books: Books) -> Iterator[Finding]:
    """Follow each record's successors; a circle is told once, from the first of its names."""
    follows = {name: record.superseded_by for name, record in books.records.items()}
    for start in sorted(follows):
        path, here = [start], follows[start]
        while here in follows and here not in path:
            path.append(here)
            here = follows[here]
        if here == start == min(path):
            message = f"leads back to itself: {' → '.join([*path, start])}"
            fix = "decide which record is the newest and take its superseded-by away"
            yield Finding(rule=Rule.LINK_LOOP, place=books.place(books.records[start]), message=message, fix=fix)


def _undrafted(corpus: Corpus, today: date) -> Iterator[Finding]:
    for draft in propose(corpus, today):
        since = f"since {draft.before}" if draft.before else "and no record is in force"
        message = f"{draft.technique.value} in {draft.scope} has moved {since}"
        fix = f"nox -s adr -- propose --scope {draft.scope} --write"
        yield Finding(rule=Rule.UNDRAFTED, place=draft.path, about=draft.name, message=message, fix=fix)
