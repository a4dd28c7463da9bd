"""Which model is better on my prompts, how sure may I be, and can I defend it?"""

__version__ = "0.2.0"
