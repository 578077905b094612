"""Which statement of the job took two ranks apart: what lies between the last entry that both share and the first that differs.

A statement that branches decides if on one of its ways the one rank's next line comes first, and on another the other rank's.
"""

import ast
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.conditions import hint_of, names_in
from ddp_probe.standing.flow import FlowEdge, FlowNode
from ddp_probe.standing.source_trees import Function, SourceModule, SourceTrees
from ddp_probe.standing.source_trees import called as name_called
from ddp_probe.standing.woven_flow import Way, WovenFlow, without_comprehensions

LONGEST_TEXT = 200  # Characters of a statement.
_FAR = 1 << 30
_MOST = 60  # Branches that are shown: the nearest.
_BRANCHES = frozenset("if while for and or conditional case call raise".split())
_PASSES_ON = frozenset(("enumerate", "tqdm", "trange", "iter", "track", "DataLoader"))  # What takes a batch for each that it gives.
_KINDS = {"case": "if"}
_WORDS = {"if": "if", "while": "while", "except": "except", "case": "case", "raise": "assert"}


class Statement(NamedTuple):
    """A statement of the job that can have decided."""

    file: str
    line: int
    kind: str  # if, while, for (its end), except (it was entered), and, or, conditional, raise (of an assert), call (of what is not in the source)
    text: str  # Its condition, in one line.
    names: Tuple[str, ...]  # Whose values the condition asks for.
    hint: str  # What the condition depends on: clock, random, file, finite, metric, rank, exception, data; empty if it does not show it.
    function: str = ""
    taken: Tuple[Optional[bool], Optional[bool]] = (None, None)  # Of each side: whether the condition was true; None if both can lead there.
    jump: str = ""  # What the arm of one side ends with: break, continue, return, raise.
    jump_line: int = 0
    side: int = -1  # The side that jumped, that came to the `except`, or to what a call leads to: 0 or 1; -1 if it is neither, or not known.


class KnownLoops(NamedTuple):
    """What the entries of the ranks tell of loops."""

    is_over: bool = False  # The shared entry is the end of the loop that it is in.
    loaders: FrozenSet[Tuple[str, int]] = frozenset()  # The lines that have asked a DataLoader for batches, if no rank came to its end there.


class Deciding(NamedTuple):
    """The place at which two ways part: the function that both pass through last, their lines in it, and the statements that can have decided."""

    function: str
    file: str
    statements: Tuple[Statement, ...]  # The most likely first.
    is_sure: bool  # One statement is left.
    one_line: int  # 0 if the rank has left the function.
    other_line: int
    loop: Optional[Statement] = None  # Over the generator that all of the statements are in, or over what they call.


def deciding(source: SourceTrees, one: Way, other: Way, shared: Optional[Way] = None, known: Optional[KnownLoops] = None) -> Optional[Deciding]:
    """Return what can have taken two ranks apart; None if the source does not show it.

    The ways are those of each rank's next entry, and of the last entry that both share. A way that has ended has line 0 for the
    function that has returned; an empty way is a program that has ended. `known` is what the entries tell of loops.
    """
    ways = [without_comprehensions(one), without_comprehensions(other)]
    if ways[0] == ways[1]:
        return None
    three = [*ways, without_comprehensions(shared)] if shared is not None else ways
    deepest = _depth(source, three)
    if deepest is None and shared is not None:
        three, deepest = ways, _depth(source, ways)  # The shared entry is of another thread, or of a callback.
    for depth in range(deepest, -1, -1) if deepest is not None else ():
        answer = _between(source, three, depth, known or KnownLoops())
        if answer is not None:
            return answer  # Else one rank may have left the function and come to it again.
    return None


def _depth(source: SourceTrees, ways: Sequence[Way]) -> Optional[int]:
    """Return how many outer frames the ways share, up to the innermost function that all pass through."""
    longest = max(ways, key=len)
    depth = 0
    while depth < len(longest) and all(way[depth : depth + 1] == longest[depth : depth + 1] for way in ways):
        depth += 1
    while depth >= 0:
        if _in_one_function(source, [way[depth] if depth < len(way) else None for way in ways], is_outermost=not depth):
            return depth
        depth -= 1
    return None


def _in_one_function(source: SourceTrees, sites: Sequence[Optional[LedgerSite]], is_outermost: bool) -> bool:
    standing = [site for site in sites if site is not None]
    if len(standing) < len(sites) and not is_outermost:
        return False
    functions = {id(source.function(site)) if source.function(site) is not None else 0 for site in standing if site.line}
    names = {(site.file, site.function) for site in standing}
    return len(functions) == 1 and len(names) == 1 and 0 not in functions


