"""Layer `commitment` (paper layer 1): the root follows from what was delivered.

Proves: the root in the delivery is the contract's commitment to the returned records, leaves
and tree, and was made for this very contract and submission (spec §6); and the files are those
that delivery.json names (spec §8).
Does not prove: that the tree is the agreed one, or that any record is genuine; under the
paper's commitment it does not even bind which record lies in which leaf.
Can err: never, as long as SHA-256 holds.
"""

import hmac

from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case
from verix_anon.files.deliveries import damage
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Commitment, Digest

LAYER = "commitment"
GUARANTEE = {
    Commitment.BINDING: "The root covers contract, submission, tree, bounds and the leaf of every"
    " record. Any change of these is found. Labels are checked by replay.",
    Commitment.PAPER: "The root covers the tree, the counts, and the bounds to six decimals."
    " It covers neither the members of a leaf nor the submission.",
}


def check(case: Case) -> Finding:
    """Recompute the root from the delivery and compare it, and both digests, in constant time."""
    header, manifest = case.delivery.header, case.manifest
    problems = []
    if not hmac.compare_digest(header.submission, manifest.submission):
        problems.append("it was made for another submission")
    if not hmac.compare_digest(header.contract, case.contract.digest):
        problems.append("it was made for another contract")
    if not problems and not hmac.compare_digest(header.root, root_of(case)):
        problems.append("its root does not follow from its records, leaves and tree")
    if case.damaged:
        problems.append(damage(case.damaged))
    summary = "The root follows from the delivery, for this contract and submission."
    if problems:
        summary = f"The delivery is not consistent: {', and '.join(problems)}."
    return Finding(
        layer=LAYER,
        status=Status.FAIL if problems else Status.PASS,
        summary=summary,
        guarantee=GUARANTEE[case.contract.commitment],
        evidence={
            "commitment": case.contract.commitment.value,
            "delivered_root": header.root.hex(),
            "records": manifest.n_rows,
            "k": case.contract.k,
            "engine": f"{header.engine} {header.version}",
            "problems": problems,
        },
    )


def root_of(case: Case) -> Digest:
    """The root that the owner's contract asks for, of the delivered records, leaves and tree."""
    delivery, records = case.delivery, case.records
    members = merkle.Members(*case.grouped, records.row, records.tracker)
    return merkle.root_of(
        case.contract, case.manifest.submission, delivery.tree, delivery.leaves, members
    )
