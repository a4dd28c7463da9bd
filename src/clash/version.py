"""The version of clash, where every module can read it without importing the library."""

__version__ = "0.2.0"
