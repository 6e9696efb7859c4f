"""Tokens of whole answers by a tokenizer of our own, counted in a process of its own after the load.

Text is tokenised once and whole: the tokens of its pieces are more. Even so the count is not the one of the engine, which
generated ids that the text does not keep apart; it stands beside the server's own.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from probes.errors import UsageError
from probes.evidence import Missing, MissingReason
from probes.load.answer import Answer

_ROOT: Final = Path(__file__).parents[2]
_LIMIT_S: Final = 300.0
_WORDS_CHARACTERS: Final = 300
_OPENVINO, _HUGGING_FACE = "openvino_tokenizer.xml", "tokenizer.json"


def check_tokenizer(path: Path) -> Path:
    """Find out before the load that there is a tokenizer.

    Raises:
        UsageError: it is neither a GGUF file nor a folder with a tokenizer.
    """
    if path.suffix == ".gguf" and path.is_file():
        return path.absolute()
    if any((path / name).is_file() for name in (_OPENVINO, _HUGGING_FACE)):
        return path.absolute()
    raise UsageError(
        f"--tokenizer {path}: holds no tokenizer; expected a folder with {_OPENVINO} or {_HUGGING_FACE}, or a .gguf"
    )


def words_of(answer: Answer) -> str:
    """Join what a model generated, in the order in which channels come; marks between them are in no count."""
    return "".join(
        (answer.reasoning, answer.text, *(part for call in answer.tool_calls for part in (call.name, call.arguments)))
    )


def write_texts(file: Path, texts: Iterable[str]) -> None:
    """Write one text a line."""
    with file.open("w", encoding="ascii") as sink:
        for text in texts:
            sink.write(json.dumps(text) + "\n")


def count_texts(tokenizer: Path, file: Path) -> list[int] | Missing:
    """Count the tokens of every text of a file, in a child that loads the tokenizer; a failure is a reason."""
    command = [sys.executable, "-m", "probes.load.counting", str(tokenizer), str(file)]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Missing(missing=MissingReason.FAILED, detail=f"the tokenizer: {exc}")
    except KeyboardInterrupt:
        # The load is over, and what it measured is not given up for a count.
        return Missing(missing=MissingReason.SKIPPED, detail="stopped with Ctrl-C while tokens were counted")
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        words = (said[-1] if said else f"exit code {done.returncode}")[-_WORDS_CHARACTERS:]
        return Missing(missing=MissingReason.FAILED, detail=f"the tokenizer: {words}")
    counts: list[int] = json.loads(done.stdout.splitlines()[-1])
    return counts


def _encoder(path: Path) -> Callable[[str], int]:
    if path.is_file() or (path / _OPENVINO).is_file():
        from probes import telemetry

        telemetry.silence()
        import openvino_genai

        tokenizer = openvino_genai.Tokenizer(str(path))
        return lambda text: int(tokenizer.encode(text, add_special_tokens=False).input_ids.shape[1])
    try:
        package = importlib.import_module("tokenizers")
    except ImportError:
        raise SystemExit(f"{_HUGGING_FACE} needs the package tokenizers, which is not installed") from None
    fast = package.Tokenizer.from_file(str(path / _HUGGING_FACE))
    return lambda text: len(fast.encode(text, add_special_tokens=False).ids)


def main(arguments: Sequence[str]) -> int:
    """Print the counts as one JSON list."""
    tokenizer, file = map(Path, arguments)
    encode = _encoder(tokenizer)
    with file.open(encoding="ascii") as source:
        counts = [encode(text) if (text := json.loads(line)) else 0 for line in source]
    sys.stdout.write(json.dumps(counts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
