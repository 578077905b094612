"""torch.multiprocessing.start_processes (mp.spawn): a program of its own that starts the ranks itself."""

from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.traced.device_states import HostReader
from ddp_probe.traced.facts.describe import contents, describe
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe
from ddp_probe.traced.probes.launcher import child_event

_MOST = 1 << 31  # a larger number is not a count of processes, and does not fit a field


class Spawn(Probe):
    """Records what is started and how it ends; the children record themselves once they call init_process_group."""

    name = "spawn"
    targets = ("torch.multiprocessing.spawn:start_processes",)
    events = (schema.LauncherGroup,)
    points = (schema.LauncherChild,)
    cost = "Two lines per launch, in the program that starts the ranks."

    def begin(self, call: Call) -> schema.LauncherGroup:
        """From here this program writes as a launcher."""
        self.session.act_as_launcher()
        given = call.arguments()
        count = given.get("nprocs", 1)
        asked = count if type(count) is int and 0 <= count < _MOST else None
        return schema.LauncherGroup(asked=asked, entrypoint=describe(given.get("fn")), oom_kills=HostReader().oom_kills())

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.LauncherGroup]:
        """Record the children if the caller has not waited for them."""
        processes = contents(result).get("processes")
        processes = processes if type(processes) is list else []
        return schema.LauncherGroup(children={str(rank): process.pid for rank, process in enumerate(processes)})

    def error(self, call: Call, begun: Begun, exc: BaseException) -> None:
        """Record the child that torch names in its exception."""
        attributes = contents(exc)
        index = attributes.get("error_index")
        if type(index) is int:
            child = child_event(index, attributes.get("error_pid"), attributes.get("exit_code"))
            child.first = True
            self.session.recorder.point(child)


PROBE = Spawn
