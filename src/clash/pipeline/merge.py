"""Join the shards of a run: check them, write the folder of the whole run, finish and seal it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from clash.collect.pages import Duties, Pages
from clash.collect.reread import recorded_plan, reread
from clash.collect.run import CollectOutcome
from clash.collect.shards import inputs_hash, joined_secrets
from clash.errors import AuditFailed, RunFolderError
from clash.pipeline import keys
from clash.pipeline.finish import finish
from clash.providers import redactor_for
from clash.records import Criteria, Item, Judgment, Response
from clash.store import layout
from clash.store.audit import audit
from clash.store.folder import RunWriter, new_run_id
from clash.store.group import RunGroup
from clash.store.manifest import missing_shards, name_shards
from clash.store.stored import item_ids
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.collect.plan import Plan
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import Observer
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest, Shard

_FILES = (*layout.COLLECTED_FILES, layout.BATCHES, layout.LABELS)


def merge(
    folders: Sequence[RunFolder],
    environ: Mapping[str, str],
    observer: Observer,
    *,
    out: Path,
    run_id: str | None = None,
) -> RunResult:
    """Write the run folder that one process would have written. No call is made.

    Args:
        folders: every shard of one run, in any order.
        environ: the secrets in it are searched for in what is written.
        observer: hears of the run.
        out: the folder of the runs.
        run_id: name of the run; null derives one from prompts and time.

    Raises:
        RunFolderError: a shard is missing, given twice, of another run, or not finished.
        AuditFailed: a shard was changed after it was sealed.
    """
    if not folders:
        raise RunFolderError("no shard was given\n  fix: name the folder of every shard")
    _check_set(folders)
    group = RunGroup.of(folders)
    for folder in group.folders:
        _check_shard(folder)
    plan = _whole_plan(group)
    manifest = _manifest(group, plan, run_id)
    redactor = redactor_for(plan.refs(), environ)
    observer.learn(redactor)
    lines = ((name, line) for name in _FILES for line in group.lines(name))
    with RunWriter.create(out, manifest.run, manifest, lines=lines, redactor=redactor) as writer:
        observer.run_opened(writer.path)
        outcome = CollectOutcome(
            dict(manifest.stopped), None, Decimal(0), frozenset(manifest.replaced)
        )
        return finish(writer, manifest, outcome)


def _check_set(folders: Sequence[RunFolder]) -> None:
    """Refuse anything but every shard of one run, each once.

    Raises:
        RunFolderError: names the folder and the shard.
    """
    by_number: dict[int, RunFolder] = {}
    shards: list[Shard] = []
    for folder in folders:
        shard = folder.manifest().shard
        if shard is None:
            raise RunFolderError(
                f"{folder.path}: is not a shard of a run"
                "\n  fix: leave it out; `clash eval --shard 1/4` makes shards"
            )
        if shard.number > shard.of or shard.number > shard.items:
            raise RunFolderError(
                f"{folder.path / layout.MANIFEST}: shard: there is no {shard.title} of"
                f" {plural(shard.items, 'item')}\n  fix: restore it from a copy"
            )
        first = by_number.setdefault(shard.number, folder)
        if first is not folder:
            raise RunFolderError(
                f"{folder.path}: is {shard.title}, as {first.path} is\n  fix: leave one of them out"
            )
        shards.append(shard)
    missing = missing_shards(shards)
    if missing:
        raise RunFolderError(
            f"{folders[0].path.parent}: {name_shards(missing, shards[0].of)} missing"
            f"\n  fix: name its folder too, or make it: clash {folders[0].manifest().kind} … --shard"
            f" {missing[0]}/{shards[0].of}"
        )


def _check_shard(folder: RunFolder) -> None:
    """Refuse a shard that has not ended, or that is not as it was sealed.

    Raises:
        RunFolderError: it has not ended.
        AuditFailed: the message names the file.
    """
    if folder.is_being_written():
        raise RunFolderError(
            f"{folder.path}: another process is writing to this run\n  fix: wait for it to end"
        )
    if folder.manifest().seal is None:
        raise RunFolderError(
            f"{folder.path}: the run has not ended\n  fix: clash resume {folder.path}"
        )
    for finding in (*audit(folder), *reread(folder)):
        if finding.problem is not None:
            raise AuditFailed(
                f"{folder.path}: {finding.problem} ({finding.check})"
                "\n  fix: restore the shard from a copy, or make it again;"
                f" `clash verify {folder.path}` shows every check"
            )
    _check_calls(folder)
    n_open = sum(1 for _ in _open_work(folder))
    if n_open:
        raise RunFolderError(
            f"{folder.path}: {plural(n_open, 'answer')} missing\n  fix: clash resume {folder.path}"
        )


def _check_calls(folder: RunFolder) -> None:
    """Refuse calls about items of other shards: they would stand beside the calls of those.

    Raises:
        AuditFailed: names an item.
    """
    own_items = set(item_ids(folder.records(Item)))
    for call in folder.call_summaries():
        if call.item_id not in own_items:
            raise AuditFailed(
                f"{folder.path}: has a call about {call.item_id!r}, which is no item of this shard"
                "\n  fix: restore the shard from a copy, or make it again"
            )


def _open_work(folder: RunFolder) -> Iterator[object]:
    """Responses, criteria and judgments that nobody has been asked for yet."""
    plan = recorded_plan(folder, folder.manifest())
    response_keys = {
        (response.item_id, response.candidate) for response in folder.records(Response)
    }
    criteria_ids = set(item_ids(folder.records(Criteria)))
    yield from (
        pair for pair in plan.missing() if (pair[0].item_id, pair[1].id) not in response_keys
    )
    yield from (item for item in plan.items if item.item_id not in criteria_ids)
    finished_keys = {(j.item_id, j.presentation, j.seat) for j in folder.records(Judgment)}
    duties = Duties(plan.excluded_candidates, lambda *key: key in finished_keys)
    for page in Pages(plan, folder):
        for judge in plan.judges:
            yield from duties.slots(judge, [page])


def _whole_plan(group: RunGroup) -> Plan:
    """The plan of the whole run.

    Raises:
        RunFolderError: the items of the shards are not those of the run that they name.
    """
    manifest = group.manifest()
    items, responses = group.items(), group.responses()
    if manifest.shard is None or manifest.shard.sha256 != inputs_hash(items, responses):
        raise RunFolderError(
            f"{group.path / layout.ITEMS}: items and given responses of the shards are not those"
            " of the whole run\n  fix: restore the shards from copies, or make them again"
        )
    return recorded_plan(group, manifest.model_copy(update={"shard": None}))


def _manifest(group: RunGroup, plan: Plan, run_id: str | None) -> Manifest:
    """The manifest of the whole run before its end."""
    manifests = [folder.manifest() for folder in group.folders]
    joint = group.manifest()
    name = run_id or new_run_id((joint.prompts or "run").partition(".")[0])
    n_given = sum(response.source == "injected" for response in group.responses())
    return joint.model_copy(
        update={
            "run": name,
            "status": "running",
            "secret": _secret(group, manifests),
            "counts": {"items": len(plan.items), "injected": n_given},
            "cost_usd": None,
            "cost_is_lower_bound": False,
            "origin": keys.joint_tag(name, manifests, joint.destinations),
            "started": max(manifest.started for manifest in manifests),
            "ended": None,
            "shard": None,
        }
    )


def _secret(group: RunGroup, manifests: Sequence[Manifest]) -> str | None:
    """The secrets of the items, taken in their order."""
    secrets: dict[str, str | None] = {}
    for folder, manifest in zip(group.folders, manifests, strict=True):
        plan = recorded_plan(folder, manifest)
        secrets |= {item.item_id: plan.secret_of(item.item_id) for item in plan.items}
    return joined_secrets([secrets[item.item_id] for item in group.items()])
