"""Prompts and votes as Excel saves them, and workbooks that are meant to do harm."""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from clash.collect.load import load
from clash.errors import InputError, MissingPackageError
from clash.files import xlsx_reader
from clash.votes import read_votes

ROWS = [
    ["prompt", "response:a", "response:b", "label"],
    ["Was kostet „Müsli“?", "Zwei Euro; é, ß", "Drei €", "a"],
    ["Und Brot?", "Eins", "Zwei", "tie"],
]


def text(separator):
    def cell(value):
        return f'"{value}"' if any(sign in value for sign in ",;") else value

    return "\r\n".join(separator.join(map(cell, row)) for row in ROWS) + "\r\n"


def items(path):
    run_data = load(path)
    assert [item.prompt for item in run_data.items] == [row[0] for row in ROWS[1:]]
    assert [r.text for r in run_data.responses[:2]] == ROWS[1][1:3]
    return run_data


@pytest.mark.parametrize(
    ("separator", "encoding", "note"),
    [
        (",", "utf-8-sig", None),
        (";", "utf-8", None),
        ("\t", "utf-16", "read as UTF-16"),
        (";", "cp1252", "Windows-1252"),
        (",", "cp1252", 'Excel: File > Save As > "CSV UTF-8'),
    ],
)
def test_what_excel_saves_is_read_and_said(tmp_path, separator, encoding, note):
    file = tmp_path / "prompts.csv"
    file.write_bytes(text(separator).encode(encoding))
    warnings = items(file).warnings
    assert (warnings == ()) if note is None else (note in warnings[0])


def test_the_separator_that_excel_declares_is_not_a_row(tmp_path):
    file = tmp_path / "prompts.csv"
    file.write_text("sep=;\n" + text(";") + "x;y;z;nobody\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"prompts.csv:5: .*nobody"):
        load(file)


def test_other_alphabets_are_refused_with_the_menu_entry_rather_than_misread(tmp_path):
    file = tmp_path / "prompts.csv"
    file.write_bytes("prompt\nСколько стоит хлеб?\n".encode("cp1251"))
    with pytest.raises(InputError, match="not UTF-8") as error:
        load(file)
    assert 'Excel: File > Save As > "CSV UTF-8' in str(error.value)


def test_votes_are_read_with_semicolons_and_never_in_a_guessed_encoding(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_bytes("item;judge;vote\nq1;zoë;A\n".encode())
    assert read_votes(file).judges == ("zoë",)
    file.write_bytes("item;judge;vote\nq1;zoë;A\n".encode("cp1252"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_votes(file)


# -- workbooks --------------------------------------------------------------------------------------


def workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_first_sheet_of_a_workbook_is_read_and_the_others_named(tmp_path):
    file = workbook(tmp_path / "prompts.xlsx", [*ROWS[:2], [], ROWS[2]], [["x"]])
    assert "read the first of 2 sheets, 'Sheet1'" in items(file).warnings[0]


def test_numbers_of_a_workbook_are_what_one_sees(tmp_path):
    rows = [["item", "judge", "vote"], [1, "a", 1.0], [2, "a", 0.25]]
    votes = read_votes(workbook(tmp_path / "votes.xlsx", rows))
    assert list(votes.items) == ["1", "2"]


def test_without_the_extra_its_install_line_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("clash.extras.is_installed", lambda _: False)
    file = tmp_path / "prompts.xlsx"
    file.write_bytes(b"PK")
    with pytest.raises(MissingPackageError, match=r"pip install 'clash-eval\[xlsx\]'.*CSV UTF-8"):
        load(file)


def bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b" " * (xlsx_reader.MAX_UNPACKED + 1))
    return file.getvalue()


def edit(data, name, change):
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for part in old.namelist():
            new.writestr(part, change(old.read(part)) if part.endswith(name) else old.read(part))
    return file.getvalue()


def entity(part):
    declaration = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    return part.replace(b"<worksheet", declaration + b"<worksheet", 1)


def far_cell(part):
    cell = b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row>'
    return part.replace(b"</sheetData>", cell + b"</sheetData>")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: bomb(), "unpacks to 64 MB"),
        (lambda data: b"not a zip", "no Excel workbook"),
        (lambda data: data[: len(data) // 2], "no Excel workbook"),
        (lambda data: edit(data, "sheet1.xml", lambda part: part[:200]), "no Excel workbook"),
        (lambda data: edit(data, "sheet1.xml", entity), "no Excel workbook"),
        (lambda data: edit(data, "workbook.xml", lambda part: b""), "no Excel workbook"),
        (lambda data: edit(data, "sheet1.xml", far_cell), "more than"),
    ],
    ids=["bomb", "no zip", "cut", "cut sheet", "entities", "no sheets", "far cell"],
)
def test_a_workbook_that_is_meant_to_do_harm_is_refused(tmp_path, monkeypatch, change, message):
    monkeypatch.setattr(xlsx_reader, "MAX_ROWS", 1000)
    file = workbook(tmp_path / "prompts.xlsx", ROWS)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(InputError, match=message):
        load(file)


def test_a_damaged_workbook_is_read_or_refused_and_prints_nothing(tmp_path, capsys):
    file = workbook(tmp_path / "prompts.xlsx", ROWS)
    good, rng, n_refused = file.read_bytes(), random.Random(0), 0
    parts = zipfile.ZipFile(io.BytesIO(good)).namelist()

    def overwrite(part):
        start = rng.randrange(len(part))
        return (
            part[:start]
            + rng.choice([b"", b"<x>", b'="-1"', b"99999999999999999999"])
            + (part[start + rng.randrange(40) :])
        )

    for _ in range(150):
        file.write_bytes(edit(good, rng.choice(parts), overwrite))
        try:
            list(xlsx_reader.sheet_rows(file)[1])
        except InputError:
            n_refused += 1
    assert 10 < n_refused < 150
    assert capsys.readouterr() == ("", "")
