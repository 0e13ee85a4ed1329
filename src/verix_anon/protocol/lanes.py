"""SHA-256 of many short messages at once (FIPS 180-4); `hashlib` is what it must equal.

A delivery has tens of thousands of leaves of a few hundred bytes each. A call per message
holds the interpreter's lock and costs as much as the hashing. Here sixteen messages go side
by side, a lane each: every step of the algorithm is one operation on sixteen words. It is
written as vectors of LLVM, which become whatever vectors the processor has.

Messages are given padded, as whole blocks of 64 bytes; `padded` makes room for them.
"""

import math
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

__all__ = ["BLOCK_BYTES", "INITIAL", "LANES", "digest_rows", "digests", "padded", "state_after"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

LANES = 16
BLOCK_BYTES = 64
# What a message's padding takes at least: a byte 0x80 and the length in bits.
PADDING_BYTES = 9
WORD = ir.IntType(32)
VECTOR = ir.VectorType(WORD, LANES)


def _primes() -> Iterator[int]:
    return (n for n in count(2) if all(n % d for d in range(2, math.isqrt(n) + 1)))


def _cube_root(n: int) -> int:
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle)
    return low


# The first 32 bits of the fractional parts of roots of the first primes.
INITIAL: Words = np.array(
    [math.isqrt(p << 64) & 0xFFFFFFFF for p in islice(_primes(), 8)], np.uint32
)
CONSTANTS = [_cube_root(p << 96) & 0xFFFFFFFF for p in islice(_primes(), 64)]


