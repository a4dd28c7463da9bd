"""A stub of vLLM's engine, as far as Ray Data's stage calls it (ray 2.60, vllm 0.29): no model."""

import json
from types import SimpleNamespace

from . import outputs, sampling_params
from .sampling_params import SamplingParams

__all__ = ["AsyncEngineArgs", "AsyncLLMEngine", "SamplingParams", "outputs", "sampling_params"]


class AsyncEngineArgs:
    def __init__(self, **arguments):
        self.arguments = arguments

    def create_engine_config(self):
        return SimpleNamespace(
            scheduler_config=SimpleNamespace(max_num_seqs=8),
            parallel_config=SimpleNamespace(pipeline_parallel_size=1),
        )


class AsyncLLMEngine:
    def __init__(self, arguments):
        self.arguments = arguments

    @classmethod
    def from_engine_args(cls, args, stat_loggers=None):
        return cls(args.arguments)

    async def generate(self, *, request_id, prompt, sampling_params, lora_request=None):
        text = prompt["prompt"]
        if "TOO LONG" in text:
            raise ValueError("The prompt is longer than the maximum model length of 400.")
        structured_outputs = sampling_params.structured_outputs
        counters = {
            "prompt": text,
            "max_tokens": sampling_params.max_tokens,
            "schema": structured_outputs and structured_outputs.json,
            "max_model_len": self.arguments["max_model_len"],
        }
        answer = outputs.CompletionOutput(text=json.dumps(counters), token_ids=[5, 6])
        yield outputs.RequestOutput(prompt_token_ids=[1, 2, 3], outputs=[answer])

    async def do_log_stats(self):
        pass

    def shutdown(self):
        pass
