"""What vendors' tools print of their cards, read as data where the form is documented; and the child of a launcher that asks them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddp_probe.doctor import card_tools
from ddp_probe.doctor.card_tools import CardsOverTime, CardTool
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.shared.schema import CardLoad, CardsState

_TOOLS = Path(__file__).resolve().parent.parent / "accelerator" / "tools"
_GIB, _MIB = 1 << 30, 1 << 20
_NVIDIA = (
    (
        "index, uuid, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, ecc.errors.uncorrected.volatile.total, "
        "clocks_throttle_reasons.active\n"
        "0, GPU-a, 97 %, 30000 MiB, 81559 MiB, 61, 0, 0x0000000000000004\n"
        "1, GPU-b, 3 %, 4 MiB, 81559 MiB, 91, [N/A], 0x0000000000000048\n"
    ),
    "gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-a, 4711, 29990 MiB\nGPU-a, 4712, [N/A]\nGPU-c, 4713, 7 MiB\n",
)
_HABANA = (
    """index, utilization.aip [%], memory.used [MiB], memory.total [MiB], temperature.aip [C]
0, 81 %, 768 MiB, 98304 MiB, 41 C
1, 0 %, 512 MiB, 98304 MiB, 37 C
""",
)
_INTEL = (
    (
        "Timestamp, DeviceId, GPU Utilization (%), GPU Core Temperature (Celsius Degree), GPU Memory Used (MiB)\n"
        "06:14:46.000,    0, 55.20, 48.00, 1024.00\n06:14:46.000,    1, 0.00,  N/A, 30.00\n"
    ),
)
_AMD = (
    (
        '{"card0": {"Temperature (Sensor edge) (C)": "45.0", "Temperature (Sensor junction) (C)": "58.0", "GPU use (%)": "12", '
        '"VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "11382784"}, "system": {"PID99": "python, 1, 0, 0, 0"}}'
    ),
)
_ASCEND = (
    """
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 91.3        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 87          0    / 0          3465 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Warning       | 88.0        79                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          20701/ 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 124528        | python3.8                | 17400                   |
| No running processes found in NPU 1                                                            |
""",
)
_ENFLAME = ("* 0      T20    | ... | 32G  Disable | 85.0%  W28001150301 *\n* 1      T20    | ... | 32G  Disable | 0.0%  W28001110508 *\n",)


@pytest.mark.parametrize(
    ("vendor", "said", "told"),
    [
        (
            "cuda",
            _NVIDIA,
            [
                CardLoad(
                    index=0,
                    utilisation=97.0,
                    memory=30000 * _MIB,
                    memory_total=81559 * _MIB,
                    temperature=61.0,
                    ecc=0,
                    throttled=["power_cap"],
                    processes={"4711": 29990 * _MIB, "4712": None},
                ),
                CardLoad(
                    index=1,
                    utilisation=3.0,
                    memory=4 * _MIB,
                    memory_total=81559 * _MIB,
                    temperature=91.0,
                    throttled=["hw_slowdown", "hw_thermal"],
                ),
            ],
        ),
        (
            "hpu",
            _HABANA,
            [
                CardLoad(index=0, utilisation=81.0, memory=768 * _MIB, memory_total=96 * _GIB, temperature=41.0),
                CardLoad(index=1, utilisation=0.0, memory=512 * _MIB, memory_total=96 * _GIB, temperature=37.0),
            ],
        ),
        (
            "xpu",
            _INTEL,
            [CardLoad(index=0, utilisation=55.2, temperature=48.0, memory=1024 * _MIB), CardLoad(index=1, utilisation=0.0, memory=30 * _MIB)],
        ),
        ("rocm", _AMD, [CardLoad(index=0, utilisation=12.0, temperature=58.0, memory=11382784, memory_total=68702699520)]),
        (
            "npu",
            _ASCEND,
            [
                CardLoad(
                    index=0,
                    utilisation=87.0,
                    memory=3465 * _MIB,
                    memory_total=64 * _GIB,
                    temperature=36.0,
                    processes={"124528": 17400 * _MIB},
                ),
                CardLoad(index=1, utilisation=0.0, memory=20701 * _MIB, memory_total=64 * _GIB, temperature=79.0, health="Warning"),
            ],
        ),
        (
            "gcu",
            _ENFLAME,
            [CardLoad(index=0, utilisation=85.0, memory_total=32 * _GIB), CardLoad(index=1, utilisation=0.0, memory_total=32 * _GIB)],
        ),
    ],
)
def test_each_vendors_form_is_read(vendor, said, told):
    """What the vendor's tool prints becomes the load, the memory, the temperature and the processes of each card."""
    (known,) = [one for one in ACCELERATORS if one.name == vendor]
    assert card_tools.cards(known.smi_form, said) == told
    assert len(known.smi_state) == len(said)


