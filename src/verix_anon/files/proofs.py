"""Reads, writes and checks proofs of inclusion, without the delivery or a secret (spec §14).

The file may be hostile, so no more of it is read than a proof may have.
"""

import re
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.fields import shown
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.store import FilePath, path_text, reason
from verix_anon.protocol import inclusion
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.inclusion import MAX_BYTES, Proof


def check_proof(
    proof: Proof | FilePath, *, root: str | bytes, tracker: str | bytes | None = None
) -> Proof:
    """Check a proof of inclusion, offline, without the delivery and without a secret.

    Args:
        proof: What prove() made, or its file.
        root: The root that somebody committed to, as 32 bytes or 64 hexadecimal digits. Take it
            from a source that you trust, such as a signed receipt, and never from the proof.
        tracker: The tracker that the proof must be about, in the same form.

    Returns:
        The proof: a class, a record in it, and the splits above it, all under the root.

    Raises:
        ProofError: It is not a proof, or does not hold.
        TableError: There is no such file, or the root or the tracker is not one.

    Examples:
        >>> root = verix_anon.read_verdict("job/verdict.json").root
        >>> proof = verix_anon.check_proof("job/proof.json", root=root)
    """
    wanted = None if tracker is None else digest_bytes(tracker, "a tracker")
    committed = Digest(digest_bytes(root, "a root"))
    # A proof in memory is checked like a file, because annotations do not bind a caller.
    found = Proof.from_bytes(proof.to_bytes()) if isinstance(proof, Proof) else read_proof(proof)
    inclusion.check(found, root=committed, tracker=wanted)
    return found


def read_proof(path: FilePath) -> Proof:
    """Read a proof; it is not checked yet.

    Examples:
        >>> proof = verix_anon.read_proof("job/proof.json")
    """
    try:
        # A named pipe or a device is not a file, and could be without end.
        if not (place := Path(path_text(path))).is_file():
            raise TableError(f"there is no file {place}")
        with place.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TableError(f"{path} cannot be read ({reason(error)})") from None
    return Proof.from_bytes(data)


def write_proof(proof: Proof, path: FilePath, *, overwrite: bool = False) -> None:
    """Write a proof for its owner alone: it is for the person concerned, not for the public.

    Examples:
        >>> proof = verix_anon.read_proof("job/proof.json")
        >>> verix_anon.write_proof(proof, "copy.json")
    """
    with written_aside(path, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, proof.to_bytes())


def digest_bytes(given: object, what: str) -> bytes:
    """A root or a tracker, as 32 bytes or as 64 hexadecimal digits."""
    if isinstance(given, bytes) and len(given) == 32:
        return given
    # What is copied from a letter may have spaces around it.
    if isinstance(given, str) and re.fullmatch(r"[0-9a-fA-F]{64}", digits := given.strip()):
        return bytes.fromhex(digits)
    raise TableError(f"{what} has 64 hexadecimal digits, not {shown(given)}")
