"""A target in the form in which the runtime finds its layers, without a copy of its weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from probes.drafts.shape import IR_NAME, Shape, exported_name
from probes.errors import InputError, Problem


def prepare_target(ir: Path, folder: Path, shape: Shape) -> Path:
    """Give a folder whose layers the runtime finds: the given one, or `folder` with new names and links to the rest.

    Raises:
        InputError: the IR's text does not hold each layer's end once.
    """
    names = {name: exported_name(layer, name) for layer, name in enumerate(shape.residuals)}
    if all(old == new for old, new in names.items()):
        return ir
    text = renamed((ir / IR_NAME).read_text(), names, str(ir / IR_NAME))
    folder.mkdir(parents=True, exist_ok=True)
    for path in ir.iterdir():
        if path.name != IR_NAME:
            (folder / path.name).symlink_to(path.resolve())
    (folder / IR_NAME).write_text(text)
    return folder


def renamed(text: str, names: Mapping[str, str], place: str) -> str:
    """Rename operations in the text of an IR. Edges go by number, so nothing else changes."""
    shown = {quoteattr(old): quoteattr(new) for old, new in names.items()}
    pattern = re.compile(r'(<layer id="\d+" name=)("[^"]*"|\'[^\']*\')(?= type="Add")')
    found = [match[2] for match in pattern.finditer(text) if match[2] in shown]
    if sorted(found) != sorted(shown):
        told = f"names {len(set(found))} of {len(names)} layer ends, {len(found)} times"
        raise InputError([Problem(place=place, found=told, expected="each of them once")])
    return pattern.sub(lambda match: match[1] + shown.get(match[2], match[2]), text)
