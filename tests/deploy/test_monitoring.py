"""The dashboard and the alerts ask for figures, labels and values that the service really has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from service import made
from verix_anon.protocol.providers import JobState
from verix_anon.service import daily_counts, leases, worker
from verix_anon.service.api.app import make_app
from verix_anon.service.database import ServerRow
from verix_anon.service.server import make_context
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, create_token

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
NAME = re.compile(r"\b(verix_\w+)(?:\{(.*?)\})?(?=[\[)\s]|$)")
LABEL = re.compile(r'(\w+)(=~?)"(.*?)"')


def expressions() -> list[str]:
    """What both files ask Prometheus for."""
    alerts: Any = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    asked = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    panels: Any = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    return asked + [each["expr"] for panel in panels for each in panel["targets"]]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """The labels of every series of a service to which everything has happened."""
    context = make_context(ServiceSettings(folder=tmp_path_factory.mktemp("figures")))
    codes = (worker.INTERNAL.code, leases.KILLED.code)
    events = [daily_counts.FAILED + code for code in codes]
    with context.database.write() as session:
        session.add(ServerRow(name="one", seen=1e12, workers=1, is_storing=True))
        for event in (*events, daily_counts.DELIVERED):
            daily_counts.count(session, made.TENANT, event)
    client = TestClient(make_app(context))
    given = {"Authorization": f"Bearer {create_token(context.database, None, TokenRole.OPERATOR)}"}
    job = f"/v1/jobs/{'0' * 32}"
    assert client.get(job).status_code == 401
    answer = client.get("/metrics", headers=given)
    context.database.close()
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_every_figure_that_is_asked_for_is_exported(
    figures: dict[str, list[dict[str, str]]],
) -> None:
    named = set()
    for expression in expressions():
        for name, chosen in NAME.findall(expression):
            named.add(name)
            assert name in figures, expression
            for label, sign, value in LABEL.findall(chosen):
                values = {labels.get(label) for labels in figures[name]}
                if label == "status":
                    # Nothing failed here by the service's fault.
                    assert None not in values
                elif sign == "=":
                    assert value in values, expression
                else:
                    assert any(re.fullmatch(value, each or "") for each in values), expression
        for name in re.findall(r"by \((.*?)\)", expression):
            series = [labels for one in NAME.findall(expression) for labels in figures[one[0]]]
            assert set(name.split(", ")) <= series[0].keys(), expression
    exported = {name for name in figures if not name.endswith(("_created", "_count", "_sum"))}
    assert named == exported


def test_states_are_those_of_jobs() -> None:
    states = {state for each in expressions() for state in re.findall(r'state="(\w+)"', each)}
    assert states
    assert states <= set(JobState)


def test_every_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert rule["annotations"].keys() == {"summary", "action"}, rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")
    options = re.findall(r"--[a-z-]+", str(group))
    reference = (DEPLOY.parent / "docs" / "reference" / "cli.md").read_text()
    assert all(f"`{option}`" in reference for option in options)
