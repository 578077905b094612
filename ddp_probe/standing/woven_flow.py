"""The graphs of all functions that some ways pass through, joined where one calls the next: the ways of two ranks in one graph."""

import ast
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.flow import Flow, FlowEdge, FlowNode, FlowTooLargeError
from ddp_probe.standing.source_trees import Function, SourceModule, SourceTrees, called, is_generator

Way = Tuple[LedgerSite, ...]

_DEEPEST = 40  # Functions inside each other.
_GENERATORS = 3
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
# What a frame is named that a call of something else leads to, once for each call.
_UNNAMED = frozenset(
    "forward __call__ __init__ __enter__ __exit__ __iter__ __next__ __getitem__ __len__ __del__ <lambda> wrapper inner wrapped".split()
)


_LINE: Way = (LedgerSite(),)  # Of a way that ends in the function at hand.


class Frame(NamedTuple):
    """One function of the joined graph, at one place of the ways."""

    file: str
    module: SourceModule
    flow: Flow


class _Branch(NamedTuple):
    """A way from some frame on, and which way it is."""

    way: Way
    label: int


class WovenFlow:
    """The joined graph. `ends[label]` are the nodes in which a way ends; empty if it does not end in this source."""

    def __init__(self, sources: SourceTrees, ways: Sequence[Way], is_doubted: bool = False) -> None:
        """is_doubted: a call may also come by the function that it seems to lead to: a hook, a cached function, another decorator."""
        self._sources = sources
        self._is_doubted = is_doubted
        self.frame_of: Dict[FlowNode, Frame] = {}
        self.ends: List[List[FlowNode]] = [[] for _ in ways]
        self.loop_of: Dict[int, FlowNode] = {}  # By the graph of a generator: the loop over it.
        self.root: Optional[Frame] = None
        branches = [_Branch(way, label) for label, way in enumerate(ways)]
        try:
            self.root = self._weave(branches, False, 0)
        except (FlowTooLargeError, RecursionError):
            self.root = None

    @property
    def nodes(self) -> List[FlowNode]:
        """Return every node."""
        return list(self.frame_of)

    def _weave(self, branches: Sequence[_Branch], is_caught: bool, depth: int) -> Optional[Frame]:
        """Return the graph of a function with those of what it calls on these ways; None if its source is not here."""
        sites = [branch.way[0] for branch in branches if branch.way[0].line]
        functions = {id(function): function for function in map(self._sources.function, sites)}
        module = self._sources.unchanged(sites[0].file) if sites else None
        function = next(iter(functions.values()), None)
        if len(functions) != 1 or function is None or module is None or depth > _DEEPEST:
            return None
        frame = self._frame(sites[0].file, module, function, is_caught)
        calls: Dict[FlowNode, List[_Branch]] = {}
        for branch in branches:
            if not self._place(frame, branch, calls):
                return None
        for node in frame.flow.nodes:
            if node.kind == "for" and node.is_first and node not in calls:
                self._generator_by_name(frame, node, depth)
        for node, inside in calls.items():
            if not node.is_resumed and not self._join(frame, node, inside, is_caught, depth):
                return None
        return frame

    def _frame(self, file: str, module: SourceModule, function: Function, is_caught: bool) -> Frame:
        flow = Flow(function)
        frame = Frame(file, module, flow)
        for node in flow.nodes:
            self.frame_of[node] = frame
            if is_caught and node.raises and node.thrown is None:
                node.thrown = flow.escape
        if len(self.frame_of) > 200_000:
            raise FlowTooLargeError
        return frame

    def _place(self, frame: Frame, branch: _Branch, calls: Dict[FlowNode, List[_Branch]]) -> bool:
        """Find the node of a way's first line; False if no node is there."""
        site, inner = branch.way[0], branch.way[1:]
        if not site.line:
            self.ends[branch.label] += [frame.flow.exit, frame.flow.escape]
            return True
        nodes = frame.flow.at(site.line, inner[0].function if inner else "", site.arm)
        if not nodes:
            return False
        if not inner:
            self.ends[branch.label] += nodes
            for node in nodes:
                if node in calls:
                    calls[node].append(branch)
            return True
        for node in nodes:
            calls.setdefault(node, [_Branch(_LINE, label) for label in self._ending(node)]).append(branch)
        return True

    def _ending(self, node: FlowNode) -> List[int]:
        return [label for label, nodes in enumerate(self.ends) if node in nodes]

    # --- calls

    def _join(self, frame: Frame, node: FlowNode, branches: Sequence[_Branch], is_caught: bool, depth: int) -> bool:
        """Put the functions that a node calls in its place."""
        own = [branch for branch in branches if len(branch.way) < 2]
        groups: Dict[object, List[_Branch]] = {}
        for branch in branches:
            if len(branch.way) > 1:
                inner = branch.way[1:]
                groups.setdefault(self._callee(inner[0]), []).append(branch._replace(way=inner))
        is_caught = is_caught or node.thrown is not None
        children = []
        for group in groups.values():
            child = self._weave(group, is_caught, depth + 1)
            if child is None:
                return False
            child.flow.escape.after.append(FlowEdge(node.thrown or frame.flow.escape))
            children.append((group[0].way[0], child))
        if len(children) == 1 and node.is_first and is_generator(children[0][1].flow.function):
            self._turn_by_turn(frame, node, children[0][1])
            return True
        rest = self._split(frame, node)
        names = [site.function.rpartition(".")[2] for site, _ in children]
        is_doubted = self._is_doubted and any(self._may_be_left_out(site, child) for site, child in children)
        if not is_doubted and not own and all(name in node.calls for name in names) and len(set(names)) == len(names):
            children.sort(key=lambda pair: node.calls.index(pair[0].function.rpartition(".")[2]))
            self._in_turn(node, [child for _, child in children], rest)
            return True
        is_direct = not is_doubted and len(children) == 1 and self._is_direct(frame, node, children[0][0])
        if is_direct and not own:
            self._in_turn(node, [children[0][1]], rest)
            return True
        self._by_choice(frame, node, [child for _, child in children], rest, own, is_direct, is_doubted)
        return True

    def _callee(self, site: LedgerSite) -> object:
        function = self._sources.function(site) if site.line else None
        return site.file, id(function) if function is not None else site.function

    def _is_direct(self, frame: Frame, node: FlowNode, site: LedgerSite) -> bool:
        """Tell whether a call leads to this function once, and not to a library that calls it as often as it likes."""
        name = site.function.rpartition(".")[2]
        if name in node.calls or name in _UNNAMED or _is_of_container(node):
            return True
        return any(frame.module.named(called_name) is not None for called_name in node.calls if called_name)

    @staticmethod
    def _may_be_left_out(site: LedgerSite, child: Frame) -> bool:
        """Tell whether something else may stand between a call and this function, and answer in its place."""
        decorators = getattr(child.flow.function, "decorator_list", [])
        return bool(decorators) or site.function.rpartition(".")[2] in _UNNAMED

    def _split(self, frame: Frame, node: FlowNode) -> FlowNode:
        """Take from a node what follows its calls, and return that as a node of its own."""
        rest = node.copy(node.kind)
        rest.after, node.after = node.after, []
        rest.calls, rest.raises = (), False
        node.kind = ""
        self.frame_of[rest] = frame
        return rest

    @staticmethod
    def _in_turn(node: FlowNode, children: Sequence[Frame], rest: FlowNode) -> None:
        for child in children:
            node.after.append(FlowEdge(child.flow.entry))
            node = child.flow.exit
        node.after.append(FlowEdge(rest))

    def _by_choice(
        self, frame: Frame, node: FlowNode, children: Sequence[Frame], rest: FlowNode, own: Sequence[_Branch], is_direct: bool, is_doubted: bool
    ) -> None:
        """Let a node call these functions in any order and as often as it likes, as a loop of a library or of callbacks does."""
        over = node.copy("" if is_direct else "call")
        choice = node.copy("" if own or is_direct else "call")
        self.frame_of.update({over: frame, choice: frame})
        node.after.append(FlowEdge(choice))
        over.after = [FlowEdge(choice, True), FlowEdge(rest, False)]
        for child in children:
            choice.after.append(FlowEdge(child.flow.entry, True if is_doubted else None))
            child.flow.exit.after.append(FlowEdge(over))
        if is_doubted:
            choice.after.append(FlowEdge(rest, False))
        if own:
            itself = node.copy("")
            self.frame_of[itself] = frame
            choice.after.append(FlowEdge(itself))
            itself.after.append(FlowEdge(over))
            itself.thrown = node.thrown
            for branch in own:
                self.ends[branch.label] = [itself if each is node else each for each in self.ends[branch.label]]

    # --- generators

    def _generator_by_name(self, frame: Frame, node: FlowNode, depth: int) -> None:
        """Put a generator of the same file in the place of the loop over it."""
        if not isinstance(node.part, (ast.For, ast.AsyncFor)) or depth > _GENERATORS:
            return
        for call in ast.walk(node.part.iter):
            function = frame.module.named(called(call)) if isinstance(call, ast.Call) else None
            if function is not None and is_generator(function) and function is not frame.flow.function:
                self._turn_by_turn(frame, node, self._frame(frame.file, frame.module, function, node.thrown is not None))
                return

    def _turn_by_turn(self, frame: Frame, first: FlowNode, generator: Frame) -> None:
        """Let a loop go on behind each `yield` of a generator, and end when that returns."""
        loop = first.copy("for")
        self.loop_of[id(generator.flow)] = loop
        self.frame_of[loop] = frame
        head = first.again
        turn = [edge for edge in first.after if edge.taken]
        over = [edge for edge in first.after if not edge.taken]
        first.kind, first.is_first, first.after = "", False, [FlowEdge(generator.flow.entry)]
        resumed: List[FlowEdge] = []
        for node in generator.flow.nodes:
            if node.yields:
                resumed += node.after
                node.after = turn
        generator.flow.exit.after += over
        if head is not None:
            head.kind, head.after, head.is_resumed = "", resumed, True


def _is_of_container(node: FlowNode) -> bool:
    """Tell whether a line calls what it takes from a container, as WAYS[name](run) does: that is called there, once."""
    calls = (call for call in ast.walk(node.part) if isinstance(call, ast.Call)) if node.part is not None else ()
    return any(isinstance(call.func, ast.Subscript) for call in calls)


def without_comprehensions(way: Way) -> Way:
    """Return a way without the frames that comprehensions have before Python 3.12: their lines belong to the function around."""
    sites: List[LedgerSite] = []
    for site in way:
        if site.function.rpartition(".")[2] not in _COMPREHENSIONS:
            sites.append(site)
        elif sites and sites[-1].file == site.file:
            sites[-1] = sites[-1]._replace(line=site.line)
    return tuple(sites)
