"""Compiled radix sort of floats, for whole columns and for small blocks of them.

It sorts words of 64 bits: the top bits of the value, and the number of the record below them.
Moving one word instead of a key and a number lets two threads share the memory. Otherwise, at
10,000,000 rows, two threads took longer than one. A block of up to BLOCK values has words of 32
bits, with the bucket of the value within the block's range.
"""

import numba
import numpy as np

from verix_anon.arrays import Bytes, Floats, Numbers, Shorts, Words

# Clearing the counters of a radix sort costs as much as inserting this many words.
SHORT_RUN = 64
# A word of 32 bits holds the bucket of a value, for two passes of a radix sort. Below it are the
# number of the record within the block, and its label.
PASS_BITS, NUMBER_BITS = 9, 13
ENTRY_BITS = NUMBER_BITS + 1
BLOCK = 1 << NUMBER_BITS


@numba.njit(cache=True, nogil=True)
def _radix_sort(word: Words, other: Words, low_bit: int) -> Words:
    """Sort words by their bits from `low_bit` up, and return the array with the result.

    It sorts by bytes, least significant first, and skips bytes that all words share.
    """
    n = word.size
    n_passes = (64 - low_bit + 7) // 8
    count = np.zeros((n_passes, 256), np.int64)
    byte = np.uint64(255)
    for i in range(n):
        bits = word[i] >> np.uint64(low_bit)
        for p in range(n_passes):
            count[p, np.intp((bits >> np.uint64(8 * p)) & byte)] += 1
    for p in range(n_passes):
        shift = np.uint64(low_bit + 8 * p)
        cursor = count[p]
        if cursor[np.intp((word[0] >> shift) & byte)] == n:
            continue
        total = 0
        for bucket in range(256):
            size = cursor[bucket]
            cursor[bucket] = total
            total += size
        for i in range(n):
            into = np.intp((word[i] >> shift) & byte)
            other[cursor[into]] = word[i]
            cursor[into] += 1
        word, other = other, word
    return word


@numba.njit(cache=True, nogil=True)
def _key(bits: np.uint64) -> np.uint64:
    """The bits of a float, flipped so that unsigned order is numeric order."""
    sign = np.uint64(1) << np.uint64(63)
    return ~bits if bits & sign else bits | sign


@numba.njit(cache=True, nogil=True)
def sort_words(values: Floats, number_bits: int, buffer: Words) -> tuple[Words, bool]:
    """Return words sorted by value, each with its record's number in the low `number_bits`.

    Also return whether words hold only the top of a value: then equal tops do not mean equal
    values. The buffer is (2, n). For large n, take it from numpy, which uses huge pages.
    """
    n = values.size
    bits = values.view(np.uint64)
    differing = np.uint64(0)
    for i in range(n):
        differing |= bits[i] ^ bits[0]
    # Leading bits that all values share are shifted out. If signs differ, no bits are shared.
    shared = np.uint64(0)
    while shared < np.uint64(63) and not (differing << shared) >> np.uint64(63):
        shared += np.uint64(1)
    low = (np.uint64(1) << np.uint64(number_bits)) - np.uint64(1)
    rest = np.uint64(0)
    word = buffer[0]
    for i in range(n):
        key = _key(bits[i]) << shared
        word[i] = key & ~low | np.uint64(i)
        rest |= key & low
    word = _radix_sort(word, buffer[1], number_bits)
    if rest:
        _sort_runs(word, bits, shared, np.uint64(number_bits))
    return word, rest != np.uint64(0)


@numba.njit(cache=True, nogil=True)
def _insertion_sort(word: Words) -> None:
    for i in range(1, word.size):
        moved = word[i]
        at = i
        while at > 0 and word[at - 1] > moved:
            word[at] = word[at - 1]
            at -= 1
        word[at] = moved


@numba.njit(cache=True, nogil=True)
def _sort_runs(word: Words, bits: Words, shared: np.uint64, below: np.uint64) -> None:
    """Sort each run of equal tops by the part of the value that was cut off."""
    n = word.size
    row_mask = (np.uint64(1) << below) - np.uint64(1)
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and word[end] >> below == word[begin] >> below:
            end += 1
        if end - begin > 1:
            top = word[begin] & ~row_mask
            # The rest has as many bits as a row, so both fit into one word again.
            for i in range(begin, end):
                row = word[i] & row_mask
                word[i] = ((_key(bits[row]) << shared) & row_mask) << below | row
            if end - begin <= SHORT_RUN:
                _insertion_sort(word[begin:end])
            else:
                run = _radix_sort(word[begin:end], np.empty(end - begin, np.uint64), int(below))
                # Do not assign a slice: compiling that takes two seconds.
                for i in range(end - begin):
                    word[begin + i] = run[i]
            for i in range(begin, end):
                word[i] = top | (word[i] & row_mask)
        begin = end


