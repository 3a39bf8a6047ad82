"""LLVM IR from the typed form of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from parflex.codegen.llvm_jit import host_target
from parflex.codegen.llvm_lines import Lines
from parflex.codegen.loop_compiler import Assign, Call, If, Leave, Loop, Native, Node, Return, TypedFunction, TypedLoop
from parflex.codegen.loop_types import FLAG, REAL, WHOLE, ArrayKind, Kind, RecordKind

ARITHMETIC = {"add": ("add nsw", "fadd"), "sub": ("sub nsw", "fsub"), "mul": ("mul nsw", "fmul"), "div": ("", "fdiv")}
COMPARISONS = {
    "lt": ("icmp slt", "fcmp olt"), "le": ("icmp sle", "fcmp ole"), "gt": ("icmp sgt", "fcmp ogt"),
    "ge": ("icmp sge", "fcmp oge"), "eq": ("icmp eq", "fcmp oeq"), "ne": ("icmp ne", "fcmp une"),
}  # fmt: skip
CONVERSIONS = {(FLAG, REAL): "uitofp", (FLAG, WHOLE): "zext", (WHOLE, REAL): "sitofp", (REAL, WHOLE): "fptosi"}
INVARIANT = ", !invariant.load !0"  # nothing changes a record while compiled code runs, so that loads leave loops
UNROLL_COUNT = 4  # turns that are written out


def types_of(kind: Kind) -> list[str]:
    """Types of the parts of a value: one of a number, pointer, shape and strides of an array, all of a tuple."""
    if isinstance(kind, tuple):
        return [text for part in kind for text in types_of(part)]
    if isinstance(kind, ArrayKind):
        return ["ptr"] + [WHOLE] * (2 * kind.indices)
    return [WHOLE if isinstance(kind, RecordKind) else kind]


def _returned_type(kind: Kind) -> str:
    if kind == ():
        return "void"
    types = types_of(kind)
    return f"{{ {', '.join(types)} }}" if isinstance(kind, tuple) else types[0]


class LoopModule:
    """An LLVM module of a loop."""

    def __init__(self) -> None:
        self.declared: set[str] = set()
        self.notes = ["!{}"]  # what is said to LLVM of loads, stores and loops

    def note(self, text: str) -> str:
        """The name of something that is said."""
        self.notes.append(text)
        return f"!{len(self.notes) - 1}"

    def loop(self, *properties: str) -> str:
        """Words behind the way back of a loop."""
        names = [self.note(f"!{{{text}}}") for text in properties]
        operands = ", ".join([f"!{len(self.notes)}", *names])  # a loop names itself first
        return f", !llvm.loop {self.note(f'distinct !{{{operands}}}')}"

    def side_by_side(self, stop: Node) -> tuple[str, str]:
        """Words behind loads and stores of a loop whose turns are apart from each other, and behind its way back.

        As many turns are done at once as the processor has lanes, or as there are.
        """
        lanes = host_target()[-1]
        group, width = self.note("distinct !{}"), min(stop.parts[0], lanes) if stop.op == "number" else lanes
        properties = '!"llvm.loop.vectorize.enable", i1 true', f'!"llvm.loop.vectorize.width", i32 {width}'
        return f", !llvm.access.group {group}", self.loop(f'!"llvm.loop.parallel_accesses", {group}', *properties)

    def text(self, loops: Sequence[tuple[Any, tuple[Kind, ...]]]) -> tuple[str, list[TypedFunction]]:
        """The whole, and the function of each loop: `entry_NAME` has parts of arguments, then where the result goes."""
        typed = TypedLoop()
        functions = [typed.function(source, kinds) for source, kinds in loops]
        texts = [_FunctionText(self, function).text() for function in typed.functions]
        texts += [_FunctionText(self, function).entry() for function in functions]
        notes = [f"!{k} = {note}" for k, note in enumerate(self.notes)]
        return "\n".join([*texts, *sorted(self.declared), *notes, ""]), functions


class _FunctionText:
    """Lines of a function."""

    def __init__(self, module: LoopModule, function: TypedFunction) -> None:
        self.module, self.function = module, function
        self.b = Lines(1, module.declared)
        self.slots: dict[str, list[tuple[str, str]]] = {}
        self.loops: list[dict[str, str]] = []  # labels of `continue` and `break`
        self.group = ""  # behind loads and stores of arrays: those of a loop whose turns are apart from each other
        self.ended = False

    def text(self) -> str:
        """The whole function; LLVM makes registers of the memory of its variables."""
        function, b = self.function, self.b
        for number, (name, kind) in enumerate(function.variables.items()):
            self.slots[name] = [(f"%s{number}.{k}", text) for k, text in enumerate(types_of(kind))]
        b.lines += [f"  {slot} = alloca {text}" for slots in self.slots.values() for slot, text in slots]
        parameters = []
        for variable in function.parameters:
            kind = types_of(variable.kind)
            parts = [f"%a.{variable.parts[0]}.{k}" for k in range(len(kind))]
            parameters += [f"{text} {part}" for text, part in zip(kind, parts, strict=True)]
            self._assign(variable, parts)
        self._block(function.body)
        if not self.ended:
            b.lines.append("  ret void")
        how = " alwaysinline" if function.inside else ""
        head = (
            f"define internal {_returned_type(function.returned)} @f_{function.name}({', '.join(parameters)}){how} {{"
        )
        return "\n".join([head, "entry:", *b.lines, "}", ""])

    def entry(self) -> str:
        """The function that Python calls: arrays come without strides, results go to memory as words."""
        b, parameters, parts = self.b, list[str](), list[str]()
        for k, variable in enumerate(self.function.parameters):
            kind = variable.kind
            if isinstance(kind, ArrayKind):
                shape = [f"%a{k}.{axis}" for axis in range(kind.indices)]
                parameters += [f"ptr %a{k}", *(f"i64 {extent}" for extent in shape)]
                parts += self._contiguous(f"%a{k}", shape)
            else:
                parameters.append(f"{WHOLE if kind == FLAG else types_of(kind)[0]} %a{k}")
                parts.append(b.new(f"icmp ne i64 %a{k}, 0") if kind == FLAG else f"%a{k}")
        words = {FLAG: "zext i1 {} to i64", REAL: "bitcast double {} to i64"}
        returned = self.function.returned
        results = self._called(self.function, parts)
        kinds = returned if isinstance(returned, tuple) else (returned,)
        for k, (kind, result) in enumerate(zip(kinds, results, strict=True)):
            place = b.new(f"getelementptr i64, ptr %result, i64 {k}")
            word = b.new(words[kind].format(result)) if kind in words else result
            b.lines.append(f"  store i64 {word}, ptr {place}")
        parameters.append("ptr %result")
        head = f"define void @entry_{self.function.name}({', '.join(parameters)}) {{"
        return "\n".join([head, *b.lines, "  ret void", "}", ""])

    # -- statements --------------------------------------------------------------------------------------

    def _label(self) -> str:
        return f"b{len(self.b.lines)}_"

    def _begin(self, label: str) -> None:
        self.b.lines.append(f"{label}:")
        self.ended = False

    def _go(self, label: str, mark: str = "") -> None:
        """To a block, if this one has not ended."""
        if not self.ended:
            self.b.lines.append(f"  br label %{label}{mark}")
        self.ended = True

    def _branch(self, test: Node, first: str, second: str) -> None:
        self.b.lines.append(f"  br i1 {self._one(test)}, label %{first}, label %{second}")

    def _block(self, statements: list[Any]) -> None:
        for statement in statements:
            match statement:
                case Assign(target, value):
                    self._assign(target, self._value(value))
                case If():
                    self._if(statement)
                case Loop():
                    self._loop(statement)
                case Call(function, arguments, results):
                    parts = self._called(function, [part for node in arguments for part in self._value(node)])
                    for result in results:
                        count = len(types_of(result.kind))
                        self._assign(result, parts[:count])
                        parts = parts[count:]
                case Leave(how):
                    self._go(self.loops[-1][how])
                case Return(values):
                    self._return([part for value in values for part in self._value(value)])

    def _assign(self, target: Node, parts: list[str]) -> None:
        if target.op == "variable":
            for (slot, text), part in zip(self.slots[target.parts[0]], parts, strict=True):
                self.b.lines.append(f"  store {text} {part}, ptr {slot}")
        else:
            place, kind = self._located(*target.parts)[0], target.kind
            self.b.lines.append(f"  store {kind} {parts[0]}, ptr {place}{self.group}")

    def _if(self, node: If) -> None:
        first, second, after = (f"{self._label()}{k}" for k in range(3))
        self._branch(node.test, first, second)
        ends = []
        for label, body in ((first, node.body), (second, node.orelse)):
            self._begin(label)
            self._block(body)
            ends.append(self.ended)
            self._go(after)
        if not all(ends):
            self._begin(after)

    def _loop(self, node: Loop) -> None:
        outside, mark = self.group, ""
        if node.mark == "simd_range":
            self.group, mark = self.module.side_by_side(node.test.parts[1])
        elif node.mark == "unrolled_range":
            mark = self.module.loop(f'!"llvm.loop.unroll.count", i32 {UNROLL_COUNT}')
        test, body, again, after = (f"{self._label()}{k}" for k in range(4))
        self._go(test)
        self._begin(test)
        self._block(node.head)
        self._branch(node.test, body, after)
        self._begin(body)
        self.loops.append({"continue": again, "break": after})
        self._block(node.body)
        self.loops.pop()
        self._go(again)
        self._begin(again)
        if node.counter is not None:
            self._assign(node.counter, self._value(Node("add", WHOLE, (node.counter, node.step))))
        self._go(test, mark)
        self._begin(after)
        self.group = outside

    def _called(self, function: Any, parts: list[str]) -> list[str]:
        """Call a function; parts of its results."""
        b = self.b
        if isinstance(function, Native):
            function.llvm(b, parts)  # type: ignore[attr-defined]
            return []
        types = [text for variable in function.parameters for text in types_of(variable.kind)]
        arguments = ", ".join(f"{text} {part}" for text, part in zip(types, parts, strict=True))
        kind = _returned_type(function.returned)
        call = f"call {kind} @f_{function.name}({arguments}){self.group}"
        if kind == "void":
            b.lines.append(f"  {call}")
            return []
        result = b.new(call)
        if not isinstance(function.returned, tuple):
            return [result]
        return [b.new(f"extractvalue {kind} {result}, {k}") for k in range(len(types_of(function.returned)))]

    def _return(self, parts: list[str]) -> None:
        returned = self.function.returned
        kind, value = _returned_type(returned), "".join(parts[:1])
        if isinstance(returned, tuple):
            value = "undef"
            for k, (text, part) in enumerate(zip(types_of(returned), parts, strict=True)):
                value = self.b.new(f"insertvalue {kind} {value}, {text} {part}, {k}")
        self.b.lines.append("  ret void" if kind == "void" else f"  ret {kind} {value}")
        self.ended = True

    # -- expressions -------------------------------------------------------------------------------------

    def _one(self, node: Node) -> str:
        return self._value(node)[0]

    def _value(self, node: Node) -> list[str]:
        """Parts of a value."""
        b, kind = self.b, node.kind
        match node.op:
            case "number":
                return [b.constant(node.parts[0]) if kind == REAL else str(node.parts[0]).lower()]
            case "variable":
                return [b.new(f"load {text}, ptr {slot}") for slot, text in self.slots[node.parts[0]]]
            case "field" if isinstance(kind, ArrayKind):
                part = self._array(node)
                return [part(k) for k in range(1 + 2 * kind.indices)]
            case "field":
                word = self._words(*node.parts)
                return [b.new(f"icmp ne i64 {word(0, WHOLE)}, 0") if kind == FLAG else word(0, types_of(kind)[0])]
            case "shape":
                return [self._array(node.parts[0])(1 + node.parts[1])]
            case "address":
                array = node.parts[0]
                return [b.new(f"ptrtoint {types_of(array.kind)[0]} {self._array(array)(0)} to i64")]
            case "element":
                place = self._located(*node.parts)[0]
                return [b.new(f"load {kind}, ptr {place}{self.group}")]
            case "part":
                return self._located(*node.parts)
        values = [self._one(part) for part in node.parts]
        source = node.parts[0].kind
        real = source == REAL
        match node.op:
            case "convert":
                return [b.new(f"{CONVERSIONS[source, kind]} {source} {values[0]} to {kind}")]
            case "not":
                return [b.new(f"xor i1 {values[0]}, true")]
            case "and":
                return [b.new(f"and i1 {values[0]}, {values[1]}")]
            case "neg":
                return [b.fneg(values[0]) if real else b.new(f"sub nsw i64 0, {values[0]}")]
            case "floordiv" | "mod":
                return [self._divided(node.op, *values)]
            case "max" | "min":
                beyond = COMPARISONS["gt" if node.op == "max" else "lt"][real]
                flag = b.new(f"{beyond} {kind} {values[1]}, {values[0]}")
                return [b.new(f"select i1 {flag}, {kind} {values[1]}, {kind} {values[0]}")]
        operation = (ARITHMETIC | COMPARISONS).get(node.op)
        if operation is not None:
            return [b.new(f"{operation[real]} {source} {values[0]}, {values[1]}")]
        return [b.intrinsic(node.op, *values)]

    def _divided(self, op: str, a: str, b: str) -> str:
        """Quotient or remainder of whole numbers as Python has them: rounded down."""
        new = self.b.new
        over = new(f"srem i64 {a}, {b}")
        unlike = new(f"icmp slt i64 {new(f'xor i64 {over}, {b}')}, 0")
        below = new(f"and i1 {unlike}, {new(f'icmp ne i64 {over}, 0')}")
        if op == "mod":
            return new(f"add i64 {over}, {new(f'select i1 {below}, i64 {b}, i64 0')}")
        less = new(f"zext i1 {below} to i64")
        return new(f"sub i64 {new(f'sdiv i64 {a}, {b}')}, {less}")

    def _words(self, record: Node, name: str) -> Callable[[int, str], str]:
        """What reads the words of a field."""
        b, address, start = self.b, self._one(record), record.kind.found[name][0]

        def word(offset: int, text: str) -> str:
            byte_address = b.new(f"add i64 {address}, {8 * (start + offset)}")
            pointer = b.new(f"inttoptr i64 {byte_address} to ptr")
            return b.new(f"load {text}, ptr {pointer}{INVARIANT}")

        return word

    def _array(self, node: Node) -> Callable[[int], str]:
        """What reads one part of an array: pointer, shape and strides; most need few of them."""
        n, types = node.kind.indices, types_of(node.kind)
        if node.op == "variable":
            slots = self.slots[node.parts[0]]
            return lambda k: self.b.new(f"load {types[k]}, ptr {slots[k][0]}")
        if node.op != "field":
            return self._value(node).__getitem__
        word = self._words(*node.parts)

        def part(k: int) -> str:
            if k <= n:
                return word(k, types[k])
            if k == 2 * n:
                return "1"
            extent = word(k - n + 1, WHOLE)
            return extent if k == 2 * n - 1 else self.b.new(f"mul nsw i64 {part(k + 1)}, {extent}")

        return part

    def _contiguous(self, data: str, shape: list[str]) -> list[str]:
        """An array whose strides follow from its shape."""
        strides = ["1"]
        for extent in reversed(shape[1:]):
            strides.insert(0, extent if strides[0] == "1" else self.b.new(f"mul nsw i64 {strides[0]}, {extent}"))
        return [data, *shape, *strides]

    def _located(self, array: Node, indices: tuple[Any, ...]) -> list[str]:
        """Where the first number lies, and shape and strides of what is left."""
        b, n, kind = self.b, array.kind.indices, array.kind.element
        part = self._array(array)
        place = part(0)
        remaining: list[tuple[str, str]] = []
        for axis, index in enumerate(indices):
            stride = part(1 + n + axis)
            low = self._one(index[0] if isinstance(index, tuple) else index)
            offset = low if stride == "1" else b.new(f"mul nsw i64 {low}, {stride}")
            if offset != "0":
                place = b.new(f"getelementptr inbounds {kind}, ptr {place}, i64 {offset}")
            if isinstance(index, tuple):
                high = self._one(index[1])
                remaining.append((high if low == "0" else b.new(f"sub nsw i64 {high}, {low}"), stride))
        remaining += [(part(1 + axis), part(1 + n + axis)) for axis in range(len(indices), n)]
        return [place, *(extent for extent, _ in remaining), *(stride for _, stride in remaining)]
