"""Every benchmark exists, and each extent of a run has time for what it is made of."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gen.benchmarks import BENCHMARKS as SHOWN
from probes.fleet import load_fleet
from probes.micro.catalogue import BENCHMARKS, MODULES, Extent, of_extent
from probes.plan import Part, plan

ROOT = Path(__file__).parents[3]
FLEET = load_fleet(ROOT / "fleet.yml")


@pytest.mark.parametrize("module", MODULES.values())
def test_each_names_a_test_that_exists(module: str) -> None:
    name, _, test = module.partition("::")
    tree = ast.parse((ROOT / "probes" / "micro" / f"{name}.py").read_text(encoding="utf-8"))
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert test in tests if test else len(tests) == 1


def test_the_pages_know_every_subject() -> None:
    assert {one.subject for one in SHOWN} == set(MODULES)


def test_a_shorter_extent_holds_part_of_a_longer_one_and_takes_less_time() -> None:
    quick, core, whole = ({one.subject for one in of_extent(extent)} for extent in Extent)
    assert quick < core < whole == set(MODULES)
    for one in BENCHMARKS:
        guesses = [one.about_s[extent] for extent in Extent if extent in one.about_s]
        assert guesses == sorted(guesses)


@pytest.mark.parametrize(
    ("parts", "quick", "extent", "at_most_s"),
    [
        ([], True, Extent.QUICK, 120),
        ([], False, Extent.CORE, 360),
        ([Part.DEVICES, Part.ENDPOINTS, Part.MICRO], False, Extent.CORE, 360),
        ([Part.MICRO], False, Extent.WHOLE, 600),
        ([Part.DEVICES, Part.MICRO], False, Extent.WHOLE, 900),
        ([Part.MICRO], True, Extent.QUICK, 120),
    ],
)
def test_all_of_them_run_only_where_other_parts_are_left_out(
    parts: list[Part], quick: bool, extent: Extent, at_most_s: float
) -> None:
    laid_out = plan(FLEET, {}, parts=parts, services=[], quick=quick)
    assert laid_out.extent is extent
    listed = [step.subject for step in laid_out.steps if step.part is Part.MICRO]
    assert listed == [one.compares for one in of_extent(extent)]
    assert laid_out.about_s <= at_most_s
