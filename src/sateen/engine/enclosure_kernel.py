"""The inner loop of interval uniformization, compiled: eight bounds at a time, one in each lane of a vector.

A table has a row for every state and a column for every lane. `sweep` makes one step of all states: with y the values
before and z the values after,

    z[s] = y[s] + w v[s] + Σ_f (mid_f D_f + rad_f |D_f|),      D_f = Σ_e c_e (y[target of e] - y[s])

where f are the factors that the edges e out of s share, between (mid - rad) Λ and (mid + rad) Λ. Numba leaves short
loops over lanes scalar, so the step is written in the vectors of LLVM, which fit every processor. Which products and
sums share a rounding is written down, and none is reordered: a lane does not depend on what the other lanes hold, and
is the same to the bit on every processor. States with few edges, which stand together, are followed without a loop.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from functools import cache
from types import ModuleType
from typing import Any, Final

import llvmlite.ir as ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from sateen.engine.kernel import load_source

LANES: Final = 8
MOST_UNROLLED: Final = 4  # edges of a state that are followed without a loop

_WHOLE: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(ir.DoubleType(), LANES)


class _Writer:
    """Writes the instructions of a step."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def row(self, table: Any, index: Any) -> Any:
        """The address of a row of a table."""
        place = self.builder.gep(table, [self.builder.mul(index, ir.Constant(_WHOLE, LANES))])
        return self.builder.bitcast(place, _VECTOR.as_pointer())

    def vector(self, table: Any, index: Any) -> Any:
        """A row of a table."""
        loaded = self.builder.load(self.row(table, index))
        loaded.align = 8
        return loaded

    def index(self, array: Any, place: Any) -> Any:
        """An entry of an array of 32-bit numbers."""
        return self.builder.zext(self.builder.load(self.builder.gep(array, [place])), _WHOLE)

    def everywhere(self, array: Any, place: Any) -> Any:
        """An entry of an array of doubles, in all lanes."""
        entry = self.builder.load(self.builder.gep(array, [place]))
        undefined, zero = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        first = self.builder.insert_element(undefined, entry, zero)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def size(self, vector: Any) -> Any:
        """The absolute values of a vector."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call, unused-ignore]
            self.builder.module, kind, f"llvm.fabs.v{LANES}f64"
        )
        return self.builder.call(function, [vector])

    def sum_of(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c with one rounding."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call, unused-ignore]
            self.builder.module, kind, f"llvm.fma.v{LANES}f64"
        )
        return self.builder.call(function, [a, b, c])

    def loop(self, starts: Any, place: Any) -> Any:
        """A loop over the entries that belong to `place`: from starts[place] to starts[place + 1] - 1."""
        one = ir.Constant(_WHOLE, 1)
        begin, end = self.index(starts, place), self.index(starts, self.builder.add(place, one))
        return cgutils.for_range_slice(self.builder, begin, end, one, intp=_WHOLE)


def _sweep(adds: bool) -> Any:
    """A step of all states, with or without w v."""

    @intrinsic
    def sweep(
        context: Any,
        z: Any,
        y: Any,
        v: Any,
        w: Any,
        mid: Any,
        rad: Any,
        runs: Any,
        lone_start: Any,
        lone_factor: Any,
        lone_target: Any,
        lone_coefficient: Any,
        group_start: Any,
        group_factor: Any,
        edge_start: Any,
        edge_target: Any,
        edge_coefficient: Any,
        row: Any,
    ) -> Any:
        arrays: tuple[Any, ...] = (z, y, v, w, mid, rad, runs, lone_start, lone_factor, lone_target, lone_coefficient)
        arrays += (group_start, group_factor, edge_start, edge_target, edge_coefficient)

        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pairs = zip(signature.args[:-1], arguments[:-1], strict=True)
            after, before, goal, weights, middle, radius, *edges = (
                context.make_array(kind)(context, builder, array).data for kind, array in pairs
            )
            begins, starts, factors, targets, coefficients, groups, group_factors, *inner = edges
            edge_starts, edge_targets, edge_coefficients = inner
            write = _Writer(builder)
            weight = write.vector(weights, arguments[-1])
            total = cgutils.alloca_once(builder, _VECTOR)  # type: ignore[no-untyped-call, unused-ignore]
            difference = cgutils.alloca_once(builder, _VECTOR)  # type: ignore[no-untyped-call, unused-ignore]

            def towards(target: Any, coefficient: Any, here: Any) -> Any:
                return builder.fmul(coefficient, builder.fsub(write.vector(before, target), here))

            def add(factor: Any, slope: Any) -> None:
                level = write.sum_of(write.vector(middle, factor), slope, builder.load(total))
                builder.store(write.sum_of(write.vector(radius, factor), write.size(slope), level), total)

            def follow(edge: Any, here: Any) -> None:
                coefficient = write.everywhere(coefficients, edge)
                add(write.index(factors, edge), towards(write.index(targets, edge), coefficient, here))

            def begin(state: Any) -> Any:
                here = write.vector(before, state)
                builder.store(write.sum_of(weight, write.vector(goal, state), here) if adds else here, total)
                return here

            def end(state: Any) -> None:
                stored = builder.store(builder.load(total), write.row(after, state))
                stored.align = 8

            for degree in range(MOST_UNROLLED + 1):
                with write.loop(begins, ir.Constant(_WHOLE, degree)) as (state, _):
                    here = begin(state)
                    edge = write.index(starts, state) if degree else None
                    for step in range(degree):
                        follow(builder.add(edge, ir.Constant(_WHOLE, step)), here)
                    end(state)
            with write.loop(begins, ir.Constant(_WHOLE, MOST_UNROLLED + 1)) as (state, _):
                here = begin(state)
                with write.loop(starts, state) as (edge, _):
                    follow(edge, here)
                with write.loop(groups, state) as (group, _):
                    builder.store(ir.Constant(_VECTOR, [0.0] * LANES), difference)
                    with write.loop(edge_starts, group) as (edge, _):
                        coefficient = write.everywhere(edge_coefficients, edge)
                        step = towards(write.index(edge_targets, edge), coefficient, here)
                        builder.store(builder.fadd(builder.load(difference), step), difference)
                    add(write.index(group_factors, group), builder.load(difference))
                end(state)
            return context.get_dummy_value()

        return types.void(*arrays, row), written

    return sweep


sweep_adding: Final = _sweep(adds=True)
sweep_plain: Final = _sweep(adds=False)

_SOURCE: Final = """
from numba import njit
from sateen.engine.enclosure_kernel import sweep_adding, sweep_plain

@njit(nogil=True)
def relaxed(y, z, v, weights, begin, mid, rad, a, b, c, d, e, f, g, h, i, j):
    for step in range(len(weights) - 1, -begin - 1, -1):
        if step >= 0:
            sweep_adding(z, y, v, weights, mid, rad, a, b, c, d, e, f, g, h, i, j, step)
        else:
            sweep_plain(z, y, v, weights, mid, rad, a, b, c, d, e, f, g, h, i, j, 0)
        y, z = z, y
    return y
"""


@cache
def compiled() -> ModuleType:
    """The module with `relaxed`, kept in the cache of kernels under a name that hashes this file too.

    `relaxed(y, z, v, weights, ...)` is, in every lane, Σ_k weights[k] Mᵏ v by Horner's rule, where M is a step: it
    begins with y = 0 and makes y = M y + weights[k] v from the last k to the first. The first `begin` weights are 0 and
    not in the table. The result is y or z.
    """
    here = hashlib.sha256(inspect.getsource(sys.modules[__name__]).encode()).hexdigest()
    return load_source(f"# the step is that of {here}{_SOURCE}")
