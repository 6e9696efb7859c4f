"""Decision records: their fields, their files, and which one is in force."""

from __future__ import annotations

from gen.records.reading import read_records, read_text
from gen.records.record import Record, about, in_force, open_proposals, status_on
from gen.records.text import parse_record, render_record

__all__ = [
    "Record",
    "about",
    "in_force",
    "open_proposals",
    "parse_record",
    "read_records",
    "read_text",
    "render_record",
    "status_on",
]
