"""What decided, in programs that are made at random: real executions under different inputs say what is true."""

import ast
import itertools
import random
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ddp_probe.reading.job_source import JobFile
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.deciding import deciding
from ddp_probe.standing.source_trees import SourceTrees

_FILE = "made.py"
_BITS = 6
_LONG = 24
_MOST = 40  # Decisions of one run.
_Way = Tuple[LedgerSite, ...]
_Stack = Tuple[int, ...]
_Seen = Dict[_Stack, Tuple[bool, ...]]


class _FaultError(Exception):
    """What the program handles."""


class _EnoughError(BaseException):
    """The run has gone on for long enough."""


class _Entry(NamedTuple):
    way: _Way
    seen: _Seen  # What was decided between the entry before and this one: outcomes by line.


class _Execution:
    """Runs a program once. Each condition asks for the next bit of the input."""

    def __init__(self, bits: Tuple[bool, ...]) -> None:
        self.bits = list(bits)
        self.entries: List[_Entry] = []
        self.asked = 0
        self.seen: Dict[_Stack, List[bool]] = {}

    def run(self, program: Any) -> None:
        names = {
            "call": self.call,
            "random": self.random,
            "turns": self.turns,
            "load": self.load,
            "note": self.note,
            "Fault": _FaultError,
            "held": self,
        }
        try:
            exec(program, names)
            names["main"]()
        except (_EnoughError, _FaultError):  # What ends a program by an exception is known from that, not from its source.
            return
        self.entries.append(_Entry((), self._taken()))

    def _taken(self) -> _Seen:
        seen, self.seen = self.seen, {}
        return {stack: tuple(outcomes) for stack, outcomes in seen.items()}

    def _bit(self) -> bool:
        self.asked += 1
        if self.asked > _MOST:
            raise _EnoughError
        return self.bits.pop(0) if self.bits else False

    def __enter__(self) -> None:
        """Begin a block."""

    def __exit__(self, *exception: object) -> None:
        """End it."""

    def random(self) -> bool:
        outcome = self._bit()
        self.seen.setdefault(_lines(sys._getframe(1)), []).append(outcome)
        return outcome

    def turns(self) -> Iterator[int]:
        turn = 0
        while turn == 0 or self._bit():  # A first turn is always there.
            self.seen.setdefault(_lines(sys._getframe(1)), []).append(True)
            yield turn
            turn += 1
        self.seen.setdefault(_lines(sys._getframe(1)), []).append(False)

    def load(self) -> None:
        if self._bit():
            raise _FaultError

    def note(self) -> None:
        *callers, line = _lines(sys._getframe(1))
        self.seen.setdefault((*callers, line - 1), []).append(True)

    def call(self) -> None:
        self.asked += 1
        if self.asked > _MOST:
            raise _EnoughError
        sites = [LedgerSite(_FILE, frame.f_lineno, frame.f_code.co_name) for frame in _frames(sys._getframe(1))]
        self.entries.append(_Entry(tuple(sites), self._taken()))


def _frames(frame: Optional[Any]) -> List[Any]:
    """Return the frames of the program, the outermost first."""
    frames: List[Any] = []
    while frame is not None and frame.f_code.co_filename == _FILE:
        frames.insert(0, frame)
        frame = frame.f_back
    return frames


def _lines(frame: Any) -> _Stack:
    return tuple(each.f_lineno for each in _frames(frame))


def _suites(depth: int, in_loop: bool, helpers: int) -> Any:
    statements = [st.just(["call()"]), st.just(["print"]), st.just(["load()"])]
    statements += [st.just(["help%d()" % number]) for number in range(helpers)]
    if in_loop:
        statements += [st.just(["break"]), st.just(["continue"])]
    statements += [
        st.just(["return"]),
        st.just(["random() and call()"]),
        st.just(["random() or call()"]),
        st.just(["x = call() if random() else None"]),
    ]
    if depth:
        inner = _suites(depth - 1, in_loop, helpers)
        turn = _suites(depth - 1, True, helpers)
        statements += [
            inner.map(lambda suite: ["if random():", *_in(suite)]),
            inner.map(lambda suite: ["if not random():", *_in(suite)]),
            inner.map(lambda suite: ["with held:", *_in(suite)]),
            st.tuples(inner, inner).map(lambda two: ["if random():", *_in(two[0]), "else:", *_in(two[1])]),
            turn.map(lambda suite: ["while random():", *_in(suite)]),
            turn.map(lambda suite: ["for turn in turns():", *_in(suite)]),
            st.tuples(turn, inner).map(lambda two: ["for turn in turns():", *_in(two[0]), "else:", *_in(two[1])]),
            st.tuples(inner, inner).map(lambda two: ["try:", *_in(two[0]), "except Fault:", "    note()", *_in(two[1])]),
            st.tuples(inner, inner).map(lambda two: ["try:", *_in(two[0]), "finally:", *_in(two[1])]),
        ]
    return st.lists(st.one_of(statements), min_size=1, max_size=2).map(lambda suites: list(itertools.chain(*suites)))


