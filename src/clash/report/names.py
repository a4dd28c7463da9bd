"""Names that fit: see :mod:`clash.pages.names`."""

from clash.pages.names import ELLIPSIS, short_names, shorten

__all__ = ["ELLIPSIS", "short_names", "shorten"]
