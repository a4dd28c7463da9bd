class StructuredOutputsParams:
    def __init__(self, *, json=None, json_object=None):
        assert (json is None) != (json_object is None)
        self.json = json


class SamplingParams:
    def __init__(self, *, max_tokens=16, temperature=1.0, structured_outputs=None):
        self.max_tokens = max_tokens
        self.structured_outputs = structured_outputs
