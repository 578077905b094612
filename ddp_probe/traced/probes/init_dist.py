"""mmengine.dist.init_dist: which set_device it will call before there is a group, and at which line it fails."""

from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.traced.facts.accelerator_state import init_dist_branch
from ddp_probe.traced.facts.describe import describe, describe_mapping
from ddp_probe.traced.facts.process_groups import default_group
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe


class InitDist(Probe):
    """Records launcher, backend and the branch that mmengine will take, before it takes it."""

    name = "init_dist"
    targets = ("mmengine.dist.utils:init_dist",)
    events = (schema.InitDist,)
    cost = "Two lines, once."

    def begin(self, call: Call) -> schema.InitDist:
        """Record the branch and why: with launcher pytorch it calls set_device whatever the backend is."""
        given = {**{name: call.defaults().get(name) for name in ("backend", "init_backend")}, **call.arguments()}
        launcher = describe(given.pop("launcher", "")).strip("'\"")
        backend = describe(given.pop("backend", "")).strip("'\"")
        extra = given.pop("kwargs", None)
        given.update(extra if type(extra) is dict else {})
        branch, because = init_dist_branch(launcher)
        return schema.InitDist(
            launcher=launcher,
            backend=backend,
            kwargs=describe_mapping({name: value for name, value in given.items() if value is not None}),
            branch=branch,
            branch_because=because,
        )

    def end(self, call: Call, begun: Begun, result: Any) -> schema.InitDist:
        """Record the group that there is now."""
        return _group()

    def error(self, call: Call, begun: Begun, exc: BaseException) -> Optional[schema.InitDist]:
        """Record the group anyway: a group that exists after a failure that the caller swallows misleads everything after it."""
        return _group()


def _group() -> schema.InitDist:
    backend, rank, size = default_group()
    return schema.InitDist(group_backend=backend, group_rank=rank, group_size=size)


PROBE = InitDist
