"""Which model is better on my prompts, how sure may I be, and can I defend it?"""

from clash.version import __version__ as __version__
