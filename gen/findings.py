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
    """Every rule: number, severity, what it finds, and whether a reviewer may acknowledge it in the record."""

    DAMAGED = ("IA001", Severity.ERROR, "a file that cannot be read as what it should be", False)
    EVIDENCE_ABSENT = ("IA002", Severity.ERROR, "a record that cites evidence which is not there", False)
    EVIDENCE_ALTERED = ("IA003", Severity.ERROR, "evidence that was replaced after a record cited it", False)
    EVIDENCE_INVALID = ("IA004", Severity.WARNING, "a record that rests on a run marked invalid", True)
    TWO_IN_FORCE = ("IA005", Severity.ERROR, "two records in force for one technique and scope", False)
    LINK_BROKEN = ("IA006", Severity.ERROR, "a link to a record that does not exist", False)
    LINK_ONE_SIDED = ("IA007", Severity.ERROR, "a supersession that only one of the two records tells", False)
    LINK_LOOP = ("IA008", Severity.ERROR, "records that supersede each other in a circle", False)
    LINK_TEXT = ("IA009", Severity.ERROR, "a link whose text names one record and whose target is another", False)
    ILLEGAL_HISTORY = ("IA010", Severity.ERROR, "a history that no legal moves lead along, or that ends elsewhere", False)
    SNAPSHOT = ("IA011", Severity.ERROR, "a record whose assessment is missing or says something else", False)
    CONTRACT_GAP = ("IA012", Severity.ERROR, "a contract metric with neither value nor reason", False)
    CONTRACT_VERDICT = ("IA013", Severity.ERROR, "a change of a setting that no comparison carries", True)
    CASE = ("IA014", Severity.ERROR, "names that differ only by case", False)
    UNKNOWN_CONTROL = ("IA015", Severity.ERROR, "a declared setting that the runtime is not known to have", False)
    UNKNOWN_SERVICE = ("IA016", Severity.WARNING, "a record about a service that the inventory does not have", True)
    PAST_REVIEW = ("IA017", Severity.WARNING, "a record past the day it was to be reviewed by", False)
    STALE_EVIDENCE = ("IA018", Severity.WARNING, "a record in force that rests on old runs", True)
    STALE_DECLARATION = ("IA019", Severity.WARNING, "declarations older than the inventory's limit", False)
    STALE_SOURCE = ("IA020", Severity.WARNING, "sources that nobody has looked at for longer than the limit", False)
    UNDRAFTED = ("IA021", Severity.WARNING, "an assessment that no record expresses", False)
    FUTURE = ("IA022", Severity.WARNING, "a run dated after today", False)
    ACKNOWLEDGEMENT = ("IA023", Severity.ERROR, "an acknowledgement of something that cannot be acknowledged", False)
    CONFIRMATION = ("IA024", Severity.ERROR, "a record whose gates no longer hold when it is measured again", False)
    WRONG_VALUE = ("IA025", Severity.ERROR, "a declared value that its control cannot have", False)
    FUTURE_DECLARATION = ("IA026", Severity.ERROR, "a declaration dated after today", False)
    UNVERIFIED = ("IA030", Severity.WARNING, "knowledge that was not checked for a release that runs", False)
    UNKNOWN_SETTING = ("IA031", Severity.WARNING, "a setting that was seen and that the knowledge does not have", False)

    def __init__(self, number: str, severity: Severity, finds: str, may_be_acknowledged: bool) -> None:  # noqa: FBT001
        self.number = number
        self.severity = severity
        self.finds = finds
        self.may_be_acknowledged = may_be_acknowledged


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
