"""What all local pages share: colours, style sheet, interval charts, glossary, behaviour.

The report, the list of runs, the verdict card and the review page are built from these parts. A
page is one file with one style sheet and one script, whose hashes its content security policy
names; nothing here has a ``style`` attribute or a handler in its markup.
"""

from clash.pages.bars import BarRow, Part, StackRow, bar_chart, stack_chart
from clash.pages.charts import Axis, ChartRow, difference_axis, interval_chart, share_axis
from clash.pages.glossary import GLOSSARY, Term, define, gloss
from clash.pages.names import short_names
from clash.pages.scatter import ScatterPoint, scatter_chart
from clash.pages.sources import script, stylesheet, templates
from clash.pages.tokens import COLOURS

__all__ = [
    "COLOURS",
    "GLOSSARY",
    "Axis",
    "BarRow",
    "ChartRow",
    "Part",
    "ScatterPoint",
    "StackRow",
    "Term",
    "bar_chart",
    "define",
    "difference_axis",
    "gloss",
    "interval_chart",
    "scatter_chart",
    "script",
    "share_axis",
    "short_names",
    "stack_chart",
    "stylesheet",
    "templates",
]
