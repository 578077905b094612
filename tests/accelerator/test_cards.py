"""The simulated cards behave as a vendor's do, and compute as the CPU does."""

import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

_DEVICES = """
answer = {"at_import": [torch_gcu.is_initialized(), torch_gcu.is_available(), torch_gcu.device_count(), torch_gcu.is_initialized()]}
tensor = torch.ones(2, 3).to("CARD:3")
answer["tensor"] = [str(tensor.device), str((tensor.t() @ tensor).device), (tensor + 1).sum().item()]
answer["initialized"] = torch_gcu.is_initialized()
answer["bytes"] = [torch_gcu.memory_allocated(card) for card in range(8)]
torch_gcu.set_device(5)
answer["current"] = [torch_gcu.current_device(), str(torch.ones(1, device="CARD").device)]

def error_of(call):
    try:
        call()
    except Exception as exc:
        return "%s: %s" % (type(exc).__name__, exc)

answer["errors"] = [error_of(call) for call in (
    lambda: tensor.to("CARD:8"),
    lambda: torch_gcu.set_device(8),
    lambda: tensor + torch.ones(2, 3, device="CARD:2"),
    lambda: tensor @ torch.ones(3, 2),
    lambda: torch.nn.Conv2d(1, 1, 1).to("CARD:1")(torch.ones(1, 1, 2, 2, device="CARD:0")),
)]
"""

_NAMES = """
tensor = torch.ones(1).gcu(3)
torch.accelerator.set_device_index(5)
answer = {
    "tensor": [str(tensor.device), tensor.is_gcu],
    "current": [torch_gcu.current_device(), torch.gcu.current_device(), torch.accelerator.current_device_index()],
    "accelerator": [torch.accelerator.device_count(), str(torch.accelerator.current_accelerator())],
    "aliases": torch_gcu.set_device is torch.gcu.set_device and torch.gcu is torch_gcu.gcu,
}
"""

_FEWER = """
answer = [torch_gcu.device_count()]
for call in (lambda: torch.ones(1, device="CARD:2"), lambda: torch.ones(3 << 18, device="CARD:1")):
    try:
        call()
    except RuntimeError as exc:
        answer.append(str(exc))
"""

_TRAINING = """
from torch import nn

def train(device, optimizer):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2), nn.GroupNorm(2, 8),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(288, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5),
    ).to(device)
    steps = optimizer(model.parameters())
    for _ in range(4):
        images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        steps.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
    return {name: value.cpu() for name, value in model.state_dict().items()}

answer = []
for optimizer in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01)):
    expected, got = train("cpu", optimizer), train("CARD:5", optimizer)
    answer.append([name for name in expected if not torch.equal(expected[name], got[name])])
answer.append(len(expected))
"""

_CHECKPOINT = """
import io
model = torch.nn.Linear(2, 2).to("CARD:3")
file = io.BytesIO()
torch.save({"model": model.state_dict(), "whole": torch.nn.Parameter(model.weight)}, file)

def load(**options):
    file.seek(0)
    try:
        state = torch.load(file, **options)
    except RuntimeError as exc:
        return str(exc)
    assert torch.equal(state["model"]["weight"].cpu(), model.weight.detach().cpu())
    return [str(state["model"]["weight"].device), str(state["whole"].device)]

answer = [load(), load(map_location="cpu"), load(map_location="CARD:1"), load(map_location={"CARD:3": "CARD:2"}), load(map_location="CARD:9")]
"""


def test_devices(on_cards, card):
    """There are eight cards, tensors live where they were put, and a card is in use only once something is."""
    answer = on_cards(_DEVICES)
    assert answer["at_import"] == [False, True, 8, False]
    assert answer["tensor"] == [card + ":3", card + ":3", 12.0]
    assert answer["initialized"]
    assert answer["bytes"] == [0, 0, 0, 24, 0, 0, 0, 0]
    assert answer["current"] == [5, card + ":5"]
    ordinal, set_device, cards, host, convolution = answer["errors"]
    for error in (ordinal, set_device):
        assert "RuntimeError: GCU error: invalid device ordinal 8, 8 cards are visible" in error
    assert "Expected all tensors to be on the same device, but found at least two devices, %s:3 and %s:2!" % (card, card) in cards
    assert "Expected all tensors to be on the same device, but found at least two devices, %s:3 and cpu!" % card in host
    assert "found at least two devices, %s:0 and %s:1!" % (card, card) in convolution


