"""The inventory: what exists and what was declared, by people, with dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, StringConstraints, model_validator
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function, plain_serializer_function_ser_schema

from probes import strictyaml
from probes.errors import UsageError
from probes.evidence import Scalar, Technique
from probes.schema import Model

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,40}$")]
INVENTORY = Path("fleet.yml")
_REFERENCE = re.compile(r"^\$\{([A-Z][A-Z0-9_]*)\}$")
_CONFIG_REFERENCE = re.compile(r"^\$\{([A-Z][A-Z0-9_]*)\}(?:/|$)")


class Unknown(Model):
    """Something the source does not say; the question stands where the answer belongs.

    `among` are the answers it leaves open, where it says that much; empty when it does not.
    """

    unknown: str
    among: tuple[Name, ...] = ()


class ServiceKind(StrEnum):
    TEXT_GENERATION = "text generation"
    EMBEDDING = "embedding"
    VISION = "vision"
    DIFFUSION = "diffusion"
    SPEECH_TO_TEXT = "speech to text"
    CLASSIFIER = "classifier"
    MEDIA = "media (not inference)"


class RuntimeName(StrEnum):
    """The engines the project knows; `none` is for tenants that only share a card."""

    OVMS = "ovms"
    OPENVINO_GENAI_EMBEDDED = "openvino-genai (embedded)"
    OPENVINO = "openvino"
    VLLM = "vllm"
    LLAMACPP = "llama.cpp"
    OLLAMA = "ollama"
    LMSTUDIO = "lm-studio"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    COMFYUI = "comfyui"
    WHISPERCPP = "whisper.cpp"
    SPEACHES = "speaches"
    FASTER_WHISPER_SERVER = "faster-whisper-server"
    TEXT_EMBEDDINGS_INFERENCE = "text-embeddings-inference"
    OPENAI_COMPATIBLE = "openai-compatible"
    NONE = "none"


_ADDRESS = "an http(s) address without user, password, query or fragment, or an environment reference such as ${OVMS_URL}"


def _reference(value: str) -> str:
    if not _REFERENCE.match(value):
        raise ValueError("an environment reference such as ${OVMS_API_KEY}; keys are never written down")
    return value


def _address(value: str) -> str:
    if _REFERENCE.match(value):
        return value
    if "${" in value:
        raise ValueError("one environment reference that holds the whole address, such as ${OVMS_URL}, and nothing beside it")
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(_ADDRESS) from None
    if parts.username or parts.password or parts.query:
        raise ValueError("an address without user, password or query; keys come from the environment")
    if not usable or parts.fragment or re.search(r"[\s\x00-\x1f]", value):
        raise ValueError(_ADDRESS)
    return value


def _file(value: str) -> str:
    if "${" in value:
        raise ValueError("a path; an environment reference is read in 'url' and 'api_key' only")
    return value


def _config_path(value: str) -> str:
    if not value.strip() or value.startswith(("/", "~", "\\")) or "\x00" in value or ":" in value[:2]:
        raise ValueError("a path relative to the inventory, or one below a reference such as ${MODELS}/qwen3-8b")
    if value.startswith("$") and not _CONFIG_REFERENCE.match(value):
        raise ValueError("a reference to a folder such as ${MODELS}/qwen3-8b")
    return value


Address = Annotated[str, AfterValidator(_address)]
ConfigPath = Annotated[str, AfterValidator(_config_path)]
Reference = Annotated[str, AfterValidator(_reference)]
FileName = Annotated[str, AfterValidator(_file)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class Host(Model):
    title: str
    role: str
    availability_gated: bool = False
    note: str = ""


class Device(Model):
    title: str
    vendor: Literal["intel", "nvidia", "amd"]
    host: Name | Unknown
    as_of: date | None = None


class Declared(Model):
    """A declared value with the day it was declared, when that differs from the service's."""

    value: Scalar
    as_of: date
    source: str = ""


