"""Generated source as the text of an LLVM module: a small part of Python with fixed types, and nothing else.

Source is a module of constants and functions. `run` is called from outside, and says of what kind its arguments are:
`theta: float[:, :]` is an array, `seed: word` a number. Every other function is translated where it is first called
with arguments of these kinds. A variable keeps the kind of what is first assigned to it. What `run` allocates, with
`np.empty` or `np.zeros`, is aligned, shares no memory with anything else, and is freed when it returns; where there is
too little memory it returns NO_MEMORY. An index is not checked.

A processor that loads from an address takes it for one just stored to if the two are a multiple of 4096 bytes apart,
and waits. Systems choose at random where the stack and arrays lie, so kernels would be slower in some processes than in
others. Therefore the stack of `run` begins just below a multiple of 4096. Arrays begin above one, and modulo 4096 each
begins where the one before has ended.

What is not known here is refused. There is no way for source to name an address, a file or a function of Python's.
"""

from __future__ import annotations

import ast
import sys
from typing import Final

from sateen.engine.instructions import KINDS, WHOLE, Grid, Instructions, Kind, Scalar, Value, literal, refuse
from sateen.engine.scope import ALIGNMENT, OPERATORS, Scope, flat, signature

_PAGE: Final = 4096
_BELOW: Final = 64  # bytes between a multiple of _PAGE and the stack of `run`

# Blocks of memory are chained, each with the address of the one before in front of it. Next to the place of the chain
# is how many bytes were asked for so far.
_RUNTIME: Final = f"""
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare double @nextafter(double, double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.stacksave.p0()

define internal noalias ptr @allocate(ptr %chain, i64 %bytes) noinline {{
  %all = add i64 %bytes, {_PAGE + ALIGNMENT}
  %block = call ptr @PyMem_RawMalloc(i64 %all)
  %none = icmp eq ptr %block, null
  br i1 %none, label %missing, label %found
missing:
  ret ptr null
found:
  %before = load ptr, ptr %chain
  store ptr %before, ptr %block
  store ptr %block, ptr %chain
  %place = getelementptr i8, ptr %chain, i64 8
  %used = load i64, ptr %place
  %more = add i64 %bytes, {ALIGNMENT - 1}
  %end = add i64 %used, %more
  %aligned = and i64 %end, {-ALIGNMENT}
  store i64 %aligned, ptr %place
  %address = ptrtoint ptr %block to i64
  %behind = add i64 %address, 8
  %apart = sub i64 %used, %behind
  %over = and i64 %apart, {_PAGE - 1}
  %gap = add i64 %over, 8
  %data = getelementptr i8, ptr %block, i64 %gap
  ret ptr %data
}}

define internal void @release(ptr %chain) noinline {{
  %first = load ptr, ptr %chain
  br label %next
next:
  %block = phi ptr [%first, %0], [%before, %free]
  %last = icmp eq ptr %block, null
  br i1 %last, label %done, label %free
free:
  %before = load ptr, ptr %block
  call void @PyMem_RawFree(ptr %block)
  br label %next
done:
  ret void
}}
"""


# Not on Windows, where a stack that grows so must call a function that is not linked here.
_MOVES: Final = [
    "%top = call ptr @llvm.stacksave.p0()",
    "%address = ptrtoint ptr %top to i64",
    f"%over = and i64 %address, {_PAGE - 1}",
    f"%gap = add i64 %over, {_BELOW}",
    "%moved = alloca i8, i64 %gap, align 16",
    "store volatile i8 0, ptr %moved",  # or else it would not be there
]


def translated(text: str, fuses: bool) -> str:
    """The LLVM module of generated source, in which `run` is called from outside.

    The first product in the sum of `fused(a * b + c)` is not rounded, if the processor `fuses` the two.
    """
    module = _Module(text, fuses)
    module.outer("run")
    return "\n".join([_RUNTIME, *module.intrinsics(), *module.written])


def arguments(text: str) -> list[tuple[str, Kind, int]]:
    """The names of the arguments of `run`, their kinds, and how many axes they have."""
    (line,) = (line for line in text.splitlines() if line.startswith("def run("))
    (function,) = ast.parse(f"{line} pass").body
    assert isinstance(function, ast.FunctionDef)
    return [(each.arg, *_declared(each.annotation)) for each in function.args.args]


