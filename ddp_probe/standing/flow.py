"""The ways through one function: a graph of its conditions, calls and jumps, from its syntax tree.

A node is a statement, or the part of one that is evaluated by itself: a condition, an operand of `and` that may be passed over. A suite
of `finally` is there once for each way through it.
"""

import ast
from typing import Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.standing.source_trees import FUNCTIONS, Function, called, own_nodes

_MOST = 20_000  # Nodes; nested `finally` doubles them at each level.
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_MAY_RAISE = (ast.Call, ast.Subscript, ast.Await, ast.For, ast.AsyncFor, ast.Div, ast.Assert)
_EXITS = {("sys", "exit"), ("os", "_exit"), ("os", "abort"), ("", "exit"), ("", "quit")}
_PLAIN = frozenset(  # Calls in which no rank meets another, as conditions make them.
    "abs any all bool float getattr hasattr int isinstance len max min range round str sum enumerate zip print item get exists isfile isdir join "
    "time monotonic perf_counter now random rand randint uniform choice isfinite isnan isinf get_rank is_initialized".split()
)
_EVERYTHING = ("BaseException", "Exception")
_TRY = (ast.Try, getattr(ast, "TryStar", ast.Try))
_MATCH = getattr(ast, "Match", ())


class FlowTooLargeError(Exception):
    """The graph of a function would have too many nodes."""


class Arm(NamedTuple):
    """One statement around a node, and in which of its suites the node is."""

    owner: ast.AST
    suite: str


class FlowEdge(NamedTuple):
    """One step from a node to the next."""

    node: "FlowNode"
    taken: Optional[bool] = None  # Of a condition: whether it was true; of a loop: whether it had one more turn.
    is_back: bool = False  # To the head of the loop in which it is.


class FlowNode:
    """One statement, or a part of it."""

    __slots__ = (
        "after",
        "again",
        "calls",
        "first",
        "inside",
        "is_first",
        "is_resumed",
        "kind",
        "last",
        "outer",
        "owner",
        "part",
        "place",
        "raises",
        "thrown",
        "whole",
        "yields",
    )

    def __init__(self, kind: str, part: Optional[ast.AST], owner: Optional[ast.AST], inside: Tuple[Arm, ...]) -> None:
        self.kind = kind
        self.part = part
        self.owner = owner
        self.inside = inside
        self.whole: Optional[ast.AST] = None  # The condition of which it is a part.
        self.first = self.last = 0
        self.after: List[FlowEdge] = []
        self.thrown: Optional[FlowNode] = None  # What handles an exception of it.
        self.calls: Tuple[str, ...] = ()
        self.outer: Optional[FlowNode] = None  # Of a `finally` on the way of an exception: where that is handled then.
        self.raises = self.yields = False
        self.is_resumed = False  # The head of a loop over a generator that goes on behind its `yield`.
        self.again: Optional[FlowNode] = None  # Of a first head: the head of the later turns.
        self.is_first = False  # The head of a `for` as it is entered: whether there is a turn at all.
        self.place = 0

    def copy(self, kind: str) -> "FlowNode":
        """Return a node for the same source."""
        node = FlowNode(kind, self.part, self.owner, self.inside)
        node.first, node.last, node.place, node.whole = self.first, self.last, self.place, self.whole
        node.is_first, node.again = self.is_first, self.again
        return node


class Flow:
    """The graph of a function. `escape` is where exceptions leave it."""

    def __init__(self, function: Function) -> None:
        """May raise FlowTooLargeError, and RecursionError for expressions that are nested too deeply."""
        self.function = function
        self.nodes: List[FlowNode] = []
        self.entry, self.exit, self.escape = (self.node(kind, None, None, ()) for kind in ("entry", "exit", "escape"))
        _Builder(self).function(function)

    def node(self, kind: str, part: Optional[ast.AST], owner: Optional[ast.AST], inside: Tuple[Arm, ...]) -> FlowNode:
        """Return a new node."""
        if len(self.nodes) >= _MOST:
            raise FlowTooLargeError
        node = FlowNode(kind, part, owner, inside)
        node.place = len(self.nodes)
        self.nodes.append(node)
        return node

    def at(self, line: int, name: str = "", arm: int = 0) -> List[FlowNode]:
        """Return where a frame at this line, or in this arm of it, may be; `name` is what it calls there."""
        nodes = [node for node in self.nodes if node.first <= line <= node.last]
        choice = only_choice(self.function, line) if arm else None
        if choice is not None:
            other = choice.orelse if arm == 1 else choice.body
            nodes = [node for node in nodes if node.part is not other]
        named = [node for node in nodes if name and name in node.calls]
        if named:
            return named
        calling = [node for node in nodes if node.calls]
        entering = [node for node in calling if not set(node.calls) <= _PLAIN]
        likely = entering or calling or nodes
        narrow = min((node.last - node.first for node in likely), default=0)
        return [node for node in likely if node.last - node.first == narrow]


