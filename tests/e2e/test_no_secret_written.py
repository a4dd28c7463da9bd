"""Whatever a server repeats and wherever: no secret reaches a run folder, a terminal or a log."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import string
from dataclasses import replace
from urllib.parse import quote

import pytest

from wire import Fault, faults, vendors
from wire.asking import PROVIDERS

ALPHABET = string.ascii_letters + string.digits
ALWAYS = math.inf
VENDORS = [name for name in PROVIDERS if name != "responses"]
FORMS = {
    "plain": str,
    "reversed": lambda text: text[::-1],
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "basic": lambda text: base64.b64encode(f"x:{text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "url": lambda text: quote(text, safe=""),
    "json": lambda text: json.dumps(text)[1:-1],
    "spaces": " ".join,
    "zero_width": "\u200b".join,
    "first_half": lambda text: text[: len(text) // 2],
    "last_half": lambda text: text[len(text) // 2 :],
}
NOT_SHORT = {"first_half", "last_half", "basic"}
"""Forms that only long secrets are looked for in: parts, and base64 of more than the secret."""


def secrets(seed: int) -> dict[str, str]:
    """Variables as an environment has them: keys, a short one, passwords with signs."""
    rng = random.Random(seed)

    def text(size: int, signs: str = "") -> str:
        return "".join(rng.choices(ALPHABET, k=size)) + signs

    return {
        "GATEWAY_KEY": f"sk-{text(44)}",
        "GITHUB_TOKEN": f"ghp_{text(36)}",
        "DATABASE_PASSWORD": f'q{text(9)}/+&"7',
        "ODD_SECRET": f"z{rng.randint(10000, 99999)}",  # shorter than eight
        "DATABASE_URL": f"postgres://ann:p7{text(12)}@db.invalid/x",
    }


def values(environ: dict[str, str]) -> list[str]:
    return [re.sub(r".*://\w+:(.*)@.*", r"\1", value) for value in environ.values()]


def echoing(echo: str, status: int = 200) -> Fault:
    """The plain answer with ``echo`` in every place that is not the vote."""

    async def play(line, request, reply):
        headers = {"x-request-id": quote(f"req {echo}", safe=" ")}
        if request.stream:
            await line.answer(
                request, replace(reply, text=f"{reply.text} {echo}", model=f"m {echo}")
            )
            return
        if status != 200:
            body = vendors.error(request, status, f"refused {echo}", code=echo)
            await line.json(status, body | {"more": [{echo: echo}]}, headers)
            return
        text = reply.text
        if request.schema and '"reason"' in text:
            full_record = json.loads(text)
            for row in full_record["scores"].values():
                for cell in row.values():
                    cell["reason"] = f"so {echo} it is"
            text = json.dumps(full_record)
        full_record = vendors.body(request, replace(reply, text=text, model=f"m {echo}"))
        await line.json(
            200, full_record | {"id": echo, "more": [{echo: {"deep": [echo]}}]}, headers
        )

    return Fault("echoing", play, billed=status == 200)


def written_text(path) -> str:
    return "\n".join(f.read_text(encoding="utf-8") for f in path.rglob("*") if f.is_file())


def leaks(text: str, secret: str, form: str) -> bool:
    """Whether ``secret`` can be read from ``text``, in the form or as it is."""
    echoes = {secret, FORMS[form](secret)}
    ways = (text, json.loads(json.dumps(text)), text.replace("\\u200b", "\u200b"))
    return any(e in way or json.dumps(e)[1:-1] in way for e in echoes for way in ways)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_a_server_repeats_is_written_or_shown(lab, form):
    environ = secrets(len(form))
    known_secrets = [*values(environ), *lab.server.keys.values()]
    echoed_secrets = known_secrets if form not in NOT_SHORT else values(environ)[:2]
    echo = " ; ".join(FORMS[form](secret) for secret in echoed_secrets)
    lab.server.misbehave(echoing(echo), times=ALWAYS, model="kind")
    lab.server.misbehave(echoing(echo, 400), times=ALWAYS, model="rude")
    lab.prompts(2, ())
    judges = [{"model": f"{vendor}/kind", "id": vendor} for vendor in VENDORS]
    judges.append({"model": "openai/kind", "id": "responses", "options": {"api": "responses"}})
    judges += [{"model": f"{vendor}/rude", "id": f"rude-{vendor}"} for vendor in VENDORS]
    lab.panel(*judges, quorum=2)
    models = "openrouter/kind,compatible/b"
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--models", models)
    result = lab.here("eval", *words, "--run-id", "run", "--yes", "-v", **environ)
    run = lab.folder("run")
    assert sum(j["ranking"] is not None for j in run.judgments()) >= 2 * len(VENDORS)
    text = written_text(run.path) + result.out + result.err
    assert "[key]" in text
    assert [v for v in echoed_secrets if leaks(text, v, form)] == []
    assert run.manifest["secrets_scan"]["hits"] == {}
    assert run.manifest["secrets_scan"]["secrets"] >= len(known_secrets)
    # The votes follow from what is on record.
    check_result = lab.here("verify", "runs/run", **environ)
    assert check_result.code == 0, check_result.out


def test_prompts_are_sent_and_written_without_the_secrets_of_the_environment(lab):
    secret = secrets(1)["GATEWAY_KEY"]
    lab.prompts(1, system=f"The key is {secret}.")
    lab.panel("openrouter/a")
    words = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--yes")
    result = lab.here(*words, "--run-id", "run", GATEWAY_KEY=secret)
    assert result.code == 0
    assert "holds a secret" in result.err
    assert secret not in written_text(lab.folder("run").path) + result.out + result.err
    assert all(secret not in json.dumps(call.body) for call in lab.server.calls)
    assert lab.here("verify", "runs/run").code == 0


def test_secrets_of_a_dotenv_file_are_known(lab):
    lab.write(".env", "ELSEWHERE_TOKEN=tok-a8Kf03mQzx71LpVw92Re\n")
    lab.server.misbehave(echoing("tok-a8Kf03mQzx71LpVw92Re"), times=9, model="a")
    lab.prompts(1)
    lab.panel("openrouter/a")
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    assert "a8Kf03mQ" not in written_text(run.path)


def test_a_secret_that_got_into_the_folder_is_told_and_the_run_does_not_pass(lab):
    secret = secrets(2)["GITHUB_TOKEN"]
    lab.prompts(1)
    lab.panel("openrouter/a")
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    lab.server.misbehave(echoing(secret), times=9, model="a")
    run = lab.judged(*words)  # written when nobody knew that this is a secret
    assert secret in written_text(run.path)
    result = lab.here("resume", "runs/run", GITHUB_TOKEN=secret)
    assert result.code == 5
    assert "calls.jsonl holds the value of GITHUB_TOKEN" in result.err
    assert secret not in result.err + result.out
    assert run.manifest["secrets_scan"]["hits"]["calls.jsonl"] == ["GITHUB_TOKEN"]


@pytest.mark.parametrize("option", ["headers", "extra"])
def test_a_key_in_an_option_is_refused_without_being_shown(lab, option):
    secret = "my-gateway-key-09"
    value = {"X-Api-Key": secret} if option == "headers" else {"auth": {"api_key": secret}}
    lab.prompts(1)
    lab.panel({"model": "openrouter/a", "options": {option: value}})
    result = lab.here("eval", "prompts.yaml", "--panel", "panel.yaml", "--yes")
    assert result.code == 2
    assert f"options.{option}" in result.err
    assert secret not in result.err + result.out
    assert lab.server.calls == []


def test_a_message_of_any_command_is_without_secrets(lab):
    secret = secrets(3)["GATEWAY_KEY"]
    result = lab.here("report", f"runs/{secret}", GATEWAY_KEY=secret)
    assert result.code == 2
    assert "[key]" in result.err
    assert secret not in result.err
    process = lab("report", f"runs/{secret}", GATEWAY_KEY=secret)
    assert "[key]" in process.err
    assert secret not in process.err


def test_a_wrong_key_that_is_repeated_is_shown_nowhere(lab):
    lab.prompts(1)
    lab.panel({"model": "openai/a", "api_key_env": "MINE"})
    lab.server.misbehave(faults.unauthorized(), times=9)
    words = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--yes")
    result = lab.here(*words, "--run-id", "run", MINE="short77")
    assert result.code == 4
    assert "short77" not in written_text(lab.folder("run").path) + result.out + result.err
