"""Checkpoints are written and read by what there is beside torch.save and torch.load; a text that mmengine writes is not one."""

import sys
from pathlib import Path

import torch
from mmengine.fileio import LocalBackend
from mmengine.runner import CheckpointLoader, save_checkpoint

STATE = {"weight": torch.zeros(64, 64)}
save_checkpoint(STATE, "of_mmengine.pth")
CheckpointLoader.load_checkpoint("of_mmengine.pth", map_location="cpu")
LocalBackend().put(b"no checkpoint", "note.txt")

from safetensors.torch import load_file, save_file  # noqa: E402

save_file(STATE, "of.safetensors")
save_file(STATE, "of.safetensors")
load_file("of.safetensors")
Path("cut.safetensors").write_bytes(Path("of.safetensors").read_bytes()[:100])
try:
    load_file("cut.safetensors")
except Exception as exc:
    print(exc)

try:
    import torch.distributed.checkpoint as dcp
except ImportError:
    sys.exit()
if hasattr(dcp, "async_save"):
    dcp.save(STATE, checkpoint_id="of_dcp", no_dist=True)
    dcp.load({"weight": torch.ones(64, 64)}, storage_reader=dcp.FileSystemReader("of_dcp"), no_dist=True)
    dcp.async_save(STATE, storage_writer=dcp.FileSystemWriter(Path("of_async")), no_dist=True).result()
