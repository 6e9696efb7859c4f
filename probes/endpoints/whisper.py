"""Servers for speech as their HTTP answers show them: whisper.cpp, speaches and faster-whisper-server.

Shapes are those of github:ggml-org/whisper.cpp @233fe1fc examples/server/server.cpp, of github:speaches-ai/speaches
@870e1e16 and its tag v0.6.0-rc.3, when it was called faster-whisper-server, and of the package faster-whisper-server 0.0.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.openai import API, api_paths
from probes.endpoints.reading import (
    CHAT,
    NO_MODEL,
    NOWHERE,
    NotTold,
    Reading,
    Replies,
    Silent,
    absences,
    document,
    listed,
    nested,
    says_loading,
    silences,
    unversioned,
)
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, ModelKind, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import string
from probes.told import Told

HEALTH, LOADED = "/health", "/api/ps"
_TRANSCRIPTIONS: Final = "/audio/transcriptions"
_WHY_NOT: Final = "it writes down speech and makes no text of its own"
_NOT_FOR_SPEECH: Final = (
    Technique.PREFIX_CACHING,
    Technique.DISAGGREGATION,
    Technique.CONTINUOUS_BATCHING,
    Technique.KV_CACHE,
    Technique.SPECULATIVE_DECODING,
)


class Speech(Adapter):
    """What these servers share: no load figures, and one request for text is one too many."""

    metrics = ""
    quantities = live.nothing("servers for speech have no such metric")
    silent: tuple[Silent, ...] = ()
    why_silent = "no path of it reports it"
    defaults_of = ""
    without: tuple[Technique, ...] = (Technique.FLASH_ATTENTION, *_NOT_FOR_SPEECH)

    @property
    def untold(self) -> tuple[NotTold, ...]:
        """Say what it cannot know."""
        own = silences(self.silent, self.why_silent, default_of=self.defaults_of)
        return (*own, *absences(self.without, "this server has no setting for it"))

    def _kinds(self) -> dict[str, Told[ModelKind]]:
        """Tell what it serves by what it can run: whisper.cpp and faster-whisper run Whisper and nothing else."""
        return {"": Told(value=ModelKind.SPEECH_ENCODER_DECODER, where=f"{self.runtime.value} runs Whisper alone")}

    def _read(self, version: str | Missing, states: dict[str, str] | None, api: str) -> Reading:
        """Make a reading of models and their states; None stands for a server that names none."""
        empty = states is not None and not states
        return Reading(
            runtime=self.runtime,
            version=version,
            state=EndpointState.EMPTY if empty else EndpointState.LISTED,
            api=api or "/v1",
            detail=NO_MODEL if empty else "",
            models=tuple(ModelState(id=id, state=state) for id, state in (states or {}).items()),
            why_not=_WHY_NOT,
            kinds=self._kinds(),
            not_told=self.untold,
        )


class WhisperCpp(Speech):
    """It signs every answer, and tells nothing but whether its model is loaded."""

    runtime = RuntimeName.WHISPERCPP
    lists_models = False
    paths = (HEALTH,)
    silent = (
        Silent(technique=Technique.QUANTIZATION, control="weight_precision"),
        # The code's default; README prints the opposite.
        Silent(technique=Technique.FLASH_ATTENTION, control="flash_attn", default=True),
    )
    without = _NOT_FOR_SPEECH
    why_silent = "no path of whisper.cpp reports it; it stands in the command line"
    defaults_of = "whisper.cpp of 2026-08-22 (examples/server/server.cpp)"

    def recognises(self, replies: Replies) -> bool:
        """Look for its signature, which it puts even on answers to paths it does not know."""
        nowhere = replies.get(NOWHERE)
        return isinstance(nowhere, Reply) and nowhere.server == "whisper.cpp"

    def read(self, replies: Replies, api: str) -> Reading:
        """Read whether it is ready; POST /load replaces its model and is never asked."""
        reading = self._read(unversioned("no path of whisper.cpp gives its version"), None, api)
        health = replies.get(HEALTH)
        if says_loading(health):
            return replace(reading, state=EndpointState.LOADING, detail="the model is loading")
        # Its handler of errors turns the 503 of a server that loads into a 404, as old releases answer.
        unsure = isinstance(health, Reply) and health.status == 404
        detail = f"GET {HEALTH} answers 404: an old release, or one that loads a model now" if unsure else ""
        return replace(reading, detail=detail)


class Speaches(Speech):
    """It lists what is on its disk with the task of each model, and which of them are loaded."""

    runtime = RuntimeName.SPEACHES
    identity = (API,)
    paths = (LOADED, API)
    silent = (Silent(technique=Technique.QUANTIZATION, control="weight_precision", default="default"),)
    why_silent = "no path of speaches reports it; it stands in the environment of the server"
    defaults_of = "speaches of 2026-03-26 (src/speaches/config.py), WHISPER__COMPUTE_TYPE"

    def asks(self, replies: Replies) -> tuple[str, ...]:
        """Ask for its description only where no model list came, or one whose models have a language."""
        return self.identity if _may_hear(replies) else ()

    def recognises(self, replies: Replies) -> bool:
        """Look for the task of each listed model, or for its title."""
        found = listed(replies)
        entries = found[1] if found else ()
        by_task = bool(entries) and all("task" in entry and "language" in entry for entry in entries)
        return by_task or nested(document(replies, API), "info").get("title") == "Speaches"

    def read(self, replies: Replies, api: str) -> Reading:
        """Read what is on disk and loaded. Its description names a version that its source forgets to raise."""
        written = string(nested(document(replies, API), "info").get("version"))
        said = f"its API calls itself {written}, which releases of speaches do not keep up" if written else ""
        reading = self._read(unversioned(said or "no path of speaches gives its version"), _on_disk(replies), api)
        return replace(reading, kinds=_by_task(replies))


class FasterWhisperServer(Speech):
    """Two servers of this name: a package, and what speaches was until 0.6."""

    runtime = RuntimeName.FASTER_WHISPER_SERVER
    identity = (API,)
    silent = (Silent(technique=Technique.QUANTIZATION, control="weight_precision", default="default"),)
    why_silent = "no path of faster-whisper-server reports it; it stands in its command line, environment or file"
    defaults_of = "faster-whisper (compute_type)"

    def asks(self, replies: Replies) -> tuple[str, ...]:
        """Ask for its description only where no model list came, or one whose models have a language."""
        return self.identity if _may_hear(replies) else ()

    def recognises(self, replies: Replies) -> bool:
        """Look for its title, or for its paths under the title that FastAPI gives to an application without one."""
        title, paths = nested(document(replies, API), "info").get("title"), api_paths(replies)
        hears = any(path.endswith(_TRANSCRIPTIONS) for path in paths) and not any(path.endswith(CHAT) for path in paths)
        return hears and (title == "faster-whisper-server" or (title == "FastAPI" and LOADED in paths))

    def questions(self, replies: Replies) -> tuple[str, ...]:
        """Ask what is loaded where there is such a path; its list of models asks huggingface.co and is not asked again."""
        return (LOADED,) if LOADED in api_paths(replies) else ()

    def read(self, replies: Replies, api: str) -> Reading:
        """Read its version from the package's title and what is loaded from the other's list."""
        info = nested(document(replies, API), "info")
        packaged = string(info.get("version")) if info.get("title") == "faster-whisper-server" else ""
        version = packaged or unversioned("its API has the version of FastAPI's template")
        loaded = _loaded(replies)
        return self._read(version, None if loaded is None else dict.fromkeys(loaded, "loaded"), api)


def _may_hear(replies: Replies) -> bool:
    found = listed(replies)
    return found is None or any("language" in entry for entry in found[1])


def _loaded(replies: Replies) -> tuple[str, ...] | None:
    """Give the ids of loaded models, which these servers list as bare strings."""
    models = document(replies, LOADED).get("models")
    return tuple(name for name in map(string, models) if name) if isinstance(models, list) else None


def _on_disk(replies: Replies) -> dict[str, str] | None:
    found, loaded = listed(replies), _loaded(replies)
    if found is None:
        return None
    word = "on disk" if loaded is None else "not loaded"
    states = {string(entry.get("id")): word for entry in found[1]}
    return states | dict.fromkeys(loaded or (), "loaded")


def _by_task(replies: Replies) -> dict[str, Told[ModelKind]]:
    """Tell the models that listen; those of speaches that speak are of many kinds."""
    found = listed(replies)
    listening = [entry for entry in found[1] if entry.get("task") == "automatic-speech-recognition"] if found else []
    told = Told(value=ModelKind.SPEECH_ENCODER_DECODER, where="its list of models, task automatic-speech-recognition")
    return {string(entry.get("id")): told for entry in listening}