def only_choice(function: Function, line: int) -> Optional[ast.IfExp]:
    """Return the conditional expression of a line, if nothing else on the line chooses."""
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [node for node in own_nodes(iter(body)) if getattr(node, "lineno", 0) == line]
    kinds = (ast.IfExp, ast.BoolOp, *_COMPREHENSIONS)
    choices = [node for node in nodes if isinstance(node, kinds) or _is_chain(node)]
    only = choices[0] if len(choices) == 1 else None
    return only if isinstance(only, ast.IfExp) and only.end_lineno == line else None


def _is_chain(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) > 1


_Ends = List[Tuple[FlowNode, Optional[bool]]]


class _Finally(NamedTuple):
    statements: List[ast.stmt]
    catcher: Optional[FlowNode]
    inside: Tuple[Arm, ...]


class _Loop(NamedTuple):
    head: FlowNode
    breaks: _Ends


class _Builder:
    """Walks a function once. What is open at a moment are the ends that the next node follows."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._catcher: Optional[FlowNode] = None
        self._around: List[object] = []
        self._inside: Tuple[Arm, ...] = ()
        self._own: Set[int] = set()  # The parts of the current statement that are nodes of their own.

    def function(self, function: Function) -> None:
        start: _Ends = [(self._flow.entry, None)]
        is_lambda = isinstance(function, ast.Lambda)
        ends = self._valued("", function.body, function, start)[1] if is_lambda else self._suite(function.body, start)  # type: ignore[arg-type]
        self._join(ends, self._flow.exit)

    # --- nodes

    def _add(self, kind: str, part: Optional[ast.AST], owner: ast.AST, ends: _Ends) -> FlowNode:
        node = self._flow.node(kind, part, owner, self._inside)
        self._join(ends, node)
        if part is None:
            return node
        node.first, node.last = _span(part)
        roots = _roots(part)
        calls = []
        for inner in _without(roots, self._own):
            node.raises = node.raises or isinstance(inner, _MAY_RAISE)
            node.yields = node.yields or isinstance(inner, (ast.Yield, ast.YieldFrom))
            if isinstance(inner, ast.Call):
                calls.append(inner)
        calls.sort(key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
        node.calls = tuple(called(call) for call in calls)
        node.raises = node.raises or isinstance(part, (ast.Import, ast.ImportFrom))
        node.thrown = self._catcher if node.raises else None
        return node

    @staticmethod
    def _join(ends: _Ends, node: FlowNode, is_back: bool = False) -> None:
        for end, taken in ends:
            end.after.append(FlowEdge(node, taken, is_back))

    def _valued(self, kind: str, part: ast.AST, owner: ast.AST, ends: _Ends) -> Tuple[FlowNode, _Ends]:
        """Add what a part evaluates by choice, then the part itself."""
        for root in _roots(part):
            ends = self._choices(root, owner, ends)
        node = self._add(kind, part, owner, ends)
        self._own.add(id(part))
        return node, [(node, None)]

    def _choices(self, part: ast.AST, owner: ast.AST, ends: _Ends) -> _Ends:
        """Add the operands inside an expression that are evaluated only at times, if they call something."""
        if not _chooses(part):
            return ends
        if isinstance(part, ast.BoolOp):
            return self._operands(part, owner, ends)
        if isinstance(part, ast.IfExp):
            yes, no = self._test("conditional", part.test, owner, ends, part)
            return self._valued("", part.body, owner, yes)[1] + self._valued("", part.orelse, owner, no)[1]
        if isinstance(part, _COMPREHENSIONS):
            return self._comprehension(part, owner, ends)
        for child in ast.iter_child_nodes(part):
            ends = self._choices(child, owner, ends)
        return ends

    def _operands(self, part: ast.BoolOp, owner: ast.AST, ends: _Ends) -> _Ends:
        is_and = isinstance(part.op, ast.And)
        left: _Ends = []
        for operand in part.values[:-1]:
            yes, no = self._test("and" if is_and else "or", operand, owner, ends, part)
            left += no if is_and else yes
            ends = yes if is_and else no
        return left + self._valued("", part.values[-1], owner, ends)[1]

    def _comprehension(self, part: ast.AST, owner: ast.AST, ends: _Ends) -> _Ends:
        left: _Ends = []
        head: Optional[FlowNode] = None
        for level in part.generators:  # type: ignore[attr-defined]
            inner, turn, over = self._head(level, level.iter, owner, ends)
            outer, head = head, inner
            if outer is None:
                left += over
            else:
                self._join(over, outer, is_back=True)
            ends = turn
            for condition in level.ifs:
                ends, no = self._test("if", condition, owner, ends, condition)
                self._join(no, inner, is_back=True)
        values = [part.key, part.value] if isinstance(part, ast.DictComp) else [part.elt]  # type: ignore[attr-defined]
        for value in values:
            ends = self._valued("", value, owner, ends)[1]
        if head is not None:
            self._join(ends, head, is_back=True)
        self._own.add(id(part))
        return left

    def _test(self, kind: str, test: ast.AST, owner: ast.AST, ends: _Ends, whole: ast.AST) -> Tuple[_Ends, _Ends]:
        """Add a condition, and return where it goes on if it is true and if it is not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _chooses(test):
            yes, no = self._test(kind, test.operand, owner, ends, whole)
            return no, yes
        if isinstance(test, ast.BoolOp) and _chooses(test):
            is_and = isinstance(test.op, ast.And)
            short: _Ends = []
            for operand in test.values[:-1]:
                yes, no = self._test("and" if is_and else "or", operand, owner, ends, whole)
                short += no if is_and else yes
                ends = yes if is_and else no
            yes, no = self._test(kind, test.values[-1], owner, ends, whole)
            return (yes, no + short) if is_and else (yes + short, no)
        node, _ = self._valued(kind, test, owner, ends)
        node.whole = whole
        if isinstance(test, ast.Constant):
            return ([(node, None)], []) if test.value else ([], [(node, None)])
        return [(node, True)], [(node, False)]

    # --- statements

    def _suite(self, statements: Sequence[ast.stmt], ends: _Ends, arm: Optional[Arm] = None) -> _Ends:
        before = self._inside
        if arm is not None:
            self._inside = (*before, arm)
        for statement in statements:
            self._own = set()
            ends = self._statement(statement, ends)
        self._inside = before
        return ends

    def _statement(self, statement: ast.stmt, ends: _Ends) -> _Ends:
        if isinstance(statement, ast.If):
            return self._if(statement, ends)
        if isinstance(statement, ast.While):
            return self._while(statement, ends)
        if isinstance(statement, _LOOPS):
            return self._for(statement, ends)
        if isinstance(statement, _TRY):
            return self._try(statement, ends)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self._with(statement, ends)
        if _MATCH and isinstance(statement, _MATCH):
            return self._match(statement, ends)
        if isinstance(statement, ast.Assert):
            yes, no = self._test("raise", statement.test, statement, ends, statement.test)
            self._throw(no)
            return yes
        node, ends = self._valued("", statement, statement, ends)
        if isinstance(statement, ast.Raise) or _ends_program(statement):
            node.kind = "raise"
            self._throw(ends)
            return []
        return self._jump(statement, node, ends) if isinstance(statement, _JUMPS) else ends

    def _if(self, statement: ast.If, ends: _Ends) -> _Ends:
        """Add an `if` with each `elif` of it; these are a chain in the tree, which can be long."""
        before, left = self._inside, []
        while True:
            yes, no = self._test("if", statement.test, statement, ends, statement.test)
            left += self._suite(statement.body, yes, Arm(statement, "body"))
            self._inside = (*self._inside, Arm(statement, "orelse"))
            is_elif = len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)
            if not is_elif:
                left += self._suite(statement.orelse, no)
                break
            statement, ends = statement.orelse[0], no  # type: ignore[assignment]
            self._own = set()
        self._inside = before
        return left

    def _while(self, statement: ast.While, ends: _Ends) -> _Ends:
        head = self._add("head", None, statement, ends)
        yes, no = self._test("while", statement.test, statement, [(head, None)], statement.test)
        return self._turns(statement, head, yes, no)

    def _for(self, statement: ast.AST, ends: _Ends) -> _Ends:
        head, turn, over = self._head(statement, statement.iter, statement, ends)  # type: ignore[attr-defined]
        return self._turns(statement, head, turn, over)

    def _head(self, part: ast.AST, over: ast.AST, owner: ast.AST, ends: _Ends) -> Tuple[FlowNode, _Ends, _Ends]:
        """Add the head of a loop, once as it is entered and once for its later turns; return the latter, and where both go on."""
        first = self._add("for", part, owner, self._choices(over, owner, ends))
        head = self._add("for", part, owner, [])
        first.is_first, first.again = True, head
        return head, [(first, True), (head, True)], [(first, False), (head, False)]

    def _turns(self, statement: ast.AST, head: FlowNode, turn: _Ends, over: _Ends) -> _Ends:
        loop = _Loop(head, [])
        self._around.append(loop)
        self._join(self._suite(statement.body, turn, Arm(statement, "body")), head, is_back=True)  # type: ignore[attr-defined]
        self._around.pop()
        return self._suite(statement.orelse, over, Arm(statement, "orelse")) + loop.breaks  # type: ignore[attr-defined]

    def _with(self, statement: ast.AST, ends: _Ends) -> _Ends:
        for item in statement.items:  # type: ignore[attr-defined]
            ends = self._valued("with", item, statement, ends)[1]
        calls = [item.context_expr for item in statement.items if isinstance(item.context_expr, ast.Call)]  # type: ignore[attr-defined]
        if all(called(call) != "suppress" for call in calls):
            return self._suite(statement.body, ends, Arm(statement, "body"))  # type: ignore[attr-defined]
        outer, catcher = self._catcher, self._add("handlers", None, statement, [])
        entered = self._add("except", statement, statement, [(catcher, None)])
        entered.thrown, entered.calls, entered.first, entered.last = None, (), 0, -1
        self._catcher = catcher
        ends = self._suite(statement.body, ends, Arm(statement, "body"))  # type: ignore[attr-defined]
        self._catcher = outer
        return [*ends, (entered, None)]

    def _match(self, statement: ast.AST, ends: _Ends) -> _Ends:
        left: _Ends = []
        ends = self._valued("", statement.subject, statement, ends)[1]  # type: ignore[attr-defined]
        for case in statement.cases:  # type: ignore[attr-defined]
            node = self._add("case", case, case, ends)
            is_any = case.guard is None and getattr(case.pattern, "pattern", case) is None
            left += self._suite(case.body, [(node, None if is_any else True)], Arm(case, "body"))
            ends = [] if is_any else [(node, False)]
        return left + ends

    # --- exceptions and jumps

    def _try(self, statement: ast.Try, ends: _Ends) -> _Ends:
        outer = self._catcher
        after = _Finally(statement.finalbody, outer, self._inside)
        behind = outer
        if statement.finalbody:
            behind = self._add("handlers", None, statement, [])
            behind.outer = outer or self._flow.escape
            self._around.append(after)
        catcher = self._add("handlers", None, statement, []) if statement.handlers else behind
        self._catcher = catcher
        ends = self._suite(statement.body, ends, Arm(statement, "body"))
        self._catcher = behind
        ends = self._suite(statement.orelse, ends, Arm(statement, "orelse"))
        for handler in statement.handlers:
            node = self._add("except", handler, handler, [(catcher, None)] if catcher is not None else [])
            ends = ends + self._suite(handler.body, [(node, None)], Arm(statement, "handler"))
        if statement.handlers and catcher is not None and not any(map(_catches_all, statement.handlers)):
            self._join([(catcher, None)], behind or self._flow.escape)
        self._catcher = outer
        if statement.finalbody:
            self._around.pop()
            ends = self._suite(statement.finalbody, ends, Arm(statement, "finalbody"))
            if behind is not None:
                thrown = self._suite(statement.finalbody, [(behind, None)], Arm(statement, "finalbody"))
                self._join(thrown, outer or self._flow.escape)
        return ends

    def _throw(self, ends: _Ends) -> None:
        self._join(ends, self._catcher or self._flow.escape)

    def _jump(self, statement: ast.stmt, node: FlowNode, ends: _Ends) -> _Ends:
        """Go where a jump goes, through each `finally` on the way."""
        node.kind = type(statement).__name__.lower()
        kept, catcher, inside = list(self._around), self._catcher, self._inside
        while self._around:
            around = self._around.pop()
            if isinstance(around, _Finally):
                self._catcher, self._inside = around.catcher, around.inside
                ends = self._suite(around.statements, ends)
            elif isinstance(around, _Loop) and not isinstance(statement, ast.Return):
                if isinstance(statement, ast.Break):
                    around.breaks.extend(ends)
                else:
                    self._join(ends, around.head, is_back=True)
                ends = []
                break
        if isinstance(statement, ast.Return):
            self._join(ends, self._flow.exit)
        self._around, self._catcher, self._inside = kept, catcher, inside
        return []