def _in(lines: List[str]) -> List[str]:
    return ["    " + line for line in lines]


# The way from help0() past the last call takes ten choices in a row, which a few hundred runs may not make.
_RARE_WAY = """\
def help0():
    if random():
        random() and call()
    else:
        load()
    with held:
        return
        x = call() if random() else None
def help1():
    random() and call()
def main():
    if random():
        print
        x = call() if random() else None
    else:
        while random():
            break
        while random():
            help1()
            help0()
    if random():
        x = call() if random() else None
        for turn in turns():
            x = call() if random() else None
        else:
            x = call() if random() else None
            random() or call()
    else:
        print
        if random():
            print
        else:
            random() and call()
            call()
"""
_PROGRAMS = st.tuples(_suites(1, False, 0), _suites(1, False, 1), _suites(2, False, 2)).map(
    lambda three: "\n".join(["def help0():", *_in(three[0]), "def help1():", *_in(three[1]), "def main():", *_in(three[2]), ""])
)


def _executed(source: str) -> List[List[_Entry]]:
    return _runs(source, [*itertools.product((False, True), repeat=_BITS), *_inputs(0, 200)])


def _inputs(seed: int, count: int) -> List[Tuple[bool, ...]]:
    chance = random.Random(seed)
    return [tuple(chance.random() < 0.5 for _ in range(_LONG)) for _ in range(count)]


def _runs(source: str, inputs: Sequence[Tuple[bool, ...]]) -> List[List[_Entry]]:
    program = compile(source, _FILE, "exec")
    runs = []
    for bits in inputs:
        execution = _Execution(bits)
        execution.run(program)
        runs.append(execution.entries)
    return runs


_Following = Dict[Tuple[Optional[_Way], _Way], List[_Seen]]


def _followed(runs: List[List[_Entry]]) -> _Following:
    """Return what was decided on each way from one entry to the next, in all runs."""
    followed: _Following = {}
    for entries in runs:
        for before, after in zip(entries, entries[1:]):
            seen = followed.setdefault((before.way, after.way), [])
            if after.seen not in seen:
                seen.append(after.seen)
    return followed


@settings(deadline=None, max_examples=60, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(source=_PROGRAMS)
@example(source=_RARE_WAY)
def test_real_executions_agree(source: str) -> None:
    """The first statement went another way in some run to the one entry than in some run to the other, further ones at least to some other entry.

    The real one is among them.
    """
    is_caught = "except" in source or "finally" in source
    followed = _followed(_executed(source))
    sources = SourceTrees(2.0, lambda path: JobFile(source, 1.0))
    pairs = [(one, other) for one, other in itertools.combinations(followed, 2) if one[0] == other[0]]
    for (shared, one), (_, other) in pairs[:40]:
        answer = deciding(sources, one, other, shared)
        sides = (followed[shared, one], followed[shared, other])
        case = (source, [[site.line for site in way] for way in (shared or (), one, other)], answer)
        if answer is None:
            assert one == other or any(first in sides[1] for first in sides[0]), case  # Else it was decided before the shared entry.
            continue
        lines = {statement.line for statement in answer.statements}
        for line in () if is_caught else lines:  # A call here never raises, but might.
            went_apart = any(_differ(line, first, second) for first in sides[0] for second in sides[1])
            # A way on which another call comes first ends at that call, as it is recorded; the source does not say so.
            elsewhere = [seen for (before, _), seen_there in followed.items() if before == shared for seen in seen_there]
            is_further = line != answer.statements[0].line
            went_elsewhere = is_further and any(_differ(line, seen, third) for seen in (*sides[0], *sides[1]) for third in elsewhere)
            assert went_apart or went_elsewhere or _is_found(source, line, (shared, one), (shared, other)), (line, *case)
        for first, second in itertools.product(*sides):
            assert _returns_in_finally(source) or first == second or any(_differ(line, first, second) for line in lines), (first, second, *case)


def _is_found(source: str, line: int, one: Tuple[Optional[_Way], _Way], other: Tuple[Optional[_Way], _Way]) -> bool:
    """Tell whether more runs show that a line decided: a way through many choices is rare among a few hundred."""
    runs: List[List[_Entry]] = []
    for seed in range(1, 21):
        runs += _runs(source, _inputs(seed, 1000))
        followed = _followed(runs)
        if any(_differ(line, first, second) for first in followed.get(one, ()) for second in followed.get(other, ())):
            return True
    return False


def _differ(line: int, one: _Seen, other: _Seen) -> bool:
    stacks = [stack for stack in {*one, *other} if stack[-1] == line]
    return any(one.get(stack, ()) != other.get(stack, ()) for stack in stacks)


def _returns_in_finally(source: str) -> bool:
    """Tell whether a `finally` may swallow an exception: no statement of the source says so."""
    jumps = (ast.Return, ast.Break, ast.Continue)
    blocks = [node.finalbody for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Try)]
    return any(isinstance(node, jumps) for block in blocks for statement in block for node in ast.walk(statement))
