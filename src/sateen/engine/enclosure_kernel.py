"""The inner loop of interval uniformization, compiled: eight bounds at a time, one in each lane of a vector.

A table has a row for every state and a column for every lane. A sweep makes one step of all states: with y the values
before and z the values after,

    z[s] = y[s] + w v[s] + Σ_f (mid_f D_f + rad_f |D_f|),      D_f = Σ_e c_e (y[target of e] - y[s])

where f are the factors that the edges e out of s share, between (mid - rad) Λ and (mid + rad) Λ. The step is written in
the vectors of LLVM, which fit every processor. Which products and sums share a rounding is written down, and none is
reordered: a lane does not depend on what the other lanes hold, and is the same to the bit on every processor. States
with few edges, which stand together, are followed without a loop.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import llvmlite.ir as ir  # type: ignore[import-untyped]

from sateen.core.types import Array, FloatArray
from sateen.engine.instructions import FLOAT, INDEX, WHOLE
from sateen.engine.kernel import Code

LANES: Final = 8
MOST_UNROLLED: Final = 4  # edges of a state that are followed without a loop

_TABLES: Final = ("mid", "rad")
_EDGES: Final = {
    "runs": INDEX,
    "lone_start": INDEX,
    "lone_factor": INDEX,
    "lone_target": INDEX,
    "lone_coefficient": FLOAT,
    "group_start": INDEX,
    "group_factor": INDEX,
    "edge_start": INDEX,
    "edge_target": INDEX,
    "edge_coefficient": FLOAT,
}
_ARGUMENTS: Final = (
    *((name, FLOAT, 2) for name in ("y", "z", "v", "weights")),
    ("begin", WHOLE, 0),
    *((name, FLOAT, 2) for name in _TABLES),
    *((name, kind, 1) for name, kind in _EDGES.items()),
)
_WHOLE: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(ir.DoubleType(), LANES)
_DOUBLES: Final = ir.DoubleType().as_pointer()
_TYPES: Final = {FLOAT: _DOUBLES, INDEX: ir.IntType(32).as_pointer(), WHOLE: _WHOLE}


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
        return self._computed("fabs", vector)

    def sum_of(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c with one rounding."""
        return self._computed("fma", a, b, c)

    def _computed(self, name: str, *vectors: Any) -> Any:
        module, name = self.builder.module, f"llvm.{name}.v{LANES}f64"
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(vectors))
        return self.builder.call(module.globals.get(name) or ir.Function(module, kind, name), vectors)

    def entries(self, starts: Any, place: Any) -> Any:
        """A loop over the entries that belong to `place`: from starts[place] to starts[place + 1] - 1."""
        return self.loop(self.index(starts, place), self.index(starts, self.builder.add(place, _whole(1))))

    @contextmanager
    def loop(self, begin: Any, end: Any) -> Iterator[Any]:
        """A loop over whole numbers from `begin` to `end` - 1, each in turn."""
        before = self.builder.block
        head, body, after = (self.builder.append_basic_block(name) for name in ("head", "body", "after"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        counter = self.builder.phi(_WHOLE)
        counter.add_incoming(begin, before)
        self.builder.cbranch(self.builder.icmp_signed("<", counter, end), body, after)
        self.builder.position_at_end(body)
        yield counter
        counter.add_incoming(self.builder.add(counter, _whole(1), flags=("nsw",)), self.builder.block)
        self.builder.branch(head)
        self.builder.position_at_end(after)


def _whole(value: int) -> Any:
    return ir.Constant(_WHOLE, value)


def _sweep(module: Any, name: str, adds: bool) -> Any:
    """A step of all states, with or without w v: the function of z, y, v, w, the factors' bounds, edges and a row."""
    types = [*[_DOUBLES] * 6, *(_TYPES[kind] for kind in _EDGES.values()), _WHOLE]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    total, difference = builder.alloca(_VECTOR), builder.alloca(_VECTOR)
    after, before, goal, weights, middle, radius, *edges, row = function.args
    begins, starts, factors, targets, coefficients, groups, group_factors, *inner = edges
    edge_starts, edge_targets, edge_coefficients = inner
    write = _Writer(builder)
    weight = write.vector(weights, row)

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
        with write.entries(begins, _whole(degree)) as state:
            here = begin(state)
            edge = write.index(starts, state) if degree else None
            for step in range(degree):
                follow(builder.add(edge, _whole(step)), here)
            end(state)
    with write.entries(begins, _whole(MOST_UNROLLED + 1)) as state:
        here = begin(state)
        with write.entries(starts, state) as edge:
            follow(edge, here)
        with write.entries(groups, state) as group:
            builder.store(ir.Constant(_VECTOR, [0.0] * LANES), difference)
            with write.entries(edge_starts, group) as edge:
                coefficient = write.everywhere(edge_coefficients, edge)
                step = towards(write.index(edge_targets, edge), coefficient, here)
                builder.store(builder.fadd(builder.load(difference), step), difference)
            add(write.index(group_factors, group), builder.load(difference))
        end(state)
    builder.ret_void()
    return function


def _module() -> str:
    """The module with `run`, which makes all steps: those with a weight, and then `begin` without."""
    module = ir.Module("enclosure")
    adding, plain = _sweep(module, "adding", adds=True), _sweep(module, "plain", adds=False)
    types = list[Any]()
    for _, kind, axes in _ARGUMENTS:
        types += [_TYPES[kind], *[_WHOLE] * axes]
    function = ir.Function(module, ir.FunctionType(_WHOLE, types), "run")
    given = dict[str, Any]()
    places = iter(function.args)
    for name, _, axes in _ARGUMENTS:
        given[name], *shape = (next(places) for _ in range(1 + axes))
        given |= {f"{name}.{axis}": length for axis, length in enumerate(shape)}
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    write = _Writer(builder)
    sides = builder.alloca(_DOUBLES), builder.alloca(_DOUBLES)
    for name, side in zip("yz", sides, strict=True):
        builder.store(given[name], side)

    def sweep(step: Any, row: Any) -> None:
        y, z = map(builder.load, sides)
        tables = [z, y, given["v"], given["weights"], *(given[name] for name in _TABLES)]
        builder.call(step, [*tables, *(given[name] for name in _EDGES), row])
        builder.store(y, sides[1])
        builder.store(z, sides[0])

    count = given["weights.0"]
    with write.loop(_whole(0), count) as done:
        sweep(adding, builder.sub(builder.sub(count, done), _whole(1)))
    with write.loop(_whole(0), given["begin"]):
        sweep(plain, _whole(0))
    builder.ret(_whole(0))
    return str(module)


def relaxed(
    y: FloatArray, z: FloatArray, v: FloatArray, weights: FloatArray, begin: int, *factors_and_edges: Array
) -> FloatArray:
    """In every lane, Σ_k weights[k] Mᵏ v by Horner's rule, where M is a step; the result is in y or z.

    It begins with y = 0 and makes y = M y + weights[k] v from the last k to the first. The first `begin` weights are 0
    and not in the table.
    """
    _code()(y, z, v, weights, begin, *factors_and_edges)
    return z if (len(weights) + begin) % 2 else y


@cache
def _code() -> Code:
    """The compiled steps, kept in the cache of kernels under a name that hashes this file."""
    return Code(inspect.getsource(sys.modules[__name__]), _module, _ARGUMENTS)
