"""Make the golden vectors: submissions, and the tree, digests and root each must give.

    python -m tools.vectors

What is expected comes from tools/kit/independent.py and tools/independent_proofs.py,
written from the text alone, so the engine has no part in its own exam. Floats are written in the
shortest decimal form that reads back to the same binary64.
"""

import json
from pathlib import Path

from tools import independent_proofs, signed_vectors
from tools.kit import independent
from tools.kit.provider_cases import ANSWERED, submission

FOLDER = Path(__file__).parent.parent / "tests" / "vectors"

VECTORS = (
    "continuous",
    "continuous-paper",
    "mixed",
    "mixed-paper",
    "extremes",
    "extremes-paper",
    "depth-one",
    "min-leaf",
    "coded",
    "coded-min-leaf",
    "spread",
    "spread-2k",
    "spread-ties",
    "spread-depth",
    "single-leaf",
    "pure",
    "ties",
)
"""The cases of the conformance kit that are kept as text, so that none changes unseen."""


def vector(name: str) -> dict[str, object]:
    sent = submission(ANSWERED[name])
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    is_binding = json.loads(sent.contract)["commitment"] == "binding"
    middle = len(sent.trackers) // 2
    # The proof of the middle row, in the very characters that it must have.
    proof = (
        {"proof": independent_proofs.prove(sent.contract, sent.trackers, sent.columns, middle)}
        if is_binding
        else {}
    )
    return {
        "contract": sent.contract.decode(),
        "trackers": [tracker.hex() for tracker in sent.trackers],
        "columns": sent.columns,
        "expected": {
            "contract_digest": result.contract_digest,
            "submission_digest": result.submission_digest,
            "root": result.root,
            "nodes": result.nodes,
            "leaves": result.leaves,
            "leaf_of_row": result.leaf_of_row,
            **proof,
        },
    }


def render(name: str) -> str:
    """One vector as its file has it: a line per field, so that a diff can be read."""
    made = vector(name)
    expected = made.pop("expected")
    assert isinstance(expected, dict)
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
    results = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items()]
    lines.append('"expected": {\n' + ",\n".join(results) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    for vector_name in VECTORS:
        (FOLDER / f"{vector_name}.json").write_text(render(vector_name), encoding="utf-8")
    signed_vectors.write_all()