def _between(source: SourceTrees, ways: Sequence[Way], depth: int, known: KnownLoops) -> Optional[Deciding]:
    """Return what decided in the function at this depth of the ways, and in those inside it."""
    inner = [way[depth:] for way in ways]
    inside = [way[0] for way in inner if way]
    root = inside[0]
    whole = [way or (root._replace(line=0),) for way in inner]
    statements: List[Statement] = []
    # A `for` without a turn is rare, and so is a call that does not lead where it seems to: they are asked about if nothing else can have decided.
    for has_turns, is_doubted in ((True, False), (False, False), (True, True)):
        woven = WovenFlow(source, whole, is_doubted)
        if woven.root is None:
            return None
        search = _Search(woven, has_turns, known)
        statements = search.statements()
        if statements:
            break
    if not statements:
        return None
    common = _depth(source, ways[:2])
    sites = [way[common] if common is not None and common < len(way) else root._replace(line=0) for way in ways[:2]]
    site = next((each for each in sites if each.line), root)
    return Deciding(site.function, site.file, tuple(statements), len(statements) == 1, sites[0].line, sites[1].line, search.loop())


class _Choice(NamedTuple):
    """A node that can have decided, where both sides went from it, and what to show of it."""

    node: FlowNode
    taken: Tuple[Optional[bool], Optional[bool]]
    arms: Tuple[FlowNode, ...]


