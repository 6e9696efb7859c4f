"""The shapes of a known thing: a source, a control, a fact, a price, a release; each with its date and range."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from gen.versions import parse_version
from gen.words import Applicability
from probes.evidence import ModelKind, Scalar, Technique
from probes.fleet import RuntimeName, ServiceKind
from probes.schema import Model

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,80}$")]
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


def _stated(text: str) -> str:
    parse_version(text)
    return text


# A release number as a source states it.
Stated = Annotated[str, AfterValidator(_stated)]


class Engine(StrEnum):
    """Whose controls and facts these are. Wider than the runtimes of an inventory: neighbours are known too."""

    OVMS = "ovms"
    OPENVINO_GENAI = "openvino-genai"
    OPENVINO = "openvino"
    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llama.cpp"
    OLLAMA = "ollama"
    LMSTUDIO = "lm-studio"
    TENSORRT_LLM = "tensorrt-llm"
    COMFYUI = "comfyui"
    WHISPERCPP = "whisper.cpp"
    SPEACHES = "speaches"
    FASTER_WHISPER_SERVER = "faster-whisper-server"
    TEXT_EMBEDDINGS_INFERENCE = "text-embeddings-inference"
    INFINITY = "infinity"


ENGINE_TITLES = {
    Engine.OVMS: "OVMS",
    Engine.OPENVINO_GENAI: "OpenVINO GenAI",
    Engine.OPENVINO: "OpenVINO",
    Engine.VLLM: "vLLM",
    Engine.SGLANG: "SGLang",
    Engine.LLAMACPP: "llama.cpp",
    Engine.OLLAMA: "Ollama",
    Engine.LMSTUDIO: "LM Studio",
    Engine.TENSORRT_LLM: "TensorRT-LLM",
    Engine.COMFYUI: "ComfyUI",
    Engine.WHISPERCPP: "whisper.cpp",
    Engine.SPEACHES: "speaches",
    Engine.FASTER_WHISPER_SERVER: "faster-whisper-server",
    Engine.TEXT_EMBEDDINGS_INFERENCE: "text-embeddings-inference",
    Engine.INFINITY: "Infinity",
}

# A runtime that is only known by the protocol it speaks has no engine: nothing is known of its controls.
ENGINES = {
    RuntimeName.OVMS: Engine.OVMS,
    RuntimeName.OPENVINO_GENAI_EMBEDDED: Engine.OPENVINO_GENAI,
    RuntimeName.OPENVINO: Engine.OPENVINO,
    RuntimeName.VLLM: Engine.VLLM,
    RuntimeName.LLAMACPP: Engine.LLAMACPP,
    RuntimeName.OLLAMA: Engine.OLLAMA,
    RuntimeName.LMSTUDIO: Engine.LMSTUDIO,
    RuntimeName.SGLANG: Engine.SGLANG,
    RuntimeName.TENSORRT_LLM: Engine.TENSORRT_LLM,
    RuntimeName.COMFYUI: Engine.COMFYUI,
    RuntimeName.WHISPERCPP: Engine.WHISPERCPP,
    RuntimeName.SPEACHES: Engine.SPEACHES,
    RuntimeName.FASTER_WHISPER_SERVER: Engine.FASTER_WHISPER_SERVER,
    RuntimeName.TEXT_EMBEDDINGS_INFERENCE: Engine.TEXT_EMBEDDINGS_INFERENCE,
}


class Reading(StrEnum):
    """How closely a source was looked at."""

    MEASURED = "measured"
    READ = "read"
    EXCERPT = "excerpt"
    UNVERIFIED = "unverified"


class Source(Model):
    """Where something was learned. `published` is absent for a source that bears no date.

    `describes` gives the newest release of each engine that it speaks of; a source that names none is checked for none.
    """

    id: Id
    title: Sentence
    url: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    repository: Annotated[str, StringConstraints(pattern=r"^github:[\w.-]+/[\w.-]+@[\w.-]+( \S.*)?$")] | None = None
    measurement: Sentence | None = None
    published: date | None = None
    checked: date
    describes: dict[Engine, Stated] = {}

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(place is not None for place in (self.url, self.repository, self.measurement)) != 1:
            raise ValueError("exactly one of url, repository (github:owner/name@commit path) and measurement")
        return self


class Bound(Model):
    """A release, a day, or both: from there on, or up to there and not including it."""

    release: Stated | None = None
    day: date | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.release is None and self.day is None:
            raise ValueError("a release or a day")
        return self


class Known(Model):
    """What all knowledge carries. `at` is the place within the source, `also` are further sources.

    `checked` says how old the knowledge is and never whether it applies: `true_from` and `true_until` do.
    """

    id: Id
    source: Id
    at: str = ""
    also: tuple[Id, ...] = ()
    checked: date
    reading: Reading
    true_from: Bound | None = None
    true_until: Bound | None = None


class Method(StrEnum):
    """Named ways of doing a technique that runtimes add and drop."""

    EAGLE3 = "EAGLE-3"
    DRAFT_MODEL = "draft model"
    PROMPT_LOOKUP = "prompt lookup"
    MTP = "MTP"
    DFLASH = "DFlash"
    XATTENTION = "XAttention"
    TRI_SHAPE = "tri-shape"


DeviceKind = Literal["cpu", "gpu", "npu"]


class KnownFact(Known):
    """One sentence that rules may rely on, true of some engines in a range of releases or days."""

    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]
    technique: Technique
    text: Sentence
    true_from: Bound


class Supports(KnownFact):
    """The runtime can do a method; no `devices` means that the source names none. `form` is a later variant."""

    kind: Literal["supports"]
    method: Method
    devices: tuple[DeviceKind, ...] = ()
    preview: bool = False
    form: str = ""


class Example(KnownFact):
    """The vendor shows the method on this model."""

    kind: Literal["example"]
    method: Method
    model: str
    parameters: str


class Selects(KnownFact):
    """The runtime decides this by itself."""

    kind: Literal["selects"]


class Default(KnownFact):
    """What a control is when nobody sets it, by the way the service is started."""

    kind: Literal["default"]
    setting: str
    path: str
    value: Scalar


class Foreign(KnownFact):
    """Switches of other engines or vendors that do nothing on these devices."""

    kind: Literal["foreign"]
    vendors: tuple[Literal["intel", "nvidia", "amd"], ...]


class Silent(KnownFact):
    """The documents stopped saying something; that is no statement that it changed."""

    kind: Literal["silent"]
    method: Method


AnyFact = Annotated[Supports | Example | Selects | Default | Foreign | Silent, Field(discriminator="kind")]


class FactFile(Model):
    facts: tuple[AnyFact, ...]


class Condition(Model):
    """The setting that makes a price due; without one it is always due."""

    setting: str
    equals: Scalar | None = None
    one_of: tuple[Scalar, ...] = ()
    above: float | None = None
    present: bool = False

    @model_validator(mode="after")
    def _one_test(self) -> Self:
        if (self.equals is not None) + bool(self.one_of) + (self.above is not None) + self.present != 1:
            raise ValueError("exactly one of equals, one_of, above and present")
        return self

    def holds(self, value: Scalar | None) -> bool:
        """Test a value; text is compared without regard to case, and a bool is never a number."""
        if value is None or self.present:
            return value is not None
        if self.above is not None:
            return isinstance(value, int | float) and not isinstance(value, bool) and value > self.above
        wanted = self.one_of if self.equals is None else (self.equals,)
        return any(same_value(value, item) for item in wanted)


class Tried(Model):
    """Requests of a device probe that put a price to the test: the capability's name, and words of what was asked."""

    name: str
    asked: str = ""


