"""A device's page shows all that was proven of it, whichever run proved it."""

from __future__ import annotations

from gen.site import pages
from probes.archive import seal
from probes.evidence import CapabilityState, Load, Run, Runtime
from tests.gen import specimens
from tests.gen.test_site import TODAY

PAGE = "devices/local-abc123abc123-cpu.md"


def shorter(**changes: object) -> Run:
    """Ask the first of the capabilities again, later, and refuse it."""
    whole = specimens.devices_run()
    (first, *_) = whole.capabilities
    again = first.model_copy(update={"state": CapabilityState.INERT, "effect": "nothing this time"})
    later = {name: getattr(whole, name).replace(hour=23) for name in ("started_at", "ended_at")}
    identity = whole.id.replace("T09", "T23")
    return seal(whole.model_copy(update={"id": identity, "capabilities": (again,), **later, **changes}))


def page(*runs: Run) -> str:
    return pages(specimens.corpus(local_runs=runs), TODAY)[PAGE]


def test_a_short_run_hides_nothing_that_a_whole_one_proved() -> None:
    shown = page(specimens.devices_run(), shorter())
    newest, _, rest = shown.partition("4 proven by an earlier run and not asked since")
    proven, _, untried = rest.partition("1 never tried yet")
    assert "nothing this time" in newest
    assert "cache bytes fall to 51" not in shown
    assert "the same token ids and cache bytes" in proven
    assert "KV cache in f32" in untried


def test_a_quick_benchmark_takes_no_picture_from_a_whole_one() -> None:
    whole = specimens.micro_run()
    load = Load(
        schedule="closed loop",
        concurrency=1,
        requests=14,
        warmup_requests=2,
        prompt_tokens=(512,),
        max_tokens=12,
        prompt_set_sha256="0" * 64,
        quick=True,
    )
    later = {name: getattr(whole, name).replace(hour=23) for name in ("started_at", "ended_at")}
    changes = {"id": whole.id.replace("T09", "T23"), "load": load, **later}
    quick = seal(whole.model_copy(update=changes))
    shown = page(specimens.devices_run(), whole, quick).partition("What techniques are worth here")[2]
    assert whole.id.lower() in shown.partition("## Properties")[0]
    assert quick.id.lower() not in shown.partition("## Properties")[0]


def test_another_release_of_the_runtime_proves_nothing_of_this_one() -> None:
    shown = page(specimens.devices_run(), shorter(runtime=Runtime(name="openvino", version="2026.5.0")))
    assert "proven by an earlier run" not in shown