@numba.njit(cache=True, nogil=True)
def sort_block(values: Floats, target: Bytes, words: Numbers, order: Shorts) -> None:
    """Sort the numbers of the block's records by value; each has its label in the low bit."""
    n = values.size
    if _sort_by_bucket(values, target, words):
        entry = np.uint32((1 << ENTRY_BITS) - 1)
        for i in range(n):
            order[i] = np.uint16(words[0, i] & entry)
        return
    exact, _ = sort_words(values, 32, np.empty((2, n), np.uint64))
    for i in range(n):
        number = np.uint16(exact[i])
        order[i] = (number << np.uint16(1)) | np.uint16(target[number])


@numba.njit(cache=True, nogil=True)
def _ordinal(bits: np.int64) -> np.int64:
    """Flip the bits of a float so that signed order is numeric order, or flip them back."""
    return np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFF_FFFF_FFFF_FFFF)))


@numba.njit(cache=True, nogil=True)
def _extent(values: Floats) -> Floats:
    """Return the least and the greatest value, compared as integers in vectors."""
    bits = values.view(np.int64)
    low = high = _ordinal(bits[0])
    for i in range(bits.size):
        ordinal = _ordinal(bits[i])
        low, high = min(low, ordinal), max(high, ordinal)
    extent = np.empty(2, np.int64)
    extent[0], extent[1] = _ordinal(low), _ordinal(high)
    return extent.view(np.float64)


@numba.njit(cache=True, nogil=True)
def _sort_by_bucket(values: Floats, target: Bytes, words: Numbers) -> bool:
    """Sort by equal buckets from the least to the greatest value; False if they do not help.

    Subtracting, scaling and cutting off are monotonic, even with rounding. So values in different
    buckets are in order, and insertion orders the others.
    """
    n = values.size
    low, high = _extent(values)
    n_buckets = np.float64((1 << (2 * PASS_BITS)) - 1)
    scale = n_buckets / (high - low) if high > low else 0.0
    if not (scale < 1e300 and high - low < 1e300):
        return False
    first, second = words[0, :n], words[1, :n]
    below, one = np.uint32(ENTRY_BITS), np.uint32(1)
    for i in range(n):
        bucket = np.uint32((values[i] - low) * scale)
        first[i] = (bucket << below) | (np.uint32(i) << one) | np.uint32(target[i])
    bits, mask = np.uint32(PASS_BITS), np.uint32((1 << PASS_BITS) - 1)
    count_low, count_high = np.zeros(1 << PASS_BITS, np.uint32), np.zeros(1 << PASS_BITS, np.uint32)
    for i in range(n):
        bucket = first[i] >> below
        count_low[bucket & mask] += one
        count_high[bucket >> bits] += one
    _scatter(first, second, count_low, below)
    _scatter(second, first, count_high, below + bits)
    return _insert(values, first)


@numba.njit(cache=True, nogil=True)
def _scatter(source: Numbers, into: Numbers, count: Numbers, shift: np.uint32) -> None:
    """Do one pass of a radix sort, given how often each digit occurs."""
    total = np.uint32(0)
    for digit in range(count.size):
        size = count[digit]
        count[digit] = total
        total += size
    mask = np.uint32(count.size - 1)
    for i in range(source.size):
        word = source[i]
        digit = (word >> shift) & mask
        into[count[digit]] = word
        count[digit] += np.uint32(1)


@numba.njit(cache=True, nogil=True)
def _insert(values: Floats, word: Numbers) -> bool:
    """Order words of the same bucket by their values; return False if that takes too long."""
    patience = 4 * word.size
    mask, below, one = np.uint32(BLOCK - 1), np.uint32(ENTRY_BITS), np.uint32(1)
    for i in range(1, word.size):
        moved = word[i]
        if word[i - 1] >> below != moved >> below:
            continue
        value = values[(moved >> one) & mask]
        at = i
        while (
            at > 0
            and word[at - 1] >> below == moved >> below
            and values[(word[at - 1] >> one) & mask] > value
        ):
            word[at] = word[at - 1]
            at -= 1
        word[at] = moved
        patience -= i - at
        if patience < 0:
            return False
    return True
