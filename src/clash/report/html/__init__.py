"""The report as a page that needs no network and trusts no text in it."""

from clash.report.html.report_page import ReportPage, render_report

__all__ = ["ReportPage", "render_report"]
