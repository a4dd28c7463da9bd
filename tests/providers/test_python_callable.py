"""Candidates and judges that are Python functions."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
import threading
import time

import pytest

from clash.collect.parsing import parse
from clash.config import Candidate, Config, Judge, Limits, ModelRef
from clash.errors import ConfigError, ProviderError
from clash.pipeline.execute import execute
from clash.pipeline.options import Observer, RunOptions
from clash.pipeline.prepare import prepare
from clash.pipeline.sequential_run import resume_run
from clash.pipeline.verify import all_checks
from clash.providers import open_provider, prices, python_callable, require
from clash.providers.base import JudgeTask, Request
from clash.providers.python_callable import describe, registration
from clash.records import Criterion, Turn
from clash.store.folder import RunFolder

LABELS = ("A0", "A1", "A2")


def question(text="What?", **more):
    return Request(turns=(Turn(role="user", content=text),), max_tokens=100, **more)


def page(ties=True, criteria=(), turns=("What?",)):
    task = JudgeTask(
        turns=[Turn(role="user", content=text) for text in turns],
        criteria=[Criterion(name=name, weight=1 / len(criteria)) for name in criteria],
        responses={label: f"text {label}" for label in LABELS},
        ties=ties,
    )
    return question(task=task)


def ask(function, request, *, environ=None, home_loop=None, timeout_s=10.0):
    """One call of ``function``, in an event loop of its own."""

    async def main():
        ref = ModelRef(model="python/mine")
        limits = Limits(timeout_s=timeout_s)
        with registration({"mine": function}, home_loop):
            provider = open_provider(ref, environ=environ or {}, limits=limits)
            try:
                return await provider.complete(request)
            finally:
                await provider.aclose()

    return asyncio.run(main())


def failure(function, request, **more):
    with pytest.raises(ProviderError) as error:
        ask(function, request, **more)
    return error.value


# -- candidates -----------------------------------------------------------------------------------


def test_a_candidate_gets_the_prompt_and_its_text_is_the_response():
    reply = ask(lambda prompt: f"you asked {prompt}", question())
    assert (reply.text, reply.outcome, reply.cost_usd) == ("you asked What?", "ok", 0.0)
    assert reply.served_model == "python/mine"
    assert reply.request["arguments"] == ["What?"]


def test_an_async_candidate_is_awaited_in_the_running_loop():
    loops = []

    async def candidate(prompt):
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return prompt.upper()

    assert ask(candidate, question()).text == "WHAT?"
    assert ask(functools.partial(candidate), question()).text == "WHAT?"
    assert ask(lambda prompt: candidate(prompt), question()).text == "WHAT?"
    assert len(loops) == 3


def test_a_parameter_called_messages_gets_the_turns():
    def candidate(messages):
        return json.dumps(messages)

    reply = ask(candidate, question(system="Be brief."))
    assert json.loads(reply.text) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What?"},
    ]


def test_a_conversation_reaches_a_prompt_as_one_text():
    reply = ask(lambda prompt: prompt, question(system="Be brief."))
    assert reply.text == "[system]\nBe brief.\n\n[user]\nWhat?"


def test_tokens_are_taken_over_and_a_cost_is_on_record_and_never_counted():
    value = {"text": "hello", "tokens": {"input": 3, "output": 2}, "cost_usd": 0.5}
    reply = ask(lambda _: value, question())
    assert (reply.text, reply.tokens.input, reply.tokens.output) == ("hello", 3, 2)
    assert reply.response == {"cost_usd": 0.5}
    assert prices.cost(ModelRef(model="python/mine"), reply).usd == 0
    assert ask(lambda _: {"text": "hello", "tokens": 7}, question()).tokens.output == 7


def test_an_empty_text_is_an_empty_answer():
    assert ask(lambda _: " ", question()).outcome == "empty"


@pytest.mark.parametrize(
    "value",
    [None, 3, b"bytes", ["text"], {"answer": "x"}, {"text": 3}, {"text": "x", "sources": []},
     {"text": "x", "tokens": "many"}, {"text": "x", "tokens": {"in": 1}}, {"text": "x", "tokens": -1},
     {"text": "x", "cost_usd": -1}, {"text": "x", "cost_usd": float("nan")}],
)  # fmt: skip
def test_a_wrong_response_says_what_was_expected(value):
    error = failure(lambda _: value, question())
    assert (error.error_class, error.action) == ("bad_payload", "fail")
    assert "returned" in error.message
    assert "expected" in error.message


# -- judges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "ranking"),
    [
        ("A1", [["A1"], ["A0", "A2"]]),
        (["A2", "A0", "A1"], [["A2"], ["A0"], ["A1"]]),
        (("A2", ["A1", "A0"]), [["A2"], ["A0", "A1"]]),
        ([{"A0", "A1", "A2"}], [["A0", "A1", "A2"]]),
        ({"A0": 1, "A1": 2.5, "A2": 1}, [["A1"], ["A0", "A2"]]),
        ({"A0": True, "A1": False, "A2": True}, [["A0", "A2"], ["A1"]]),
        (None, [["A0", "A1", "A2"]]),
    ],
)
@pytest.mark.parametrize("criteria", [(), ("Accuracy", "Clarity")])
def test_what_a_judge_returns_is_parsed_as_an_answer(value, ranking, criteria):
    reply = ask(lambda prompt, responses: value, page(criteria=criteria))
    answer = parse(reply.text, LABELS, criteria, code="c0de", schema_enforced=True)
    assert reply.structured == "schema"
    assert answer.ranking == ranking
    assert answer.scores == {}
    assert (answer.parse, answer.repairs) == ("clean", ())


def test_a_judge_sees_labels_prompt_and_criteria_and_no_name():
    def judge(prompt, responses, criteria):
        assert prompt == "What?"
        assert list(responses) == list(LABELS)
        assert [criterion["name"] for criterion in criteria] == ["Accuracy"]
        return responses.clear()

    reply = ask(judge, page(criteria=("Accuracy",)))
    # What the function does to its arguments does not reach the record.
    assert reply.request["arguments"][1] == {label: f"text {label}" for label in LABELS}


def test_an_object_that_can_be_called_judges_too():
    class Longest:
        async def __call__(self, messages, responses):
            assert messages[-1] == {"role": "user", "content": "And then?"}
            return max(responses)

    reply = ask(Longest(), page(turns=("What?", "And then?")))
    assert json.loads(reply.text) == {"ranking": [["A2"], ["A0", "A1"]]}


@pytest.mark.parametrize(
    "value",
    ["A3", "", 1, ["A0", "A1"], ["A0", "A1", "A1"], ["A0", "A1", "A2", "A3"], {"A0": 1},
     {"A0": 1, "A1": 2, "A2": float("nan")}, {"A0": 1, "A1": 2, "A2": "3"}, [["A0"], "A1", 2]],
)  # fmt: skip
def test_a_wrong_judgment_says_what_was_expected(value):
    error = failure(lambda prompt, responses: value, page())
    assert (error.error_class, error.action) == ("bad_payload", "fail")
    assert "each of A0, A1, A2 once" in error.message


def test_a_tie_where_ties_are_not_allowed_is_a_failed_call():
    assert "no tie" in failure(lambda prompt, responses: None, page(ties=False)).message
    reply = ask(lambda prompt, responses: list(responses), page(ties=False))
    assert json.loads(reply.text) == {"ranking": list(LABELS)}


# -- failures -------------------------------------------------------------------------------------


def test_an_exception_is_a_failed_call_with_class_and_message_and_no_secret():
    environ = {"OPENAI_API_KEY": "sk-verysecret0123456789"}

    def candidate(prompt):
        raise ValueError(f"refused sk-verysecret0123456789 for {prompt}")

    error = failure(candidate, question(), environ=environ)
    assert (error.error_class, error.action) == ("callable", "fail")
    assert error.message == "ValueError: refused [key] for What?"
    assert error.request["arguments"] == ["What?"]


def test_a_wrong_value_is_quoted_without_secrets():
    environ = {"OPENAI_API_KEY": "sk-verysecret0123456789"}
    error = failure(lambda _: ["sk-verysecret0123456789"], question(), environ=environ)
    assert "verysecret" not in f"{error} {error.message}"


class _StatusError(Exception):
    def __init__(self, status):
        super().__init__("no")
        self.status_code = status


@pytest.mark.parametrize(
    ("exception", "error_class", "action"),
    [
        (ConnectionResetError("reset"), "connection", "retry"),
        (TimeoutError(), "timeout", "retry"),
        (_StatusError(429), "rate_limit", "retry"),
        (_StatusError(503), "overloaded", "retry"),
        (_StatusError(401), "callable", "fail"),
        (SystemExit(3), "callable", "fail"),
        (StopIteration(), "callable", "fail"),
    ],
)
def test_what_passes_by_itself_is_retried(exception, error_class, action):
    def candidate(prompt):
        raise exception

    error = failure(candidate, question())
    assert (error.error_class, error.action) == (error_class, action)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_call_that_takes_too_long_has_failed(is_async):
    async def forever(prompt):
        await asyncio.sleep(30)

    begin = time.monotonic()
    slow = forever if is_async else lambda _: time.sleep(0.5)
    error = failure(slow, question(), timeout_s=0.05)
    assert (error.error_class, error.action) == ("timeout", "retry")
    assert time.monotonic() - begin < 5


def test_a_function_that_cancels_itself_ends_no_task_but_its_call():
    async def candidate(prompt):
        raise asyncio.CancelledError

    assert failure(candidate, question()).error_class == "callable"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_keyboard_interrupt_passes(is_async):
    # In a process of its own: an interrupt ends an event loop at once.
    code = (
        "import sys; sys.path.insert(0, 'tests/providers')\n"
        "import test_python_callable as t\n"
        "async def a(p): raise KeyboardInterrupt\n"
        "def s(p): raise KeyboardInterrupt\n"
        f"try: t.ask({'a' if is_async else 's'}, t.question())\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "interrupted", result.stderr


# -- the home of async functions ------------------------------------------------------------------


@pytest.fixture
def home_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_an_async_function_runs_in_its_home_loop(home_loop):
    async def candidate(prompt):
        return str(asyncio.get_running_loop() is home_loop)

    assert ask(candidate, question(), home_loop=home_loop).text == "True"
    assert ask(lambda p: candidate(p), question(), home_loop=home_loop).text == "True"


def test_a_timeout_cancels_what_runs_in_the_home_loop(home_loop):
    event = threading.Event()

    async def candidate(prompt):
        try:
            await asyncio.sleep(30)
        finally:
            event.set()

    error = failure(candidate, question(), home_loop=home_loop, timeout_s=0.05)
    assert error.error_class == "timeout"
    assert event.wait(5)


def test_a_home_loop_that_has_ended_is_a_failed_call():
    async def candidate(prompt):
        return prompt

    loop = asyncio.new_event_loop()
    loop.close()
    assert "does not run" in failure(candidate, question(), home_loop=loop).message


# -- the functions of a run -----------------------------------------------------------------------


def test_a_function_that_is_not_registered_is_refused_and_named():
    ref = Candidate.model_validate(describe("mine", ask))
    with pytest.raises(ConfigError) as error:
        require(ref, {})
    assert f"{__name__}.ask" in str(error.value)
    assert "functions={'mine': FUNCTION}" in str(error.value)


def test_a_function_whose_source_differs_is_refused():
    ref = ModelRef.model_validate(describe("mine", ask))
    with registration({"mine": ask}):
        require(ref, {})
    with registration({"mine": failure}), pytest.raises(ConfigError, match="another source"):
        require(ref, {})


def test_a_function_must_take_the_arguments_of_its_role():
    with registration({"mine": lambda prompt: prompt}):
        require(Candidate(model="python/mine"), {})
        with pytest.raises(ConfigError, match="cannot be called as a judge"):
            require(Judge(model="python/mine"), {})
    with registration({"mine": lambda prompt, responses, *, criteria: None}):
        require(Judge(model="python/mine"), {})
        with pytest.raises(ConfigError, match="cannot be called as a candidate"):
            require(Candidate(model="python/mine"), {})


@pytest.mark.parametrize("functions", [{"mine": "no function"}, {"": len}])
def test_only_functions_with_names_can_be_registered(functions):
    with pytest.raises(ConfigError), registration(functions):
        pass


def test_contexts_nest_and_end():
    with registration({"a": str}):
        with registration({"b": str}):
            require(ModelRef(model="python/a"), {})
        with pytest.raises(ConfigError):
            require(ModelRef(model="python/b"), {})


def test_runs_in_threads_do_not_see_each_others_functions():
    barrier, texts = threading.Barrier(4), {}

    def run(number):
        def candidate(prompt):
            barrier.wait(10)  # all four are registered under the same name now
            return str(number)

        texts[number] = ask(candidate, question()).text

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {n: str(n) for n in range(4)}


def test_what_describes_a_function_is_the_same_in_every_process():
    code = "f = lambda p: {'a', 'b'} and (lambda: p)"
    hashes = set()
    for text in (code, code, code.replace("'b'", "'c'")):
        names: dict = {}
        exec(text, names)
        hashes.add(python_callable.source_sha256(names["f"]))
    assert len(hashes) == 2
    description = describe("mine", functools.partial(ask, 1))
    assert description["model"] == "python/mine"
    assert description["options"]["extra"]["callable"] == f"{__name__}.ask"
    assert len(description["options"]["extra"]["source_sha256"]) == 64
    assert describe("len", len)["options"]["extra"] == {"callable": "builtins.len"}


# -- through the pipeline -------------------------------------------------------------------------


def write_longer(prompt):
    return f"Here is a long and patient answer to the question: {prompt}"


async def write_shorter(messages):
    return {"text": f"Short: {messages[-1]['content']}", "tokens": 3}


def prefer_longest(prompt, responses):
    return {label: len(text) for label, text in responses.items()}


CATS = "cats"


def fail_on_cats(prompt, responses):
    if CATS in prompt:
        raise LookupError("no cats here")
    return max(responses, key=lambda label: len(responses[label]))


FUNCTIONS = {
    "long": write_longer,
    "short": write_shorter,
    "longest": prefer_longest,
    "picky": fail_on_cats,
}


def configuration(tmp_path):
    def description_of(name, **more):
        return {"id": name, **describe(name, FUNCTIONS[name]), **more}

    judges = [
        description_of("longest"),
        description_of("picky"),
        {"id": "words", "model": "baseline/longest"},
    ]
    return Config.model_validate(
        {
            "candidates": [description_of("long"), description_of("short")],
            "panel": {"name": "functions", "judges": judges},
            "criteria": {"mode": "fixed"},
            "limits": {"max_failed": 0.5},
            "out": str(tmp_path / "runs"),
        }
    )


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    texts = ("Why is the sky blue?", "Why do cats purr?")
    lines = [json.dumps({"id": f"q{n}", "prompt": text}) for n, text in enumerate(texts)]
    path.write_text("\n".join(lines))
    return path


class Notes(Observer):
    def __init__(self):
        self.texts = []

    def note(self, text, level="notice"):
        self.texts.append(text)


@pytest.fixture
def run(tmp_path, prompts):
    """The folder of a run of functions, and what was noted."""
    observer = Notes()
    with registration(FUNCTIONS):
        setup = prepare(configuration(tmp_path), {}, observer, prompts=prompts)
        execute(setup, RunOptions({}, observer, run_id="functions", yes=True))
    return RunFolder.open(tmp_path / "runs" / "functions"), observer.texts


def test_functions_and_baselines_judge_in_one_panel(run):
    folder, notes = run
    manifest = folder.manifest()
    assert manifest.status == "complete"
    assert [verdict.winner for verdict in folder.verdicts()] == ["long", "long"]
    judgments = {(j.item_id, j.judge): j for j in folder.judgments()}
    assert {judge for _, judge in judgments} == {"longest", "picky", "words"}
    assert judgments["q1", "picky"].error == "callable: LookupError: no cats here"
    assert all(j.parse == "clean" for j in judgments.values() if j.error is None)
    calls = list(folder.calls())
    assert all(call.cost_usd == 0 for call in calls)
    failures = [call for call in calls if call.outcome == "error"]
    assert [(call.judge, call.attempt) for call in failures] == [("picky", 1)]
    extra = manifest.candidates[0]["options"]["extra"]
    assert extra["callable"] == f"{__name__}.write_longer"
    assert any("no self-evaluation by long, short" in note for note in notes)


def test_the_audit_of_a_run_of_functions_passes_without_them(run):
    folder, _ = run
    findings = all_checks(folder)
    assert findings
    assert [finding for finding in findings if finding.state != "ok"] == []


def test_a_run_of_functions_can_be_replayed_without_them(run, tmp_path):
    folder, _ = run
    observer = Notes()
    setup = prepare(Config(out=str(tmp_path / "runs")), {}, observer, replay=folder)
    execute(setup, RunOptions({}, observer, run_id="replay", yes=True))
    replay = RunFolder.open(tmp_path / "runs" / "replay")
    assert [v.winner for v in replay.verdicts()] == [v.winner for v in folder.verdicts()]
    assert len(list(replay.judgments())) == len(list(folder.judgments()))


def test_a_run_is_resumed_only_with_its_functions(run, monkeypatch):
    folder, _ = run
    with pytest.raises(ConfigError, match="FUNCTION"):
        resume_run(folder, {}, Observer(), {})
    monkeypatch.setattr(f"{__name__}.CATS", "dogs")
    with registration(FUNCTIONS):
        resume_run(folder, {}, Observer(), {})
    # What had failed is asked again, and nothing else.
    attempts = [(call.purpose, call.judge, call.attempt) for call in folder.calls()]
    assert len(attempts) == 11
    assert attempts[-1] == ("judge", "picky", 2)
    assert [finding for finding in all_checks(folder) if finding.state != "ok"] == []


class Style:
    """An object without words of its own."""


def test_the_arguments_of_a_partial_are_part_of_what_it_is():
    def with_style(*arguments, **keywords):
        return functools.partial(ask, *arguments, **keywords)

    kinds = [
        ask,
        with_style("short"),
        with_style("long"),
        with_style(style="short"),
        with_style(style={"tone": ["dry"], "words": 3}),
        with_style(style={"tone": ["dry"], "words": 4}),
        with_style(style=ask),
        with_style(style=functools.partial(ask, 1)),
        with_style(style=functools.partial(ask, 2)),
        with_style(style=Style()),
    ]
    hashes = [python_callable.source_sha256(kind) for kind in kinds]
    assert len(set(hashes)) == len(kinds)
    again = [
        with_style("short"),
        with_style(style={"words": 3, "tone": ["dry"]}),
        with_style(style=Style()),
        functools.partial(with_style("a"), "b", style=1),
    ]
    assert [python_callable.source_sha256(kind) for kind in again] == [
        hashes[1], hashes[4], hashes[9], python_callable.source_sha256(with_style("a", "b", style=1)),
    ]  # fmt: skip
