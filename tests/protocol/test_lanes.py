"""Sixteen lanes of SHA-256 give what hashlib gives, message by message."""

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verix_anon.protocol import lanes


def padded(message: bytes) -> bytes:
    """A message with its padding, as the standard says it (FIPS 180-4, 5.1.1)."""
    zeros = -(len(message) + 9) % 64
    return message + b"\x80" + bytes(zeros) + (8 * len(message)).to_bytes(8, "big")


def digests(messages: list[bytes]) -> list[bytes]:
    whole = [padded(message) for message in messages]
    first = np.cumsum([0, *(len(message) // 64 for message in whole)])
    blocks = np.frombuffer(b"".join(whole), np.uint8).reshape(-1, 64).copy()
    out = np.empty((len(messages), 32), np.uint8)
    lanes.digests(blocks, first, lanes.INITIAL, out)
    return [digest.tobytes() for digest in out]


def test_the_standards_own_example() -> None:
    assert digests([b"abc"])[0].hex() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_every_length_up_to_300() -> None:
    rng = np.random.default_rng(0)
    messages = [rng.bytes(size) for size in range(301)]
    assert digests(messages) == [sha256(message).digest() for message in messages]
    # In whatever lane a message goes, and whatever goes beside it.
    messages.reverse()
    assert digests(messages) == [sha256(message).digest() for message in messages]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=700), min_size=1, max_size=70))
@example([b""])
@example([b"x" * 5000] + [b"y"] * 40)
@example([b"y"] * 40 + [b"x" * 5000])
def test_batches_of_any_lengths(messages: list[bytes]) -> None:
    assert digests(messages) == [sha256(message).digest() for message in messages]


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("width", [0, 32, 54, 55, 56, 63, 64, 65, 119, 120, 297])
def test_rows_of_one_length(n: int, width: int) -> None:
    messages = np.random.default_rng(n).integers(0, 256, (n, width), np.uint8)
    blocks = lanes.padded(n, width)
    blocks[:, :width] = messages
    expected = [sha256(message.tobytes()).digest() for message in messages]
    assert [digest.tobytes() for digest in lanes.digest_rows(blocks)] == expected


@pytest.mark.parametrize("width", [0, 32, 55, 56, 146])
def test_after_a_block_that_all_begin_with(width: int) -> None:
    rng = np.random.default_rng(width)
    common, messages = rng.bytes(64), rng.integers(0, 256, (20, width), np.uint8)
    blocks = lanes.padded(20, width, before=64)
    blocks[:, :width] = messages
    found = lanes.digest_rows(blocks, lanes.state_after(common))
    assert [digest.tobytes() for digest in found] == [
        sha256(common + message.tobytes()).digest() for message in messages
    ]


def test_nothing_to_hash() -> None:
    assert lanes.digest_rows(lanes.padded(0, 10)).shape == (0, 32)
