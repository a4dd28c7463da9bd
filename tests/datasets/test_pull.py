"""A download is whole, checked against the publisher's checksum, and goes on where it broke off."""

import hashlib
import json
import socket

import pytest

from clash.datasets import catalogue, loaders, pull
from clash.datasets import hub as data_hub
from clash.datasets.catalogue import CatalogueEntry
from clash.errors import ConfigError, DownloadError

RECORD = {"prompt": "Q?", "response_a": "1", "response_b": "2", "label": "A"}
CONTENT = b"".join(json.dumps({**RECORD, "id": n}).encode() + b"\n" for n in range(3000))
ENTRY = CatalogueEntry(
    name="mine",
    title="Mine",
    what="pairs",
    loader="table",
    hub="someone/pairs",
    revision="main",
    files=["data/*.jsonl"],
    licence="CC0",
    citation="none",
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch, tmp_path):
    for name in ("HF_ENDPOINT", "HF_TOKEN", "CLASH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def hub(start_hub):
    return start_hub(files={"data/train.jsonl": CONTENT, "README.md": b"# hello"})


def fetch(hub, cache, **more):
    return pull.pull(ENTRY, cache, base_url=hub.url, wait_s=0.0, **more)


def test_a_pull_is_checked_recorded_and_loaded_by_name(hub, tmp_path, monkeypatch):
    messages = []
    reply = fetch(hub, tmp_path, progress=messages.append)
    [file] = reply.files
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert (file.path, file.size, file.sha256) == ("data/train.jsonl", len(CONTENT), digest)
    assert file.verified == f"sha256 {digest}"
    assert reply.commit == hub.commit
    assert reply.paths[0].read_bytes() == CONTENT
    assert messages[-1].n_bytes == messages[-1].total == len(CONTENT)
    record = json.loads((tmp_path / "mine" / "pulled.json").read_text())
    assert record["files"][0]["sha256"] == digest
    assert record["licence"] == "CC0"
    assert not list(tmp_path.rglob("*.part*"))
    monkeypatch.setattr(catalogue, "find", lambda _: ENTRY)
    assert len(loaders.load("mine", cache=tmp_path).items) == 3000


def test_what_is_here_is_not_fetched_again(hub, tmp_path):
    fetch(hub, tmp_path)
    n_requests = len(hub.asked)
    assert fetch(hub, tmp_path).paths[0].is_file()
    assert len(hub.asked) == n_requests
    fetch(hub, tmp_path, again=True)
    assert len(hub.asked) > n_requests


def test_an_interrupted_pull_is_resumed_by_the_next_one(hub, tmp_path):
    hub.cut["data/train.jsonl"] = [100_000]
    with pytest.raises(DownloadError, match="connection lost after 100000 bytes"):
        fetch(hub, tmp_path, attempts=1)
    assert pull.find_pulled(ENTRY, tmp_path) is None
    assert (tmp_path / "mine/data/train.jsonl.part").stat().st_size == 100_000
    reply = fetch(hub, tmp_path)
    assert reply.paths[0].read_bytes() == CONTENT
    ranges = [wanted for path, wanted in hub.asked if path.startswith("/cdn/")]
    assert ranges == [None, "bytes=100000-"]


def test_a_broken_connection_is_taken_up_within_one_pull(hub, tmp_path):
    hub.cut["data/train.jsonl"] = [10_000, 50_000, 0]
    reply = fetch(hub, tmp_path)
    assert reply.paths[0].read_bytes() == CONTENT
    ranges = [wanted for path, wanted in hub.asked if path.startswith("/cdn/")]
    assert ranges == [None, "bytes=10000-", "bytes=60000-", "bytes=60000-"]


def test_a_file_that_changed_meanwhile_is_fetched_from_the_start(hub, tmp_path):
    hub.cut["data/train.jsonl"] = [100_000]
    with pytest.raises(DownloadError):
        fetch(hub, tmp_path, attempts=1)
    changed_content = CONTENT.replace(b"Q?", b"R?")
    hub.files["data/train.jsonl"] = changed_content
    assert fetch(hub, tmp_path).paths[0].read_bytes() == changed_content


def test_a_server_without_range_starts_over(hub, tmp_path):
    hub.cut["data/train.jsonl"] = [100_000]
    hub.ignore_range = True
    assert fetch(hub, tmp_path).paths[0].read_bytes() == CONTENT


def test_a_part_that_is_already_whole_is_only_checked(hub, tmp_path):
    part = tmp_path / "mine/data/train.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    assert fetch(hub, tmp_path).files[0].size == len(CONTENT)
    assert not [path for path, _ in hub.asked if path.startswith("/cdn/")]


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(hub, tmp_path):
    hub.stated["data/train.jsonl"] = "0" * 64
    with pytest.raises(DownloadError, match="its publisher says 000000"):
        fetch(hub, tmp_path)
    assert not [path for path in (tmp_path / "mine").rglob("*") if path.is_file()]
    assert pull.find_pulled(ENTRY, tmp_path) is None


def test_small_files_are_held_against_their_git_blob(hub, tmp_path):
    hub.small.add("data/train.jsonl")
    assert fetch(hub, tmp_path).files[0].verified.startswith("git-sha1 ")


def test_a_tree_of_several_pages_is_read_to_its_end(hub, tmp_path):
    hub.files |= {f"data/more-{n}.jsonl": b"{}\n" for n in range(5)}
    hub.page_size = 2
    assert len(fetch(hub, tmp_path).files) == 6


def test_passing_trouble_is_waited_out(hub, tmp_path):
    hub.refused["data/train.jsonl"] = [429, 503]
    assert fetch(hub, tmp_path).paths[0].read_bytes() == CONTENT


def test_lasting_trouble_is_told(hub, tmp_path):
    hub.refused["data/train.jsonl"] = [503, 503]
    with pytest.raises(DownloadError, match="answered 503"):
        fetch(hub, tmp_path, attempts=2)
    hub.status = [401]
    with pytest.raises(DownloadError, match="HF_TOKEN"):
        fetch(hub, tmp_path)


def test_no_hub_at_all_says_what_to_do(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(DownloadError, match="check the connection"):
        pull.pull(ENTRY, tmp_path, base_url=nobody, wait_s=0.0)


def test_a_pattern_that_matches_nothing_is_an_error(hub, tmp_path):
    del hub.files["data/train.jsonl"]
    with pytest.raises(DownloadError, match=r"no file matches data/\*.jsonl"):
        fetch(hub, tmp_path)


def test_a_name_that_leaves_the_folder_is_refused(hub, tmp_path):
    hub.files["data/../../../evil.jsonl"] = b"{}\n"
    with pytest.raises(DownloadError, match="outside its repository"):
        fetch(hub, tmp_path)
    assert not (tmp_path.parent / "evil.jsonl").exists()


def test_the_token_goes_to_the_hub_and_not_to_where_it_points(
    hub, start_hub, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    other_hub = start_hub(files=hub.files)
    hub.elsewhere = other_hub.url
    assert fetch(hub, tmp_path).paths[0].read_bytes() == CONTENT
    assert set(hub.tokens) == {"Bearer hf_secret"}
    assert set(other_hub.tokens) == {None}
    assert "hf_secret" not in (tmp_path / "mine" / "pulled.json").read_text()


def test_the_token_does_not_go_to_a_publishers_own_web_server(start_hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub = start_hub(files={"repo/a.json": b"[]"})
    record = CatalogueEntry.model_validate(
        {**ENTRY.model_dump(), "hub": None, "web": f"{hub.url}/repo/", "files": ["a.json"]}
    )
    assert pull.pull(record, tmp_path, wait_s=0.0).files
    assert set(hub.tokens) == {None}


def test_the_token_goes_out_unencrypted_only_where_that_is_confirmed(monkeypatch, tmp_path):
    hub_in_clear = "http://hub.example"
    monkeypatch.setenv("CLASH_CONFIG_DIR", str(tmp_path))
    assert data_hub.token(ENTRY, hub_in_clear) is None
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    for address in ("https://huggingface.co", "https://hub.example", "http://127.0.0.1:9"):
        assert data_hub.token(ENTRY, address) == "hf_secret"
    with pytest.raises(ConfigError, match="HF_TOKEN -> http://hub") as error:
        data_hub.token(ENTRY, hub_in_clear)
    assert "clash trust HF_TOKEN http://hub.example" in str(error.value)
    monkeypatch.setenv("CLASH_TRUST_HOSTS", hub_in_clear)
    assert data_hub.token(ENTRY, hub_in_clear) == "hf_secret"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ftp://x", "not a web address"),
        ("file:///etc/passwd#", "not a web address"),
        ("http://[", "not a web address"),
    ],
)
def test_a_redirect_out_of_the_web_is_refused(hub, tmp_path, target, message):
    hub.elsewhere = target
    with pytest.raises(DownloadError, match=message):
        fetch(hub, tmp_path)


def test_a_redirect_out_of_the_encryption_is_refused():
    from clash.datasets.hub import Http

    with pytest.raises(DownloadError, match="which is not encrypted"):
        Http._next("https://hub.example/a", "http://hub.example/a")
    assert Http._next("https://hub.example/a/b", "../c") == "https://hub.example/c"


def test_files_of_the_web_are_fetched_from_their_address(start_hub, tmp_path):
    record = CatalogueEntry.model_validate(
        {**ENTRY.model_dump(), "hub": None, "web": "http://h.example/repo/", "files": ["d/a.json"]}
    )
    hub = start_hub(files={"repo/d/a.json": b"[]"})
    pull_result = pull.pull(record, tmp_path, base_url=hub.url, wait_s=0.0)
    assert pull_result.paths[0].read_bytes() == b"[]"
    assert pull_result.files[0].verified == "none stated"


def test_the_hub_may_be_named_by_the_environment(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    assert pull.pull(ENTRY, tmp_path, wait_s=0.0).files


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    assert pull.cache_folder() == tmp_path / "xdg" / "clash" / "datasets"
    monkeypatch.setenv("CLASH_CACHE", str(tmp_path / "own"))
    assert pull.cache_folder() == tmp_path / "own" / "datasets"


def test_a_broken_record_or_a_missing_file_is_no_data_set(hub, tmp_path):
    reply = fetch(hub, tmp_path)
    reply.paths[0].write_bytes(b"short")
    assert pull.find_pulled(ENTRY, tmp_path) is None
    (tmp_path / "mine" / "pulled.json").write_text("{")
    assert pull.find_pulled(ENTRY, tmp_path) is None
