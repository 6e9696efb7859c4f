"""The inventory: what a wrong line says, and that the shipped one is the users' fleet."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from probes.errors import InputError
from probes.fleet import Fleet, LatencyGuards, ProbeLimits, RuntimeName, ServiceKind, Unknown, dangling, load_fleet, resolve
from probes.strictyaml import loads

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "fleet.yml").read_text(encoding="utf-8")


def refusal(old: str, new: str) -> str:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        loads(TEXT.replace(old, new, 1), Fleet, "fleet.yml", dangling)
    return str(caught.value)


def test_embedded_settings_stay_as_they_were_written() -> None:
    settings = load_fleet(ROOT / "fleet.yml").embedded.settings
    assert settings["KV_CACHE_PRECISION"] == "u8"
    assert "device" not in settings


def line_of(fragment: str) -> int:
    return TEXT[: TEXT.index(fragment)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("role: workstation", "rol: workstation", "rol: is not a known field"),
        ('"2026.2"', "2026.20", "put it in quotes, or 2026.20 becomes 2026.2"),
        ("runtime: ovms", "runtime: ovsm", "is 'ovsm'; expected one of 'ovms'"),
        ("as_of: 2026-07-10", "as_of: 2026-13-10", "as_of: is '2026-13-10'; expected date"),
        ("host: cluster", "host: clustre", "is 'clustre'; expected one of cluster, home-workstation"),
        ("services: [coder, gemma]", "services: [coder, gema]", "workloads.workstations.services.1: is 'gema'"),
        ("cache_size: 2", "cache_size: [2]", "settings.cache_size: is [2]"),
        ("title: GPU cluster\n", "title: GPU cluster\n    title: Again\n", "duplicate key"),
        ("availability_gated: true", "availability_gated: yes", "is 'yes'; expected boolean"),
        ("requests: 4000", "requests: -1", "is -1; expected greater than or equal to 0"),
        (
            "url: ${OVMS_8B_URL}",
            "url: http://${OVMS_HOST}:8000",
            "is 'http://${OVMS_HOST}:8000'; expected one environment reference",
        ),
        ("url: ${OVMS_8B_URL}", "url: http://h:8000x", "is 'http://h:8000x'; expected an http(s) address"),
        ("url: ${OVMS_8B_URL}", "url: 'http://[::1'", "is 'http://[::1'; expected an http(s) address"),
        ("url: ${OVMS_8B_URL}", "url: http://h/#v3", "is 'http://h/#v3'; expected an http(s) address"),
        ("url: ${OVMS_8B_URL}", "url: 'http://h/ v3'", "is 'http://h/ v3'; expected an http(s) address"),
        ("api_key: ${OVMS_API_KEY}", "ca_file: ${CA_FILE}", "is '${CA_FILE}'; expected a path"),
        ("max_num_seqs: 8", "max_sequences: 8", "embedded.settings.max_sequences: is not a known field"),
        ("max_num_seqs: 8", "max_num_seqs: 0", "embedded.settings.max_num_seqs: is 0; expected greater than or equal to 1"),
        ("max_num_seqs: 8", "max_num_seqs: many", "embedded.settings.max_num_seqs: is 'many'; expected integer"),
        ("dynamic_split_fuse: true", "dynamic_split_fuse: 1", "embedded.settings.dynamic_split_fuse: is 1; expected boolean"),
        ("schema: inference-adr/fleet/1", "schema: inference-adr/fleet/9", "is 'inference-adr/fleet/9'"),
    ],
)
def test_a_wrong_field_is_told_with_place_value_and_expectation(old: str, new: str, expected: str) -> None:
    message = refusal(old, new)
    assert expected in message
    assert message.startswith("fleet.yml:")


def test_the_line_named_is_the_line_of_the_field() -> None:
    assert refusal("max_num_seqs: 8", "max_num_seqs: 0").startswith(f"fleet.yml:{line_of('max_num_seqs: 8')}:")
    assert refusal("runtime: ovms", "runtime: ovsm").startswith(f"fleet.yml:{line_of('runtime: ovms')}:")


def test_all_problems_are_told_at_once() -> None:
    text = TEXT.replace("runtime: ovms", "runtime: ovsm").replace("vendor: nvidia", "vendor: nvidea")
    with pytest.raises(InputError) as caught:
        loads(text, Fleet, "fleet.yml", dangling)
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize("secret", ["sk-0123456789abcdef", "hunter2"])
def test_a_key_written_down_is_refused_and_not_repeated(secret: str) -> None:
    message = refusal("api_key: ${OVMS_API_KEY}", f"api_key: {secret}")
    assert "environment reference" in message
    assert secret not in message


def test_an_address_with_a_password_is_refused_and_the_password_not_repeated() -> None:
    message = refusal("url: ${OVMS_8B_URL}", "url: http://user:s3cret@host/v1")
    assert "without user, password" in message
    assert "s3cret" not in message


def test_an_empty_file_and_broken_yaml_are_told(tmp_path: Path) -> None:
    for text, expected in [
        ("", "mapping"),
        ("? [a, b]\n: 1", "no plain data"),
        ("a: &x [*x]", "no plain data"),
        ("a: [1", "not valid YAML"),
        ("\t- x", "not valid YAML"),
    ]:
        with pytest.raises(InputError, match=expected):
            loads(text, Fleet, "fleet.yml")
    path = tmp_path / "fleet.yml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load_fleet(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_fleet(tmp_path / "absent.yml")


def test_a_pipe_in_the_place_of_the_inventory_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fleet.yml")
    with pytest.raises(InputError, match=r"fleet\.yml: is no regular file"):
        load_fleet(tmp_path / "fleet.yml")


def test_the_shipped_inventory_is_the_reference_fleet() -> None:
    fleet = load_fleet(ROOT / "fleet.yml")
    text = {
        name for name, s in fleet.services.items() if s.kind is ServiceKind.TEXT_GENERATION and s.runtime is RuntimeName.OVMS
    }
    assert len(text) == 6
    for name in text:
        declared = fleet.declared(name)
        assert {c: declared[c].value for c in ("weight_precision", "KV_CACHE_PRECISION", "enable_prefix_caching")} == {
            "weight_precision": "INT4",
            "KV_CACHE_PRECISION": "u8",
            "enable_prefix_caching": True,
        }
        assert (declared["max_num_seqs"].value, declared["max_num_batched_tokens"].value) == (16, 2048)
        assert {value.as_of for value in declared.values()} == {date(2026, 7, 10)}
    pools = {name: fleet.declared(name)["cache_size"].value for name in text if "cache_size" in fleet.declared(name)}
    assert pools == {"text-8b": 2, "text-8b-b580": 2, "text-30b": 4}
    assert isinstance(fleet.services["gemma"].device, Unknown)
    assert isinstance(fleet.co_tenants[0].device, Unknown)


def test_the_json_schema_for_editors_accepts_the_shipped_inventory() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "fleet.schema.json").read_text(encoding="utf-8"))
    shipped = load_fleet(ROOT / "fleet.yml").model_dump(mode="json", exclude_unset=True)
    jsonschema.validate(shipped, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shipped | {"hots": {}}, schema)


def test_a_reference_is_resolved_only_when_the_variable_holds_something() -> None:
    assert resolve("${OVMS_URL}", {"OVMS_URL": "http://h:8000"}) == "http://h:8000"
    assert resolve("${OVMS_URL}", {"OVMS_URL": " "}) is None
    assert resolve("${OVMS_URL}", {}) is None
    assert resolve("http://h:8000", {}) == "http://h:8000"


@pytest.mark.parametrize(
    ("slo", "complaint"),
    [
        ("{}", "at least one bound"),
        ("{as_of: 2026-07-01}", "at least one bound"),
        ("{ttft_s: 0}", "ttft_s"),
        ("{latency_s: soon}", "latency_s"),
        ("{e2e_s: 5}", "e2e_s"),
    ],
)
def test_an_slo_bounds_something_that_is_measured(slo: str, complaint: str) -> None:
    text = f"""
schema: inference-adr/fleet/1
name: Test
as_of: 2026-07-10
source: a test
hosts: {{}}
devices: {{}}
services: {{}}
workloads:
  chat: {{title: Chat, services: [], slo: {slo}}}
embedded: {{title: Embedded, settings: {{}}}}
"""
    with pytest.raises(InputError, match=complaint) as raised:
        loads(text, Fleet, "fleet.yml")
    assert "workloads.chat.slo" in str(raised.value)


def test_guards_of_a_service_have_defaults_that_suit_a_production_gpu() -> None:
    guards = ProbeLimits().guards
    assert (guards.first_byte_s, guards.itl_s, guards.latency_s) == (30.0, 2.0, None)
    with pytest.raises(ValidationError):
        LatencyGuards.model_validate({"itl_s": 0})
