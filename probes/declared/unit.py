"""systemd units and environment files: the variables a server gets, and the command of a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from probes.declared.complaint import refuse
from probes.declared.launch import Launch, Word
from probes.declared.starts import PROGRAMS, in_script
from probes.fleet import RuntimeName


def read_unit(text: str, name: str, runtime: RuntimeName) -> Launch:
    """Read a systemd unit or a drop-in of one: ExecStart with the Environment it gets.

    Raises:
        InputError: it starts something else, or cannot be split.
    """
    variables: dict[str, Word] = {}
    start: tuple[str, int] | None = None
    partial: list[str] = []
    for key, value, line in _unit_lines(text):
        if key == "Environment":
            variables |= _assignments(value, name, line)
        elif key == "EnvironmentFile":
            partial.append("EnvironmentFile")
        elif key == "ExecStart":
            start = (value.lstrip("-@:+!"), line) if value else None
    if start is None:
        if runtime is not RuntimeName.OLLAMA:
            raise refuse(name, "has no ExecStart", f"a unit that runs {' or '.join(PROGRAMS[runtime])}")
        return Launch(words=(), environment=variables, where=name, partial=tuple(partial))
    launch = in_script(start[0], name, runtime, variables, start[1])
    return replace(launch, environment={**variables, **launch.environment}, partial=tuple(partial))


def read_environment(text: str, name: str) -> dict[str, Word]:
    """Read NAME=VALUE lines as an environment file has them.

    Raises:
        InputError: a line is none; what stands there is not shown, for it may be a secret.
    """
    found: dict[str, Word] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        pair = re.fullmatch(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)", stripped)
        if pair is None:
            raise refuse(f"{name}:{number}", "is no NAME=VALUE", "NAME=VALUE, a comment or an empty line")
        value = pair.group(2)
        quote = value[:1] if value[:1] in {"'", '"'} and value[-1:] == value[:1] and len(value) > 1 else ""
        value = value[1:-1] if quote else re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        open_to = re.search(r"\$\{?(\w+)", value) if quote != "'" else None
        found[pair.group(1)] = Word(text=value, where=f"{name}:{number}", open_to=f"${open_to.group(1)}" if open_to else "")
    return found


_ASSIGNMENT: Final = re.compile(
    r"""(?:^|\s)(?:"(?P<a>[^"=\s]+)=(?P<av>[^"]*)"|'(?P<b>[^'=\s]+)=(?P<bv>[^']*)'"""
    r"""|(?P<c>[^\s"'=]+)=(?:"(?P<cv>[^"]*)"|'(?P<dv>[^']*)'|(?P<ev>[^\s"']*)))(?=\s|$)"""
)


def _assignments(value: str, name: str, line: int) -> dict[str, Word]:
    """Read the assignments of an Environment= line: whole pairs in quotes, or values in quotes."""
    found: dict[str, Word] = {}
    for match in _ASSIGNMENT.finditer(value):
        groups = match.groupdict()
        key = groups["a"] or groups["b"] or groups["c"] or ""
        text = next((groups[one] for one in ("av", "bv", "cv", "dv", "ev") if groups[one] is not None), "")
        found[key] = Word(text=text, where=f"{name}:{line}")
    return found


def _unit_lines(text: str) -> Iterator[tuple[str, str, int]]:
    """Give the assignments of the [Service] section; a backslash continues a line."""
    section, begun, line_begun = "", "", 1
    for number, line in enumerate(text.split("\n"), 1):
        if not begun and line.lstrip().startswith(("#", ";")):
            continue
        line_begun = line_begun if begun else number
        if line.rstrip().endswith("\\"):
            begun += line.rstrip()[:-1] + " "
            continue
        whole, begun = (begun + line).strip(), ""
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
        elif section == "Service" and "=" in whole:
            key, _, value = whole.partition("=")
            yield key.strip(), value.strip(), line_begun
