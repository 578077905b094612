"""The one renaming that turns the names in a checkpoint into the model's, told from what load_state_dict says about both."""

import re
from typing import List, NamedTuple, Optional, Tuple

from ddp_probe.diagnose import change
from ddp_probe.schema import Site

WRAPPERS = ("module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.")
_LIST = r"%s key\(s\) in (?:source )?state_dict: (?P<names>\"[^\"]+\"(?:, \"[^\"]+\")*)\."


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
        return next((each for each in WRAPPERS if long.replace(each, "", 1) == short), "")

    @property
    def in_file(self) -> bool:
        """Tell whether the file has the part that the model lacks."""
        return len(self.old) > len(self.new)

    def edit(self, site: Optional[Site]) -> change.Argument:
        """Return the change: the state under the model's names."""
        if self.begins:
            new = "%r + " % self.new if self.new else ""
            if not self.old:
                return change.Argument(site, change.LOAD_STATE, "state_dict", "{%sname: value for name, value in $was.items()}" % new, 0, was="state")
            name = "%sname[%d:] if name.startswith(%r) else name" % (new, len(self.old), self.old)
        else:
            name = "name.replace(%r, %r, 1)" % (self.old, self.new)
        return change.Argument(site, change.LOAD_STATE, "state_dict", "{%s: value for name, value in $was.items()}" % name, 0, was="state")


def renaming(message: str) -> Optional[Renaming]:
    """Return the renaming that explains all names of both lists; None if there is none, or if a list was cut."""
    missing, unexpected = _names("Missing", message), _names("Unexpected", message)
    if not missing or len(missing) != len(unexpected) or "size mismatch" in message:
        return None
    for old, new, begins in _candidates(unexpected[0], missing[0]):
        if (old or begins) and sorted(_changed(name, old, new, begins) for name in unexpected) == sorted(missing):
            return Renaming(old, new, begins, len(missing))
    return None


def _changed(name: str, old: str, new: str, begins: bool) -> str:
    if begins:
        return new + name[len(old) :] if name.startswith(old) else name
    return name.replace(old, new, 1)


def _names(which: str, message: str) -> List[str]:
    found = re.search(_LIST % which, message)
    return re.findall(r"\"([^\"]+)\"", found.group("names")) if found else []


def _candidates(theirs: str, ours: str) -> List[Tuple[str, str, bool]]:
    """Return the parts in which two names differ: with all that comes before them, and as a part at any position."""
    one, other = theirs.split("."), ours.split(".")
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    tail = 0
    while tail < min(len(one), len(other)) - same and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    old, new = one[same : len(one) - tail], other[same : len(other) - tail]
    if not tail:
        return []
    before = one[:same]
    anchored = ("".join(part + "." for part in before + old), "".join(part + "." for part in before + new), True)
    inside = ("." + "".join(part + "." for part in old), "." + "".join(part + "." for part in new), False)
    return [("".join(part + "." for part in old), "".join(part + "." for part in new), True), anchored] if not before else [anchored, inside]
