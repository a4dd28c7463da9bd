"""The report as one HTML file that needs no network and trusts no text in it."""

from clash.report.html.page import document

__all__ = ["document"]
