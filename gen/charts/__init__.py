"""Pictures as SVG: one module per kind, all rendered in one place."""

from gen.charts.bars import bars
from gen.charts.drawing import Chart, figure
from gen.charts.strips import strips

__all__ = ["Chart", "bars", "figure", "strips"]
