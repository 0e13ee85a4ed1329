"""One question, put to the command in this process, to node, and to the page in a browser."""

import base64
import io
import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from cli.jobs import exit_code
from tools.kit import checker_cases as made
from verix_anon.checker import CHECKER
from verix_anon.client.series import check_series
from verix_anon.conform.kit import CaseKind
from verix_anon.errors import Error, ProofError
from verix_anon.files.attestation import attested
from verix_anon.files.proofs import check_proof
from verix_anon.files.trust import trust_in

ASK = Path(__file__).with_name("ask.js")


@dataclass(frozen=True, slots=True)
class Question:
    """Files, and the words of the command that ask about them."""

    name: str
    words: tuple[str, ...]
    files: dict[str, bytes]

    def to_json(self) -> dict[str, object]:
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {"words": self.words, "files": files}


def questions() -> list[tuple[Question, CaseKind]]:
    """The questions of the kit, and the kind of each."""
    return [
        (Question(case.id, tuple(case.words), case.files), case.kind)
        for case in made.checker_cases()
    ]


def by_command(question: Question, folder: Path) -> int:
    """What our command answers."""
    words = list(question.words)
    for name, data in question.files.items():
        (folder / name).write_bytes(data)
        words = [word.replace(f"{{{name}}}", str(folder / name)) for word in words]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return exit_code(*words)


def by_functions(question: Question, folder: Path) -> int:
    """What the functions below our command answer; it is quicker."""
    words = list(question.words)
    for name, data in question.files.items():
        (folder / name).write_bytes(data)
        words = [word.replace(f"{{{name}}}", str(folder / name)) for word in words]
    given: dict[str, list[str]] = {"root": [], "tracker": [], "verdict": []}
    for option, value in zip(words[3::2], words[4::2], strict=True):
        given.setdefault(option.removeprefix("--"), []).append(value)
    root, tracker, verdict = (next(iter(given[n]), None) for n in ("root", "tracker", "verdict"))
    try:
        if words[0] == "prove":
            check_proof(words[2], root=root or "", tracker=tracker)
            return 0
        if words[0] == "series":
            now, keys = datetime.now(UTC), given.get("key")
            check_series(
                words[2],
                file=next(iter(given.get("file", [])), None),
                since=next(iter(given.get("since", [])), None),
                keys=trust_in(keys).counting(now) if keys else None,
            )
            return 0
        found = attested(
            Path(words[2]),
            [*map(Path, given["key"])],
            verdict=None if verdict is None else Path(verdict),
            owner_keys=[*map(Path, given.get("owner-key", []))],
            root=root,
            files={n: Path(p) for n, p in (each.split("=", 1) for each in given.get("file", []))},
        )
        return 0 if found.is_so else 1
    except ProofError:
        return 1
    except Error:
        return 2


def by_node(asked: Sequence[Question]) -> list[object]:
    """What check.js answers in node."""
    script = (
        f"globalThis.checker = require({json.dumps(str(CHECKER.with_name('check.js')))});"
        f"require({json.dumps(str(ASK))});"
        "const asked = JSON.parse(require('fs').readFileSync(0));"
        "askAll(asked, Date.now()).then((found) => console.log(JSON.stringify(found)));"
    )
    given = json.dumps([question.to_json() for question in asked]).encode()
    done = subprocess.run(["node", "-e", script], input=given, capture_output=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


def by_page(page: Any, asked: Sequence[Question]) -> list[object]:
    """What the page answers, which is loaded already."""
    given = [question.to_json() for question in asked]
    # Of the page's own script: its policy allows no other, so `ask` comes by the debugger.
    page.evaluate(f"{ASK.read_text(encoding='utf-8')};0")
    found: list[object] = page.evaluate(
        "([asked, now]) => askAll(asked, now)", [given, time.time() * 1000]
    )
    return found


SPACES = ["", "", " ", "\n", "\t\r", "\x0b", "\x1c", "\x85", "\xa0", "\u2003", "\ufeff"]
NUMBERS = ["0", "-0", "1", "1.0", "1e0", "-1", "5e-324", "1e400", "9007199254740993", "0.1", "1E2"]
WORDS = ["", "x", "\\u0041", "\\ud800", "left", "0" * 64, "f" * 64, "2026-01-01T00:00:00Z"]


def spoilt_bytes(data: bytes, random: Random) -> bytes:
    """One place changed: a bit, a byte, a piece that is gone, doubled or moved."""
    at = random.randrange(len(data) + 1)
    piece = data[at : at + random.choice((1, 1, 2, 8, 65))]
    how = random.randrange(6)
    if how == 0 and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
    if how == 1:
        return data[:at] + data[at + len(piece) :]
    if how == 2:
        return data[:at] + piece + data[at:]
    if how == 3:
        return data[:at] + bytes([random.randrange(256)]) + data[at:]
    if how == 4:
        return (
            data[:at]
            + random.choice((b" ", b"\n", b"0", b"e", b".0", b'"', b"\\", b","))
            + data[at:]
        )
    other = random.randrange(len(data) + 1)
    return data[:at] + data[other : other + len(piece)] + data[at + len(piece) :]


def spoilt_json(text: str, random: Random) -> str:
    """One value changed in canonical JSON; most of the rest stays true."""
    value = json.loads(text)
    mark = "0a1b2c3d mark"
    places: list[tuple[Any, Any]] = []

    def walk(found: Any) -> None:
        for key, inner in found.items() if isinstance(found, dict) else enumerate(found):
            places.append((found, key))
            if isinstance(inner, dict | list):
                walk(inner)

    walk(value)
    holder, key = random.choice(places)
    old = holder[key]
    how = random.randrange(7)
    if how == 0 and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), old)
    elif how == 1:
        del holder[key]
    elif how == 2:
        holder[key] = random.choice([None, True, [], {}, "", 0, 2.5])
    elif how == 3 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = random.choice([old + 1, old - 1, -old, old / 2, old * 2, 2**31, 2.0**53])
    elif how == 4 and isinstance(holder, list):
        random.shuffle(holder)
    elif how == 5 and isinstance(old, str):
        holder[key] = random.choice(
            [old.upper(), old[:-1], old + "0", "é", "\u202e", "a" * 65, "😀"]
        )
    else:
        holder[key] = mark
    dumped = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    written = random.choice([*NUMBERS, *(f'"{word}"' for word in WORDS)])
    return dumped.replace(f'"{mark}"', written)


