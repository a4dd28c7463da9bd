"""The examples for models on servers and clusters of one's own: each is loaded by clash."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
import yaml

from clash import assets
from clash.cli.app import run

EXAMPLES = assets.path("configs", "examples")
SERVERS = (EXAMPLES / "panel-own-servers.yaml").read_text()
CLUSTER = (EXAMPLES / "panel-ray-cluster.yaml").read_text()
OBJECTS = {
    part["kind"]: part
    for part in yaml.safe_load_all((EXAMPLES / "kubernetes-vllm.yaml").read_text())
}
IN_PODS = OBJECTS["ConfigMap"]["data"]["panel.yaml"]


@pytest.mark.parametrize(
    ("panel", "options"), [(SERVERS, []), (IN_PODS, []), (CLUSTER, ["--batch"])]
)
def test_the_panel_is_one_that_clash_takes(panel, options, tmp_path, monkeypatch, capsys):
    prompts = [{"id": "q", "prompt": "Say 1.", "responses": {"a": "1", "b": "2"}}]
    (tmp_path / "prompts.yaml").write_text(json.dumps(prompts))
    (tmp_path / "panel.yaml").write_text(panel)
    monkeypatch.chdir(tmp_path)
    words = ["eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--dry-run"]
    assert run([*words, *options]) == 0
    assert "$0.00" in capsys.readouterr().out


def test_the_panel_names_the_servers_that_compose_starts():
    services = yaml.safe_load((EXAMPLES / "docker-compose-vllm.yaml").read_text())["services"]
    addresses = {port.rpartition(":")[0] for s in services.values() for port in s["ports"]}
    (judge,) = yaml.safe_load(SERVERS)["judges"]
    assert {urlsplit(url).netloc for url in judge["base_urls"]} == addresses
    devices = [
        device
        for service in services.values()
        for record in service["deploy"]["resources"]["reservations"]["devices"]
        for device in record["device_ids"]
    ]
    assert len(set(devices)) == len(services)
    for service in services.values():
        assert judge["model"] == f"compatible/{service['command'][1]}"


def test_the_panel_names_every_pod():
    servers, service = OBJECTS["StatefulSet"], OBJECTS["Service"]["metadata"]["name"]
    pod = servers["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    (judge,) = yaml.safe_load(IN_PODS)["judges"]
    port = container["ports"][0]["containerPort"]
    name = servers["metadata"]["name"]
    assert judge["base_urls"] == [
        f"http://{name}-{n}.{service}:{port}/v1" for n in range(servers["spec"]["replicas"])
    ]
    assert servers["spec"]["serviceName"] == service
    assert OBJECTS["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert judge["model"] == f"compatible/{container['args'][1]}"