class LatencyGuards(Model):
    """When a load on a service stops at once; answers on their way are still read to their end.

    `first_byte_s` is the longest wait for an answer to begin, `itl_s` the longest mean time between eight pieces of a
    stream, and `latency_s` the longest an answer may take: half of `timeout_s` unless it stands here.
    """

    first_byte_s: Seconds = 30.0
    itl_s: Seconds = 2.0
    latency_s: Seconds | None = None


class ProbeLimits(Model):
    """The load a probe may put on a service. The defaults are safe for a production GPU.

    A request that brings nothing for `silence_s` is given up, and a load that meets one stops. With `may_load`, a
    request may make a server such as Ollama load or reload the model it names.
    """

    concurrency: Annotated[int, Field(ge=1, le=256)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=8192)] = 16
    requests: Annotated[int, Field(ge=0, le=10000)] = 2
    timeout_s: Seconds = 60.0
    silence_s: Seconds = 15.0
    may_load: bool = False
    guards: LatencyGuards = LatencyGuards()


class ServedModel(Model):
    id: str | Unknown
    parameters: str | Unknown = Unknown(unknown="how many parameters?")


class ConfigKind(StrEnum):
    """The formats of declared configuration that are read."""

    GRAPH = "graph.pbtxt"
    OVMS_CONFIG = "ovms config.json"
    COMMAND_LINE = "command line"
    ENVIRONMENT = "environment"
    UNIT = "systemd unit"
    KUBERNETES = "kubernetes"
    COMPOSE = "compose"
    VLLM_CONFIG = "vllm config"
    MODELFILE = "modelfile"
    MODEL_FOLDER = "model folder"
    GGUF = "gguf"


class ConfigFile(Model):
    """A file or folder that says how a service is configured.

    `kind` is told from name and content unless it stands here. `container` names a container of a manifest or a
    service of a compose file, `entry` a key of its ConfigMaps or a model of an OVMS config.json. `as_of` is the
    day the file was taken from where it is in force.
    """

    path: ConfigPath
    kind: ConfigKind | None = None
    container: str = ""
    entry: str = ""
    as_of: date | None = None


class Service(Model):
    """One service: what serves, where, with which declared settings."""

    title: str
    kind: ServiceKind
    runtime: RuntimeName
    runtime_version: str | Unknown
    host: Name | Unknown
    device: Name | Unknown
    model: ServedModel | None = None
    url: Address | None = None
    api_key: Reference | None = None
    ca_file: FileName | None = None
    insecure_tls: bool = False
    settings: dict[str, Scalar | Declared] = {}
    config: tuple[ConfigPath | ConfigFile, ...] = ()
    as_of: date | None = None
    availability_gated: bool = False
    settings_live_on_host: bool = False
    governed_by: str = ""
    clients: tuple[Name, ...] = ()
    probing: ProbeLimits = ProbeLimits()
    questions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _inference_has_a_runtime(self) -> Self:
        if (self.runtime is RuntimeName.NONE) != (self.kind is ServiceKind.MEDIA):
            raise ValueError("runtime 'none' for media tenants and for nothing else")
        return self


class Client(Model):
    """A program that sends requests, with the traits that decide what pays."""

    title: str
    stable_prefix: bool = False
    admission_caps: tuple[Literal["global", "per backend"], ...] = ()
    protects: tuple[str, ...] = ()
    retries: bool = False


class Slo(Model):
    """What a good request keeps: seconds at most, tokens per second at least. The names are those of the load's metrics."""

    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    latency_s: Seconds | None = None
    decode_tok_s: Annotated[float, Field(gt=0, le=100_000)] | None = None
    as_of: date | None = None
    source: str = ""

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if not self.bounds:
            raise ValueError("at least one bound: ttft_s, tpot_s, latency_s or decode_tok_s")
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """Give the bounds that are set, by the metric they bound."""
        every = {
            "ttft_s": self.ttft_s,
            "tpot_s": self.tpot_s,
            "latency_s": self.latency_s,
            "decode_tok_s": self.decode_tok_s,
        }
        return {name: bound for name, bound in every.items() if bound is not None}


