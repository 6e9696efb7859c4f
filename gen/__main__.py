"""The command line of the generator: reads clock and environment once, prints, and ends with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from rich.console import Console

from gen.commands.arguments import parser
from gen.commands.call import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, Call, Outcome
from gen.days import build_day
from probes.errors import AdrError, UsageError

_PLAIN_WIDTH = 120


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every foreseeable failure is a message on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        outcome = run(sys.argv[1:] if argv is None else argv, os.environ, datetime.now(UTC).date(), Path.cwd())
        _print(outcome)
    except AdrError as exc:
        print(f"gen: {exc}".replace("\n", "\ngen: "), file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        print("gen: stopped; what was written until then is whole", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more while closing the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    return outcome.code


def run(argv: Sequence[str], environ: Mapping[str, str], utc_today: date, here: Path) -> Outcome:
    """Carry out one command line in a world that is given: environment, date and current folder.

    Raises:
        AdrError: the command line is wrong, or a file is broken.
    """
    arguments = parser().parse_args(argv)
    today = build_day(environ, utc_today, arguments.today)
    root = find_root(here) if arguments.root is None else arguments.root
    command = arguments.run_command
    outcome: Outcome = command(Call(arguments=arguments, root=root, today=today))
    return outcome


def find_root(here: Path) -> Path:
    """Find the repository that a folder lies in.

    Raises:
        UsageError: neither it nor a folder above it holds a fleet.yml.
    """
    for folder in (here, *here.parents):
        if (folder / "fleet.yml").is_file():
            return folder
    raise UsageError(f"no fleet.yml in {here} or above; expected a checkout, or --root DIR")


def _print(outcome: Outcome) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    for item in outcome.shown:
        if isinstance(item, str):
            print(item)
        else:
            console.print(item)
    sys.stdout.flush()
    for note in outcome.notes:
        print(f"gen: {note}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
