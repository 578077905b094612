"""ZeRO-3 has fetched parameters ahead for layers that this step did not use."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP124",
    slug="zero3-fetch-order",
    cause="zero3_fetch_order",
    title="A step uses the layers in a different order from the one in which ZeRO-3 fetches their parameters ahead.",
    symptom="'still have inflight params', or an AssertionError with a parameter's ds_summary, after 'Invalidate trace cache @ step'.",
    evidence=(
        "DeepSpeed's own message. ZeRO-3 records the order of the layers in one step and fetches by it in the next; layers that are chosen by the "
        "data (experts, branches, generation within training) change the order. If ranks choose differently, the job hangs instead."
    ),
    remedy=(
        "Let each step use the same layers in the same order on all ranks: call a layer that has nothing to do with zeros. For blocks whose "
        "layers are chosen by the data, deepspeed.utils.set_z3_leaf_modules(model, [TheBlock]) fetches them whole. To try it first, set "
        "stage3_prefetch_bucket_size to 0, or take ZeRO-2; some versions of DeepSpeed have this bug themselves, so try another version as well."
    ),
    restart="no",  # The same steps use the layers in the same orders.
    needs=("process.end",),
    printed=(
        Printed(
            r"RuntimeError: still have inflight params",
            says="ZeRO-3 has fetched parameters ahead for layers that the step did not reach.",
            ranks=False,
        ),
        Printed(
            r"AssertionError: \{'id': (?P<number>\d+), 'status': '(?P<status>NOT_AVAILABLE|INFLIGHT)'",
            says="ZeRO-3 reaches a layer whose parameter {number} it has not fetched (its status is {status}).",
            ranks=False,
        ),
        Printed(
            r"RuntimeError: tracing error at step (?P<step>\d+):",
            says="In step {step} ZeRO-3 meets different layers from those of the previous step, by which it fetches parameters ahead.",
            ranks=False,
        ),
    ),
)