class Workload(Model):
    """A group of services that one row of the coverage page speaks of, and what its requests have to keep."""

    title: str
    services: tuple[Name, ...]
    slo: Slo | None = None


class CoTenant(Model):
    """Two services on one card; what the newcomer must not take from the other."""

    tenant: Name
    device: Name | Unknown
    resource: Literal["vram", "compute", "memory"]


class Eviction(Model):
    policy: Literal["demand", "idle", "none"]
    scope: Literal["gpu", "host"]


class Operations(Model):
    """How the fleet is run, as far as it bears on the techniques."""

    alerts: tuple[Literal["queue", "kv cache"], ...] = ()
    eviction: Eviction | None = None
    reliability_headroom: bool = False
    incidents: tuple[Incident, ...] = ()
    capacity_schedulers: dict[Name, str] = {}


class Incident(Model):
    """Something that went wrong once and must not come back."""

    technique: Technique
    what: str
    cause: str
    devices: tuple[Name, ...] = ()


class Topology(Model):
    """What prefill/decode pools would need. Absent means that there is none."""

    compatible_pools: tuple[tuple[Name, ...], ...] = ()
    interconnect_gbit_s: float | None = None
    kv_transfer: str | None = None


class Gates(Model):
    """How far a metric may move before a comparison counts as better or worse."""

    latency_percent: Annotated[float, Field(gt=0, le=100)] = 5.0
    throughput_percent: Annotated[float, Field(gt=0, le=100)] = 5.0
    error_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    quality_points: Annotated[float, Field(ge=0, le=100)] = 1.0


class Freshness(Model):
    """After how many days something looks stale."""

    evidence_days: Annotated[int, Field(ge=1)] = 90
    declaration_days: Annotated[int, Field(ge=1)] = 90
    source_days: Annotated[int, Field(ge=1)] = 120
    review_days: Annotated[int, Field(ge=1)] = 180


class Ignored(Model):
    """A finding that the checks pass over until a day. `about` is its file, or the run, control or service it names."""

    rule: Annotated[str, StringConstraints(pattern=r"^IA\d{3}$")]
    about: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n\r]*$")]
    by: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n\r]*$")]
    reason: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n\r]*$")]
    until: date


class Policies(Model):
    gates: Gates = Gates()
    freshness: Freshness = Freshness()
    ignore: tuple[Ignored, ...] = ()


class EmbeddedSettings(Model):
    """What the embedded service is asked to run with, in the names OVMS uses; None leaves the choice to the runtime.

    `cache_size` is in GiB, and 0 lets the cache grow. A count of 0 is refused here because the runtime
    does not: with `max_num_batched_tokens` 0 it generates nothing, for ever and without a word (2026.4.1).
    """

    device: str = "CPU"
    kv_cache_precision: str | None = Field(default=None, alias="KV_CACHE_PRECISION")
    enable_prefix_caching: bool | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    cache_size: Annotated[int, Field(ge=0)] | None = None
    dynamic_split_fuse: bool | None = None


class _AsWritten:
    """Has the names and types of settings checked, and keeps a mapping of those that were written."""

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(
            lambda settings: settings.model_dump(by_alias=True, exclude_unset=True, exclude_none=True),
            handler(EmbeddedSettings),
            serialization=plain_serializer_function_ser_schema(dict),
        )


class LocalService(Model):
    """The embedded service of whatever machine runs the probe; its scope is that machine."""

    title: str
    settings: Annotated[dict[str, Scalar], _AsWritten()]
    probing: ProbeLimits = ProbeLimits()


