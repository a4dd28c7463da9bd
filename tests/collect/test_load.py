"""Prompts files: every format the same items; a wrong file is refused with place and hint."""

import gzip
import json

import pytest

from clash.collect.load import load
from clash.errors import InputError

ENTRIES = [
    {
        "id": "q1",
        "prompt": "Add 2 and 2.",
        "tags": ["maths"],
        "responses": {"a": "4", "b": "5"},
        "label": "a",
    },
    {"id": "q2", "prompt": "Say hello.", "system": "Be brief."},
]
YAML = """\
- id: q1
  prompt: Add 2 and 2.
  tags: [maths]
  responses: {a: "4", b: "5"}
  label: a
- id: q2
  prompt: Say hello.
  system: Be brief.
"""
CSV = "id,prompt,tags,response:a,response:b,label,system\nq1,Add 2 and 2.,maths,4,5,a,\nq2,Say hello.,,,,,Be brief.\n"


def wrote(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.yaml", YAML),
        ("p.json", json.dumps(ENTRIES)),
        ("p.jsonl", "\n".join(map(json.dumps, ENTRIES)) + "\n\n"),
        ("p.jsonl.gz", gzip.compress("\n".join(map(json.dumps, ENTRIES)).encode())),
        ("p.csv", CSV),
        ("p.csv.gz", gzip.compress(CSV.encode())),
        ("P.CSV.GZ", gzip.compress(CSV.encode())),
        ("p.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode())),
        ("p.yaml.gz", gzip.compress(YAML.encode())),
        ("p.yaml", "prompts:\n" + "".join(f"  {line}\n" for line in YAML.splitlines())),
    ],
)
def test_every_format_gives_the_same_items(tmp_path, name, text):
    loaded_run_data = load(wrote(tmp_path, name, text))
    first, second = loaded_run_data.items
    assert (first.item_id, first.prompt, first.tags, first.label) == (
        "q1",
        "Add 2 and 2.",
        ["maths"],
        "a",
    )
    assert (second.item_id, second.system, second.label) == ("q2", "Be brief.", None)
    assert [(r.candidate, r.text, r.source) for r in loaded_run_data.responses] == [
        ("a", "4", "injected"),
        ("b", "5", "injected"),
    ]


def test_text_is_a_prompt_a_line_markdown_one_a_folder_one_a_file(tmp_path):
    lines = load(wrote(tmp_path, "p.txt", "One?\n\nTwo?\n"))
    assert [(i.item_id, i.prompt) for i in lines.items] == [("q1", "One?"), ("q2", "Two?")]
    full_run_data = load(wrote(tmp_path, "p.md", "# A\n\nlong prompt\n"))
    assert [i.prompt for i in full_run_data.items] == ["# A\n\nlong prompt\n"]
    folder = tmp_path / "many"
    folder.mkdir()
    wrote(folder, "b.txt", "B\nsecond line")
    wrote(folder, "a.md", "A")
    wrote(folder, "ignored.png", b"\x89")
    assert [(i.item_id, i.prompt) for i in load(folder).items] == [
        ("a", "A"),
        ("b", "B\nsecond line"),
    ]


def test_a_conversation_keeps_its_turns(tmp_path):
    text = "- messages: [{role: user, content: Hi}, {role: assistant, content: Hello}, {role: user, content: Why?}]\n"
    (item,) = load(wrote(tmp_path, "p.yaml", text)).items
    assert [turn.content for turn in item.turns] == ["Hi", "Hello", "Why?"]


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("- id: q1\n  prompt: a\n- id: q1\n  prompt: b\n", 3, "id", "appears twice"),
        ("- prompt: a\n- prompt: '  '\n", 2, None, "empty"),
        ("- prompt: a\n- promt: b\n", 2, None, "unknown key"),
        ("- prompt: a\n  messages: []\n", 1, None, "either prompt or messages"),
        ("- prompt: a\n  responses: [x]\n", 2, "responses", "expected keys and values"),
        ("- prompt: a\n  responses: {x: 'y'}\n  label: z\n", 1, None, "label 'z'"),
        ("- prompt: a\n- prompt: a\n", 2, None, "same as item 'q1'"),
        ("- prompt: a\n  prompt: b\n", 2, "prompt", "twice"),
        ("- prompt: [a\n", None, None, "not valid YAML"),
        ("prompt: a\n", 1, None, "list of prompts"),
        (
            "- messages: [{role: user, content: Hi}, {role: assistant, content: x}]\n",
            1,
            None,
            "end with a user",
        ),
        ("- prompt: a\n  tags: 3\n", 2, "tags", "list"),
        ("", None, None, ""),
    ],
)
def test_a_wrong_yaml_names_line_field_and_what_was_expected(tmp_path, text, line, field, says):
    path = wrote(tmp_path, "p.yaml", text)
    with pytest.raises(InputError) as error:
        load(path)
    assert says in str(error.value)
    assert str(path) in str(error.value)
    if line is not None:
        assert error.value.line == line
    if field is not None:
        assert field in error.value.field


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("p.jsonl", '{"prompt": "a"}\n{"prompt": \n', 2, "not JSON"),
        ("p.jsonl", '{"prompt": "a"}\n[1]\n', 2, "JSON object"),
        ("p.csv", "question\nhi\n", 1, "'question' is unknown"),
        ("p.csv", "id\nq1\n", 1, "no column prompt"),
        ("p.csv", "id,prompt\nq1,\n", 2, "empty"),
        ("p.csv", "id,prompt\nq1,a,b\n", 2, "more cells"),
        ("p.docx", "x", None, "ending"),
        ("p.yaml", b"\xff\xfe\x00", None, "not UTF-8"),
        ("p.jsonl.gz", b"nonsense", None, "gzip"),
    ],
)
def test_other_formats_name_the_place_too(tmp_path, name, text, line, says):
    with pytest.raises(InputError) as error:
        load(wrote(tmp_path, name, text))
    assert says in str(error.value)
    assert error.value.line == line


