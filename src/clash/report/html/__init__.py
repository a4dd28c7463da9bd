"""The report as a page that needs no network and trusts no text in it."""

from clash.report.html.page import Document, document

__all__ = ["Document", "document"]
