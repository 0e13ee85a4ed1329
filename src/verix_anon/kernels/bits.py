"""Operations that processors have and numba does not name."""

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from verix_anon.arrays import Bytes, Shorts

__all__ = ["count_bits", "first_bits", "odd", "prefetch", "within"]

WORD = ir.IntType(64)


@intrinsic
def _count_bits(typing: object, word: types.Type) -> tuple[object, object]:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [WORD]), arguments)

    return types.int64(types.uint64), write


@intrinsic
def _within(
    typing: object, numbers: types.Array, at: types.Type, low: types.Type, last: types.Type
) -> tuple[object, object]:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        loaded = _load(context, builder, signature.args[0], arguments)
        low, last = arguments[2:]

        def everywhere(value: ir.Value) -> ir.Value:
            single = builder.insert_element(
                ir.Constant(loaded.type, ir.Undefined), value, ir.Constant(WORD, 0)
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            return builder.shuffle_vector(single, single, zeros)

        distance = builder.sub(loaded, everywhere(low))
        reach = everywhere(builder.sub(last, low))
        return builder.bitcast(builder.icmp_unsigned("<=", distance, reach), WORD)

    return types.uint64(numbers, types.int64, numbers.dtype, numbers.dtype), write


@intrinsic
def _odd(typing: object, numbers: types.Array, at: types.Type) -> tuple[object, object]:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        loaded = _load(context, builder, signature.args[0], arguments)
        return builder.bitcast(builder.trunc(loaded, ir.VectorType(ir.IntType(1), 64)), WORD)

    return types.uint64(numbers, types.int64), write


@intrinsic
def _prefetch(typing: object, array: types.Array, at: types.Type) -> tuple[object, object]:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # To be read, into the second level of the cache, as data.
        builder.call(fetch, [place, *(ir.Constant(number, n) for n in (0, 2, 1))])
        return context.get_dummy_value()

    return types.none(array, types.int64), write


def _load(
    context: BaseContext, builder: ir.IRBuilder, numbers: types.Array, arguments: list[ir.Value]
) -> ir.Value:
    """The 64 numbers of an array from a place on, as a vector."""
    data = context.make_array(numbers)(context, builder, arguments[0]).data
    vector = ir.VectorType(context.get_data_type(numbers.dtype), 64)
    place = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
    return builder.load(place, align=1)


count_bits = cast(Callable[[np.uint64], int], _count_bits)
"""How many bits of a word are set."""

Packed = Bytes | Shorts

within = cast(Callable[[Packed, int, np.unsignedinteger, np.unsignedinteger], np.uint64], _within)
"""A bit for each of the 64 numbers from a place on: set where low <= number <= last."""

odd = cast(Callable[[Packed, int], np.uint64], _odd)
"""A bit for each of the 64 numbers from a place on: its lowest."""


prefetch = cast(Callable[[npt.NDArray[Any], int], None], _prefetch)
"""Have the memory at a place of an array brought near, for it will be read soon."""


@numba.njit(cache=True, nogil=True)
def first_bits(word: np.uint64, n: int) -> np.uint64:
    """All places up to the n-th set bit of a word, counted from 1; it has that many."""
    one = np.uint64(1)
    place = np.uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        # Fewer than n below: the n-th lies there or beyond. Added up, since a branch would be
        # mispredicted half the time.
        n_below = count_bits(word & ((one << (place + np.uint64(step))) - one))
        place += np.uint64(step) * np.uint64(n_below < n)
    return (one << place) | ((one << place) - one)
