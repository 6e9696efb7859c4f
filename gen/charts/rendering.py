"""A specification turned into SVG by native code, and what of that need not be done twice."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib.metadata import version

import vl_convert

from gen.album import kept, written

_RENDERER = version("vl-convert-python")


def svg_of(spec: str) -> str:
    """Render a Vega-Lite specification with data by name, or give what came of it the last time."""
    return kept(f"vl-convert {_RENDERER}\n{spec}", lambda: _rendered(spec))


def layout_once(lay_out: Callable[[int], str]) -> Callable[[int], str]:
    """Lay a kind of chart out once for each number of rows: building and checking a specification is slow."""

    @functools.cache
    def laid_out(rows: int) -> str:
        return written(f"{lay_out.__module__}.{lay_out.__qualname__} {rows} altair {version('altair')}", lambda: lay_out(rows))

    return laid_out


def _rendered(spec: str) -> str:
    layout = json.loads(spec)
    values = layout.get("datasets", {})
    layout["datasets"] = dict.fromkeys(values, ())
    vega = json.loads(_compiled(json.dumps(layout, sort_keys=True)))
    for data in vega["data"]:
        if data["name"] in values:
            data["values"] = values[data["name"]]
    return str(vl_convert.vega_to_svg(vega, allowed_base_urls=[]))


@functools.lru_cache(maxsize=256)
def _compiled(layout: str) -> str:
    """Translate a layout without its data into Vega, which takes a third of the time that a chart takes."""
    return json.dumps(vl_convert.vegalite_to_vega(layout))