class _Vectors:
    """Writes operations on sixteen words into the function that numba is compiling."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def all(self, value: int) -> ir.Value:
        return ir.Constant(VECTOR, [value] * LANES)

    def sum(self, first: ir.Value, *others: ir.Value) -> ir.Value:
        for other in others:
            first = self.builder.add(first, other)
        return first

    def xor(self, first: ir.Value, *others: ir.Value) -> ir.Value:
        for other in others:
            first = self.builder.xor(first, other)
        return first

    def both(self, first: ir.Value, second: ir.Value) -> ir.Value:
        return self.builder.and_(first, second)

    def shifted(self, value: ir.Value, by: int) -> ir.Value:
        return self.builder.lshr(value, self.all(by))

    def rotated(self, value: ir.Value, by: int) -> ir.Value:
        left = self.builder.shl(value, self.all(32 - by))
        return self.builder.or_(self.shifted(value, by), left)

    def shuffled(self, a: ir.Value, b: ir.Value, places: list[int]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(WORD, len(places)), places)
        return self.builder.shuffle_vector(a, b, mask)

    def big_endian(self, value: ir.Value) -> ir.Value:
        """Sixteen words as SHA-256 reads them; numba runs on little-endian processors alone."""
        single = self.builder.bitcast(value, ir.VectorType(ir.IntType(8), 4 * LANES))
        turned = self.shuffled(single, single, [i ^ 3 for i in range(4 * LANES)])
        return self.builder.bitcast(turned, VECTOR)


def _transposed(v: _Vectors, rows: list[ir.Value]) -> list[ir.Value]:
    """Word i of every lane, from the sixteen words of each lane."""
    rows = list(rows)
    for step in (8, 4, 2, 1):
        low = [i if not i & step else LANES + i - step for i in range(LANES)]
        high = [i + step if not i & step else LANES + i for i in range(LANES)]
        for i in range(LANES):
            if not i & step:
                a, b = rows[i], rows[i | step]
                rows[i], rows[i | step] = v.shuffled(a, b, low), v.shuffled(a, b, high)
    return rows


def _compressed(v: _Vectors, state: list[ir.Value], w: list[ir.Value]) -> list[ir.Value]:
    """The state after one block (FIPS 180-4, 6.2.2), all 64 rounds written out."""
    w = list(w)
    a, b, c, d, e, f, g, h = state
    for t in range(64):
        if t >= 16:
            x, y = w[t - 15], w[t - 2]
            sigma0 = v.xor(v.rotated(x, 7), v.rotated(x, 18), v.shifted(x, 3))
            sigma1 = v.xor(v.rotated(y, 17), v.rotated(y, 19), v.shifted(y, 10))
            w.append(v.sum(w[t - 16], sigma0, w[t - 7], sigma1))
        sum1 = v.xor(v.rotated(e, 6), v.rotated(e, 11), v.rotated(e, 25))
        # Ch and Maj with one operation less than the standard writes them.
        choice = v.xor(v.both(e, v.xor(f, g)), g)
        t1 = v.sum(h, v.all(CONSTANTS[t]), w[t], v.sum(sum1, choice))
        sum0 = v.xor(v.rotated(a, 2), v.rotated(a, 13), v.rotated(a, 22))
        majority = v.xor(v.both(v.xor(a, b), v.xor(a, c)), a)
        t2 = v.sum(sum0, majority)
        a, b, c, d, e, f, g, h = v.sum(t1, t2), a, b, c, v.sum(d, t1), e, f, g
    return [v.sum(*pair) for pair in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


@intrinsic
def _written(
    typing: object, state: types.Type, blocks: types.Type, at: types.Type
) -> tuple[object, object]:
    """What numba writes where `_compress` is called."""

    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        states, words, places = (
            context.make_array(kind)(context, builder, argument).data
            for kind, argument in zip(signature.args, arguments, strict=True)
        )
        states, words = (builder.bitcast(p, VECTOR.as_pointer()) for p in (states, words))

        def place(pointer: ir.Value, index: ir.Value | int) -> ir.Value:
            offset = ir.Constant(ir.IntType(64), index) if isinstance(index, int) else index
            return builder.gep(pointer, [offset])

        # Arrays begin at multiples of four bytes, not of a vector's size.
        v = _Vectors(builder)
        lanes = [
            v.big_endian(builder.load(place(words, builder.load(place(places, i))), align=1))
            for i in range(LANES)
        ]
        state = [builder.load(place(states, i), align=4) for i in range(8)]
        for i, word in enumerate(_compressed(v, state, _transposed(v, lanes))):
            builder.store(word, place(states, i), align=4)
        return context.get_dummy_value()

    return types.void(state, blocks, at), write


_compress = cast(Callable[[Words, Bytes, npt.NDArray[np.int64]], None], _written)
"""Take one block in every lane: state (8, LANES), blocks (n, 64), at (LANES,) of them."""


@numba.njit(cache=True, nogil=True)
def digests(blocks: Bytes, first: npt.NDArray[np.int64], initial: Words, out: Bytes) -> None:
    """Fill `out`, (n, 32): message i is blocks[first[i]:first[i+1]], (n, 64), at least one.

    A lane that is done with a message takes the next that waits, whatever their lengths.
    """
    n = first.size - 1
    state = np.empty((8, LANES), np.uint32)
    message = np.full(LANES, -1, np.int64)
    at, end = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    waiting, busy = 0, min(n, LANES)
    for lane in range(busy):
        message[lane], at[lane], end[lane] = lane, first[lane], first[lane + 1]
        waiting += 1
        for i in range(8):
            state[i, lane] = initial[i]
    while busy > 0:
        _compress(state, blocks, at)
        for lane in range(LANES):
            if message[lane] < 0:
                continue
            at[lane] += 1
            if at[lane] < end[lane]:
                continue
            for i in range(8):
                word = state[i, lane]
                for byte in range(4):
                    out[message[lane], 4 * i + byte] = np.uint8(word >> np.uint32(24 - 8 * byte))
                state[i, lane] = initial[i]
            if waiting < n:
                message[lane], at[lane], end[lane] = waiting, first[waiting], first[waiting + 1]
                waiting += 1
            else:
                # An idle lane goes over the first block again, for nothing.
                message[lane], at[lane] = -1, 0
                busy -= 1


def padded(n: int, width: int, *, before: int = 0) -> Bytes:
    """Blocks for n messages of `width` bytes: fill [:, :width], the padding is there.

    `before` so many bytes have been hashed of each message already.
    """
    size = -(-(width + PADDING_BYTES) // BLOCK_BYTES) * BLOCK_BYTES
    blocks = np.zeros((n, size), np.uint8)
    blocks[:, width] = 0x80
    blocks[:, -8:] = np.frombuffer((8 * (before + width)).to_bytes(8, "big"), np.uint8)
    return blocks


def digest_rows(blocks: Bytes, initial: Words = INITIAL) -> Bytes:
    """The digest of each row of padded blocks, (n, 32)."""
    n, size = blocks.shape
    out = np.empty((n, 32), np.uint8)
    first = np.arange(n + 1) * (size // BLOCK_BYTES)
    digests(blocks.reshape(-1, BLOCK_BYTES), first, initial, out)
    return out


def state_after(block: bytes) -> Words:
    """The state after one block of 64 bytes that all messages begin with."""
    out = np.empty((1, 32), np.uint8)
    # A copy, since numba would compile everything again for an array that is only read.
    digests(np.frombuffer(block, np.uint8).reshape(1, -1).copy(), np.array([0, 1]), INITIAL, out)
    return out.view(">u4").astype(np.uint32).reshape(-1)
