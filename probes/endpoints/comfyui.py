"""ComfyUI as its HTTP answers show it: shapes of github:comfyanonymous/ComfyUI @005f3ba4, server.py and comfy/cli_args.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.fault import Fault
from probes.endpoints.metrics import Sample, Scrape, ScrapeState
from probes.endpoints.metrics import scrape as scrape_text
from probes.endpoints.reading import NO_MODEL, NotTold, Reading, Replies, Seen, absences, document, nested, objects, unversioned
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, ModelKind, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string
from probes.told import Told

STATS, QUEUE = "/system_stats", "/prompt"
_FOLDERS: Final = ("/models/checkpoints", "/models/diffusion_models")
_REMAINING, _RUNNING, _WAITING = "comfyui_queue_remaining", "comfyui_running", "comfyui_waiting"
_DEFAULTS_OF: Final = "ComfyUI (comfy/cli_args.py @005d79c8)"
# Flags that exclude each other, so that one of them is the whole setting.
_PRECISION: Final = ("fp8_e4m3fn", "fp8_e5m2", "fp8_e8m0fnu", "bf16", "fp16", "fp32", "fp64")
_ATTENTION: Final = (
    "flash-attention",
    "sage-attention",
    "pytorch-cross-attention",
    "split-cross-attention",
    "quad-cross-attention",
)
_FLAGS: Final = (
    (Technique.QUANTIZATION, "weight_precision", {f"--{word}-unet": word for word in _PRECISION}),
    (Technique.FLASH_ATTENTION, "attention", {f"--use-{word}": word for word in _ATTENTION}),
)
_TEXT_ONLY: Final = tuple(one for one in Technique if one not in {technique for technique, *_ in _FLAGS})
_WHERE: Final = f"GET {STATS} system.argv"


class ComfyUi(Adapter):
    """Its start flags, device and queue are told. `/queue` is not asked: it holds other people's prompts."""

    runtime = RuntimeName.COMFYUI
    lists_models = False
    identity = (STATS,)
    paths = (STATS, QUEUE, *_FOLDERS)
    metrics = QUEUE
    quantities = (
        # main.py runs one worker thread, so one prompt runs and the others wait.
        live.running(live.gauge(_RUNNING)),
        live.waiting(live.gauge(_WAITING)),
        live.cache_usage(live.never("diffusion keeps no KV cache")),
        live.prefix_hits(live.never("diffusion keeps no prefix cache")),
        live.drafted(live.never("diffusion drafts no tokens")),
        live.accepted(live.never("diffusion drafts no tokens")),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for its own statistics."""
        stats = document(replies, STATS)
        return "comfyui_version" in nested(stats, "system") or (
            "pytorch_version" in nested(stats, "system") and "devices" in stats
        )

    def read(self, replies: Replies, api: str) -> Reading:
        """Read version, device and start flags; models are files that it loads as prompts ask for them."""
        system, devices = nested(document(replies, STATS), "system"), objects(document(replies, STATS).get("devices"))
        seen = tuple(_seen(system.get("argv")))
        models = tuple(dict.fromkeys(name for path in _FOLDERS for name in _names(replies, path)))
        listed = any(isinstance(reply, Reply) and reply.status == 200 for path, reply in replies.items() if path in _FOLDERS)
        version = string(system.get("comfyui_version"))
        where = next((f"its list of {path.rpartition('/')[2]}" for path in _FOLDERS if _names(replies, path)), "")
        return Reading(
            runtime=RuntimeName.COMFYUI,
            version=version if version not in {"", "unknown"} else unversioned("ComfyUI does not know its own version"),
            state=EndpointState.EMPTY if listed and not models else EndpointState.LISTED,
            api=api,
            detail=NO_MODEL if listed and not models else "",
            models=tuple(ModelState(id=name, state="on disk") for name in models),
            why_not="ComfyUI makes images, not text",
            kinds={"": Told(value=ModelKind.DIFFUSION, where=where)} if where else {},
            device=next((name for one in devices if (name := string(one.get("name")))), None),
            seen=seen,
            not_told=(
                *_not_told({one.control for one in seen}, told=isinstance(system.get("argv"), list)),
                *absences(_TEXT_ONLY, "diffusion has no prefill, no decode and no KV cache"),
            ),
        )

    def scrape(self, reply: Reply | Fault) -> Scrape:
        """Read how many prompts are in the queue, the running one included."""
        if isinstance(reply, Fault) or reply.status != 200:
            return scrape_text(reply)
        info = reply.document if isinstance(reply.document, dict) else {}
        remaining = count(nested(info, "exec_info").get("queue_remaining"))
        if remaining is None:
            return Scrape(state=ScrapeState.NOT_METRICS, detail=f"GET {QUEUE} gives no queue_remaining")
        values = {_REMAINING: remaining, _RUNNING: min(remaining, 1), _WAITING: max(remaining - 1, 0)}
        samples = tuple(Sample(name=name, labels={}, value=value) for name, value in values.items())
        return Scrape(state=ScrapeState.READ, samples=samples, kinds=dict.fromkeys(values, "gauge"))


def _seen(argv: JsonValue) -> Iterator[Seen]:
    flags = [string(one) for one in argv] if isinstance(argv, list) else []
    for technique, control, words in _FLAGS:
        value = next((words[flag] for flag in flags if flag in words), "")
        if value:
            yield Seen(technique=technique, control=control, value=value, where=_WHERE)


def _not_told(seen: set[str], *, told: bool) -> Iterator[NotTold]:
    """Say of a setting without a flag that ComfyUI chooses; which choice it made, no answer shows."""
    why = "no flag for it was given, so ComfyUI chooses, and no answer shows what" if told else f"{_WHERE} is missing"
    for technique, control, _ in _FLAGS:
        if control not in seen:
            yield NotTold(
                technique=technique, control=control, why=why, default="chosen by the device", default_of=_DEFAULTS_OF
            )


def _names(replies: Replies, path: str) -> tuple[str, ...]:
    reply = replies.get(path)
    files = reply.document if isinstance(reply, Reply) and reply.status == 200 else None
    return tuple(name for name in map(string, files) if name) if isinstance(files, list) else ()
