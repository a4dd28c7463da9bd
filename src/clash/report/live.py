"""What a run that goes on shows, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.live import FEWEST
from clash.pages import short_names
from clash.report.formats import percent

if TYPE_CHECKING:
    from clash.analysis.live import LiveFindings

AGREEMENT_CAPTION = (
    "How often the panel, and each judge alone, picks what people picked, over the labelled prompts"
    " that every judge has finished. The 95% intervals are always valid: they allow for looking as"
    " often as you like, and are wider than those of the report."
)
CAPTION = (
    "Win rate over the prompts that every judge has finished; ties count half. The 95% intervals"
    " are always valid: they allow for looking as often as you like, and are wider than those "
    "of the"
    " report."
)
FILE_ORDER = (
    "This run judges prompts in the order of their file. If the file is sorted, by topic or by "
    "difficulty, the first prompts are not a fair sample of all: let it finish."
)
RANDOM_ORDER = "This run judges prompts in random order, so those judged so far are a fair sample."


@dataclass(frozen=True)
class LiveWords:
    """The answer so far, the evidence for it, and what to do."""

    headline: str
    evidence: str
    hint: str


def live_words(findings: LiveFindings) -> LiveWords:
    """The words of what is known so far."""
    names = short_names([row.candidate for row in findings.standings], 24)
    first, second, *_ = [*(names[row.candidate] for row in findings.standings), "", ""]
    rivals = "every other candidate" if len(findings.standings) > 2 else second
    against = f"{first} against {second}: {percent(findings.duel)}" if findings.duel else ""
    hint = "You can stop the run with Ctrl-C, or let it finish: nothing paid is lost."
    match findings.state:
        case "winner":
            return LiveWords(
                f"Enough is known: {first} is ahead of {rivals}.",
                f"{against}, always valid over all looks and pairs.",
                hint,
            )
        case "equal":
            return LiveWords(
                f"Enough is known: {first} and {second} are as good as equal.",
                f"{against}, always valid: less than 10 points between them.",
                hint,
            )
        case "agreement":
            rate = percent(findings.standings[0].rate)
            return LiveWords(f"The panel agrees with people on {rate} so far.", "", "")
        case "open":
            return LiveWords(
                f"Not enough is known yet: {first} leads.",
                f"{against}, always valid: a difference of 0 is still possible.",
                "",
            )
        case _:
            return LiveWords(
                "Too early to say.",
                f"Intervals start at {FEWEST} prompts judged by all judges.",
                "",
            )
