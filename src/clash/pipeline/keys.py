"""Keys before the first call: where they would go is shown, and confirmed where that is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.errors import ConfigError
from clash.providers import (
    base_url,
    destination,
    engine_destination,
    has_key,
    key_variable,
    needs_confirmation,
    not_confirmed,
    require,
)
from clash.secrets.destinations import (
    Destination,
    Environ,
    is_tagged,
    read_confirmed,
    run_tag,
    write_confirmed,
)
from clash.store.manifest import KeyDestination

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.config import ModelRef
    from clash.pipeline.options import Observer
    from clash.store.manifest import Manifest


def check(refs: Iterable[ModelRef], environ: Mapping[str, str], observer: Observer) -> None:
    """Refuse models that could not be called, ask where keys may go, and show where they do.

    Raises:
        ConfigError: a key or an address is missing or wrong, or the owner of a key has not
            confirmed where it would go and cannot be asked.
    """
    models = [server for ref in refs for server in ref.servers]
    _confirm([ref for ref in models if has_key(ref, environ)], environ, observer)
    for ref in models:
        require(ref, environ)
    for line in lines(models, environ):
        observer.note(line, "detail")


def lines(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> Iterator[str]:
    """``VARIABLE -> host`` for people, with the models that are called there."""
    models: dict[Destination, dict[str, None]] = {}
    for ref in (server for model in refs for server in model.servers):
        if (where := destination(ref, environ)) is not None:
            doubt = " (not confirmed)" if needs_confirmation(ref, environ) else ""
            models.setdefault(where, {})[ref.model + doubt] = None
    for where, names in models.items():
        yield f"key: {where} for {', '.join(names)}"


def route(ref: ModelRef, environ: Mapping[str, str]) -> str:
    """``VARIABLE -> host`` of one model, with what is still missing; ``no key`` where it needs none."""
    return ", ".join(_route(server, environ) for server in ref.servers)


def _route(ref: ModelRef, environ: Mapping[str, str]) -> str:
    where = destination(ref, environ)
    if where is None:
        variable, url = key_variable(ref, environ), base_url(ref, environ)
        return f"{variable or 'no key'} -> {url}" if url else variable or "no key, no network"
    if not has_key(ref, environ):
        return f"{where} (not set)"
    return f"{where} (not confirmed)" if needs_confirmation(ref, environ) else str(where)


def missing(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> list[str]:
    """The variables of keys that these models need and the environment lacks, once each."""
    variables = (key_variable(ref, environ) for ref in refs if not has_key(ref, environ))
    return list(dict.fromkeys(name for name in variables if name is not None))


def destinations(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> list[Destination]:
    """Every place that a key would be sent to, once."""
    servers = [server for ref in refs for server in ref.servers]
    return sorted({where for ref in servers if (where := destination(ref, environ)) is not None})


def _confirm(refs: Sequence[ModelRef], environ: Mapping[str, str], observer: Observer) -> None:
    """Ask once for all that need it, and remember the answer for good."""
    doubtful = [ref for ref in refs if needs_confirmation(ref, environ)]
    if not doubtful:
        return
    refusal = not_confirmed(doubtful, environ)
    if not isinstance(environ, Environ):
        raise refusal
    new = destinations(doubtful, environ)
    # --yes agrees to a price, not to this.
    answer = observer.confirm(
        "Send them there, now and in later runs?",
        (
            "These keys would be sent to servers that you have not confirmed:",
            *(
                f"  {d}{'' if d.is_encrypted or d.is_loopback else '  (not encrypted)'}"
                for d in new
            ),
        ),
    )
    if not answer:
        raise refusal
    environ.confirm(new)
    try:
        write_confirmed(read_confirmed() | set(new))
    except ConfigError as error:
        observer.note(f"confirmed for this command only: {error}")


# -- runs made here ----------------------------------------------------------------------------


def sign(manifest: Manifest, refs: Iterable[ModelRef], environ: Mapping[str, str]) -> Manifest:
    """The manifest with where its keys go, and proof for this user that it was made here.

    The settings of engines are among them, so that a changed one is not taken for one's own.
    """
    refs = list(refs)
    engines = {target for ref in refs if (target := engine_destination(ref, environ)) is not None}
    targets = sorted({*destinations(refs, environ), *engines})
    return manifest.model_copy(
        update={
            "destinations": [KeyDestination(variable=d.variable, server=d.server) for d in targets],
            "origin": run_tag(manifest.run, targets) if targets else None,
        }
    )


def joint_tag(
    run: str, shards: Sequence[Manifest], destinations: Sequence[KeyDestination]
) -> str | None:
    """The tag of a run merged from shards; null unless this user made every one of them here.

    A stranger's shard would otherwise bring its destinations into a run of one's own.
    """
    if not destinations or not all(_is_own(shard) for shard in shards if shard.destinations):
        return None
    return run_tag(run, [Destination(d.variable, d.server) for d in destinations])


def recall(manifest: Manifest, environ: Mapping[str, str]) -> None:
    """Let keys go where the run sent them, if this user made it on this machine."""
    if _is_own(manifest) and isinstance(environ, Environ):
        environ.confirm(_places(manifest))


def _places(manifest: Manifest) -> list[Destination]:
    return [Destination(d.variable, d.server) for d in manifest.destinations]


def _is_own(manifest: Manifest) -> bool:
    """Whether this user made the run on this machine."""
    tag = manifest.origin
    return tag is not None and is_tagged(manifest.run, _places(manifest), tag)
