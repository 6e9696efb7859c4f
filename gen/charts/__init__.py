"""Pictures as SVG: one module per kind, all rendered in one place."""

from gen.charts.bars import bars
from gen.charts.capacity import capacity
from gen.charts.drafts import Draft, drafts
from gen.charts.drawing import Chart, figure
from gen.charts.ecdf import FEWEST_CURVE, ecdf
from gen.charts.forest import Row, forest
from gen.charts.plane import MOST_LINES
from gen.charts.roofline import roofline
from gen.charts.strips import strips
from gen.charts.sweep import sweep
from gen.charts.timeline import Decided, Moment, timeline, within

__all__ = [
    "FEWEST_CURVE",
    "MOST_LINES",
    "Chart",
    "Decided",
    "Draft",
    "Moment",
    "Row",
    "bars",
    "capacity",
    "drafts",
    "ecdf",
    "figure",
    "forest",
    "roofline",
    "strips",
    "sweep",
    "timeline",
    "within",
]
