"""Writes the JSON Schemas of the files that people write: ``configs/schemas/NAME.schema.json``.

Made from the models that read these files, so that an editor and clash agree; ``docs/make.py`` runs
it, and a test compares. What a schema cannot say (two candidates of one id) clash says itself.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "configs" / "schemas"
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n        +.+)*)", re.MULTILINE)


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each kind of file, by name."""
    from clash.config import Config, Panel

    return {
        "config": _of_model(Config, "clash.yaml: what `clash eval` does by default"),
        "panel": _of_model(Panel, "A panel file: the judges of a run"),
        "prompts": _prompts(),
        "votes": _votes(),
    }


def texts() -> dict[Path, str]:
    """The content of each schema file."""
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def write() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for file, text in texts().items():
        file.write_text(text, encoding="utf-8")


def _of_model(model: Any, title: str) -> dict[str, Any]:
    return _headed(_described(model.model_json_schema(mode="validation")), title)


def _headed(schema: dict[str, Any], title: str) -> dict[str, Any]:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | {key: value for key, value in schema.items() if key != "title"}


def _prompts() -> dict[str, Any]:
    """A list of entries, or the same under ``prompts``; one entry, as JSON Lines have it."""
    from clash.config import PromptEntry

    record = _described(PromptEntry.model_json_schema(mode="validation"))
    definitions = {**record.pop("$defs", {}), "PromptEntry": record}
    records = {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/PromptEntry"}]},
    }
    under_key = {
        "type": "object",
        "properties": {"prompts": records},
        "required": ["prompts"],
        "additionalProperties": False,
    }
    # An object is tried as the one that its keys make of it, so that a message names the key.
    as_object = {
        "if": {"type": "object", "required": ["prompts"]},
        "then": under_key,
        "else": {"$ref": "#/$defs/PromptEntry"},
    }
    schema = {"if": {"type": "array"}, "then": records, "else": as_object}
    return _headed(schema | {"$defs": definitions}, "A prompts file, or a line of one in JSONL")


def _votes() -> dict[str, Any]:
    """A line of a votes file: a vote, or a ranking of named candidates."""
    import msgspec

    from clash.votes.lines import NamedVoteLine, RankingLine

    kinds = (NamedVoteLine, RankingLine)
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    schema = {
        "type": "object",
        "if": {"required": ["ranking"]},
        "then": {"$ref": "#/$defs/RankingLine"},
        "else": {"$ref": "#/$defs/NamedVoteLine"},
        "$defs": definitions,
    }
    return _headed(schema, "A line of a votes file (JSONL), or of a file of rankings")


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a description for each key that its model's docstring explains."""
    from clash import config, records

    for part in (schema, *schema.get("$defs", {}).values()):
        model = getattr(
            config, part.get("title", ""), getattr(records, part.get("title", ""), None)
        )
        notes = _attributes(model)
        part.pop("title", None)
        if "description" in part:
            part["description"] = part["description"].partition("\n")[0]
        for name, record in part.get("properties", {}).items():
            record.pop("title", None)
            if name in notes:
                record["description"] = notes[name]
    return schema


def _attributes(model: Any) -> dict[str, str]:
    """What the docstrings of a model and of its bases say of its fields."""
    notes: dict[str, str] = {}
    for cls in reversed(getattr(model, "__mro__", ())):
        text = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition("Attributes:\n")[2]
        description_by_name = {
            name: " ".join(note.split()) for name, note in _ATTRIBUTE.findall(text)
        }
        notes |= {name: note.replace("``", "`") for name, note in description_by_name.items()}
    return notes


if __name__ == "__main__":
    write()