class Fleet(Model):
    """The whole inventory. `as_of` dates every declaration that carries no date of its own."""

    schema_: Literal["inference-adr/fleet/1"] = Field(alias="schema")
    name: str
    as_of: date
    source: str
    hosts: dict[Name, Host]
    devices: dict[Name, Device]
    services: dict[Name, Service]
    clients: dict[Name, Client] = {}
    workloads: dict[Name, Workload] = {}
    co_tenants: tuple[CoTenant, ...] = ()
    operations: Operations = Operations()
    topology: Topology = Topology()
    trackers: dict[Technique, str] = {}
    policies: Policies = Policies()
    embedded: LocalService
    questions: tuple[str, ...] = ()

    def declared(self, service: str) -> dict[str, Declared]:
        """Give each declared setting of a service with its date."""
        entry = self.services[service]
        day = entry.as_of or self.as_of
        return {
            control: value if isinstance(value, Declared) else Declared(value=value, as_of=day, source=self.source)
            for control, value in entry.settings.items()
        }

    def config_files(self, service: str) -> tuple[ConfigFile, ...]:
        """Give the files that declare a service's configuration, each with its date."""
        entry = self.services[service]
        files = (ConfigFile(path=one) if isinstance(one, str) else one for one in entry.config)
        return tuple(one.model_copy(update={"as_of": one.as_of or entry.as_of or self.as_of}) for one in files)


Operations.model_rebuild()
Fleet.model_rebuild()


def load_fleet(path: Path) -> Fleet:
    """Read `fleet.yml`.

    Raises:
        InputError: with file, line, field, value and expectation of every problem.
    """
    return strictyaml.load(path, Fleet, check=dangling)


def find_fleet(path: Path) -> Fleet | None:
    """Load the inventory of a command that asks an address; None without one, as an address needs none.

    Raises:
        UsageError: a file that was named is not there.
        InputError: as `load_fleet`.
    """
    if path.exists():
        return load_fleet(path)
    if path != INVENTORY:
        raise UsageError(f"--fleet {path}: does not exist")
    return None


def dangling(fleet: Fleet) -> Iterator[tuple[strictyaml.Loc, str, str]]:
    """Yield every name that refers to nothing, as (field path, found, expected)."""
    hosts, devices, services, clients = fleet.hosts, fleet.devices, fleet.services, fleet.clients
    uses: list[tuple[strictyaml.Loc, str | Unknown, Mapping[str, object]]] = []
    for key, device in devices.items():
        uses.append((("devices", key, "host"), device.host, hosts))
    for key, service in services.items():
        uses.append((("services", key, "host"), service.host, hosts))
        uses.append((("services", key, "device"), service.device, devices))
        uses.extend((("services", key, "clients", n), name, clients) for n, name in enumerate(service.clients))
    for key, workload in fleet.workloads.items():
        uses.extend((("workloads", key, "services", n), name, services) for n, name in enumerate(workload.services))
    for n, pair in enumerate(fleet.co_tenants):
        uses.append((("co_tenants", n, "tenant"), pair.tenant, services))
        uses.append((("co_tenants", n, "device"), pair.device, devices))
    for n, incident in enumerate(fleet.operations.incidents):
        uses.extend((("operations", "incidents", n, "devices", m), name, devices) for m, name in enumerate(incident.devices))
    uses.extend((("operations", "capacity_schedulers", name), name, devices) for name in fleet.operations.capacity_schedulers)
    for n, pool in enumerate(fleet.topology.compatible_pools):
        uses.extend((("topology", "compatible_pools", n, m), name, services) for m, name in enumerate(pool))
    for loc, name, known in uses:
        for one in (name,) if isinstance(name, str) else name.among:
            if one not in known:
                yield loc, f"is {one!r}", f"one of {', '.join(sorted(known))}"


def reference_name(value: str) -> str | None:
    """Name the environment variable that a value refers to, if it refers to one."""
    match = _REFERENCE.match(value)
    return match.group(1) if match else None


def resolve(value: str, environ: Mapping[str, str]) -> str | None:
    """Replace an environment reference by its value; None when the variable is unset or empty."""
    name = reference_name(value)
    return value if name is None else environ.get(name, "").strip() or None
