"""A stub: the names of torch that Ray's vLLM stage mentions."""

import tempfile
from types import SimpleNamespace


class Tensor: ...


hub = SimpleNamespace(_get_torch_home=tempfile.gettempdir)
