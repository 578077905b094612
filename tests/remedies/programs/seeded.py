"""Runs a program of the job collection with a known seed, and writes rank<N>.json: what its optimizer ended with, and what the probe has loaded.

Usage: seeded.py PROGRAM. The program's source stays as it is; a corrected one finds the same pieces.
"""

import gc
import hashlib
import json
import os
import runpy
import sys
from pathlib import Path

import torch

JOBS = Path(__file__).resolve().parents[2] / "jobs"
LAST = {}


def remember_steps():
    """Keep a copy of what each optimizer's last step has left."""
    original = torch.optim.SGD.step

    def step(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        LAST["parameters"] = [value.detach().cpu().clone() for group in self.param_groups for value in group["params"]]
        LAST["devices"] = sorted({str(value.device) for group in self.param_groups for value in group["params"]})
        LAST["steps"] = LAST.get("steps", 0) + 1
        return result

    torch.optim.SGD.step = step


def answer():
    """Tell what there is to compare."""
    values = LAST.pop("parameters", [])
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in values)).hexdigest() if values else ""
    patch_sites = [found for found in gc.get_objects() if type(found).__name__ == "PatchSite"]
    return {
        "parameters": digest,
        **LAST,
        "remedies": sorted(name for name in sys.modules if name.startswith("ddp_probe.traced.remedies")),
        "patch_sites": len(patch_sites),
        "overridden": sum(bool(patch_site.overrides) for patch_site in patch_sites),
    }


def main(program):
    """Run it as if it had been started itself."""
    sys.path[:1] = [str(program.parent), str(JOBS)]
    sys.argv[:] = [str(program)]
    torch.manual_seed(0)
    remember_steps()
    rank = os.environ.get("RANK", "0")
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        written = Path("rank%s.json.part" % rank)  # The launcher may end this rank at any moment.
        written.write_text(json.dumps(answer()), encoding="utf-8")
        written.replace("rank%s.json" % rank)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
