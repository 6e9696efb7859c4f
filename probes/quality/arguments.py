"""The words of `python -m probes quality`, and whether they can be meant."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.errors import UsageError
from probes.files import ensure_target, ensure_writable
from probes.fleet import INVENTORY
from probes.load.aim import add_where
from probes.quality.titles import TITLES


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option of the quality suites to their parser."""
    add = command.add_argument
    add_where(command)
    add("--model", metavar="ID", help="the model's id, as the server lists it (default: the only one listed)")
    add("--suite", action="append", metavar="NAME", help=f"only this suite: {', '.join(TITLES)}")
    add("--tasks", type=Path, metavar="FILE", help="own tasks, one JSON object a line, in place of the built-in suites")
    add("--repetitions", type=int, default=1, metavar="N", help="how often to ask everything; a verdict needs 6 (default: 1)")
    add("--thinking-tokens", type=int, default=0, metavar="N", help="tokens granted to each answer for thinking (default: 0)")
    add("--context-tokens", type=int, default=4096, metavar="N", help="leave longer tasks out (default: 4096)")
    add("--concurrency", type=int, default=1, metavar="N", help="requests at a time (default: 1)")
    add("--timeout-s", type=float, default=60.0, metavar="S", help="time for one answer (default: 60)")
    add("--baseline", type=Path, metavar="FILE", help="compare with the file that --json wrote for another run")
    add("--json", type=Path, metavar="FILE", help="write every answer with its points and why")
    add("--out", type=Path, metavar="DIR", help="also write the run as an evidence file into this folder")
    add("--key-env", metavar="NAME", help="environment variable that holds the key")
    add("--ca-file", type=Path, metavar="FILE", help="certificate authority to trust for this address")
    add("--insecure", action="store_true", help="do not verify TLS")
    add("--allow-load", action="store_true", help="ask an address that is neither this machine nor in the inventory")
    add("--fleet", type=Path, default=INVENTORY, metavar="FILE", help="the inventory, if there is one")


def check(given: argparse.Namespace) -> None:
    """Refuse what cannot be meant.

    Raises:
        UsageError: a value is out of its bounds.
        HostError: a file, or the folder for evidence, cannot be written.
    """
    for name, low, high in (("repetitions", 1, 100), ("concurrency", 1, 64), ("thinking_tokens", 0, 65536)):
        _whole(name, getattr(given, name), low, high)
    _whole("context_tokens", given.context_tokens, 64, 1_000_000)
    if not 0.1 <= given.timeout_s <= 3600:
        raise UsageError(f"--timeout-s {given.timeout_s:g}: expected 0.1 to 3600")
    if given.json is not None:
        ensure_target("--json", given.json)
    if given.out is not None:
        ensure_writable(given.out)


def _whole(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(f"--{name.replace('_', '-')} {value}: expected {low} to {high}")
