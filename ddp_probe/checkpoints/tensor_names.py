"""Compares the names of tensors: prefixes of wrappers, what one side has and the other lacks, and the renaming that explains it."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.checkpoints.judged import Tensor

WRAPPERS = ("module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.")
_USUAL = ("state_dict", "model", "model_state_dict", "module", "model_state", "net", "network", "weights", "params", "ema_state_dict", "")


def model_state(tensors: List[Tensor], states: Dict[str, int]) -> Dict[str, Tensor]:
    """Return the tensors of the model by the names that load_state_dict takes: those of the usual mapping, else of the largest one."""
    if not states:
        return {tensor.name: tensor for tensor in tensors}
    within = chosen(states)
    return {tensor.name[len(within) + 1 if within else 0 :]: tensor for tensor in tensors if _is_in(tensor.name, within)}


def chosen(states: Dict[str, int]) -> str:
    """Return the path of the mapping that holds the model's tensors; empty for the top."""
    usual = next((name for name in _USUAL if states.get(name)), None)
    if usual is not None or not states:
        return usual or ""
    return max(states, key=lambda name: (not name.startswith("optim"), states[name]))


def _is_in(name: str, chosen: str) -> bool:
    return not chosen or name.startswith(chosen + ".")


def prefixes(state: Dict[str, Tensor]) -> Dict[str, int]:
    """Return how many names begin with a wrapper's prefix, and under '' how many do not; empty if none does."""
    counts: Dict[str, int] = {}
    for name in state:
        prefix, rest = "", name
        while rest.startswith(WRAPPERS):
            outer = next(outer for outer in WRAPPERS if rest.startswith(outer))
            prefix, rest = prefix + outer, rest[len(outer) :]
        counts[prefix] = counts.get(prefix, 0) + 1
    return counts if set(counts) - {""} else {}


class Renaming(NamedTuple):
    """What the names in the file have, what those of the model have in its place, and whether they begin with it."""

    old: str
    new: str
    begins: bool
    names: int  # How many it explains.

    @property
    def wrapper(self) -> str:
        """Return the prefix of a wrapper that one of them has and the other lacks."""
        short, long = sorted((self.old, self.new), key=len)
        return next((prefix for prefix in WRAPPERS if long.replace(prefix, "", 1) == short), "")

    @property
    def in_file(self) -> bool:
        """Tell whether the file has the part that the model lacks."""
        return len(self.old) > len(self.new)

    def expression(self, state: str) -> str:
        """Return Python source for the state under the model's names."""
        if self.begins:
            new = "%r + " % self.new if self.new else ""
            if not self.old:
                return "{%sname: value for name, value in %s.items()}" % (new, state)
            name = "%sname[%d:] if name.startswith(%r) else name" % (new, len(self.old), self.old)
        else:
            name = "name.replace(%r, %r, 1)" % (self.old, self.new)
        return "{%s: value for name, value in %s.items()}" % (name, state)

    def changed(self, name: str) -> str:
        """Return the name that the model has for one of the file's."""
        return _changed(name, self.old, self.new, self.begins)


def _changed(name: str, old: str, new: str, begins: bool) -> str:
    if begins:
        return new + name[len(old) :] if name.startswith(old) else name
    return name.replace(old, new, 1)


def candidates(theirs: str, ours: str) -> List[Tuple[str, str, bool]]:
    """Return the parts in which two names differ: with all that comes before them, and as a part at any position."""
    here, other = theirs.split("."), ours.split(".")
    same = 0
    while same < min(len(here), len(other)) and here[same] == other[same]:
        same += 1
    tail = 0
    while tail < min(len(here), len(other)) - same and here[-1 - tail] == other[-1 - tail]:
        tail += 1
    old, new = here[same : len(here) - tail], other[same : len(other) - tail]
    if not tail:
        return []
    before = here[:same]
    anchored = ("".join(part + "." for part in before + old), "".join(part + "." for part in before + new), True)
    inside = ("." + "".join(part + "." for part in old), "." + "".join(part + "." for part in new), False)
    return [("".join(part + "." for part in old), "".join(part + "." for part in new), True), anchored] if not before else [anchored, inside]


def renaming(unexpected: Sequence[str], missing: Sequence[str]) -> Optional[Renaming]:
    """Return the renaming that turns all of the file's names into those that the model misses; None if there is none."""
    if not missing or len(missing) != len(unexpected):
        return None
    for old, new, begins in candidates(unexpected[0], missing[0]):
        if (old or begins) and sorted(_changed(name, old, new, begins) for name in unexpected) == sorted(missing):
            return Renaming(old, new, begins, len(missing))
    return None


Shapes = Dict[str, Tuple[int, ...]]
_TRIES = 200  # Names of the file that are compared with the first one that is missing.


def explain(mine: Shapes, wanted: Shapes, *, exact: bool) -> Optional[Renaming]:
    """Return the renaming after which the file has every name that is wanted, in its shape; if exact, it has no others."""
    missing = [name for name in wanted if name not in mine]
    rest = [name for name in mine if name not in wanted]
    if not missing:
        return None
    last = missing[0].rpartition(".")[2]
    alike = [name for name in rest if name.rpartition(".")[2] == last and mine[name] == wanted[missing[0]]][:_TRIES]
    tried: Set[Tuple[str, str, bool]] = set()
    for name in alike:
        for candidate in candidates(name, missing[0]):
            if candidate not in tried and (candidate[0] or candidate[2]) and _explains(candidate, mine, wanted, exact=exact):
                return Renaming(*candidate, names=len(missing))
            tried.add(candidate)
    return None


def _explains(candidate: Tuple[str, str, bool], mine: Shapes, wanted: Shapes, *, exact: bool) -> bool:
    renamed = {_changed(name, *candidate): shape for name, shape in mine.items()}
    if len(renamed) != len(mine) or (exact and len(renamed) != len(wanted)):
        return False
    return all(renamed.get(name) == shape for name, shape in wanted.items())
