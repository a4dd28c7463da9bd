"""Runs of other tools, one module a tool."""
