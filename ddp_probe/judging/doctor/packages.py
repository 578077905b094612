"""The packages that a job of this host would import, as a child says that starts as the job does."""

from typing import Dict, List, NamedTuple, Tuple

from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.programs.packages import PACKAGES

KNOWN = PACKAGES
"""The packages of interest, by import name."""


class Packages(NamedTuple):
    """What the child has found."""

    origins: Dict[str, str]
    installed: Dict[str, List[List[str]]]

    def origin(self, module: str) -> str:
        """Return the file that `import` would take; empty if there is none."""
        return self.origins.get(module, "")

    def places(self, distribution: str) -> List[Tuple[str, str]]:
        """Return version and folder of each installed copy, the one that counts first."""
        return [(version, folder) for version, folder in self.installed.get(distribution, [])]

    def version(self, distribution: str) -> str:
        """Return the installed version; empty if it is not installed."""
        return next((version for version, _ in self.places(distribution)), "")


def of(host: Host) -> Packages:
    """Ask a child; own modules of the command line, such as its path, are not those of the job."""
    last = host.ask("packages").last
    return Packages(last.get("origins", {}), last.get("installed", {}))
