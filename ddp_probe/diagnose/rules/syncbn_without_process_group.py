"""A synchronised batch norm runs in a process that joined no process group."""

from typing import Iterator

from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

_NO_GROUP = r"Default process group (?:has not been|is not) initialized"
_NORM = r"SyncBatchNorm|sync_batch_norm|sync_bn|SyncBN|batchnorm\.py|NaiveSync|batch_norm\.py"

RULE = Rule(
    id="DDP407",
    slug="syncbn-without-process-group",
    cause="syncbn_without_process_group",
    title="SyncBatchNorm runs in a process without a process group.",
    symptom="'Default process group has not been initialized' from the forward of a batch norm, in training on one card.",
    evidence="The exception comes out of SyncBatchNorm's forward, and init_process_group was not called.",
    remedy="For one process replace it: norm_cfg=dict(type='BN') in the config, or mmengine.model.revert_sync_batchnorm(model); for several start with torchrun --nproc_per_node=<cards> and launcher='pytorch'.",
    needs=("process.end",),
    printed=(
        Printed(_NO_GROUP, beside=_NORM),
        Printed(
            _NO_GROUP,
            beside=r"train_step|run_iter|mmcv/runner|mmseg|mmdet",
            unless=r"DistributedSampler|DistributedDataParallel|init_dist|get_rank\b",
        ),
        Printed(
            _NO_GROUP,
            unless=r"\.py",
            says="Something asks for the process group, and none was made; in training on one card that is mostly SyncBatchNorm.",
        ),
    ),
)

EXAMPLES = (
    Example(
        "A batch norm asks for the group's size.",
        """
{"event":"process.start","rank":0,"role":"solo","launcher":"none"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"Default process group has not been initialized, please make sure to call init_process_group.","frames":[{"file":"/train/t.py","line":30,"function":"main"},{"file":"/env/site-packages/torch/nn/modules/batchnorm.py","line":866,"function":"SyncBatchNorm.forward"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":1025,"function":"_get_default_group"}]}}
""",
    ),
    Example(
        "A sampler asks for the rank.",
        """
{"event":"process.start","rank":0,"role":"solo","launcher":"none"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"Default process group has not been initialized, please make sure to call init_process_group.","frames":[{"file":"/train/t.py","line":30,"function":"main"},{"file":"/env/site-packages/torch/utils/data/distributed.py","line":68,"function":"DistributedSampler.__init__"}]}}
""",
        answer="clear",
    ),
    Example(
        "torch raises in the forward of a batch norm.",
        'Traceback (most recent call last):\n  File "/train/t.py", line 30, in main\n    loss = model(inputs).sum()\n  File "/env/site-packages/torch/nn/modules/batchnorm.py", line 758, in forward\n    world_size = torch.distributed.get_world_size(process_group)\n'
        '  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 430, in _get_default_group\n    raise RuntimeError(\n'
        "RuntimeError: Default process group has not been initialized, please make sure to call init_process_group.\n",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """The exception's own words and frames decide."""
    return by_text(RULE, run)
