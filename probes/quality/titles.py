"""The names of the suites that come with the package."""

from __future__ import annotations

from typing import Final

TITLES: Final = {
    "exact": "Exact answers",
    "json": "JSON that meets a schema",
    "tools": "Tool calls with the right name and arguments",
    "instruction": "Instructions that code can check",
    "retrieval": "One sentence found in a long text",
    "open": "Open questions, compared between two sides and not judged",
}
