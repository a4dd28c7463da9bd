from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import print_json, print_screen, terminal_width
from clash.cli.completion import complete_panels
from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import grouped
from clash.cli.options import Access, AsJson, ConfigFile
from clash.cli.streams import learn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.collect.checkup import CheckupFinding
    from clash.secrets.destinations import Environ


@grouped
def doctor(
    *,
    panel: Annotated[
        str | None,
        typer.Option(
            "--panel",
            "-p",
            help="Check this panel instead of all shipped panels.",
            autocompletion=complete_panels,
        ),
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", "-m", help="Check these models too: provider/model,…")
    ] = None,
    ping: Annotated[
        bool,
        typer.Option("--ping", help="Ask each model for one word; costs a fraction of a cent."),
    ] = False,
    torture: Annotated[
        str | None,
        typer.Option(
            "--torture",
            metavar="URL|PANEL",
            help="Try a gateway, or the models of a panel, for what breaks runs: ignored "
            "schemas, dropped refusals, wrong usage, swapped models. About twenty short "
            "calls for each model.",
        ),
    ] = None,
    config: ConfigFile = None,
    access: Access,
    as_json: AsJson = False,
) -> None:
    """Check keys, addresses, models, prices and disk; never prints a key."""
    from clash.analysis.serialize import to_plain
    from clash.collect import checkup
    from clash.secrets.redaction import Redactor

    environ = access.environ()
    learn(Redactor.of_environ(environ))
    if torture is not None:
        title = "clash doctor --torture"
        findings = _torture(torture, models, environ, quiet=as_json)
    else:
        title = "clash doctor"
        findings = list(checkup.check_setup(config, panel, models, environ, ping=ping))
    bad = any(finding.level == "bad" for finding in findings)
    if as_json:
        print_json({"ok": not bad, "findings": to_plain(findings)})
    else:
        _print(title, findings)
    raise typer.Exit(1 if bad else 0)


def _print(title: str, findings: Sequence[CheckupFinding]) -> None:
    """What was checked, in a line each where the width allows it, and how to mend it below."""
    from clash.report.screens import blank_screen

    screen = blank_screen(terminal_width())
    screen.sentence(title, "bold")
    indent = 2 + max((len(finding.level) for finding in findings), default=0)
    for finding in findings:
        texts = [f"{finding.subject}  {finding.says}"]
        texts += [f"fix: {finding.hint}"] if finding.hint else []
        for number, text in enumerate(texts):
            head = finding.level if number == 0 else ""
            screen.hanging(f"{head:<{indent}}", text)
    print_screen(screen)


def _torture(
    url_or_panel: str, models: str | None, environ: Environ, *, quiet: bool
) -> list[CheckupFinding]:
    """Every probe of every model, one model after the other: they may share a rate limit."""
    import anyio

    from clash.collect import torture
    from clash.pipeline import keys

    refs = anyio.run(torture.targets, url_or_panel, models, environ)
    observer = TerminalObserver(quiet=quiet)
    keys.check(refs, environ, observer)
    findings: list[CheckupFinding] = []
    for ref in refs:
        observer.note(f"asking {ref.model}", "detail")
        findings += anyio.run(torture.torture, ref, environ)
    return findings
