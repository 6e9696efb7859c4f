"""The life of one decision on the embedded service, from a declaration to the record that takes its place.

    python -m benchmarks.life --out docs/life-of-a-decision.md     about fifteen minutes on two idle cores

Every step is a command of the product in a checkout of its own, and every number is measured on the way. The log is
written as a page; the exit code says whether each step did what it had to.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from probes.ending import carry_out, leave

ROOT: Final = Path(__file__).parents[1]
CONTROL: Final = "enable_prefix_caching"
TECHNIQUE: Final = "automatic-prefix-caching"
OFF, ON = f"embedded:{CONTROL}=false", f"embedded:{CONTROL}=true"
MEASURE: Final = ("probes", "contract", OFF, ON, "--prompt", "medium", "--shared-prefix", "1", "--budget-s", "1800")
WHOLE: Final = ("--requests", "20", "--max-tokens", "16", "--quality-repetitions", "2")
LIGHT: Final = ("--requests", "20", "--max-tokens", "16", "--quality-repetitions", "0")
REVIEWER: Final = "platform team"
_MOST_LINES: Final = 24


class UnexpectedError(Exception):
    """A step that did not do what it had to."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command left: its exit code, and its lines."""

    code: int
    out: str
    err: str


class Checkout:
    """A repository of its own with the inventory alone, and the log of what was done in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log: list[str] = []
        shutil.copy(ROOT / "fleet.yml", folder / "fleet.yml")

    def step(self, title: str, text: str) -> None:
        """Begin a step of the log."""
        sys.stderr.write(f"{title}\n")
        self.log.append(f"## {title}\n\n{text}")

    def run(self, *words: str, code: int = 0, shown: bool = True, keep: Callable[[str], bool] = lambda _line: True) -> Said:
        """Run a command of the product and log it with its answer.

        Raises:
            UnexpectedError: it ended with another code.
        """
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        said = Said(code=done.returncode, out=done.stdout.strip(), err=done.stderr.strip())
        if said.code != code:
            raise UnexpectedError(f"{' '.join(words)} ended with {said.code}, not {code}: {said.err or said.out}")
        if shown:
            answered = "\n".join(filter(None, (said.out, said.err if code else ""))).splitlines()
            lines = [line.rstrip() for line in answered if keep(line)]
            more = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
            answer = "\n".join([f"$ python -m {shlex.join(words)}", *lines[:_MOST_LINES], *more])
            self.log.append(f"```text\n{answer}\n```")
        return said

    def declare(self, *, on: bool) -> None:
        """Say in the inventory whether the embedded service caches prefixes."""
        path = self.folder / "fleet.yml"
        head, embedded = path.read_text(encoding="utf-8").split("\nembedded:", 1)
        changed, count = re.subn(rf"{CONTROL}: (true|false)", f"{CONTROL}: {str(on).lower()}", embedded, count=1)
        if count != 1:
            raise UnexpectedError(f"fleet.yml declares no {CONTROL} of the embedded service")
        path.write_text(f"{head}\nembedded:{changed}", encoding="utf-8")
        self.log.append(f"```yaml\n# fleet.yml\nembedded:\n  settings:\n    {CONTROL}: {str(on).lower()}\n```")

    def draft(self) -> str:
        """Draft what has moved and name the proposed record of the technique."""
        said = self.run("gen", "records", "propose", "--scope", "local", "--write", keep=lambda line: TECHNIQUE in line)
        names = re.findall(rf"^adr/local/(\S*-{TECHNIQUE}-\S*)\.md ", said.out, flags=re.MULTILINE)
        if len(names) != 1:
            raise UnexpectedError(f"one draft on {TECHNIQUE} was expected, not {len(names)}")
        return str(names[0])

    def decision(self, name: str) -> str:
        """Read what a record decides."""
        shown = self.run("gen", "records", "show", name, "--json", shown=False)
        return str(json.loads(shown.out)["decision"])

    def acknowledge(self, name: str, refused: str) -> None:
        """Write into a draft that a reviewer has seen what keeps it from being accepted."""
        today = datetime.now(UTC).date().isoformat()
        found = dict.fromkeys(re.findall(r"acknowledge (IA\d{3}) about ([\w.-]+?)\.?(?=\s|$)", refused))
        lines = [
            f'  - {{rule: {rule}, about: {about}, by: {REVIEWER}, date: {today}, reason: "seen; {_reason(about)}"}}'
            for rule, about in found
        ]
        path = next((self.folder / "adr").rglob(f"{name}.md"))
        text = path.read_text(encoding="utf-8")
        written = "\n".join(["acknowledgements:", *lines])
        path.write_text(text.replace("\ncontract:", f"\n{written}\ncontract:", 1), encoding="utf-8")
        self.log.append(f"```yaml\n# {path.relative_to(self.folder)}\n{written}\n```")


def _reason(about: str) -> str:
    reasons = {"power": "this machine has no sensor for it", "quality": "the task suites do not settle it on this machine"}
    return reasons.get(about, "open at this machine's noise; it is enabled for the time to first token")


def live(checkout: Checkout, load: Sequence[str]) -> str:
    """Lead one decision from its declaration to the record that takes its place; gives the name of the first record."""
    checkout.step("Declared", "The inventory says that the embedded service does not cache prefixes.")
    checkout.declare(on=False)
    checkout.run("probes", "run", "endpoints", shown=False)
    checkout.run("gen", "matrix", "--scope", _scope(checkout), keep=lambda line: "prefix" in line.casefold())

    checkout.step("Measured", "Off and on, by turns, over the whole measurement contract, with prompts that begin alike.")
    measured = Path(checkout.run(*MEASURE, *load, shown=False).out.splitlines()[-1])
    checkout.run("gen", "compare", measured.stem, keep=lambda line: line[:1] not in "┏┃┡│├└")

    checkout.step("Proposed", "The measurement moves the decision, so a record is drafted.")
    first = checkout.draft()
    _expect(checkout, first, "enable")

    checkout.step("Refused", "It changes a setting, and not everything the contract asks for is there or settled.")
    accept = ("gen", "records", "accept", first, "--by", REVIEWER)
    refused = checkout.run(*accept, code=2)

    checkout.step("Acknowledged", "A reviewer says, by name and with a reason, that this is known and accepted.")
    checkout.acknowledge(first, refused.err)

    checkout.step("Accepted", "Now the record is put in force, and the change is carried out in the inventory.")
    checkout.run(*accept)
    checkout.declare(on=True)

    checkout.step("Confirmed", "The record names the measurement that it rests on. It is made again, and the gates still hold.")
    checkout.run("gen", "confirm", first, "--plan")
    checkout.run(*MEASURE, *load, shown=False)
    checkout.run("gen", "confirm", first)

    checkout.step("Drifted", "The inventory says on; the service was last seen with it off.")
    second = checkout.draft()
    _expect(checkout, second, "investigate")

    checkout.step("Superseded", "The service is started anew and asked again. What it says agrees, and a new record says so.")
    checkout.run("probes", "run", "endpoints", shown=False)
    third = checkout.draft()
    _expect(checkout, third, "keep")
    checkout.run("gen", "records", "accept", third, "--by", REVIEWER)
    checkout.run("gen", "records", "list", "--technique", TECHNIQUE)
    return first


def _expect(checkout: Checkout, name: str, decision: str) -> None:
    found = checkout.decision(name)
    if found != decision:
        raise UnexpectedError(f"{name} decides {found}, not {decision}")


def _scope(checkout: Checkout) -> str:
    found = next((checkout.folder / "adr" / "local" / "evidence").glob("*.json"))
    return f"local-{json.loads(found.read_text(encoding='utf-8'))['scope']['fingerprint']}"


def page(checkout: Checkout, first: str, command: str) -> str:
    """Write the log, and the first record as it was drafted, accepted and superseded."""
    record = checkout.run("gen", "records", "show", first, shown=False).out
    body = record.partition("\n---\n")[2].strip()
    # Its evidence and its neighbours are gone with the checkout; their names stay.
    named = re.sub(r"\[([^\]]+)\]\((?:evidence/)?[^)#:]+\.(?:json|md)\)", r"`\1`", body)
    nested = re.sub(r"^(#+) ", r"##\1 ", named, flags=re.MULTILINE)
    lead = f"Written by `{command}`: each step is a command of the product, and each number was measured for it."
    parts = ["# The life of a decision", lead, *checkout.log, "## The record that was accepted", nested]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Live through one decision, and write its log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", action="store_true", help="no task suites: in less than half the time")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the log here (default: print it)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="life-") as folder:
        checkout = Checkout(Path(folder))
        try:
            command = "python -m benchmarks.life" + " --light" * chosen.light
            text = page(checkout, live(checkout, LIGHT if chosen.light else WHOLE), command)
        except UnexpectedError as exc:
            sys.stdout.write("\n\n".join(checkout.log))
            sys.stderr.write(f"not as expected: {exc}\n")
            return 1
    if chosen.out is None:
        sys.stdout.write(text)
    else:
        chosen.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    leave(carry_out("benchmarks.life", main, stopped="stopped"))