def _declared(annotation: ast.expr | None) -> tuple[Kind, int]:
    match annotation:
        case ast.Name(name) if name in KINDS:
            return KINDS[name], 0
        case ast.Subscript(ast.Name(name), ast.Slice()) if name in KINDS:
            return KINDS[name], 1
        case ast.Subscript(ast.Name(name), ast.Tuple(axes)) if name in KINDS:
            return KINDS[name], len(axes)
    refuse("run does not say of what kind its arguments are")


def _entrance(name: str, taken: str, moves: list[str]) -> str:
    """The function that is called from outside, which moves the stack before the work begins."""
    call = f"%result = call i64 @{name}.moved({taken.replace(' noalias', '')})"
    return "\n".join([f"define i64 @{name}({taken}) {{", *moves, call, "ret i64 %result", "}", ""])


class _Module:
    """The functions of a module, each translated once for each signature that it is called with."""

    def __init__(self, text: str, fuses: bool) -> None:
        body = ast.parse(text).body
        self.functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        self.constants = {
            node.targets[0].id: node.value
            for node in body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        self.fuses = fuses
        self.written: list[str] = []
        self._called: dict[tuple[object, ...], tuple[str, Kind | None]] = {}

    def outer(self, name: str) -> None:
        """Translate the function that is called from outside."""
        given, parts = list[Value](), list[str]()
        for argument in self.functions[name].args.args:
            kind, axes = _declared(argument.annotation)
            own = f"%a.{argument.arg}"
            if not axes:
                given.append(Scalar(kind, own))
                parts.append(f"{kind.code} {own}")
                continue
            shape = [f"{own}.{axis}" for axis in range(axes)]
            parts += [f"ptr noalias {own}", *(f"i64 {length}" for length in shape)]
            given.append(Grid(kind, own, tuple(shape), ("",) * axes))
        function = _Function(self, self.functions[name], given, is_outer=True)
        taken = ", ".join(parts)
        self.written.append(function.text(f"define internal i64 @{name}.moved({taken}) noinline"))
        self.written.append(_entrance(name, taken, [] if sys.platform == "win32" else _MOVES))

    def call(self, name: str, given: list[Value]) -> tuple[str, Kind | None] | None:
        """The function for such arguments, and the kind of its result, if it has one; None if there is none."""
        if name not in self.functions:
            return None
        key = (name, *map(signature, given))
        if key not in self._called:
            parts, known = list[str](), list[Value]()
            for argument, value in zip(self.functions[name].args.args, given, strict=True):
                own = f"%a.{argument.arg}"
                if isinstance(value, Scalar):
                    known.append(Scalar(value.kind, own))
                else:
                    shape = tuple(f"{own}.{axis}" for axis in range(len(value.shape)))
                    strides = tuple(f"{own}.s{axis}" for axis in range(len(value.strides)))
                    strides = (*strides[:-1], "1") if value.packed else strides
                    known.append(Grid(value.kind, own, shape, strides))
                parts += flat(known[-1])
            function = _Function(self, self.functions[name], known, is_outer=False)
            own = f"@{name}.{len(self._called)}"
            result = function.result
            self._called[key] = own, result
            code = result.code if result else "void"
            self.written.append(function.text(f"define internal {code} {own}({', '.join(parts)})"))
        return self._called[key]

    def intrinsics(self) -> list[str]:
        """Declarations of the functions of numbers."""
        one = ("fabs", "exp", "log", "log2", "sqrt", "sin", "cos", "floor", "ceil", "rint")
        names = [f"declare double @llvm.{name}.f64(double)" for name in one]
        names.append("declare double @llvm.pow.f64(double, double)")
        return [*names, "declare double @llvm.fma.f64(double, double, double)"]


class _Function:
    """Translates one function for arguments of given kinds."""

    def __init__(self, module: _Module, node: ast.FunctionDef, given: list[Value], is_outer: bool) -> None:
        self.module = module
        self.out = Instructions()
        self.result: Kind | None = WHOLE if is_outer else None
        self.chain = self.out.place("[2 x i64]") if is_outer else ""
        self.scope = Scope(self.out, module.constants, module.call, self.chain, module.fuses)
        self._loops: list[tuple[str, str]] = []  # the blocks that `continue` and `break` lead to
        if is_outer:
            self.out.say(f"store [2 x i64] zeroinitializer, ptr {self.chain}")
        for argument, value in zip(node.args.args, given, strict=True):
            if isinstance(value, Grid) and is_outer:
                value = self.scope.contiguous(value.kind, value.data, value.shape)
            self.scope.assign(argument.arg, value)
        self._statements(node.body)
        # One with a result never comes to its end.
        self.out.say("unreachable" if self.result else "ret void")

    def text(self, head: str) -> str:
        """The function with its first line."""
        return "\n".join([f"{head} {{", "entry:", *self.out.head, *self.out.lines, "}", ""])

    # Statements.

    def _statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                self.scope.assign(name, self.scope.value(value))
            case ast.Assign([ast.Subscript() as target], value):
                self.scope.put(target, self.scope.number(value))
            case ast.AugAssign(ast.Name(name), operator, value):
                current = self.scope.number(ast.Name(name))
                self.scope.assign(name, self.out.computed(OPERATORS[type(operator)], current, self.scope.number(value)))
            case ast.AugAssign(ast.Subscript() as target, operator, value):
                changed = self.out.computed(
                    OPERATORS[type(operator)], self.scope.number(target), self.scope.number(value)
                )
                self.scope.put(target, changed)
            case ast.If():
                self._if(statement)
            case ast.While():
                self._while(statement)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds)):
                self._for(name, bounds, statement.body)
            case ast.Break() | ast.Continue():
                self.out.jump(self._loops[-1][isinstance(statement, ast.Break)])
                self.out.begin(f"b{self.out.fresh()}")
            case ast.Return(value):
                self._return(value)
                self.out.begin(f"b{self.out.fresh()}")
            case ast.Expr(ast.Call() as call):
                self.scope.call(call)
            case ast.Expr(ast.Constant(str())):
                pass
            case _:
                refuse(ast.unparse(statement))

    def _if(self, statement: ast.If) -> None:
        number = self.out.fresh()
        then, otherwise, after = f"b{number}.then", f"b{number}.else", f"b{number}.after"
        self.scope.branch(statement.test, then, otherwise if statement.orelse else after)
        self.out.begin(then)
        self._statements(statement.body)
        self.out.jump(after)
        if statement.orelse:
            self.out.begin(otherwise)
            self._statements(statement.orelse)
            self.out.jump(after)
        self.out.begin(after)

    def _while(self, statement: ast.While) -> None:
        number = self.out.fresh()
        head, body, after = f"b{number}.while", f"b{number}.body", f"b{number}.after"
        self.out.jump(head)
        self.out.begin(head)
        self.scope.branch(statement.test, body, after)
        self._body(statement.body, body, head, after)
        self.out.jump(head)
        self.out.begin(after)

    def _for(self, name: str, bounds: list[ast.expr], body: list[ast.stmt]) -> None:
        given = [self.out.fitted(self.scope.number(bound), WHOLE) for bound in bounds]
        start, stop, step = {1: [literal(0), *given, literal(1)], 2: [*given, literal(1)], 3: given}[len(given)]
        if not step.is_literal or step.code == "0":
            refuse("a range whose step is not written down")
        number, counter = self.out.fresh(), self.out.place("i64")
        head, inside, following, after = (f"b{number}.{part}" for part in ("for", "body", "next", "after"))
        self.out.store(start, counter)
        self.out.jump(head)
        self.out.begin(head)
        order = "<" if int(step.code) > 0 else ">"
        self.out.branch(self.out.compared(order, self.out.load(WHOLE, counter), stop), inside, after)
        self.out.begin(inside)
        self.scope.assign(name, self.out.load(WHOLE, counter))
        self._body(body, "", following, after)
        self.out.jump(following)
        self.out.begin(following)
        advanced = self.out.put(WHOLE, f"add nsw i64 {self.out.load(WHOLE, counter).code}, {step.code}")
        self.out.store(advanced, counter)
        self.out.jump(head)
        self.out.begin(after)

    def _body(self, body: list[ast.stmt], block: str, following: str, after: str) -> None:
        if block:
            self.out.begin(block)
        self._loops.append((following, after))
        self._statements(body)
        self._loops.pop()

    def _return(self, value: ast.expr | None) -> None:
        result = None if value is None else self.scope.number(value)
        if result is not None and self.result is None:
            self.result = result.kind
        if self.chain:
            self.out.say(f"call void @release(ptr {self.chain})")
        if result is None:
            self.out.say("ret void")
        else:
            assert self.result is not None
            self.out.say(f"ret {self.result.code} {self.out.fitted(result, self.result).code}")