@pytest.mark.parametrize(
    ("lines", "ids"),
    [
        (['{"id": "q2", "prompt": "a"}', '{"prompt": "b"}'], ["q2", "q2-2"]),
        (['{"prompt": "a"}', '{"id": "q1", "prompt": "b"}'], ["q1-2", "q1"]),
        (
            ['{"prompt": "a"}', '{"id": "q1", "prompt": "b"}', '{"id": "q1-2", "prompt": "c"}'],
            ["q1-3", "q1", "q1-2"],
        ),
    ],
)
def test_an_entry_without_an_id_gets_one_that_no_other_entry_has(tmp_path, lines, ids):
    loaded_run_data = load(wrote(tmp_path, "p.jsonl", "\n".join(lines)))
    assert [item.item_id for item in loaded_run_data.items] == ids


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "nowhere.yaml")


def test_a_prompt_with_other_responses_is_clustered_with_its_twin(tmp_path):
    text = "- {id: x, prompt: P, responses: {a: '1', b: '2'}}\n- {id: y, prompt: P, responses: {a: '1', c: '3'}}\n"
    loaded_run_data = load(wrote(tmp_path, "p.yaml", text))
    assert [item.cluster for item in loaded_run_data.items] == ["x", "x"]
    assert "clustered by prompt" in " ".join(loaded_run_data.warnings)


@pytest.mark.parametrize(
    ("twin", "error"),
    [
        ({"id": "q7", "prompt": "other"}, "'q7' appears twice .first in line 8."),
        ({"prompt": "P7", "responses": {"a": "7", "b": "0"}}, "the same as item 'q7'"),
        ({"prompt": "P7", "responses": {"b": "7", "a": "0"}}, None),
        ({"prompt": "P7", "system": "s", "responses": {"a": "7", "b": "0"}}, None),
    ],
)
def test_a_twin_is_found_whatever_comes_between(tmp_path, twin, error):
    records = [
        {"id": f"q{n}", "prompt": f"P{n}", "responses": {"a": str(n), "b": "0"}}
        for n in range(1500)
    ]
    # An item with a group of its own says nothing of the prompts of others.
    records[6] = {"id": "q6", "prompt": "P7", "group": "g"}
    path = wrote(tmp_path, "p.jsonl", "\n".join(map(json.dumps, [*records, twin])))
    if error is not None:
        with pytest.raises(InputError, match=error):
            load(path)
    else:
        assert [item.cluster for item in load(path).items][-2:] == ["q1499", "q7"]


def test_lone_surrogates_are_replaced_and_said(tmp_path):
    loaded_run_data = load(wrote(tmp_path, "p.jsonl", '{"prompt": "a\\ud800b"}\n'))
    assert loaded_run_data.items[0].prompt == "a\ufffdb"
    assert loaded_run_data.warnings


def test_windows_files_are_read(tmp_path):
    loaded_run_data = load(wrote(tmp_path, "p.csv", "\ufeffid,prompt\r\nq1,hello\r\n".encode()))
    assert loaded_run_data.items[0].prompt == "hello"


def test_criteria_may_be_names_alone(tmp_path):
    text = "- {prompt: Hi, criteria: [Accuracy, Clarity]}\n"
    (item,) = load(wrote(tmp_path, "p.yaml", text)).items
    assert [(c.name, c.weight) for c in item.criteria] == [("Accuracy", 0.5), ("Clarity", 0.5)]
    mixed_criteria = "- {prompt: Hi, criteria: [Accuracy, {name: Clarity, weight: 1}]}\n"
    with pytest.raises(InputError, match="criteria"):
        load(wrote(tmp_path, "q.yaml", mixed_criteria))


def test_a_question_of_mt_bench_is_a_conversation(tmp_path):
    line = '{"question_id": 101, "category": "math", "turns": ["Add.", "Double it."], "reference": ["3", "6"]}'
    file = tmp_path / "question.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    (item,) = load(file).items
    assert (item.item_id, item.tags) == ("101", ["math"])
    assert [(turn.role, turn.content) for turn in item.turns] == [
        ("user", "Add."),
        ("user", "Double it."),
    ]
    assert item.reference == "[Turn 1]\n3\n\n[Turn 2]\n6"
