"""No variable of torch, of a backend, of the launcher or of the probe is misspelt."""

import shlex

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.checks import _known_variables
from ddp_probe.judging.doctor.host import Host
from ddp_probe.shared import settings

CHECK = Check(
    id="DOC404",
    slug="variable-names",
    title="No variable of the probe, a backend or a launcher is misspelt or has an invalid value.",
    looks_at="The names of all variables that begin with DDP_PROBE, NCCL_, GLOO_ or TORCH_, or resemble a launcher's.",
    remedy="Correct the name: a variable that nobody reads changes nothing.",
)


def check(host: Host) -> Answer:
    """Compare the names with those that are known."""
    own = settings.mistakes(host.environ)
    meant = {name: _known_variables.meant_by(name) for name in sorted(host.environ)}
    meant = {name: known for name, known in meant.items() if known and known not in host.environ}
    saw = ["%s: %s" % pair for pair in own.items() if pair[0] not in meant] + ["%s: nobody reads it; %s is read." % pair for pair in meant.items()]
    if not saw:
        return CHECK.ok("Every name is known, or is not close to one that is.")
    remedies = ["unset %s" % name for name in own if name not in meant]
    remedies += ["unset %s; export %s=%s" % (name, known, shlex.quote(host.environ[name])) for name, known in meant.items()]
    return (CHECK.fail if own else CHECK.warn)(" ".join(saw), "; ".join(remedies))
