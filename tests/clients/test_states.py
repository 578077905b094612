"""What frameworks save and load goes through what the probe watches."""

from pathlib import Path
from typing import Any, Callable, Dict, List

from client_table import PROGRAMS


def test_states_of_frameworks(
    run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], read_events: Callable[..., List[Dict[str, Any]]], tmp_path: Path
) -> None:
    """Accelerate's save_state and load_state, and save_pretrained of transformers, are recorded file by file, each with the job's line."""
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = run_python([PROGRAMS / "saves_state.py"], env=armed(tmp_path / "runs", **place), cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "runs").rglob("rank00000.*.jsonl")
    begins = [event for event in read_events(log) if event["phase"] == "begin"]
    saved = {Path(event["path"]).name: event for event in begins if event["event"] == "checkpoint.save"}
    loaded = {Path(event["file"]["path"]).name: event for event in begins if event["event"] == "checkpoint.load"}
    lines = (PROGRAMS / "saves_state.py").read_text(encoding="utf-8").splitlines()
    assert {"optimizer.bin", "model.safetensors"} <= set(saved)
    assert lines[saved["optimizer.bin"]["site"]["line"] - 1] == 'accelerator.save_state("state")'
    assert lines[saved["model.safetensors"]["site"]["line"] - 1].endswith('.save_pretrained("bert")')
    assert saved["model.safetensors"]["by"] == "safetensors.torch.save_file"
    assert lines[loaded["optimizer.bin"]["site"]["line"] - 1] == 'accelerator.load_state("state")'
