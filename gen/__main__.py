"""The command line of the generator: reads clock and environment once, prints, and ends with an exit code."""

from __future__ import annotations

import sys

_STOPPED = "stopped; what was written until then is whole"
_PLAIN_WIDTH = 120

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from gen.commands.call import Outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every foreseeable failure is a message on stderr and exit code 2."""
    try:
        from probes.ending import carry_out

        return carry_out("gen", lambda: _command(sys.argv[1:] if argv is None else argv), stopped=_STOPPED)
    except KeyboardInterrupt:
        sys.stderr.write(f"gen: {_STOPPED}\n")
        return 130


def _command(argv: Sequence[str]) -> int:
    import os
    from datetime import UTC, datetime

    from probes.files import current_folder

    outcome = run(argv, os.environ, datetime.now(UTC).date(), current_folder())
    _print(outcome)
    return outcome.code


def run(argv: Sequence[str], environ: Mapping[str, str], utc_today: date, here: Path) -> Outcome:
    """Carry out one command line in a world that is given: environment, date and current folder.

    Raises:
        AdrError: the command line is wrong, or a file is broken.
    """
    from gen.commands.arguments import parser
    from gen.commands.call import Call
    from gen.days import build_day

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
    from probes.errors import UsageError

    for folder in (here, *here.parents):
        if (folder / "fleet.yml").is_file():
            return folder
    raise UsageError(f"no fleet.yml in {here} or above; expected a checkout, or --root DIR")


def _print(outcome: Outcome) -> None:
    from rich.console import Console

    class Plain(Console):
        """Leaves a closed pipe to whoever ends the command; rich would end it with exit code 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Plain(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    for item in outcome.shown:
        if isinstance(item, str):
            print(item)
        else:
            console.print(item)
    sys.stdout.flush()
    for note in outcome.notes:
        print(f"gen: {note}", file=sys.stderr)


if __name__ == "__main__":
    code = main()

    from probes.ending import leave

    leave(code)
