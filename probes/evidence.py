"""The seam between probing and deciding: what one run saw, and how a run becomes an immutable file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from probes.schema import Model

SCHEMA: Final = "inference-adr/run/1"

Scalar = bool | int | float | str


class Technique(StrEnum):
    """The seven techniques, in the order of the matrix."""

    QUANTIZATION = "quantization"
    PREFIX_CACHING = "automatic-prefix-caching"
    DISAGGREGATION = "disaggregated-prefill-decode"
    FLASH_ATTENTION = "flash-attention"
    CONTINUOUS_BATCHING = "continuous-batching"
    KV_CACHE = "kv-cache-management"
    SPECULATIVE_DECODING = "speculative-decoding"


class ModelKind(StrEnum):
    """What a model is by its structure, which decides what can be done to it, and never by its name.

    The last two are known by what they do; of what they are made is left open.
    """

    DECODER = "autoregressive decoder"
    MULTIMODAL_DECODER = "multimodal decoder"
    STATE_SPACE_DECODER = "state-space decoder"
    ENCODER_DECODER = "encoder-decoder"
    SPEECH_ENCODER_DECODER = "speech encoder-decoder"
    ENCODER = "transformer encoder"
    FEED_FORWARD = "network without attention"
    RECURRENT = "recurrent network"
    DIFFUSION = "diffusion pipeline"
    GENERATOR = "token generator"
    FORWARD_ONLY = "one-pass network"


_OPEN: Final = {
    ModelKind.GENERATOR: frozenset(
        {
            ModelKind.DECODER,
            ModelKind.MULTIMODAL_DECODER,
            ModelKind.STATE_SPACE_DECODER,
            ModelKind.ENCODER_DECODER,
        }
    ),
    ModelKind.FORWARD_ONLY: frozenset({ModelKind.ENCODER, ModelKind.FEED_FORWARD, ModelKind.RECURRENT}),
}


def same_kind(one: ModelKind, other: ModelKind) -> bool:
    """Tell whether two sources can both be right: one may leave open what the other tells."""
    return one is other or other in _OPEN.get(one, ()) or one in _OPEN.get(other, ())


def leaves_open(kind: ModelKind) -> bool:
    """Tell a kind that is known by what the model does alone."""
    return kind in _OPEN


class ProvenanceKind(StrEnum):
    """How something is known, strongest first."""

    MEASURED = "measured"
    OBSERVED = "observed"
    INFERRED = "inferred"
    DECLARED = "declared"
    DOCUMENTED = "documented"


class MissingReason(StrEnum):
    """Why a value is not there. A missing value is never 0 and never blank."""

    NOT_APPLICABLE = "not applicable"
    UNSUPPORTED = "unsupported"
    NO_SENSOR = "no sensor"
    NOT_CONFIGURED = "not configured"
    NOT_REACHABLE = "not reachable"
    REFUSED = "refused"
    FAILED = "failed"
    NOT_MEASURED = "not measured"
    TOO_FEW_SAMPLES = "too few samples"
    SKIPPED = "skipped"


class Direction(StrEnum):
    """Which way a metric improves."""

    LOWER = "lower is better"
    HIGHER = "higher is better"
    NEUTRAL = "neither"


class Per(StrEnum):
    """What one sample of a metric stands for."""

    REQUEST = "request"
    REPETITION = "repetition"
    RUN = "run"


class RunKind(StrEnum):
    DEVICES = "devices"
    ENDPOINT = "endpoint"
    MICRO = "micro"
    SURVEY = "survey"
    LOAD = "load"
    CONTRACT = "contract"
    QUALITY = "quality"
    DECLARED = "declared"
    WORKLOAD = "workload"


class CapabilityState(StrEnum):
    """What running a request for a setting showed; nothing at all where it was skipped or failed."""

    REFUSED = "refused"
    ACCEPTED = "accepted"
    INERT = "inert"
    EFFECTIVE = "effective"
    FAILED = "failed"
    SKIPPED = "skipped"


class EndpointState(StrEnum):
    """What an address did when it was asked; only the last one answers requests for text."""

    NOT_CONFIGURED = "not configured"
    NOT_REACHABLE = "not reachable"
    NOT_AN_INFERENCE_SERVER = "not an inference server"
    NEEDS_LOGIN = "redirects to a login page"
    NEEDS_KEY = "needs a key"
    ANSWERS_ERROR = "answers 200 with an error"
    LOADING = "loading"
    EMPTY = "lists no model"
    FAILED = "failed"
    HANGS = "hangs on generation"
    LISTED = "listed, not generating"
    GENERATING = "generating"


class Missing(Model):
    """A value that is not there, with the reason in the runtime's or the tool's own words."""

    missing: MissingReason
    detail: str = ""


class Provenance(Model):
    """How and when something became known. `source` is a run id, a file, a URL or a source id."""

    kind: ProvenanceKind
    date: date
    source: str


class Setting(Model):
    """The value of one control, as something saw it.

    `default_of` names the program and version whose default it is, where the file read leaves the control out.
    `without_effect` says why the value, although set, changes nothing.
    """

    technique: Technique
    control: str
    value: Scalar
    provenance: Provenance
    default_of: str = ""
    without_effect: str = ""


class KindClaim(Model):
    """What one source says a model is. `where` is the file and field, or the answer, that says so."""

    kind: ModelKind
    where: str
    provenance: Provenance


class Metric(Model):
    """Samples of one quantity with their unit, or the reason why there are none.

    `arm` names the variant of an A/B run that the samples belong to, "" for the whole run.
    """

    name: str
    unit: str
    direction: Direction
    per: Per
    arm: str = ""
    samples: tuple[float, ...] = ()
    missing: Missing | None = None

    @model_validator(mode="after")
    def _samples_or_reason(self) -> Self:
        if bool(self.samples) == (self.missing is not None):
            raise ValueError("either samples or the reason why there are none, and not both")
        return self


class Capability(Model):
    """One request made of a device or engine and what came of it.

    `documented` is what a document says about the request, to be read beside what came of it. A request
    that serves no technique has none.
    """

    name: str
    technique: Technique | None
    requested: str
    state: CapabilityState
    words: str = ""
    effect: str = ""
    documented: str = ""
    seconds: float | None = None


class HostTuning(Model):
    """Host settings that move inference timings; each value or the reason it could not be read.

    The descriptions say what a setting does to inference and how it was read.
    """

    governor: str | Missing = Field(
        description="Powersave keeps clocks low between tokens, so that short steps run slow and timings scatter. "
        "Read from cpufreq in sysfs, over all cores."
    )
    huge_pages: str | Missing = Field(
        description="Pages set aside for programs that ask for them; weights in them cost fewer address look-ups. "
        "Read from /proc/meminfo."
    )
    transparent_huge_pages: str | Missing = Field(
        description="With always, the kernel gives large pages to weights and KV cache by itself; with madvise, "
        "only where a program asks. Read from sysfs."
    )
    swap_bytes: int | Missing = Field(
        description="Weights or KV cache in swap stall every token; without swap, too large a pool ends the process instead. "
        "Read from /proc/meminfo."
    )
    numa_nodes: int | Missing = Field(
        description="Decode reads all weights for each token; from another node's memory that is slower. Counted in sysfs."
    )
    container_cpu_limit: float | Missing = Field(
        description="A limit below the cores makes threads wait in turns: the runtime starts one per core it sees. "
        "Read from the control group."
    )
    container_memory_bytes: int | Missing = Field(
        description="Weights, KV cache and the copies made while compiling have to fit, or the process is killed. "
        "Read from the control group."
    )


class Host(Model):
    """A machine by its hardware. `fingerprint` is 12 hex digits over CPU, cores, memory and accelerators.

    A result file of another tool describes no machine; it stands under an alias, and what it is is missing.
    The descriptions say what a fact does to inference and how it was read.
    """

    alias: str
    fingerprint: str
    cpu: str = Field(description="Its memory channels bound decode, its cores prefill. Read from /proc/cpuinfo.")
    isa: tuple[str, ...] = Field(
        description="They choose the kernels: VNNI and AMX multiply 8-bit weights directly, bf16 and fp16 halve the traffic; "
        "without them the runtime computes in f32. Those that every core has, from the flags in /proc/cpuinfo."
    )
    physical_cores: int | Missing = Field(
        description="Prefill scales with cores, not with threads. Distinct core numbers in /proc/cpuinfo, "
        "else asked of the system."
    )
    logical_cores: int | Missing = Field(
        description="More than the cores means two threads share one, which adds little to inference. Counted in /proc/cpuinfo."
    )
    memory_bytes: int | Missing = Field(description="Weights and KV cache have to fit. Read from /proc/meminfo.")
    os: str = Field(description="Names the build of the runtime that fits. Read from /etc/os-release.")
    kernel: str = Field(
        description="Carries the scheduler, and for GPUs half of the driver. Read from /proc/sys/kernel/osrelease."
    )
    driver: str | Missing = Field(
        description="Kernels of an accelerator change with its driver, in speed and in what they support. "
        "Read from the kernel modules of the devices on the PCI bus."
    )
    tuning: HostTuning


class Device(Model):
    """An inference device as its runtime names it; `properties` are what it let us read."""

    name: str
    full_name: str
    properties: dict[str, JsonValue] = {}


class Runtime(Model):
    """The engine that ran: `name` is the product's word for it."""

    name: str
    version: str | Missing


