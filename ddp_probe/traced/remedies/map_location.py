"""A checkpoint that was saved on a device that this host does not have."""

import re
from typing import Optional

from ddp_probe.traced.facts.checkpoint_file import path_of
from ddp_probe.traced.facts.failure import said
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy

_OTHER_HOST = re.compile(
    r"Attempting to deserialize object on (a |an )?\w+ device (\d+ )?but|don't know how to restore data location of .* \(tagged with (?P<tag>\w+)"
)


class MapLocation(Remedy):
    """torch.load gets map_location='cpu'."""

    word = "map-location"
    order = 70
    targets = ("torch.serialization:load",)
    when = "The file asks for a device that this host lacks, and no map_location was given."
    for_good = "torch.load(path, map_location='cpu'), then load_state_dict into a model that is on its card."

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Load again; a stream has already been read from, and is left to the job."""
        given = call.arguments()
        if given.get("map_location") is not None or not _OTHER_HOST.search(said(exc)):
            return None
        if path_of(given.get("f")) is None:
            self.declined(call, "the checkpoint comes from a stream, which cannot be read twice")
            return None
        because = said(exc).split(". ", 1)[0]
        return Change({"map_location": None}, {"map_location": "cpu"}, because, arguments={"map_location": "cpu"})


REMEDY = MapLocation