class _Search:
    """Asks of each branch of a joined graph whether it can have decided."""

    def __init__(self, woven: WovenFlow, has_turns: bool, known: KnownLoops) -> None:
        self._woven = woven
        self._known = known
        self._has_turns = has_turns
        self._loops: List[Optional[FlowNode]] = []  # Of each statement that can have decided: the loop over its generator.
        self._before: Dict[FlowNode, List[FlowNode]] = {node: [] for node in woven.nodes}
        for node in woven.nodes:
            for after in self._all_after(node):
                self._before[after].append(node)
        one, other = woven.ends[0], woven.ends[1]
        self._ends = (set(one) - set(other), set(other) - set(one))
        self._starts = woven.ends[2] if len(woven.ends) > 2 else []
        self._stops = self._ends[0] | self._ends[1] | set(self._starts)
        self._far = tuple(self._distances(ends) for ends in self._ends)

    def _distances(self, ends: Set[FlowNode]) -> Dict[FlowNode, int]:
        """Return how far each node is from these, on ways that pass by no end and no start."""
        far = dict.fromkeys(ends, 0)
        level = list(ends)
        while level:
            behind = []
            for node in level:
                for before in self._before[node]:
                    if before not in far and before not in self._stops:
                        far[before] = far[node] + 1
                        behind.append(before)
            level = behind
        return far

    def statements(self) -> List[Statement]:
        """Return the statements that can have decided, the most likely first."""
        if not self._ends[0] or not self._ends[1]:
            return []
        ranked: Dict[Tuple[str, int], Tuple[Tuple[int, int], Statement]] = {}
        choices = [(self._distance(node), choice) for node in self._reached() for choice in self._choices(node)]
        for distance, choice in sorted(choices, key=lambda pair: pair[0])[:_MOST]:
            statement = self._statement(choice)
            if statement is None:
                continue
            self._loops.append(self._loop_of(choice.node))
            weight = (_likely(statement), distance)
            key = (statement.file, statement.line)
            if key not in ranked or weight < ranked[key][0]:
                ranked[key] = (weight, statement)
        statements = [statement for _, statement in sorted(ranked.values(), key=lambda pair: pair[0])]
        # Callbacks are called in one order on all ranks, as a rule: a condition inside one is the better answer.
        return [statement for statement in statements if statement.kind != "call"] or statements

    def loop(self) -> Optional[Statement]:
        """Return the loop whose turns differ, if all that can have decided is in its generator, or is a call of what the loop goes over."""
        loop = self._loops[0] if self._loops else None
        if loop is None or any(other is not loop for other in self._loops):
            return None
        return self._statement(_Choice(loop, (None, None), ()))

    def _loop_of(self, node: FlowNode) -> Optional[FlowNode]:
        """Return the loop over the generator that a node is in, or the loop that gives a call what it calls."""
        frame = self._woven.frame_of[node]
        generator = self._woven.loop_of.get(id(frame.flow))
        if generator is not None or node.kind != "call" or node.part is None:
            return generator
        called = {name.id for call in ast.walk(node.part) if isinstance(call, ast.Call) for name in ast.walk(call.func) if isinstance(name, ast.Name)}
        for arm in reversed(node.inside):
            loop = arm.owner
            if not isinstance(loop, (ast.For, ast.AsyncFor)):
                continue
            targets = {name.id for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
            if targets & called:
                return next((other for other in frame.flow.nodes if other.part is loop and other.kind == "for"), None)
        return None

    def _reached(self) -> List[FlowNode]:
        """Return the nodes that a rank can come by behind the shared entry; all of them if there is none."""
        if not self._starts:
            return self._woven.nodes
        over = [edge.node for node in self._starts if node.kind == "for" for edge in node.after if edge.taken is False]
        waiting = over if self._known.is_over and over else list(self._starts)
        reached = dict.fromkeys(waiting)
        while waiting:
            node = waiting.pop()
            for after in self._all_after(node):
                if after not in reached and after not in self._stops:
                    reached[after] = None
                    waiting.append(after)
        return list(reached)

    def _edges(self, node: FlowNode) -> List[FlowEdge]:
        if node.is_first and self._has_turns:
            return [edge for edge in node.after if edge.taken]
        if node.kind == "for" and self._known.loaders and self._goes_over_a_loader(node):
            return [edge for edge in node.after if edge.taken]  # Its end would be an entry of its own.
        return node.after

    def _goes_over_a_loader(self, node: FlowNode) -> bool:
        """Tell whether a loop goes over a DataLoader that has been asked for batches at this line, with nothing in between that may end it."""
        over = getattr(node.part, "iter", None)
        if over is None or (self._woven.frame_of[node].file, getattr(node.part, "lineno", 0)) not in self._known.loaders:
            return False
        return all(name_called(call) in _PASSES_ON for call in ast.walk(over) if isinstance(call, ast.Call))

    def _all_after(self, node: FlowNode) -> List[FlowNode]:
        after = [edge.node for edge in self._edges(node)]
        return [*after, node.thrown] if node.thrown is not None else after

    def _leads(self, node: FlowNode) -> Tuple[bool, bool]:
        return node in self._far[0], node in self._far[1]

    def _distance(self, node: FlowNode) -> int:
        steps = [min((far[after] for after in self._all_after(node) if after in far), default=_FAR) for far in self._far]
        return sum(steps)

    def _choices(self, node: FlowNode) -> Iterator[_Choice]:
        edges = self._edges(node)
        after = [edge.node for edge in edges]
        if node.kind in _BRANCHES and not _is_fixed(node) and self._part(after):
            yield _Choice(node, self._taken(edges), tuple(after))
        if node.thrown is not None:
            yield from self._entered(node.thrown, after)
        elif node.kind == "raise" and isinstance(node.part, ast.Raise):
            yield from self._entered(after[0], [])

    def _part(self, after: Sequence[FlowNode]) -> bool:
        """Tell whether these ways lead to the two sides, and not all of them alike."""
        leads = {self._leads(node) for node in after} - {(False, False)}
        return len(leads) > 1 and any(first for first, _ in leads) and any(second for _, second in leads)

    def _entered(self, node: FlowNode, usual: Sequence[FlowNode]) -> Iterator[_Choice]:
        """Yield the handlers that take a rank elsewhere than it goes without an exception."""
        handlers = _handlers(node)
        leading = [each for each in usual if any(self._leads(each))]
        for handler in handlers:
            others = leading or [other for other in handlers if other is not handler]
            if self._leads(handler) not in set(map(self._leads, others)) and self._part([handler, *others]):
                rest = [FlowEdge(each, False) for each in others]
                yield _Choice(handler, self._taken([FlowEdge(handler, True), *rest]), (handler,))

    def _taken(self, edges: Sequence[FlowEdge]) -> Tuple[Optional[bool], Optional[bool]]:
        sides: List[Optional[bool]] = []
        for far in self._far:
            ways = {edge.taken for edge in edges if edge.node in far}
            sides.append(ways.pop() if len(ways) == 1 else None)
        return sides[0], sides[1]

    def _statement(self, choice: _Choice) -> Optional[Statement]:
        node, frame = choice.node, self._woven.frame_of[choice.node]
        shown = _shown(node)
        if shown is None:
            return None
        line, parts = shown
        kind = _KINDS.get(node.kind, node.kind)
        jump, jump_line = _jump(choice.arms)
        function = frame.flow.function
        hint = "exception" if kind == "except" else _hint(kind, parts, function, frame.module)
        return Statement(
            frame.file,
            line,
            kind,
            _text(node, parts, frame.module),
            names_in(parts, frame.module),
            hint,
            getattr(function, "name", "<module>"),
            choice.taken,
            jump,
            jump_line,
            self._side(choice, kind),
        )

    def _side(self, choice: _Choice, kind: str) -> int:
        """Return the side that the arm with a jump leads to, or the handler; -1 if that is not one side alone."""
        if kind in ("except", "call"):
            return choice.taken.index(True) if choice.taken.count(True) == 1 else -1
        jumps = [_jump([arm]) for arm in choice.arms]
        if len(jumps) > 1 and all(jump == jumps[0] for jump in jumps):
            return -1  # Both arms come to one jump, as those of a conditional expression in a `return`.
        for arm, (jump, _) in zip(choice.arms, jumps):
            leads = self._leads(arm)
            if leads[0] != leads[1] and jump:
                return leads.index(True)
        return -1


def _hint(kind: str, parts: Sequence[ast.AST], function: Function, module: SourceModule) -> str:
    return "" if kind == "call" else hint_of(parts, function, module)


def _likely(statement: Statement) -> int:
    """Return 0 for what depends on a rank's own values, more for what is alike on all ranks more often."""
    if statement.kind == "except" or (statement.kind == "for" and statement.hint):
        return 1
    if statement.kind == "call":
        return 3
    return 0 if statement.hint else 2


def _handlers(node: FlowNode) -> List[FlowNode]:
    """Return the `except` clauses that an exception can come to from here."""
    handlers, seen, waiting = [], {node}, [node]
    while waiting:
        node = waiting.pop()
        if node.kind == "except":
            handlers.append(node)
            continue
        for edge in node.after:
            if edge.node not in seen and node.kind in ("handlers", "escape"):
                seen.add(edge.node)
                waiting.append(edge.node)
        if node.outer is not None and node.outer not in seen:
            seen.add(node.outer)
            waiting.append(node.outer)
    return handlers


def _is_fixed(node: FlowNode) -> bool:
    """Tell whether a loop has equally many turns on all ranks: it goes over what is written there."""
    over = getattr(node.part, "iter", None)
    if isinstance(over, (ast.List, ast.Tuple)):
        return not any(isinstance(element, ast.Starred) for element in over.elts)
    if not isinstance(over, ast.Call) or getattr(over.func, "id", "") != "range":
        return False
    return all(isinstance(argument, ast.Constant) for argument in over.args)


def _shown(node: FlowNode) -> Optional[Tuple[int, List[ast.AST]]]:
    """Return the line by which a statement is named, and its condition."""
    part, owner, whole = node.part, node.owner, node.whole
    if part is None:
        return None
    if isinstance(part, (ast.For, ast.AsyncFor)):
        return part.lineno, [part.iter]
    if isinstance(part, ast.comprehension):
        return part.iter.lineno, [part.iter]
    if isinstance(part, ast.ExceptHandler):
        return part.lineno, [part.type] if part.type is not None else []
    if whole is not None:
        is_test = isinstance(owner, (ast.If, ast.While, ast.Assert)) and owner.test is whole
        condition = whole.test if isinstance(whole, ast.IfExp) else whole
        return getattr(owner if is_test else condition, "lineno", node.first), [condition]
    return node.first or getattr(part, "lineno", 0), [part]


def _jump(arms: Sequence[FlowNode]) -> Tuple[str, int]:
    """Return what one of the arms of a decision ends with."""
    for arm in arms:
        node: Optional[FlowNode] = arm
        while node is not None:
            if node.kind in ("return", "break", "continue", "raise") and isinstance(node.part, ast.stmt):
                return node.kind, node.first
            is_straight = len(node.after) == 1 and not node.after[0].is_back
            node = node.after[0].node if is_straight else None
    return "", 0


def _text(node: FlowNode, parts: Sequence[ast.AST], module: SourceModule) -> str:
    part = node.part
    said = " ".join(filter(None, map(module.said, [node.whole] if node.whole is not None else parts)))
    if isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
        said = "for %s in %s" % (module.said(part.target), said)
    elif node.kind in _WORDS:
        said = ("%s %s" % (_WORDS[node.kind], said)).strip()
    return said[:LONGEST_TEXT]