class ModelFacts(Model):
    id: str
    revision: str | Missing = Missing(missing=MissingReason.NOT_MEASURED)
    sha256: str | Missing = Missing(missing=MissingReason.NOT_MEASURED)
    quantization: str | Missing = Missing(missing=MissingReason.NOT_MEASURED)
    bytes: int | Missing = Missing(missing=MissingReason.NOT_MEASURED)


class Load(Model):
    """The shape of the load. Token counts are the server's own unless the metric says otherwise.

    A `quick` run used shorter prompts or answers than the measurement was made for.
    """

    schedule: str
    concurrency: int
    requests: int
    warmup_requests: int
    prompt_tokens: tuple[int, ...] | Missing
    max_tokens: int
    prompt_set_sha256: str
    quick: bool = False


class Decoding(Model):
    temperature: float
    do_sample: bool
    ignore_eos: bool
    seed: int | None = None


class Validity(Model):
    """Whether the run may be used; an invalid run is kept and shown with its reason codes."""

    valid: bool
    reasons: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _invalid_needs_reason(self) -> Self:
        if self.valid == bool(self.reasons):
            raise ValueError("reasons for an invalid run, and none for a valid one")
        return self


class Tool(Model):
    """What wrote the file."""

    name: Literal["inference-adr"] = "inference-adr"
    version: str
    git_revision: str | Missing
    command: str