def test_names_of_torch(on_cards, old_torch):
    """torch.gcu and torch.accelerator are the plugin's, as tensors are told by is_gcu."""
    if old_torch:
        pytest.skip("torch 1.12 has no device type for a plugin to name")
    answer = on_cards(_NAMES)
    assert answer["tensor"] == ["gcu:3", True]
    assert answer["current"] == [5, 5, 5]
    assert answer["accelerator"] == [8, "gcu"]
    assert answer["aliases"]


def test_fewer_cards_and_less_memory(on_cards):
    """TOPS_VISIBLE_DEVICES limits the cards, TORCH_GCU_MEMORY_MB what each holds."""
    cards, ordinal, memory = on_cards(_FEWER, TOPS_VISIBLE_DEVICES="4,6", TORCH_GCU_MEMORY_MB="2")
    assert cards == 2
    assert "invalid device ordinal 2, 2 cards are visible" in ordinal
    assert "GCU out of memory. Tried to allocate 3 MiB. GCU 1 has a total capacity of 2 MiB" in memory


def test_training_gives_the_digits_of_the_cpu(on_cards):
    """A network of convolutions and every normalisation ends with the same bits on a card as on the CPU, running statistics included."""
    assert on_cards(_TRAINING) == [[], [], 17]


def test_checkpoints(on_cards, old_torch):
    """A checkpoint of a card loads onto it, the CPU, another card, and no absent one; torch 1.12 ignores map_location for xla."""
    saved, cpu, other, mapped, absent = on_cards(_CHECKPOINT)
    if old_torch:
        assert saved == cpu == other == mapped == absent == ["xla:3", "xla:3"]
        return
    assert saved == ["gcu:3", "gcu:3"]
    assert cpu == ["cpu", "cpu"]
    assert other == ["gcu:1", "gcu:1"]
    assert mapped == ["gcu:2", "gcu:2"]
    assert "Attempting to deserialize object on GCU device 9 but torch.gcu.device_count() is 8" in absent


@pytest.fixture
def compiler(gcu_env, clean_env, run_python, tmp_path):
    """A g++ that notes each call, takes its time, and hands over what the real one has built: (variables, notes)."""
    built = run_python(["-m", "torch_gcu.build"], env=clean_env(**gcu_env)).stdout.strip()
    program, notes = tmp_path / "bin" / "g++", tmp_path / "notes"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\necho called >> %s\nwhile [ "$1" != -o ]; do shift; done\nhead -c 1000 %s > "$2"; sleep 0.5; cp %s "$2"\n'
        % tuple(map(shlex.quote, (str(notes), built, built)))
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = "%s%s%s" % (program.parent, os.pathsep, os.environ["PATH"])
    return clean_env(**gcu_env, PATH=path, XDG_CACHE_HOME=str(tmp_path / "cache")), notes


def test_processes_that_start_together_compile_once(compiler, card, tmp_path):
    """Of two first imports at once one compiles, the other waits for it, and neither loads a torn library."""
    env, notes = compiler
    code = "import torch, torch_gcu; print(torch.ones(1, device='%s:7').device)" % card
    pair = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in pair] == [card + ":7", card + ":7"]
    assert notes.read_text() == "called\n"
    names = sorted(path.suffix for path in Path(tmp_path, "cache", "ddp_probe_tests").iterdir())
    assert names == [".lock", ".so"]


def test_a_warm_start_compiles_nothing(gcu_env, clean_env, run_python, tmp_path):
    """Once compiled, the cards need no compiler."""
    assert shutil.which("g++", path=str(tmp_path)) is None
    done = run_python("import torch_gcu; print(torch_gcu.device_count())", env=clean_env(**gcu_env, PATH=str(tmp_path)))
    assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