def _recommitted(text: str) -> bytes:
    """A proof whose root follows, if it still has one."""
    try:
        proof = json.loads(text)
        root = made._root(proof)
        return text.replace(proof["root"], root).encode() if "root" in proof else text.encode()
    except Exception:
        return text.encode("utf-8", "surrogatepass")


def _resigned(data: bytes, random: Random) -> bytes:
    """An envelope whose changed statement its own key has signed."""
    payload = base64.b64decode(json.loads(data)["payload"]).decode()
    changed = spoilt_json(payload, random).encode()
    name = "owner" if b"urn:verix:verdict:1" in payload.encode() else "provider"
    return json.dumps(made._envelope(changed, name)).encode()


def spoilt(question: Question, random: Random) -> Question:
    """A true question with one thing changed; whether it still holds is to be asked."""
    kinds = [name for name in ("proof", "receipt", "verdict", "log") if name in question.files]
    name = random.choice(kinds)
    data, words = question.files[name], question.words
    how = random.randrange(3)
    if name == "log":
        data, words = _spoilt_log(data, words, random)
    elif how == 0:
        data = spoilt_bytes(data, random)
    elif name == "proof":
        data = _recommitted(spoilt_json(data.decode(), random))
        with suppress(Exception):
            old, new = (str(json.loads(each)["root"]) for each in (question.files[name], data))
            words = tuple(new if word == old else word for word in words)
    else:
        with suppress(Exception):
            data = _resigned(data, random)
    return replace(question, files={**question.files, name: data}, words=words)


def _spoilt_log(
    data: bytes, words: tuple[str, ...], random: Random
) -> tuple[bytes, tuple[str, ...]]:
    """A log with one thing changed, in its text, its entries or its signature, or another head."""
    how = random.randrange(8)
    if how == 0:
        return spoilt_bytes(data, random), words
    text = data.decode()
    if how == 1 and "--since" in words:
        at = words.index("--since") + 1
        older = random.choice(
            [
                spoilt_bytes(words[at].encode(), random).decode("latin-1"),
                f"{random.choice([*SPACES, *NUMBERS])}{words[at]}{random.choice(SPACES)}",
                f"{random.randrange(9)}{words[at][1:]}",
            ]
        )
        return data, (*words[:at], older, *words[at + 1 :])
    if how <= 3:
        return spoilt_json(text, random).encode("utf-8", "surrogatepass"), words
    if how == 4 and '"signature"' in text:
        # The rest is true, so that all depends on the envelope.
        log = json.loads(text)
        envelope = json.dumps(log["signature"], sort_keys=True)
        mark = "0a1b2c3d signature"
        whole = json.dumps({**log, "signature": mark}).replace(
            f'"{mark}"', spoilt_json(envelope, random)
        )
        return whole.encode("utf-8", "surrogatepass"), words
    return _rehashed(spoilt_json(text, random), random), words


def _rehashed(text: str, random: Random) -> bytes:
    """A log whose head is that of its entries, if it still has some, and mostly signed as such."""
    with suppress(Exception):
        log = json.loads(text)
        head = made._head(log["entries"])
        text = text.replace(log["head"], head)
        signature = log.get("signature")
        if signature is not None and random.randrange(4):
            said = base64.b64decode(signature["payload"]).replace(
                log["head"].encode(), head.encode()
            )
            if size := random.randrange(3):
                n = len(log["entries"]) if size == 1 else log["size"]
                said = said.replace(b'"size":7', b'"size":%d' % n)
            data = said if random.randrange(2) else spoilt_json(said.decode(), random).encode()
            signed = made._envelope(data, "owner")
            text = json.dumps({**json.loads(text), "signature": signed})
    return text.encode("utf-8", "surrogatepass")


def many(n: int, seed: int, group: str = "") -> list[Question]:
    """Return so many spoilt questions, made of the true ones of the kit; of one group if named."""
    random = Random(seed)
    true = [q for q, kind in questions() if kind == "holds" and q.words[0].startswith(group)]
    return [spoilt(true[i % len(true)], random) for i in range(n)]
