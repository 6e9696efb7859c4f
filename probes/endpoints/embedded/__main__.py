"""The command line of the embedded service."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from probes.endpoints.embedded.server import end_with_parent, parse_settings, say, serve, tell_parent, tell_parent_why_not
from probes.endpoints.embedded.settings import KNOWN
from probes.errors import AdrError, UsageError
from probes.model import default_cache, prepare_model

EXIT_OK, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; every foreseeable failure is one message and exit code 2."""
    arguments = _parser().parse_args(argv)
    if arguments.child:
        end_with_parent()
    try:
        serve(
            prepare_model(arguments.cache or default_cache(os.environ)),
            parse_settings(arguments.setting),
            host=arguments.host,
            port=arguments.port,
            api_key=_key(arguments.api_key_env),
            announce=tell_parent if arguments.child else say,
        )
    except AdrError as exc:
        if arguments.child:
            tell_parent_why_not(exc)
        else:
            sys.stderr.write(f"embedded: {exc}\n".replace("\n", "\nembedded: ").removesuffix("embedded: "))
        return EXIT_UNUSABLE
    except KeyboardInterrupt:  # while the model is prepared; later it ends the service
        return EXIT_INTERRUPTED
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m probes.endpoints.embedded",
        allow_abbrev=False,
        description="Serve SmolLM2-135M with OpenVINO GenAI behind the paths of OVMS. It is a stand-in and says so at /v2.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (default)")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help=f"one of {', '.join(KNOWN)}; may be repeated"
    )
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where the converted model is kept")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable with the key that clients must send")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def _key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(f"--api-key-env {name}: is unset or empty; expected a variable that holds the key")
    return key


if __name__ == "__main__":
    sys.exit(main())
