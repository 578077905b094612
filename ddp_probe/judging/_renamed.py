"""The one renaming that turns the names in a checkpoint into the model's, told from what load_state_dict says about both."""

import re
from typing import List, Optional

from ddp_probe.judging import change
from ddp_probe.reading.checkpoints import tensor_names
from ddp_probe.reading.checkpoints.tensor_names import Renaming
from ddp_probe.shared.schema import Site

_LIST = r"%s key\(s\) in (?:source )?state_dict: (?P<names>\"[^\"]+\"(?:, \"[^\"]+\")*)\."


def edit(renamed: Renaming, site: Optional[Site]) -> change.Argument:
    """Return the change: the state under the model's names."""
    return change.Argument(site, change.LOAD_STATE, "state_dict", renamed.expression("$was"), 0, was="state")


def renaming(message: str) -> Optional[Renaming]:
    """Return the renaming that explains all names of both lists; None if there is none, or if a list was cut."""
    if "size mismatch" in message:
        return None
    return tensor_names.renaming(_names("Unexpected", message), _names("Missing", message))


def _names(which: str, message: str) -> List[str]:
    found = re.search(_LIST % which, message)
    return re.findall(r"\"([^\"]+)\"", found.group("names")) if found else []
