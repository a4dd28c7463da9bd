from __future__ import annotations

from pathlib import Path

from clash.cli.common import AsJson, Out, RunArgument


def verify(run: RunArgument, out: Out = Path("runs"), as_json: AsJson = False) -> int:
    """Audit a run: hashes, references, and verdicts, report and page computed anew."""
    from rich.text import Text

    from clash.analysis.recheck import recheck
    from clash.cli.common import print_json, stdout
    from clash.collect.reread import reread
    from clash.errors import AuditFailed
    from clash.report.html.redraw import redrawn
    from clash.report.terminal import safe
    from clash.store.audit import audit
    from clash.store.folder import RunFolder

    folder = RunFolder.find(run, out=out)
    found = [*audit(folder), *reread(folder), *recheck(folder, redrawn)]
    bad = [finding for finding in found if finding.problem is not None]
    if as_json:
        checks = [{"check": f.check, "problem": f.problem} for f in found]
        print_json({"run": str(folder.path), "ok": not bad, "checks": checks})
        return AuditFailed.exit_code if bad else 0
    for finding in found:
        mark, style = ("ok  ", "green") if finding.problem is None else ("FAIL", "bold red")
        line = finding.check + (f": {finding.problem}" if finding.problem else "")
        stdout().print(Text(mark, style=style), Text(safe(line)), soft_wrap=True)
    if bad:
        raise AuditFailed(f"{folder.path}: {len(bad)} of {len(found)} checks failed")
    stdout().print(f"{folder.path} is what it says it is", style="bold green", soft_wrap=True)
    return 0
