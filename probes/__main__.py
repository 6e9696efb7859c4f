"""The program `python -m probes`: answers Ctrl-C before anything heavy is imported."""

from __future__ import annotations

import sys

_STOPPED = "stopped before anything was measured"


def main(argv: list[str] | None = None) -> int:
    """Run one command; every foreseeable failure is a message on stderr and exit code 2."""
    try:
        from probes.ending import carry_out

        return carry_out("probes", lambda: _command(argv), stopped=_STOPPED)
    except KeyboardInterrupt:
        sys.stderr.write(f"probes: {_STOPPED}\n")
        return 130


def _command(argv: list[str] | None) -> int:
    from probes.commands import run

    return run(argv)


if __name__ == "__main__":
    code = main()

    from probes.ending import leave

    leave(code)