class KnownConflict(Known):
    """A price or an exclusion that comes with a technique or one of its methods.

    `when` and `unless` name the settings that make it due and those that spare it; no `devices` means any. `tried` are
    the requests of a probe that speak for or against it, on their own device and version.
    """

    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]
    technique: Technique
    method: Method | None = None
    against: Technique | None = None
    devices: tuple[DeviceKind, ...] = ()
    when: Condition | None = None
    unless: Condition | None = None
    tried: tuple[Tried, ...] = ()
    text: Sentence
    true_from: Bound


class ConflictFile(Model):
    conflicts: tuple[KnownConflict, ...]


class Card(Known):
    """What a maker says of a card: `memory_gib` it carries and the nominal speed of it."""

    title: Sentence
    memory_gib: Annotated[float, Field(gt=0)]
    memory_gb_s: Annotated[float, Field(gt=0)]


class CardFile(Model):
    cards: tuple[Card, ...]


class News(Model):
    """One thing a release brought, for people; rules read facts and conflicts instead."""

    id: Id
    technique: Technique | None = None
    text: Sentence


class Release(Model):
    """A published version of an engine."""

    engine: Engine
    version: Stated
    published: date
    source: Id
    checked: date
    reading: Reading
    note: str = ""
    brings: tuple[News, ...] = ()


class ReleaseFile(Model):
    releases: tuple[Release, ...]


class SourceFile(Model):
    sources: tuple[Source, ...]


class Trait(StrEnum):
    """What a model is made of or does, as far as a technique asks for it."""

    WEIGHTS = "weights"
    ATTENTION = "attention"
    DECODE = "token-by-token decode"
    KV_CACHE = "kv cache"
    TEXT_CONTEXT = "text context"


class KindEntry(Model):
    """Whether a technique bears on a kind of service, and the sentence that says why."""

    applicability: Literal[Applicability.APPLIES, Applicability.DIFFERENT, Applicability.DOES_NOT_APPLY]
    why: Sentence


class TechniqueEntry(Known):
    """What a technique is, what it needs, where it pays and to which kinds of service it applies.

    `requires` are the traits without which there is nothing to apply it to. `kinds` speaks of services of which
    nothing but the inventory's word is known.
    """

    technique: Technique
    about: Sentence
    needs: tuple[Sentence, ...]
    requires: Annotated[tuple[Trait, ...], Field(min_length=1)]
    subject: str | None = None
    pays_in: tuple[str, ...] = ()
    kinds: dict[ServiceKind, KindEntry]


class ModelEntry(Known):
    """A kind of model by its traits: those it has and those it lacks, each with the sentence that says so.

    `serves` are the kinds of service it may stand behind, the commonest first. `otherwise` is for techniques of which
    more than the traits decides.
    """

    model: ModelKind
    about: Sentence
    serves: Annotated[tuple[ServiceKind, ...], Field(min_length=1)]
    has: dict[Trait, Sentence]
    lacks: dict[Trait, Sentence]
    otherwise: dict[Technique, KindEntry] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if set(self.has) ^ set(self.lacks) != set(Trait):
            raise ValueError("each trait once, in `has` or in `lacks`")
        return self


class ModelFile(Model):
    models: tuple[ModelEntry, ...]


class KindNote(Model):
    """What governs a kind of service in the place of what does not apply to it."""

    instead: Sentence


class TechniqueFile(Model):
    techniques: tuple[TechniqueEntry, ...]
    kinds: dict[ServiceKind, KindNote]


def same_value(one: Scalar, other: Scalar) -> bool:
    """Compare two settings: 'U8' is 'u8', 2 is 2.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return one.casefold() == other.casefold()
    return one == other
