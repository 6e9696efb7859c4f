"""What a check can find: the rules with their numbers, and a finding as a line, as JSON, as an annotation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from gen.markdown import visible
from gen.prose import prose, table


class Severity(StrEnum):
    """`error` stops a pull request; `warning` asks for somebody's attention."""

    ERROR = "error"
    WARNING = "warning"


class Rule(Enum):
    """Every rule: number, severity, what it finds, whether a reviewer may acknowledge it in the record, how to mend it."""

    DAMAGED = (
        "IA001",
        Severity.ERROR,
        "a file that cannot be read as what it should be",
        False,
        "mend the file at the place named, or take it out; a record by hand, evidence by measuring again",
    )
    EVIDENCE_ABSENT = (
        "IA002",
        Severity.ERROR,
        "a record that cites evidence which is not there",
        False,
        "bring the file back or promote the run; a draft can be deleted and drafted anew",
    )
    EVIDENCE_ALTERED = (
        "IA003",
        Severity.ERROR,
        "evidence that was replaced after a record cited it",
        False,
        "bring the file back as it was; a draft can be deleted and drafted anew",
    )
    EVIDENCE_INVALID = (
        "IA004",
        Severity.WARNING,
        "a record that rests on a run marked invalid",
        True,
        "measure again, or acknowledge it in the record",
    )
    TWO_IN_FORCE = (
        "IA005",
        Severity.ERROR,
        "two records in force for one technique and scope",
        False,
        "link the older one to the newer with nox -s adr -- supersede",
    )
    LINK_BROKEN = (
        "IA006",
        Severity.ERROR,
        "a link to a record that does not exist",
        False,
        "correct the name, promote the record, or bring it back",
    )
    LINK_ONE_SIDED = (
        "IA007",
        Severity.ERROR,
        "a supersession that only one of the two records tells",
        False,
        "let the commands accept and supersede write both sides",
    )
    LINK_LOOP = (
        "IA008",
        Severity.ERROR,
        "records that supersede each other in a circle",
        False,
        "decide which record is the newest and take its superseded-by away",
    )
    LINK_TEXT = (
        "IA009",
        Severity.ERROR,
        "a link whose text names one record and whose target is another",
        False,
        "let text and target name one record",
    )
    ILLEGAL_HISTORY = (
        "IA010",
        Severity.ERROR,
        "a history that no legal moves lead along, or that ends elsewhere",
        False,
        "undo the edit and move the record with the commands",
    )
    SNAPSHOT = (
        "IA011",
        Severity.ERROR,
        "a record whose assessment is missing or says something else",
        False,
        "undo the edit, or delete the draft and draft it anew",
    )
    CONTRACT_GAP = (
        "IA012",
        Severity.ERROR,
        "a contract metric with neither value nor reason",
        False,
        "measure it, or say in detail why not",
    )
    CONTRACT_VERDICT = (
        "IA013",
        Severity.ERROR,
        "a change of a setting that no comparison carries",
        True,
        "measure more, decide otherwise, or acknowledge it in the record",
    )
    CASE = ("IA014", Severity.ERROR, "names that differ only by case", False, "measure one of them again")
    UNKNOWN_CONTROL = (
        "IA015",
        Severity.ERROR,
        "a declared setting that the runtime is not known to have",
        False,
        "use a name of the runtime, or add the control to the knowledge base with its source",
    )
    UNKNOWN_SERVICE = (
        "IA016",
        Severity.WARNING,
        "a record about a service that the inventory does not have",
        True,
        "deprecate the record, or name a service of the inventory",
    )
    PAST_REVIEW = (
        "IA017",
        Severity.WARNING,
        "a record past the day it was to be reviewed by",
        False,
        "measure again; draft what has moved, else give the record a new review-by",
    )
    STALE_EVIDENCE = (
        "IA018",
        Severity.WARNING,
        "a record in force that rests on old runs",
        True,
        "measure again with nox -s probe",
    )
    STALE_DECLARATION = (
        "IA019",
        Severity.WARNING,
        "declarations older than the inventory's limit",
        False,
        "look at the services and give the declarations the day of that look",
    )
    STALE_SOURCE = (
        "IA020",
        Severity.WARNING,
        "sources that nobody has looked at for longer than the limit",
        False,
        "read the source again and correct its checked date",
    )
    UNDRAFTED = (
        "IA021",
        Severity.WARNING,
        "an assessment that no record expresses",
        False,
        "draft it with nox -s adr -- propose --write",
    )
    FUTURE = (
        "IA022",
        Severity.WARNING,
        "a run dated after today",
        False,
        "check the clock of the host that measured, or the day given",
    )
    ACKNOWLEDGEMENT = (
        "IA023",
        Severity.ERROR,
        "an acknowledgement of something that cannot be acknowledged",
        False,
        "mend what was found instead",
    )
    CONFIRMATION = (
        "IA024",
        Severity.ERROR,
        "a record whose gates no longer hold when it is measured again",
        False,
        "look at the run, then draft what it leads to",
    )
    WRONG_VALUE = (
        "IA025",
        Severity.ERROR,
        "a declared value that its control cannot have",
        False,
        "write a value of the kind that the control takes",
    )
    FUTURE_DECLARATION = (
        "IA026",
        Severity.ERROR,
        "a declaration dated after today",
        False,
        "give it the day on which somebody looked",
    )
    NOT_IGNORABLE = (
        "IA027",
        Severity.ERROR,
        "an entry of the ignore list for what cannot be ignored",
        False,
        "mend what was found instead",
    )
    IGNORES_NOTHING = (
        "IA028",
        Severity.WARNING,
        "an entry of the ignore list that is past its day or hits nothing",
        False,
        "take the entry out, or give it a later day with a reason",
    )
    UNKNOWN_SETTING = (
        "IA029",
        Severity.WARNING,
        "a setting that was seen and that the knowledge does not have",
        False,
        "look it up and add the control with its source",
    )
    UNVERIFIED = (
        "IA030",
        Severity.WARNING,
        "knowledge that was not checked for a release that runs",
        False,
        "read the source as of that release, and correct the entry's range and the day it was checked",
    )

    def __init__(self, number: str, severity: Severity, finds: str, may_be_acknowledged: bool, mend: str) -> None:  # noqa: FBT001
        self.number = number
        self.severity = severity
        self.finds = finds
        self.may_be_acknowledged = may_be_acknowledged
        self.mend = mend

    @property
    def may_be_ignored(self) -> bool:
        """Whether the inventory's ignore list may silence it: what asks for attention, and what the knowledge base lacks."""
        # An error says that a record or a file cannot be trusted; and the list must not silence what guards it.
        return self is Rule.UNKNOWN_CONTROL or (self.severity is Severity.WARNING and self is not Rule.IGNORES_NOTHING)


