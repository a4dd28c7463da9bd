"""What all local pages share: colours, style sheet, interval charts, glossary, behaviour.

The report, the list of runs, the verdict card and the review page are built from these parts. A
page is one file with one style sheet and one script, whose hashes its content security policy
names; nothing here has a ``style`` attribute or a handler in its markup.
"""

from clash.pages.charts import Axis, ChartRow, difference_axis, interval_chart, share_axis
from clash.pages.glossary import GLOSSARY, Term, define
from clash.pages.names import short_names
from clash.pages.sources import script, stylesheet, templates
from clash.pages.tokens import COLOURS

__all__ = [
    "COLOURS",
    "GLOSSARY",
    "Axis",
    "ChartRow",
    "Term",
    "define",
    "difference_axis",
    "interval_chart",
    "script",
    "share_axis",
    "short_names",
    "stylesheet",
    "templates",
]
