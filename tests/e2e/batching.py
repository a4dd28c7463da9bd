"""What the tests of batches share: a panel, a run that stays at its batches, and what must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.lab import PRICE

if TYPE_CHECKING:
    import subprocess

    from e2e.lab import Folder, Lab

VENDORS = ("openai", "anthropic", "google")
WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
FAST = {"limits": {"batch_poll_s": 0.02}}
CAPPED = {"max_tokens": 300}
SUBMIT = {"openai": "/batches", "anthropic": "/batches", "google": ":batchGenerateContent"}
"""How the path ends by which a batch is handed in."""


def lay(lab: Lab, *judges: str, n: int = 6, **limits: object) -> None:
    """Prompts with given responses, a panel of ``judges``, and batches that are looked after often."""
    lab.prompts(n)
    lab.panel(*({"model": judge, "price": PRICE, "options": CAPPED} for judge in judges))
    lab.write("clash.yaml", {"limits": {**FAST["limits"], **limits}})


def begun(lab: Lab, *more: object) -> subprocess.Popen[str]:
    """``clash eval --batch`` in a process of its own, which stays at its batch."""
    return lab.start("eval", *WORDS, "--run-id", "run", "--yes", "--batch", *more)


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def said(run: Folder) -> dict[tuple[str, str], object]:
    return {(j["item_id"], j["judge"]): j["ranking"] for j in run.judgments()}


def whole(lab: Lab, run: Folder) -> None:
    """Every row is answered once, paid once, and the folder is what it says."""
    assert run.manifest["status"] == "complete"
    assert len(run.answered()) == len(set(run.answered()))
    assert lab.server.paid_twice() == []
    assert lab.here("verify", run.path).code == 0
