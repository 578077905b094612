"""The process group's backend does not support the device that the tensors are on."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import FITTING

RULE = Rule(
    id="DDP206",
    slug="backend-does-not-fit-device",
    cause="backend_not_available",
    title="The process group's backend does not support the device that the tensors are on.",
    symptom=(
        "'No backend type associated with device type xpu' (or another card's type) in a collective, or \"Could not run 'c10d::…' with arguments "
        'from the … backend".'
    ),
    evidence=(
        "The exception names a device type that is not cpu: the group's backend does not support it. If it is cpu, a tensor, a buffer or a "
        "model was left behind."
    ),
    remedy=(
        "Create the group with the backend of these cards (%s, nccl for cuda) after importing its plugin; or use 'cpu:gloo,cuda:nccl' if you "
        "need both." % FITTING
    ),
    restart="no",  # The backend is chosen in the code.
    needs=("dist.init_process_group",),
    printed=(
        Printed(
            r"No backend type associated with device type (?!cpu\b)(?P<kind>\w+)", says="The process group has no backend for tensors on {kind}."
        ),
        Printed(
            r"Could not run 'c10d::\w+' with arguments from the '(?!CPU|Meta|Sparse)(?P<kind>\w+)' backend",
            says="The process group has no backend for tensors on {kind}.",
        ),
        Printed(
            r"ProcessGroupGloo::\w+: (?:unsupported device type|invalid (?:tensor )?(?:device|layout))[^\n]*",
            says="gloo does not support the device that the tensors are on.",
        ),
        Printed(
            r"\b(?P<operation>\w+) isn't implemented on backend \[(?P<kind>(?!cpu\b)\w+)\]",
            says="The backend has no {operation} for tensors on {kind}.",
        ),
        Printed(
            r"Function argument device_ids not supported for the selected backend (?P<backend>\w+)",
            says="The job passes a card to the barrier, but its backend {backend} does not support cards.",
        ),
        Printed(
            r"ProcessGroupGloo::\w+: invalid tensor type at index[^\n]*expected [^\n]*device=cpu[^\n]* got [^\n]*device=(?P<kind>(?!cpu\b)\w+)",
            says="gloo does not support tensors on {kind}.",
        ),
        Printed(r"Default backend not registered for device : (?P<kind>\w+)", says="No backend is registered for {kind}."),
        Printed(
            r"A CPU backend must be enabled for async save",
            says="Saving in the background exchanges tensors on the CPU, but the process group has a backend only for cards.",
        ),
        Printed(r"CUDA tensor detected and the MPI used doesn't have CUDA-aware MPI support", says="This MPI does not accept tensors on cards."),
    ),
    yields_to=("init-failure-swallowed",),
)
