"""A model whose parameters have no data yet (meta device) is wrapped or trained."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP126",
    slug="parameter-left-on-meta",
    cause="parameter_left_on_meta",
    title="Parameters are still on the meta device, without data, when the model is divided among the ranks or trained.",
    symptom="'Cannot copy out of meta tensor; no data!' with FSDP or DeepSpeed, or 'FSDP parameters should be materialized from meta device'.",
    evidence=(
        "torch's message, together with FSDP or DeepSpeed. A model built under torch.device('meta') or init_empty_weights has shapes and no values; "
        "with cpu_ram_efficient_loading only rank 0 has values, and the others get them from it."
    ),
    remedy=(
        "With FSDP1 pass sync_module_states=True and a param_init_fn (module.to_empty(device=card, recurse=False)); in accelerate set "
        "fsdp_sync_module_states: true wherever fsdp_cpu_ram_efficient_loading is true. With fully_shard, first shard, then "
        "model.to_empty(device=card), then load: set_model_state_dict(..., StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))."
    ),
    restart="no",  # The same setting leaves the parameters there again.
    needs=("process.end",),
    printed=(
        Printed(
            r"parameters should be materialized from meta device before training",
            says="The sharded model is trained while its parameters have no data.",
            ranks=False,
        ),
        Printed(
            r"Cannot copy out of meta tensor; no data!",
            beside=r"[/\\]fsdp[/\\]|_fsdp\b|\bFSDP\(|\bfully_shard\b|FullyShardedDataParallel|[/\\]deepspeed[/\\]",
            says="A parameter without data (on the meta device) cannot be copied to a card.",
            ranks=False,
        ),
    ),
)
