"""The words of a drafted record: an assessment told to a reviewer in MADR's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from gen.assessment import Assessment, Cell, Fact
from gen.comparison_text import gate_words
from gen.configuration import CARRY_OUT, WHERE, Configuration, by_hand, removal, told
from gen.contract import CHANGES_A_SETTING, Compared, Contract, comparisons
from gen.contract_text import contract_text, measured, to_settle
from gen.knowledge.spelling import Fragment
from gen.markdown import fenced
from gen.moves import moves
from gen.proof import Proof
from gen.prose import bullets, prose, sentence, table
from gen.records import Record
from gen.records.record import Confirm
from gen.techniques.wording import capital
from gen.view import shown
from gen.words import TECHNIQUE_TITLES, Applicability, Decision

# Why the neighbours of a decision were not chosen. Each follows from the decision alone, whatever was measured.
# What evidence supports is said by `_option_to_measure`, from the runs that the record cites.
_NOT_CHOSEN: dict[Decision, tuple[tuple[str, str], ...]] = {
    Decision.KEEP: (("Switch it off", "gives up what the drivers above name"),),
    Decision.ENABLE: (("Leave it as it is", "gives up what the drivers above name"),),
    Decision.TUNE: (
        ("Leave it as it is", "gives up what the drivers above name"),
        ("Switch it off", "no driver above asks for that"),
    ),
    Decision.BENCHMARK_FIRST: (
        ("Enable it at once", "puts it into production before the whole measurement contract has been compared"),
        ("Do not deploy it", "closes a question that a measurement can settle"),
    ),
    Decision.DO_NOT_DEPLOY: (("Enable it", "lacks what the drivers above name"),),
    Decision.NO_CHANGE: (("Change a setting", "no driver above asks for one"),),
    Decision.NOT_APPLICABLE: (("Decide anyway", "would be a decision about something that does not exist here"),),
    Decision.INVESTIGATE: (
        ("Decide on what is known", "would rest on facts that contradict each other, failed or are missing"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class CitedSource:
    """A source as a record cites it."""

    title: str
    where: str
    checked: date


@dataclass(frozen=True, kw_only=True)
class Story:
    """Everything a draft is told from. `before` is the record in force, `others` the drafts still open.

    `unverified` says, by the id of a fact or price from a source, for which running release nobody has checked it.
    """

    name: str
    assessment: Assessment
    before: Record | None
    others: tuple[Record, ...]
    contract: Contract
    proof: Proof | None
    configurations: tuple[Configuration, ...]
    sources: Mapping[str, CitedSource]
    commands: tuple[str, ...]
    confirmed: Confirm | None
    unverified: Mapping[str, str]
    review_by: date


def title(assessment: Assessment) -> str:
    """Name a record after what it decides."""
    where = "on the fleet" if assessment.scope == "fleet" else f"on {assessment.scope}"
    return f"{TECHNIQUE_TITLES[assessment.technique]} {where}: {assessment.decision.value}"


def body(story: Story) -> str:
    """Tell the whole record, section by section."""
    now = story.assessment
    sections = [
        f"# {prose(title(now))}",
        f"## Context and problem statement\n\n{_context(story)}",
        f"## Decision drivers\n\n{_drivers(story)}",
        f"## Considered options\n\n{_options(story)}",
        f"## Decision outcome\n\n{_outcome(now)}",
        f"### Consequences\n\n{_consequences(story)}",
        f"### Confirmation\n\n{_confirmation(story)}",
        *([f"## What changed\n\n{_changed(story.before, now)}"] if story.before else []),
        f"## What is known\n\n{_known(story)}",
        f"## Measurement contract\n\n{contract_text(now.decision, story.contract, story.proof)}",
        *([f"## How it was measured\n\n{story.proof.conditions}"] if story.proof else []),
        f"## Evidence\n\n{_evidence(now)}",
        *_configuration(story),
        f"## How to roll back\n\n{_rollback(story)}",
        f"## How to measure again\n\n{_commands(story)}",
        f"## Sources\n\n{_sources(story)}",
    ]
    return "\n\n".join(sections)


def _context(story: Story) -> str:
    now = story.assessment
    said = [f"State: **{now.state.value}**. {sentence(now.state_text)}"]
    if story.before is None:
        stands = "" if now.decision in CHANGES_A_SETTING else "; this one says what stands"
        said.append(f"No record on this is in force yet{stands}.")
    else:
        said.append(f"The record in force is {_link(story.before.name)}; newer facts lead elsewhere (see *What changed*).")
    if now.scope.startswith("local-"):
        said.append("It speaks for one machine alone, and neither for the fleet nor for another machine.")
    if story.others:
        said.append(f"Drafts that this one replaces once it is accepted: {', '.join(_link(r.name) for r in story.others)}.")
    return "\n\n".join(said)


def _drivers(story: Story) -> str:
    """Give the reasons; one that is knowledge which nobody has checked for the running release says so."""
    doubts = {fact.text: story.unverified[fact.id] for fact in story.assessment.all_facts() if fact.id in story.unverified}
    return bullets([f"{sentence(one)}{_doubt(doubts.get(one))}" for one in story.assessment.why]) or "None is known."


def _doubt(told: str | None) -> str:
    return f" *{prose(capital(told))}.*" if told else ""


def _options(story: Story) -> str:
    now, before = story.assessment, story.before
    options = [f"**{capital(now.decision.value)}** (chosen)"]
    if before is not None and before.decision not in (None, now.decision):
        options.append(
            f"Stay with *{before.decision.value}*, the decision in force: rests on facts that have moved, see below."
        )
    options += [f"{option}: {reason}." for option, reason in _NOT_CHOSEN[now.decision]]
    options += _option_to_measure(now.decision, comparisons(story.contract))
    return bullets(options)


def _option_to_measure(decision: Decision, compared: Sequence[Compared]) -> list[str]:
    """Weigh measuring against deciding, and never claim a comparison that no cited run holds."""
    verdicts = Counter(entry.verdict.value for entry in compared)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    both = f"the cited runs compare baseline and candidate ({told})"
    neither = "no cited run compares baseline with candidate"
    if decision is Decision.KEEP:
        return [f"Tune it: takes baseline and candidate for the whole measurement contract; {both if compared else neither}."]
    if decision in CHANGES_A_SETTING:
        owed = f"still owed: {neither}, so the effect here is expected and not measured"
        return [f"Benchmark first: {f'done; {both}' if compared else owed}."]
    if decision is Decision.DO_NOT_DEPLOY:
        return [f"Benchmark first: {both if compared else 'has nothing to measure while that is lacking'}."]
    return []


def _outcome(now: Assessment) -> str:
    # A rule's sentence may open with the very word that stands in bold before it.
    word = capital(now.decision.value)
    told, rest = sentence(now.decision_text), now.decision_text.removeprefix(word)
    goes_on = rest != now.decision_text and not rest[:1].isalnum()
    said = [f"**{word}**{told.removeprefix(word)}" if goes_on else f"**{word}.** {told}".strip()]
    if now.next_step:
        said.append(f"Next step: {sentence(now.next_step)}")
    if now.would_change:
        said.append("What would change this decision:\n\n" + bullets([sentence(one) for one in now.would_change]))
    return "\n\n".join(said)


def _consequences(story: Story) -> str:
    """Say what changes, what was measured of it, and what it costs; a reader who skims reads no further."""
    now = story.assessment
    changed = [f"{prose(one.service)}: {'; '.join(prose(each.told) for each in one.changes)}." for one in story.configurations]
    if now.decision not in CHANGES_A_SETTING:
        said = [f"Changed since the record in force, on {one}" for one in changed] or ["No setting changes on any service."]
    else:
        said = [f"On {one}" for one in changed] or ["A setting changes on the services below."]
    said += list(measured(story.contract))
    said += [
        f"Price: {sentence(c.text)} (source `{prose(c.source)}`, checked {c.checked}){_doubt(story.unverified.get(c.id))}"
        for c in now.conflicts
    ]
    if not now.conflicts:
        said.append("No conflict with another technique is known for the runtimes and versions concerned.")
    return bullets(said)


def _confirmation(story: Story) -> str:
    if story.confirmed is None:
        return "Nothing can be probed for this decision; it is confirmed by reading the inventory again."
    gates = gate_words(story.confirmed.gates)
    if comparisons(story.contract):
        holds = (
            "It holds while no quantity gets worse and none that is better or the same here stops being so, "
            f"by the gates ({gates})"
        )
        back = "roll it back (below), or " if any(one.back for one in story.configurations) else ""
        else_ = f"; else {back}draft what the new runs lead to."
    else:
        holds = "It holds while what is measured and seen leads to the same decision"
        else_ = f", and while no quantity loses more than its gate allows ({gates})."
    return (
        f"`nox -s confirm -- {story.name}` measures again what this rests on. {holds}{else_} "
        f"It is to be looked at again by {story.review_by} in any case."
    )


def _changed(before: Record, now: Assessment) -> str:
    if before.assessment is None:
        return f"{_link(before.name)} holds no assessment to compare with."
    lines = [f"**{move.what}**: {prose(move.text)}" for move in moves(before.assessment, now)]
    return f"Since {_link(before.name)}:\n\n{bullets(lines)}"


def _known(story: Story) -> str:
    now, parts = story.assessment, []
    if now.facts:
        parts.append(bullets([f"{_fact(fact)}{_doubt(story.unverified.get(fact.id))}" for fact in now.facts]))
    rows = [
        (prose(c.service), c.state.value, c.decision.value, sentence(c.summary), _known_by(c))
        for c in now.cells
        if c.applicability is Applicability.APPLIES
    ]
    if rows:
        parts.append(table(("Service", "State", "Decision", "Why", "Known"), rows))
    others = [
        f"{prose(c.service)}: {c.applicability.value}. {sentence(c.summary)}"
        for c in now.cells
        if c.applicability is not Applicability.APPLIES
    ]
    if others:
        parts.append("Elsewhere:\n\n" + bullets(others))
    drifts = [f"{prose(cell.service)}: {sentence(one)}" for cell in now.cells for one in cell.drift]
    if drifts:
        parts.append("Drift between what is declared and what was seen:\n\n" + bullets(drifts))
    return "\n\n".join(parts) or "Nothing is known beyond the state."


def _known_by(cell: Cell) -> str:
    ways = dict.fromkeys(f"{fact.provenance.value} {fact.date}" for fact in cell.facts)
    return ", ".join(ways) or "from what is said above"


def _fact(fact: Fact) -> str:
    return f"{sentence(fact.text)} ({fact.provenance.value}, {fact.date})"


def _evidence(now: Assessment) -> str:
    if not now.evidence:
        return "No run was made for this; it rests on declarations and sources."
    return bullets([f"[{run}](evidence/{run}.json)" for run in now.evidence])


def _configuration(story: Story) -> list[str]:
    """Give the section on how to carry the decision out, or on what was carried out; none where no setting changes."""
    parts = [f"{_list_of(one)}\n\n{_fragments(one, one.forth)}" for one in story.configurations if one.forth or one.unspelled]
    done = "Nothing is left to do: it was declared or seen so since the record in force. In the words of the runtime:"
    lead = WHERE if story.assessment.decision in CHANGES_A_SETTING else done
    return ["\n\n".join([CARRY_OUT, lead, *parts])] if parts else []


def _list_of(one: Configuration) -> str:
    return bullets([f"{prose(one.service)}: {sentence(line)}" for line in (*told(one), *filter(None, (by_hand(one),)))])


def _fragments(one: Configuration, some: Sequence[Fragment]) -> str:
    parts = []
    for each in some:
        block = f"\n\n{fenced(each.text, each.language).rstrip()}" if each.text else ""
        remark = f" {sentence(capital(removal(each)))}" if each.removed else ""
        parts.append(f"{prose(one.service)}, {each.place.value}:{remark}{block}")
    return "\n\n".join(parts)


def _rollback(story: Story) -> str:
    now, before = story.assessment, story.before
    if any(one.back for one in story.configurations):
        lead = "Put the former value back where the service is configured, and declare it with its date in `fleet.yml`:"
        return "\n\n".join([lead, *(_fragments(one, one.back) for one in story.configurations if one.back)])
    if now.decision in CHANGES_A_SETTING:
        return (
            "Restore the setting that the decision changes to the state above, in the serving configuration and with its "
            "date in `fleet.yml`; the change of the inventory drafts the record that takes this one's place."
        )
    kept = f"; {_link(before.name)} stays in force" if before is not None else ""
    return (
        "There is no setting to restore. While this is a proposal, reject it: "
        f'`nox -s adr -- reject {story.name} --by WHO --why "REASON"`{kept}. '
        "Once it is accepted, only another record takes its place."
    )


def _commands(story: Story) -> str:
    if not story.commands:
        return "There is nothing to run: change `fleet.yml` when the facts change, and draft again."
    block = "\n".join(f"    {command}" for command in story.commands)
    if story.assessment.decision in CHANGES_A_SETTING and not comparisons(story.contract):
        block = "\n\n".join([block, *map(_compare_first, story.configurations)])
    more = "; ".join(to_settle(story.contract))
    return f"{block}\n\nTo settle what is open, give about {more}." if more else block


def _compare_first(one: Configuration) -> str:
    """Say how the comparison that is still owed is made."""
    pairs = ",".join(f"{each.control}={shown(each.after)}" for each in one.changes)
    side = prose(one.service) if ", " not in one.service else "SERVICE"
    return (
        f"To compare first, start a second instance of {prose(one.service)} with `{pairs}` beside it, then: "
        f"`nox -s compare -- {side} ADDRESS --allow-load`."
    )


def _sources(story: Story) -> str:
    lines = []
    for name, source in sorted(story.sources.items()):
        where = f"<{source.where}>" if source.where.startswith("https://") else prose(source.where)
        lines.append(f"`{name}`: {prose(source.title)}, {where}, checked {source.checked}")
    rest = "The runs cited above and the inventory." if story.assessment.evidence else "The inventory alone."
    return bullets(lines) if lines else rest


def _link(record: str) -> str:
    return f"[{record}]({record}.md)"
