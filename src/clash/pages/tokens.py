"""Colours of every page and picture, by role, in light and in dark.

Text on paper has a contrast of at least 6.4, graphics of at least 3.3. The accent marks what a
sentence is about. Caution marks one thing alone: people or a baseline contradict the result.
"""

from __future__ import annotations

from typing import Literal

Theme = Literal["light", "dark"]

COLOURS: dict[Theme, dict[str, str]] = {
    "light": {
        "paper": "#ffffff",
        "ink": "#14171a",
        "ink-2": "#555d66",
        "hairline": "#dfe2e6",
        "grey": "#868e97",
        "wash": "#f5f6f8",
        "accent": "#1d4fd7",
        "accent-wash": "#eef2fd",
        "caution": "#9c4400",
    },
    "dark": {
        "paper": "#121417",
        "ink": "#eceef0",
        "ink-2": "#a3abb4",
        "hairline": "#2b3037",
        "grey": "#727b85",
        "wash": "#1a1d22",
        "accent": "#8fb0ff",
        "accent-wash": "#1a2238",
        "caution": "#f2a65e",
    },
}


def colour_rules() -> str:
    """The colours as custom properties: light, and dark on a screen whose system is dark."""
    light, dark = (
        "".join(f"--{role}:{colour};" for role, colour in COLOURS[theme].items())
        for theme in ("light", "dark")
    )
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