@pytest.mark.parametrize("form", ["csv", "json", "npu", "rows", ""])
@pytest.mark.parametrize(
    "said", ["", "no devices were found\n", "{}", "[1]", "| 0 | 1:2 | x |\n", 'index\n"', "* 1 T20 | x\n", "index, index\n1, x\n"]
)
def test_anything_else_is_no_card(form, said):
    """A text of another form gives no card, and no exception."""
    assert [card for card in card_tools.cards(form, [said]) if card != CardLoad(index=1)] == []


def _tool(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return {"PATH": "%s:%s" % (folder, os.environ["PATH"])}


def test_a_form_that_is_not_documented_is_kept_as_text(tmp_path):
    """Of cnmon the text is kept, with secrets masked and cut; nothing is read out of it."""
    state = CardTool(_tool(tmp_path, "cnmon", "#!/bin/sh\necho 'MLU 0 85 % password=hunter2secret'\nhead -c 9000 /dev/zero | tr '\\0' x\n")).ask()
    assert (state.tool, state.cards) == ("cnmon", [])
    assert state.text.startswith("MLU 0 85 %")
    assert "hunter2secret" not in state.text
    assert len(state.text) <= 4000


def test_a_tool_that_fails_or_is_absent_says_so(tmp_path):
    """A tool that ends with an error and a host without any tool are a sentence each."""
    env = _tool(tmp_path, "npu-smi", "#!/bin/sh\necho no driver >&2\nexit 9\n")
    state = CardTool(env).ask()
    assert (state.problem, state.text) == ("npu-smi ended with exit code 9.", "no driver\n")
    assert CardTool({"PATH": str(tmp_path / "nothing")}).ask() == CardsState(problem="No tool of a vendor is on PATH.")


def test_nvml_is_asked_where_it_is_installed(tmp_path, monkeypatch):
    """With nvidia-ml-py the library answers in place of the program, with the same words."""
    (tmp_path / "pynvml.py").write_text(
        "from types import SimpleNamespace as N\nNVML_TEMPERATURE_GPU = NVML_MEMORY_ERROR_TYPE_UNCORRECTED = NVML_VOLATILE_ECC = 0\n"
        "class NVMLError(Exception): pass\n"
        "def no_ecc(*_): raise NVMLError\n"
        "nvmlInit = lambda: None\nnvmlDeviceGetCount = lambda: 1\nnvmlDeviceGetHandleByIndex = int\n"
        "nvmlDeviceGetMemoryInfo = lambda _: N(used=5, total=9)\nnvmlDeviceGetUtilizationRates = lambda _: N(gpu=7)\n"
        "nvmlDeviceGetTemperature = lambda *_: 40\nnvmlDeviceGetCurrentClocksThrottleReasons = lambda _: 0x20\n"
        "nvmlDeviceGetComputeRunningProcesses = lambda _: [N(pid=4711, usedGpuMemory=None)]\nnvmlDeviceGetTotalEccErrors = no_ecc\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    state = CardTool(_tool(tmp_path, "nvidia-smi", "#!/bin/sh\nexit 1\n")).ask()
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    card = CardLoad(index=0, utilisation=7.0, memory=5, memory_total=9, temperature=40.0, throttled=["sw_thermal"], processes={"4711": None})
    assert (state.tool, state.cards) == ("nvml", [card])


class _Played:
    """A tool whose answers are given."""

    def __init__(self, *cards):
        self._cards = list(cards)

    def ask(self):
        """Return the next answer."""
        return CardsState(tool="efsmi", cards=[self._cards.pop(0)])


def test_sums_and_peaks_over_time_and_no_line_without_a_change():
    """A line has the mean, the peak and the looks of each reason so far; one that differs by less than a step is left out."""
    over_time = CardsOverTime(
        _Played(
            CardLoad(index=0, utilisation=90.0, temperature=60.0, ecc=1),
            CardLoad(index=0, utilisation=90.0, temperature=64.0, ecc=1),
            CardLoad(index=0, utilisation=95.0, temperature=63.0, ecc=1),
            CardLoad(index=0, utilisation=25.0, temperature=91.0, ecc=1, throttled=["hw_thermal"]),
            CardLoad(index=0, utilisation=75.0, temperature=62.0, ecc=3),
        )
    )
    lines = [over_time.look() for _ in range(5)]
    assert [line is not None for line in lines] == [True, True, False, True, True], "After 1, 2, 4 … looks there is one."
    hot, last = lines[3].cards[0], lines[4].cards[0]
    assert (hot.utilisation_mean, hot.throttled_looks) == (75.0, {"hw_thermal": 1})
    assert (lines[4].looks, last.utilisation_mean, last.temperature_peak, last.throttled_looks) == (5, 75.0, 91.0, {"hw_thermal": 1})
    assert (last.ecc_before, last.ecc) == (1, 3)


def _gone(pid, patience=20.0):
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            with open("/proc/%d/stat" % pid) as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def _waited(path, patience=30.0):
    until = time.monotonic() + patience
    while time.monotonic() < until and not (path.exists() and path.read_text().strip()):
        time.sleep(0.05)
    return int(path.read_text())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["asked to end", "its launcher is killed"])
def test_a_tool_that_hangs_ends_with_the_child(tmp_path, how):
    """The child ends with its launcher, however that ends, and takes along a tool that hangs."""
    env = _tool(tmp_path, "efsmi", "#!/bin/sh\necho $$ > '%s/tool'\nexec sleep 600\n" % tmp_path)
    code = (
        "import os, subprocess, sys, time\n"
        "asks = 'import sys; from ddp_probe.doctor.programs.cards_state import main; main(sys.argv[1:])'\n"
        "child = subprocess.Popen([sys.executable, '-c', asks, '1', %r])\n"
        "open(%r, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    ) % (str(tmp_path), str(tmp_path / "child"))
    launcher = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **env})
    try:
        child, tool = _waited(tmp_path / "child"), _waited(tmp_path / "tool")
        os.kill(child if how == signal.SIGTERM else launcher.pid, how)
        assert _gone(tool)
        assert _gone(child)
    finally:
        launcher.kill()
        launcher.wait()


def test_one_child_asks_for_a_run_on_a_host(tmp_path):
    """Of two launchers of one run on a host one asks; when it is gone, the other takes over."""
    env = _tool(tmp_path, "efsmi", '#!/bin/sh\necho $PPID >> "%s/asked"\necho "* 0  T20 | x | 32G D | 5.0%%  W *"\n' % tmp_path)
    asks = "import sys; from ddp_probe.doctor.programs.cards_state import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", asks, "0.1", str(tmp_path)]
    children = [subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.PIPE) for _ in range(2)]
    asked = tmp_path / "asked"

    def those_that_asked(least, patience=60.0):
        until = time.monotonic() + patience
        while time.monotonic() < until and (not asked.exists() or len(asked.read_text().split()) < least):
            time.sleep(0.05)
        return set(map(int, asked.read_text().split()))

    try:
        (first,) = those_that_asked(8)
        one = next(child for child in children if child.pid == first)
        one.terminate()
        assert one.wait(30) == 0
        other = next(child for child in children if child is not one)
        assert first in those_that_asked(len(asked.read_text().split()) + 8)
        assert other.pid in those_that_asked(1)
    finally:
        for child in children:
            child.kill()
            child.communicate()
