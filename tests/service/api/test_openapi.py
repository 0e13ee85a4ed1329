"""The service keeps to its own description, whatever is sent: a bounded run of schemathesis.

Two of its checks are left out. `positive_data_acceptance`: what a contract means, such as that one
field is another's digest, cannot be said in a schema, so that some JSON that fits it is refused.
`negative_data_rejection`: it takes for wrong what HTTP cannot tell, such as a number that was sent
as text in a header, or a header that nobody asked for.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.running import SECONDS, Service, create, ended, order, send, submit

UPLOAD = "application/offset+octet-stream"
NAMES = ("contract.json", "records.parquet", "submission.json", "delivery.json", "leaves.parquet")


def as_bytes(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class Known:
    """Tokens, and jobs in several states."""

    def __init__(self, service: Service, submission: Path) -> None:
        self.token, self.operator = service.token("fuzz"), service.token(None)
        with service.client(self.token) as client:
            asked = order(submission)
            done = submit(client, submission)
            self.jobs = [done, *(str(create(client, asked)["id"]) for _ in range(3))]
            for name in ("contract.json", "submission.json"):
                send(client, self.jobs[1], name, (submission / name).read_bytes())
            assert ended(client, done)["state"] == "done"

    def place(self, case: Any) -> None:
        """Let a case meet a job that is there, as often as one that is not."""
        given = case.path_parameters
        chance = random.Random(repr(given))
        if given and "job" in given and chance.random() < 0.5:
            given["job"] = chance.choice(self.jobs)
            if "name" in given and chance.random() < 0.7:
                given["name"] = chance.choice(NAMES)

    def headers(self, case: Any) -> dict[str, str]:
        is_operators = case.operation.path in ("/operator", "/metrics")
        return {"Authorization": f"Bearer {self.operator if is_operators else self.token}"}


@pytest.fixture(scope="module")
def known(service: Service, submission: Path) -> Known:
    return Known(service, submission)


@pytest.fixture(scope="module")
def api(service: Service) -> Any:
    import schemathesis  # Takes a second to load, which collecting need not.

    schemathesis.openapi.media_type(UPLOAD, st.binary(max_size=2_000))
    schemathesis.serializer(UPLOAD)(as_bytes)
    return schemathesis.openapi.from_url(f"{service.url}/openapi.json")


OPERATIONS = (
    ("GET", "/v1"),
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job}"),
    ("DELETE", "/v1/jobs/{job}"),
    ("GET", "/v1/jobs/{job}/files"),
    ("GET", "/v1/jobs/{job}/delivery"),
    ("OPTIONS", "/v1/jobs/{job}/files/{name}"),
    ("HEAD", "/v1/jobs/{job}/files/{name}"),
    ("PATCH", "/v1/jobs/{job}/files/{name}"),
    ("GET", "/v1/jobs/{job}/delivery/{name}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/operator"),
)
BARE = ("/healthz", "/readyz")
"""Without a token or a parameter"""


def test_all_operations_are_tried(api: Any) -> None:
    found = {(each.ok().method.upper(), each.ok().path) for each in api.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", ["positive", "negative"], ids=["as described", "otherwise"])
def test_every_answer_is_described(
    api: Any, known: Known, method: str, path: str, mode: str
) -> None:
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi import checks

    if mode == "negative" and path in BARE:
        pytest.skip("there is nothing to get wrong")
    operation = api[path][method]
    left_out = [checks.positive_data_acceptance, checks.negative_data_rejection]

    @settings(max_examples=25, derandomize=True, deadline=None, database=None)
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def check(case: Any) -> None:
        known.place(case)
        case.call_and_validate(
            headers=known.headers(case), excluded_checks=left_out, timeout=SECONDS
        )

    check()