# What the weekly look lists: nothing is broken, but somebody's turn has come.
DUE = frozenset(
    {
        Rule.PAST_REVIEW,
        Rule.STALE_EVIDENCE,
        Rule.STALE_DECLARATION,
        Rule.STALE_SOURCE,
        Rule.UNDRAFTED,
        Rule.UNVERIFIED,
        Rule.UNKNOWN_SETTING,
    }
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing to mend: `place` is a file with an optional line, `fix` what to do about it.

    `about` names what an acknowledgement would have to name: a run, a metric, a service.
    """

    rule: Rule
    place: str
    message: str
    fix: str
    about: str = ""

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    def __str__(self) -> str:
        return visible(f"{self.place}: {self.rule.number} {self.severity.value}: {self.message}. Fix: {self.fix}.")


def as_json(findings: Sequence[Finding]) -> str:
    """Write findings for a program."""
    return json.dumps(
        [
            {
                "rule": finding.rule.number,
                "severity": finding.severity.value,
                "place": finding.place,
                "about": finding.about,
                "message": finding.message,
                "fix": finding.fix,
            }
            for finding in findings
        ],
        indent=1,
        ensure_ascii=False,
    )


def as_annotation(finding: Finding) -> str:
    """Write a workflow command that puts the finding beside the file in a GitHub review.

    Escaping as the runner undoes it (actions/toolkit, packages/core/src/command.ts).
    """
    path, line = re.fullmatch(r"([^:]*)(?::(\d+))?.*", finding.place, re.DOTALL).groups()  # type: ignore[union-attr]
    properties = {"file": path, "line": line, "title": f"{finding.rule.number} {finding.rule.finds}"}
    written = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items() if value)
    return f"::{finding.severity.value} {written}::{_escaped(f'{finding.message}. Fix: {finding.fix}.')}"


def as_markdown(findings: Sequence[Finding]) -> str:
    """Write findings as a table for a job summary."""
    if not findings:
        return "Nothing was found.\n"
    rows = [
        (finding.rule.number, finding.severity.value, prose(finding.place), prose(finding.message), prose(finding.fix))
        for finding in findings
    ]
    return table(("Rule", "Severity", "Where", "What", "Fix"), rows) + "\n"


def _escaped(value: str, also: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in "%\r\n" + also else char for char in value)
