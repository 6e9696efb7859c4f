"""The plan says what will be asked of whom before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.errors import UsageError
from probes.fleet import ConfigFile, load_fleet
from probes.plan import EMBEDDED, Part, plan

FLEET = load_fleet(Path(__file__).parents[2] / "fleet.yml")


def test_everything_by_default_and_every_address_named() -> None:
    laid_out = plan(FLEET, {"OVMS_8B_URL": "http://10.0.0.1:8000"}, parts=[], services=[], quick=False)
    assert laid_out.parts == (Part.DEVICES, Part.ENDPOINTS, Part.MICRO)
    assert laid_out.embedded
    targets = {step.subject: step.target for step in laid_out.steps}
    assert targets["text-8b"] == "${OVMS_8B_URL} (API looked for at /v1 and /v3)"
    assert targets["text-30b"] == "OVMS_30B_URL is unset"
    assert "jellyfin" not in targets


def test_a_quick_plan_is_shorter() -> None:
    slow, quick = (plan(FLEET, {}, parts=[], services=[], quick=q) for q in (False, True))
    assert quick.about_s < 150 < slow.about_s < 900


def test_one_service_is_asked_alone() -> None:
    laid_out = plan(FLEET, {}, parts=[], services=["text-8b"], quick=False)
    assert (laid_out.parts, laid_out.services, laid_out.embedded) == ((Part.ENDPOINTS,), ("text-8b",), False)
    only = plan(FLEET, {}, parts=[], services=[EMBEDDED], quick=False)
    assert (only.services, only.embedded) == ((), True)


@pytest.mark.parametrize(
    ("services", "parts", "expected"),
    [
        (["text-8"], [], "did you mean text-8b"),
        (["jellyfin"], [], "has no 'url'"),
        (["text-8b"], [Part.MICRO], "endpoints only"),
    ],
)
def test_a_wrong_request_is_refused(services: list[str], parts: list[Part], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        plan(FLEET, {}, parts=parts, services=services, quick=False)


def test_the_load_of_a_service_that_allows_none_is_none() -> None:
    service = FLEET.services["text-8b"]
    silent = service.model_copy(update={"probing": service.probing.model_copy(update={"requests": 0})})
    fleet = FLEET.model_copy(update={"services": {"text-8b": silent}})
    (step,) = plan(fleet, {"OVMS_8B_URL": "http://h"}, parts=[Part.ENDPOINTS], services=["text-8b"], quick=False).steps
    assert step.load.startswith("none")


def test_files_that_declare_a_service_are_read_first() -> None:
    """What is wrong with one is told before minutes are spent."""
    service = FLEET.services["text-8b"].model_copy(update={"config": ("a.pbtxt", ConfigFile(path="b.yaml"))})
    fleet = FLEET.model_copy(update={"services": {"text-8b": service, "text-4b": FLEET.services["text-4b"]}})
    laid_out = plan(fleet, {}, parts=[], services=[], quick=False)
    assert (laid_out.parts[0], laid_out.declared) == (Part.DECLARED, ("text-8b",))
    assert (laid_out.steps[0].subject, laid_out.steps[0].target) == ("text-8b", "a.pbtxt, b.yaml")
    assert plan(fleet, {}, parts=[], services=["text-8b"], quick=False).parts == (Part.DECLARED, Part.ENDPOINTS)
    assert plan(fleet, {}, parts=[], services=["text-4b"], quick=False).parts == (Part.ENDPOINTS,)
    only = plan(fleet, {}, parts=[Part.DECLARED], services=["text-8b"], quick=False)
    assert (only.parts, only.services, only.embedded) == ((Part.DECLARED,), (), False)


def test_reading_files_that_nobody_names_is_refused() -> None:
    with pytest.raises(UsageError, match="no file to read; expected `config`"):
        plan(FLEET, {}, parts=[Part.DECLARED], services=[], quick=False)
