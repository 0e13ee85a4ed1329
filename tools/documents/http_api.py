"""The reference of the HTTP API, made from the service's own OpenAPI: docs/reference/http.md."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verix_anon.service.api.app import make_app
from verix_anon.service.api.problems import MEDIA_TYPE, PROBLEMS
from verix_anon.service.server import make_context
from verix_anon.service.settings import ServiceSettings

HEAD = """# The HTTP API

Made from the service's own `GET /openapi.json` by `make reference`. A running service gives that
file to anybody who asks. This page is for people who write a client of their own. There is
[`verix-anon submit`](../how-to/submit.md) for everybody else.

A tenant's requests carry `Authorization: Bearer TOKEN`. The operator's requests carry the
operator's token, in the same way or as the password of the user `operator` (HTTP Basic). Uploads
follow the core protocol of [tus 1.0](https://tus.io/protocols/resumable-upload).

A job takes five steps: `POST /v1/jobs`, `PATCH` each file, `GET` the job until it is `done`, `GET`
the files of its delivery, and `DELETE` the job.
"""
NOTE = f"""A request that cannot be answered gets a problem, in `{MEDIA_TYPE}` (RFC 9457).
Programs go by its `code`. Its sentence repeats nothing that was sent. With 429 and 503,
`Retry-After` says how many seconds to wait."""
METHODS = ("post", "get", "head", "patch", "options", "delete")
WHO = {"token": "A tenant's token", "operator": "The operator's token"}


def http_page() -> str:
    """The whole page."""
    schema = _schema()
    calls = [
        (method, path, operation)
        for path, operations in schema["paths"].items()
        for method, operation in sorted(operations.items(), key=lambda each: METHODS.index(each[0]))
    ]
    lines = (
        f"| [`{method.upper()} {path}`](#{_anchor(method, path)}) | {_sentence(operation)} |"
        for method, path, operation in calls
    )
    parts = [HEAD, "\n".join(["| request | what it does |", "| --- | --- |", *lines])]
    for call in calls:
        parts += _operation(*call)
    parts += ["## Bodies", "All are JSON objects. A request with any other field is refused."]
    for name, part in sorted(schema["components"]["schemas"].items()):
        if part.get("type") == "object" and "Validation" not in name:
            parts += [f"### {name}", f"{part.get('description', '')}", _fields(part)]
    rows = (f"| `{code}` | {kind.status} | {kind.title} |" for code, kind in PROBLEMS.items())
    parts += [
        "## Problems",
        NOTE,
        "\n".join(["| code | status | what it says |", "| --- | --- | --- |", *rows]),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _schema() -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        context = make_context(ServiceSettings(folder=Path(folder)))
        try:
            return make_app(context).openapi()
        finally:
            context.database.close()


def _anchor(method: str, path: str) -> str:
    """As GitHub and the site make it of a heading."""
    return "".join(each for each in f"{method}-{path.lower()}" if each.isalnum() or each in "-_")


def _sentence(operation: Mapping[str, Any]) -> str:
    return " ".join(operation["description"].split())


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {method.upper()} {path}"
    yield _sentence(operation)
    who = [WHO[name] for each in operation.get("security", ()) for name in each]
    yield f"{' or '.join(who)} is needed." if who else "It is for everybody."
    rows = [
        f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {_about(each)} |"
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield "\n".join(
            ["| parameter | where | type | meaning |", "| --- | --- | --- | --- |", *rows]
        )
    if body := operation.get("requestBody"):
        yield f"Body: {_content(body['content'])}"
    yield "\n".join(["| status | answer |", "| --- | --- |", *_answers(operation["responses"])])


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in sorted(responses.items()):
        content = answer.get("content", {})
        if MEDIA_TYPE in content:
            codes = content[MEDIA_TYPE]["schema"]["properties"]["code"]["enum"]
            yield f"| {status} | {', '.join(f'[`{code}`](#problems)' for code in codes)} |"
        elif answer["description"] != "Validation Error":
            # FastAPI describes that one; the service answers with `invalid-request`.
            said = answer["description"].replace("Successful Response", "Done")
            headers = "".join(f"; header `{name}`" for name in answer.get("headers", ()))
            yield f"| {status} | {said}{f': {_content(content)}' if content else ''}{headers} |"


def _content(content: Mapping[str, Any]) -> str:
    kinds = []
    for kind, each in content.items():
        named = each.get("schema", {}).get("$ref")
        kinds.append(_type(each["schema"]) if named else f"`{kind}`")
    return " or ".join(kinds)


def _fields(part: Mapping[str, Any]) -> str:
    needed = part.get("required", ())
    rows = [
        f"| `{name}` | {_type(field)}{'' if name in needed else ', optional'} | {_about(field)} |"
        for name, field in part.get("properties", {}).items()
    ]
    return "\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows])


def _type(field: Mapping[str, Any]) -> str:
    """A type in words."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{each}`" for each in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    words = [field.get("format") or field.get("type", "any")]
    for key, word in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "at most")):
        if key in field and field[key] < 2**63 - 1:
            words.append(f"{word} {int(field[key]):,}{' characters' * (key == 'maxLength')}")
    return ", ".join(words)


def _about(field: Mapping[str, Any]) -> str:
    text = field.get("description") or ""
    default = field.get("schema", field).get("default")
    return f"{text} Default: `{default}`.".strip() if default not in (None, "") else text
