"""The file format of a record: front matter, body, and the generator's block, to and from text."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from gen.assessment import Assessment
from gen.records.record import NAME_PATTERN, FrontMatter, Record
from gen.words import Status
from probes import strictyaml
from probes.errors import InputError, Problem
from probes.schema import problems_of

BEGIN = "<!-- inference-adr:begin assessment -->"
END = "<!-- inference-adr:end assessment -->"
_FOLD = "<details><summary>The assessment behind this record (generated; change detection reads it)</summary>"
_BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n(?P<inside>.*?)^{re.escape(END)}(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"^<!-- inference-adr:(?:begin|end) assessment -->$", re.MULTILINE)
_JSON = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DRAFTED = re.compile(r"^<!-- inference-adr:drafted ([0-9a-f]{16}) -->\n?", re.MULTILINE)
_HEAD = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7})( .*)?$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9/._-]*( [A-Za-z0-9/._-]+)*")
# Quoted for other readers of the file: YAML 1.1 takes some of these words for a bool.
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
# YAML's non-printable characters, line separators, and those that turn the direction of the text around.
_ESCAPED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def render_record(record: Record) -> str:
    """Write a record as the text of its file."""
    parts = [f"---\n{render_front_matter(record.front_matter())}---\n", f"{record.body}\n"]
    if record.assessment is not None:
        parts.append(f"{_render_block(record.assessment)}\n")
    return "\n".join(parts)


def render_draft(record: Record) -> str:
    """Write a record as the generator's own text, signed so that a later edit by a person shows."""
    text = render_record(record)
    return f"{text}<!-- inference-adr:drafted {_digest(text)} -->\n"


def parse_record(name: str, text: str, place: str) -> Record:
    """Read the text of a record file; `place` names the file in messages.

    Raises:
        InputError: with every problem found. A status is never inferred.
    """
    normal = _normal(text)
    conflicts = [
        Problem(
            place=f"{place}:{normal.count(chr(10), 0, match.start()) + 1}",
            found=f"holds a merge-conflict marker ({match[1]})",
            expected="a merged file; keep one side, or both as two records",
        )
        for match in _CONFLICT.finditer(normal)
    ]
    if conflicts:
        raise InputError(conflicts)
    head = _HEAD.match(normal)
    if head is None:
        expected = "'---', the typed fields with a status, and '---' at the top of the file"
        raise InputError([Problem(place=place, found="has no front matter", expected=expected)])
    # The opening '---' is line 1, so an empty first line keeps the line numbers of messages right.
    front = strictyaml.loads("\n" + head["yaml"], FrontMatter, place)
    problems = _front_problems(name, front, place)
    below = _Below.of(normal[head.end() :], place, 1 + normal.count("\n", 0, head.end()))
    if problems:
        raise InputError(problems)
    return Record(
        **{field: getattr(front, field) for field in FrontMatter.model_fields if field != "status"},
        name=name,
        status=Status(front.status),
        body=below.body,
        assessment=below.assessment,
        untouched=_is_untouched(normal),
    )


def _is_untouched(normal: str) -> bool:
    signed = _DRAFTED.search(normal)
    return signed is not None and signed[1] == _digest(normal[: signed.start()]) and not normal[signed.end() :].strip()


@dataclass(frozen=True, kw_only=True)
class _Below:
    """What stands below the front matter."""

    body: str
    assessment: Assessment | None

    @classmethod
    def of(cls, text: str, place: str, first_line: int) -> _Below:
        text = _DRAFTED.sub("", text)
        blocks = list(_BLOCK.finditer(text))
        if len(blocks) != len(_MARKER.findall(text)) / 2 or len(blocks) > 1:
            line = first_line + text.count("\n", 0, next(_MARKER.finditer(text)).start())
            found = "has unpaired or repeated markers of the assessment block"
            raise InputError([Problem(place=f"{place}:{line}", found=found, expected=f"{BEGIN} … {END} once, or not at all")])
        if not blocks:
            return cls(body=text, assessment=None)
        block = blocks[0]
        line = first_line + text.count("\n", 0, block.start())
        before, after = text[: block.start()].strip("\n"), text[block.end() :].strip("\n")
        return cls(body="\n\n".join(filter(None, (before, after))), assessment=_parse_block(block["inside"], f"{place}:{line}"))


def _front_problems(name: str, front: FrontMatter, place: str) -> list[Problem]:
    problems = []
    words = [status.value for status in Status]
    if front.status not in words:
        found = f"status {front.status!r} is not one of {', '.join(words)}"
        problems.append(Problem(place=place, found=found, expected=""))
    if not re.fullmatch(NAME_PATTERN, name):
        problems.append(Problem(place=place, found="is not named like a record", expected="YYYY-MM-DD-words.md in lower case"))
    elif not name.startswith(front.date.isoformat()):
        found = f"is dated {front.date.isoformat()}"
        problems.append(Problem(place=f"{place}: date", found=found, expected=f"{name[:10]}, as in the file's name"))
    return problems


def _parse_block(inside: str, place: str) -> Assessment:
    found = _JSON.search(inside)
    if found is None:
        expected = "a ```json block; delete the draft and nox -s adr -- propose --write"
        raise InputError([Problem(place=place, found="has an assessment block without JSON", expected=expected)])
    try:
        return Assessment.model_validate_json(found[1])
    except ValidationError as exc:
        raise InputError(problems_of(exc, lambda loc: f"{place}: assessment.{'.'.join(map(str, loc))}".rstrip("."))) from exc


def _render_block(assessment: Assessment) -> str:
    document = json.loads(assessment.model_dump_json(by_alias=True))
    return f"{BEGIN}\n{_FOLD}\n\n```json\n{_lines(document)}\n```\n\n</details>\n{END}"


def _lines(value: JsonValue, indent: str = "") -> str:
    """Lay JSON out with one fact per line, so that a diff of two snapshots reads as a list of changes."""
    deeper = indent + " "
    if isinstance(value, dict) and (not indent or any(_nested(v) for v in value.values())):
        items = [f"{deeper}{json.dumps(k)}: {_lines(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and value and (_nested(value) or any(isinstance(v, str) for v in value)):
        return "[\n" + ",\n".join(f"{deeper}{_lines(v, deeper)}" for v in value) + f"\n{indent}]"
    return _json(value)


def _nested(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def render_front_matter(front: FrontMatter) -> str:
    """Write the fields one below the other, nested values on one line each; what is empty stays out."""
    document: dict[str, Any] = json.loads(front.model_dump_json(by_alias=True))
    return "".join(render_field(key, value) for key, value in document.items() if value not in (None, [], {}))


def render_field(key: str, value: JsonValue) -> str:
    """Write one field of the front matter, with its line break."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return f"{key}:\n" + "".join(f"  - {_flow(item)}\n" for item in value)
    if isinstance(value, dict) and any(isinstance(item, dict) for item in value.values()) and key == "contract":
        return f"{key}:\n" + "".join(f"  {name}: {_flow(item)}\n" for name, item in value.items())
    return f"{key}: {_flow(value)}\n"


def _flow(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(k)}: {_flow(v)}" for k, v in value.items() if v not in (None, "")) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}(-[a-z0-9-]+)?", value):
            return value
        plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _RESERVED
        return value if plain else _json(value)
    return json.dumps(value)


def _json(value: JsonValue) -> str:
    """Write JSON that is also YAML, with every character that a reader could not see spelled out."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def _normal(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
