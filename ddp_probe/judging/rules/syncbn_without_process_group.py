"""SyncBatchNorm runs in a process that has not joined a process group."""

from ddp_probe.judging.rule import Printed, Rule

_NO_GROUP = r"Default process group (?:has not been|is not) initialized"
_NORM = r"SyncBatchNorm|sync_batch_norm|sync_bn|SyncBN|batchnorm\.py|NaiveSync|batch_norm\.py"

RULE = Rule(
    id="DDP407",
    slug="syncbn-without-process-group",
    cause="syncbn_without_process_group",
    title="SyncBatchNorm runs in a process without a process group.",
    symptom="'Default process group has not been initialized' from the forward of a batch norm, in training on one card.",
    evidence="The exception comes from SyncBatchNorm's forward, and init_process_group was not called.",
    remedy=(
        "For one process, replace it: norm_cfg=dict(type='BN') in the config, or mmengine.model.revert_sync_batchnorm(model); for several, "
        "start with torchrun --nproc_per_node=<cards> and launcher='pytorch'."
    ),
    restart="no",  # The model and the launch stay as they are.
    needs=("process.end",),
    printed=(
        Printed(_NO_GROUP, beside=_NORM),
        Printed(
            _NO_GROUP,
            beside=r"train_step|run_iter|mmcv/runner|mmseg|mmdet",
            unless=r"\bin (?:all_reduce|barrier|broadcast)\b|DistributedSampler|DistributedDataParallel|init_dist|get_rank\b",
        ),
        Printed(
            _NO_GROUP,
            unless=r"\.py",
            says="Something asks for the process group, and no group was made; in training on one card this is mostly SyncBatchNorm.",
        ),
    ),
)