def _span(part: ast.AST) -> Tuple[int, int]:
    """Return the first and the last line of what a node evaluates itself."""
    if isinstance(part, (*FUNCTIONS, ast.ClassDef)):
        return min([part.lineno, *(decorator.lineno for decorator in part.decorator_list)]), part.lineno
    if isinstance(part, _LOOPS):
        return part.lineno, part.iter.end_lineno or part.lineno
    if isinstance(part, ast.ExceptHandler):
        return part.lineno, getattr(part.type, "end_lineno", part.lineno)
    lines = [_lines(root) for root in _roots(part)]
    lines = [pair for pair in lines if pair[0]]
    return min((first for first, _ in lines), default=0), max((last for _, last in lines), default=-1)


def _lines(part: ast.AST) -> Tuple[int, int]:
    first = getattr(part, "lineno", 0)
    return first, getattr(part, "end_lineno", None) or first


def _roots(part: ast.AST) -> List[ast.AST]:
    """Return the expressions that a node evaluates itself, without the suites of its statement."""
    if isinstance(part, (*FUNCTIONS, ast.ClassDef)):
        return list(part.decorator_list)
    if isinstance(part, _LOOPS):
        return [part.target, part.iter]
    if isinstance(part, ast.comprehension):
        return [part.target, part.iter]
    if isinstance(part, ast.withitem):
        return [part.context_expr]
    if isinstance(part, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in part.items]
    if isinstance(part, ast.ExceptHandler):
        return [part.type] if part.type is not None else []
    if hasattr(part, "pattern"):
        return [node for node in (part.pattern, getattr(part, "guard", None)) if node is not None]
    return [part]


def _without(roots: List[ast.AST], own: Set[int]) -> Iterator[ast.AST]:
    """Yield what is inside these nodes, without functions and without what is a node of the graph itself."""
    waiting = [root for root in roots if id(root) not in own]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting.extend(child for child in ast.iter_child_nodes(node) if id(child) not in own)


def _chooses(part: ast.AST) -> bool:
    """Tell whether an expression evaluates a call only at times."""
    choices = (node for node in own_nodes(iter([part])) if isinstance(node, (ast.BoolOp, ast.IfExp, *_COMPREHENSIONS)))
    return any(map(_calls, choices))


def _calls(part: ast.AST) -> bool:
    return any(isinstance(node, (ast.Call, ast.Await, ast.Yield)) for node in own_nodes(iter([part])))


def _ends_program(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    owner = getattr(getattr(function, "value", None), "id", "")
    return (owner, called(statement.value)) in _EXITS


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or getattr(handler.type, "id", "") in _EVERYTHING
