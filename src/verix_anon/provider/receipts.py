"""The provider's receipt: a signed statement of what it delivered for what (spec §8).

It binds the provider to its own words, so that it cannot say later that another delivery was its.
Whether the delivery is what the contract asks for is for the owner to judge.
"""

from datetime import datetime
from pathlib import Path

from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.deliveries import RECEIPT_FILE, read_header
from verix_anon.files.hashed import digests_of_folder
from verix_anon.protocol.envelopes import SigningKey, sign
from verix_anon.protocol.statements import DELIVERED, Receipt, as_time

__all__ = ["receipt_of", "write_receipt"]


def receipt_of(folder: Path, began: datetime, finished: datetime) -> Receipt:
    """What a receipt says of a delivery's folder, whose every file is read."""
    files = digests_of_folder(folder, DELIVERED)
    return Receipt.of(read_header(folder), files, as_time(began), as_time(finished))


def write_receipt(folder: Path, key: SigningKey, began: datetime, finished: datetime) -> Receipt:
    """Sign what the folder holds, and put the receipt beside its files."""
    receipt = receipt_of(folder, began, finished)
    place = folder / RECEIPT_FILE
    with written_aside(place, overwrite=True, folder=False, private=False) as aside:
        write_bytes(aside, sign(receipt.to_bytes(), key))
    return receipt
