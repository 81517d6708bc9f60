"""Small changes of a program that its tests should notice.

Every change is an edit of the text at one place, so that it can be shown as a reader would make it:

    compare      < → ≥,  ≤ → >,  == ↔ !=,  in ↔ not in,  is ↔ is not;  of whole numbers (k, len(x), x.shape …) also < ↔ ≤
    arithmetic   + ↔ −,  * ↔ /,  ** → *,  // → /,  += ↔ −=
    negation     −x → x,  not x → x
    constant     k → k + 1,  0.0 → 1.0,  x → 2x,  True ↔ False
    logic        and ↔ or
    extreme      min ↔ max, argmin ↔ argmax, any ↔ all, floor ↔ ceil, sum → mean, zeros ↔ ones …
    weight       c * x → x  for factors that are weights of examples;  sample_weight=s → sample_weight=None

Left alone is what changes no result that could be observed:

    text         annotations, docstrings, messages (raise, warn, f-strings)
    speed        keywords that change the speed or the look only (INDIFFERENT)
    sizes        whole numbers from 50 on, also as 2**31 or 1 << 20: 51 would be as good a limit
    iterations   how often a loop without a counter runs that ends by itself (for _ in range(20) with break or return), and
                 named limits of iterations (LIMITS): one more changes nothing once it has converged
    rounding     constants below 1e-5 or above 1e5, which could as well be twice as large; the products that scale them
                 (1e-12 * (1 + |x|), ROUNDING * |J|), also on the other side of a comparison (0.5 * x <= 1e-12), and
                 whether they are added or subtracted (x + 1e-300)

A comparison with such a tolerance is changed all the same (a <= 1e-9 * b becomes a > 1e-9 * b), and so is what decides
between two ways to one answer: no syntax tells them from ways to different answers.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Gt: (">", "<="), ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
BOUNDARY: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "/"),
}  # fmt: skip
EXTREME = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "mean", "zeros": "ones", "ones": "zeros",
    "cumsum": "cumprod", "log": "log1p", "exp": "expm1", "sqrt": "square",
}  # fmt: skip
WEIGHTS = {"c", "weight", "weights", "sample_weight", "importance"}
# Keywords whose value changes the speed or the look, not the answer.
INDIFFERENT = {
    "copy", "check_finite", "overwrite_a", "overwrite_b", "strict", "repr", "compare", "eq", "frozen", "stacklevel",
    "kw_only", "init", "deep", "default_flow_style", "seconds", "max_iter", "maxiter", "xtol", "rtol", "atol", "tol", "assume_sorted",
}  # fmt: skip
LEAST, MOST, LIMIT = 1e-5, 1e5, 50
TINY = ("eps", "tiny")  # of np.finfo
# Words in the names of constants that limit iterations.
LIMITS = re.compile(r"TRIALS|ROUNDS|REFINEMENTS|HALVINGS|ITERATIONS|DOUBLINGS|STEPS")


@dataclass(frozen=True)
class Mutation:
    """An edit: bytes begin … end of the text become ``new``."""

    line: int
    begin: int
    end: int
    old: str
    new: str
    kind: str

    def apply(self, text: str) -> str:
        raw = text.encode()
        return (raw[: self.begin] + self.new.encode() + raw[self.end :]).decode()


def mutations(text: str) -> list[Mutation]:
    """Every change of the list above, in the order of the text; each one parses."""
    tree = ast.parse(text)
    finder = _Finder(text, _tolerances(tree))
    finder.visit(tree)
    unique = {(m.begin, m.end, m.new): m for m in finder.found}
    return sorted(unique.values(), key=lambda m: (m.begin, m.end, m.new))


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str, tolerances: set[str]) -> None:
        self._raw, self._tolerances = text.encode(), tolerances
        self._starts = [0]
        for line in self._raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Mutation] = []

    # Positions ----------------------------------------------------------------------------------------------------

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, line: int, begin: int, end: int, new: str, kind: str) -> None:
        self.found.append(Mutation(line, begin, end, self._raw[begin:end].decode(), new, kind))

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str, kind: str) -> None:
        """Replace the operator that stands between two expressions."""
        begin, end = self._span(left)[1], self._span(right)[0]
        pattern = r"\s+".join(map(re.escape, old.split()))
        found = re.search(pattern.encode(), re.sub(rb"#[^\n]*", lambda m: b" " * len(m[0]), self._raw[begin:end]))
        if found:
            self._add(left.end_lineno or 0, begin + found.start(), begin + found.end(), new, kind)

    # What is left alone -------------------------------------------------------------------------------------------

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__repr__", "__str__", "__sklearn_tags__", "_repr_html_"):
            return
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not (isinstance(node.targets[0], ast.Name) and LIMITS.search(node.targets[0].id)):
            self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        ends = any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(node))
        counted = not (
            _name(node.target) == "_" and isinstance(node.iter, ast.Call) and _name(node.iter.func) == "range"
        )
        if counted or not ends:
            self.visit(node.iter)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def _is_tiny(self, node: ast.expr) -> bool:
        """Whether it is a tolerance of rounding: a small constant, a name for one, or a product with one."""
        if isinstance(node, ast.UnaryOp):
            return self._is_tiny(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            return self._is_tiny(node.left) or (isinstance(node.op, ast.Mult) and self._is_tiny(node.right))
        if isinstance(node, ast.Call) and _name(node.func) in ("min", "minimum"):
            return any(map(self._is_tiny, node.args))
        return (
            _is_small(node)
            or _name(node) in self._tolerances
            or (isinstance(node, ast.Attribute) and node.attr in TINY)
        )

    # What is changed ----------------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        rounded = any(map(self._is_tiny, sides))
        for left, op, right in zip(sides, node.ops, node.comparators):
            self._between(left, right, *COMPARE[type(op)], "compare")
            if type(op) in BOUNDARY and (_is_whole(left) or _is_whole(right)) and not rounded:
                self._between(left, right, *BOUNDARY[type(op)], "compare")
        for side in sides:
            scaled = isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult) and _is_number(side.left)
            if rounded and isinstance(side, ast.BinOp) and scaled and not self._is_tiny(side):
                # The factor is part of the tolerance; its sign is not.
                if isinstance(side.left, ast.UnaryOp):
                    begin = self._span(side.left)[0]
                    self._add(side.lineno, begin, begin + 1, "", "negation")
                self.visit(side.right)
            else:
                self.visit(side)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if self._is_tiny(node) or _number(node) >= LIMIT:
            return
        if isinstance(node.op, ast.Add | ast.Sub) and (self._is_tiny(node.left) or self._is_tiny(node.right)):
            for part in (node.left, node.right):
                if not self._is_tiny(part):
                    self.visit(part)
            return
        texts = any(isinstance(n, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(n) for n in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not texts:
            self._between(node.left, node.right, *ARITHMETIC[type(node.op)], "arithmetic")
        if isinstance(node.op, ast.Mult):
            for factor, rest in ((node.left, node.right), (node.right, node.left)):
                if _name(factor) in WEIGHTS:
                    begin, end = self._span(node)
                    self._add(node.lineno, begin, end, self._raw[slice(*self._span(rest))].decode(), "weight")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        swap = {ast.Add: ("+=", "-="), ast.Sub: ("-=", "+="), ast.Mult: ("*=", "/="), ast.Div: ("/=", "*=")}
        if type(node.op) in swap and not isinstance(node.value, ast.List | ast.Tuple | ast.ListComp):
            self._between(node.target, node.value, *swap[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            begin = self._span(node)[0]
            self._add(node.lineno, begin, begin + (3 if isinstance(node.op, ast.Not) else 1), "", "negation")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            self._between(left, right, old, new, "logic")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            new = str(not value)
        elif isinstance(value, int):
            if value >= LIMIT:
                return
            new = str(value + 1)
        elif isinstance(value, float):
            new = "1.0" if value == 0 else repr(2.0 * value)
        else:
            return
        if value and not isinstance(value, bool) and not LEAST <= abs(value) <= MOST:
            return
        self._add(node.lineno, *self._span(node), new, "constant")

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in ("warn", "field", "simplefilter", "errstate", "namedtuple", "cast"):
            return
        if name in EXTREME and not isinstance(node.func, ast.Subscript):
            end = self._span(node.func)[1]
            self._add(node.func.end_lineno or 0, end - len(name), end, EXTREME[name], "extreme")
        self.visit(node.func)
        for argument in node.args:
            if not (name == "reshape" and isinstance(argument, ast.UnaryOp)):  # NumPy takes any negative size for −1
                self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg in WEIGHTS - {"c"} and not isinstance(keyword.value, ast.Constant):
                self._add(keyword.lineno, *self._span(keyword.value), "None", "weight")
            if keyword.arg not in INDIFFERENT:
                self.visit(keyword.value)


def _is_whole(node: ast.expr) -> bool:
    """Whether the text shows that it is a whole number; two real numbers are never equal, or it does not matter."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 0
    name = _name(node.func) if isinstance(node, ast.Call) else _name(node)
    if isinstance(node, ast.Name) and name == "size":  # a norm; x.size is a number of entries
        return False
    return name in ("len", "shape", "ndim", "size", "count_nonzero", "n", "d", "k", "n_samples", "n_features")


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < abs(node.value) < LEAST


def _tolerances(tree: ast.Module) -> set[str]:
    """The names of small constants of a file."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and _is_small(node.value)]
    return {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def _number(node: ast.expr) -> float:
    """The value of an expression of whole numbers such as 2**31 − 1; NaN for any other."""
    if isinstance(node, ast.Constant):
        return float(node.value) if type(node.value) is int else math.nan
    if not isinstance(node, ast.BinOp):
        return math.nan
    left, right = _number(node.left), _number(node.right)
    if isinstance(node.op, ast.Pow | ast.LShift) and right <= 64:
        return left**right if isinstance(node.op, ast.Pow) else left * 2**right
    found = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}
    return found.get(type(node.op), math.nan)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _name(node: ast.expr) -> str:
    """The last part of a dotted name; of c[:, None] it is c."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of every function, inner ones last."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.end_lineno or node.lineno