class ModelState(Model):
    """One model a server lists, with the server's own word for its state."""

    id: str
    state: str
    detail: str = ""


class Endpoint(Model):
    """What an address answered."""

    url: str | Missing
    state: EndpointState
    detail: str = ""
    models: tuple[ModelState, ...] = ()


class Served(Model):
    """What answered on one side of an A/B run whose sides differ in more than settings."""

    server: Host | Missing
    device: Device | Missing
    runtime: Runtime | Missing
    model: ModelFacts | Missing
    endpoint: Endpoint
    serving_sha256: str | Missing
    settings: tuple[Setting, ...] = ()


class Arm(Model):
    """One variant of an A/B run: what it is called and the settings that make it differ.

    `served` is there only where the fields of the run cannot speak for both sides.
    """

    name: str
    role: Literal["baseline", "candidate"]
    settings: dict[str, Scalar] = {}
    served: Annotated[Served | None, Field(exclude_if=lambda served: served is None)] = None


class LocalScope(Model):
    """A machine outside the inventory, known by its hardware fingerprint."""

    scope: Literal["local"] = "local"
    fingerprint: str


class FleetScope(Model):
    """A service of the inventory."""

    scope: Literal["fleet"] = "fleet"
    service: str


Scope = Annotated[LocalScope | FleetScope, Field(discriminator="scope")]


class Run(Model):
    """One run, complete: what was asked, of what, where, when, and everything that came back.

    `endpoint` is for a run against one address; `survey` says, for every service of the inventory,
    what its address did when one machine asked.

    `native` keeps the runtime's own report apart from the standardised fields, as the llm-d
    Benchmark Report does.
    """

    schema_: Literal["inference-adr/run/1"] = Field(default=SCHEMA, alias="schema")
    id: str
    content_sha256: str = ""
    kind: RunKind
    subject: str
    started_at: datetime
    ended_at: datetime
    scope: Scope
    tool: Tool
    client: Host
    server: Host | Missing
    device: Device | Missing
    runtime: Runtime | Missing
    model: ModelFacts | Missing
    endpoint: Endpoint | None = None
    survey: dict[str, Endpoint] = {}
    serving_sha256: str | Missing
    settings: tuple[Setting, ...] = ()
    kinds: Annotated[tuple[KindClaim, ...], Field(exclude_if=lambda kinds: not kinds)] = ()
    load: Load | Missing
    decoding: Decoding | Missing
    validity: Validity
    arms: tuple[Arm, ...] = ()
    metrics: tuple[Metric, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    native: dict[str, JsonValue] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.started_at.tzinfo is None or self.ended_at.tzinfo is None:
            raise ValueError("times with a UTC offset")
        if self.ended_at < self.started_at:
            raise ValueError("an end that is not before the start")
        named = {arm.name for arm in self.arms}
        stray = {metric.arm for metric in self.metrics if metric.arm} - named
        if stray:
            raise ValueError(f"metrics of arms that the run declares; {sorted(stray)} are not among {sorted(named)}")
        return self

    @property
    def date(self) -> date:
        """The calendar day of the start, in UTC."""
        return self.started_at.astimezone(UTC).date()

    @property
    def quick(self) -> bool:
        """Whether it was cut short, so that it never takes the place of a whole one."""
        return not isinstance(self.load, Missing) and self.load.quick

    def metric(self, name: str, arm: str = "") -> Metric | None:
        """Find a metric by name and arm."""
        return next((m for m in self.metrics if m.name == name and m.arm == arm), None)


def run_id(started_at: datetime, host_alias: str, what: str) -> str:
    """Name a run by UTC second, host alias and subject, in letters that every file system keeps."""
    stamp = started_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{stamp}-{slug(host_alias)}-{slug(what)}"


def slug(text: str) -> str:
    """Reduce any text to lower-case ASCII words joined by '-', at most 60 characters, never empty."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
    return words or "x" + hashlib.sha256(text.encode()).hexdigest()[:8]


def newest(runs: Iterable[Run], kind: RunKind, subject: str) -> Run | None:
    """Pick the newest valid run of a kind and subject."""
    matching = [run for run in runs if run.kind is kind and run.subject == subject and run.validity.valid]
    return max(matching, key=lambda run: (run.started_at, run.id), default=None)
