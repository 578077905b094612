"""Each fault that is planted fails exactly the check that is meant for it, and what the remedy says makes that check pass."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from planted import STATIC, Planter, followed

from ddp_probe.doctor import cards
from ddp_probe.doctor.checks import (
    cards_present,
    driver_loaded,
    master_port,
    one_copy,
    vendor_tool,
    visible_cards,
)
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host, Request

pytestmark = pytest.mark.slow


def test_a_host_without_a_card_is_told_what_is_missing(planter: Planter) -> None:
    """Nothing fails, no sentence says that a card is there, and gloo on the CPU is named."""
    answers = {slug: result.answer for slug, result in planter.healthy.items()}
    assert [slug for slug, answer in answers.items() if answer.status in ("fail", "unknown")] == []
    assert (answers["cards-present"].status, answers["cards-present"].saw[:15]) == ("warn", "No accelerator:")
    assert "on the CPU, with gloo" in answers["cards-present"].saw
    assert "gloo" in answers["backend-registered"].saw
    assert not [answer.saw for answer in answers.values() if re.search(r"counts [1-9]|lists [1-9]|[1-9]\d* cards", answer.saw)]


def test_what_imports_torch_works_side_by_side(planter: Planter) -> None:
    """The child that asks mmengine is started before the one that asks torch has answered, and no child is left if nobody asks on."""
    host = Host(Request(), planter.environ)
    results = examine(host, STATIC)
    next(results)
    assert {program for program, _ in host._begun} >= {"mmengine_facts"}
    results.close()
    assert host._begun == {}


def test_a_device_type_that_nobody_knows(planter: Planter) -> None:
    """The names that --device takes are in the remedy itself."""
    answer = cards_present.check(planter.host(device="foo"))
    assert answer.status == "fail"
    assert {"cpu", "cuda", "gcu", "npu"} <= set(answer.remedy.rstrip(".").replace(",", "").split())


@pytest.mark.parametrize(
    ("variables", "check", "saw"),
    [
        ({"MASTER_ADDR": "no-such-host.invalid"}, "master-address", "no-such-host.invalid does not resolve"),
        ({"MASTER_ADDR": "192.0.2.7"}, "master-address", "192.0.2.7 is not an address of this host"),
        ({"MASTER_PORT": "70000"}, "master-port", "'70000' is not a valid port"),
        ({"WORLD_SIZE": "8"}, "launcher-variables", "WORLD_SIZE is set in this shell, but RANK is not"),
        ({"DDP_PROBE_HANG_AFTR": "5"}, "variable-names", "DDP_PROBE_HANG_AFTR: nothing reads it; DDP_PROBE_HANG_AFTER is read"),
        ({"DDP_PROBE_HANG_AFTER": "soon"}, "variable-names", "DDP_PROBE_HANG_AFTER: The value must be"),
        ({"NCCL_SOCKET_IFNAMES": "eth0"}, "variable-names", "NCCL_SOCKET_IFNAMES: nothing reads it; NCCL_SOCKET_IFNAME is read"),
        ({"TMPDIR": "/tmp/" + "t" * 80}, "temp-folder", "A socket in /tmp/ttt"),
        ({"WORD_SIZE": "2"}, "variable-names", "WORD_SIZE: nothing reads it; WORLD_SIZE is read"),
        ({"DDP_PROBE_DIR": "/proc/nowhere/runs"}, "run-folder-writable", "/proc/nowhere/runs cannot be written"),
    ],
    ids=str,
)
def test_a_variable(planter: Planter, variables: Dict[str, str], check: str, saw: str) -> None:
    """A wrong variable fails its check alone; the commands of the remedy, run as a shell runs them, make every check as before."""
    host = planter.host(environ=variables)
    assert planter.worse(host) == [check]
    answer = planter.examined(host)[check].answer
    assert answer.saw.startswith(saw)
    after = followed(answer.remedy, {**planter.environ, **variables})
    repaired = planter.host()
    repaired.environ = after
    assert check not in planter.worse(repaired)


def test_a_port_that_is_taken(planter: Planter, free_port: Callable[[], int]) -> None:
    """The process that holds the port is named; the port that the remedy names is free."""
    with socket.socket() as server:
        port = free_port()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
        server.listen()
        host = planter.host(environ={"MASTER_PORT": str(port)})
        assert planter.worse(host) == ["master-port"]
        answer = planter.examined(host)["master-port"].answer
        assert "process %d holds it" % os.getpid() in answer.saw
        repaired = planter.host(environ={"MASTER_PORT": followed(answer.remedy, host.environ)["MASTER_PORT"]})  # type: ignore[arg-type]
        assert planter.worse(repaired) == []
        by_option = planter.host("torchrun", "--master_port=%d" % port, sys.executable)
        assert re.search(r"--master_port=\d+$", master_port.check(by_option).remedy)


def test_a_backend_that_is_absent(planter: Planter) -> None:
    """A backend that torch lacks fails its check alone, and the one that the remedy names is there."""
    host = planter.host(backend="nccl" if "nccl" not in planter.healthy["backend-registered"].answer.saw else "ucc")
    assert planter.worse(host) == ["backend-registered"]
    named = re.search(r"--backend (\w+)", planter.examined(host)["backend-registered"].answer.remedy)
    assert named
    assert planter.examined(planter.host(backend=named[1]))["backend-registered"].answer.status == "ok"


def _path(planter: Planter, folder: Path) -> Dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), planter.environ.get("PYTHONPATH")]))}


def test_a_vendor_module_that_breaks(planter: Planter, tmp_path: Path) -> None:
    """A vendor's module that ends the interpreter fails one check, and what needs it is skipped."""
    (tmp_path / "torch_gcu").mkdir()
    (tmp_path / "torch_gcu" / "__init__.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    results = planter.examined(planter.host(environ=_path(planter, tmp_path)))
    assert [slug for slug, result in results.items() if result.answer.status in ("fail", "unknown")] == ["vendor-module"]
    assert "was killed by SIGSEGV" in results["vendor-module"].answer.saw
    assert "python -c 'import torch, torch_gcu'" in results["vendor-module"].answer.remedy
    assert {results[slug].answer.status for slug in ("cards-present", "backend-registered", "mmengine-device")} == {"skipped"}


def test_two_versions_of_mmengine(planter: Planter, tmp_path: Path) -> None:
    """A second copy fails one check, which names both versions and folders; with the folder off PYTHONPATH, as the remedy says, it passes."""
    (tmp_path / "mmengine").mkdir()
    (tmp_path / "mmengine" / "__init__.py").touch()
    (tmp_path / "mmengine-0.9.0.dist-info").mkdir()
    (tmp_path / "mmengine-0.9.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mmengine\nVersion: 0.9.0\n")
    host = planter.host(environ=_path(planter, tmp_path))
    host._answers.update({key: found for key, found in planter.host()._answers.items() if key[0] != "packages"})  # This copy is empty.
    failing = planter.failing(host)
    assert list(failing) == ["one-copy"]
    answer = failing["one-copy"].answer
    assert answer.saw.startswith("mmengine is installed 2 times: 0.9.0 in %s, " % tmp_path)
    assert answer.remedy.startswith("Python imports 0.9.0 in %s. Remove the other: " % tmp_path)
    assert answer.remedy.endswith("; or remove its folder from PYTHONPATH.")
    assert planter.failing(planter.host()) == {}


def test_a_source_tree_that_shadows(planter: Planter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder named mmengine, from which the job is started, is named with the installed one; from another folder the check passes."""
    (tmp_path / "mmengine").mkdir()
    (tmp_path / "mmengine" / "__init__.py").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    answer = one_copy.check(planter.host(environ=_path(planter, tmp_path / "elsewhere")))
    assert answer.status == "fail"
    assert answer.saw.startswith("'import mmengine' takes %s, not mmengine " % (tmp_path / "mmengine"))
    assert "Start the job from a folder other than %s" % tmp_path in answer.remedy
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert one_copy.check(planter.host(environ=_path(planter, tmp_path / "elsewhere"))).status == "ok"


def _unshare(code: str, env: Dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["unshare", "-m", "sh", "-ec", code], env=env, capture_output=True, text=True, timeout=120, check=False)


def test_shared_memory_that_is_small(clean_env: Callable[..., Dict[str, str]]) -> None:
    """/dev/shm of 64 MiB fails its check; the command that the remedy gives to root makes it pass."""
    if _unshare("mount -t tmpfs tmpfs /dev/shm", dict(os.environ)).returncode:
        pytest.skip("This user may not mount a file system in a namespace of its own.")
    code = "from ddp_probe.doctor.checks.shared_memory import check\nfrom ddp_probe.doctor.host import *\n"
    code += "print(*check(Host(Request()))[:3], sep=chr(10))"
    look = shlex.join([sys.executable, "-c", code])
    small = _unshare("mount -t tmpfs -o size=64m tmpfs /dev/shm\n" + look, clean_env())
    status, saw, remedy = small.stdout.splitlines()
    assert (status, saw) == ("fail", "/dev/shm has 64 MiB, 64 MiB free.")
    (command,) = re.findall(r"as root: (.*)", remedy)
    repaired = _unshare("mount -t tmpfs -o size=64m tmpfs /dev/shm\n%s\n%s" % (command, look), clean_env())
    assert repaired.stdout.splitlines()[:1] == ["ok"], repaired.stderr


def _dev(tmp_path: Path, *names: str) -> str:
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "shm").mkdir(exist_ok=True)
    return str(tmp_path)


def test_visible_cards(planter: Planter, tmp_path: Path) -> None:
    """A variable that hides every card, names one twice, or one that is not there, fails; the command of the remedy makes it pass."""
    dev = _dev(tmp_path, "nvidia0", "nvidia1")
    for value in ("", "-1", "0,0", "0,5", "5"):
        host = planter.host(environ={"CUDA_VISIBLE_DEVICES": value}, dev=dev)
        answer = visible_cards.check(host)
        assert answer.status == "fail", value
        assert list(planter.failing(host)) == ["visible-cards"]  # That torch counts no card follows from it.
        repaired = planter.host(dev=dev)
        repaired.environ = followed(answer.remedy, dict(host.environ))
        assert visible_cards.check(repaired).status == "ok", answer
    assert visible_cards.check(planter.host(environ={"CUDA_VISIBLE_DEVICES": "1,0"}, dev=dev)).status == "ok"
    assert visible_cards.check(planter.host(environ={"CUDA_VISIBLE_DEVICES": "0"}, dev=dev, nproc=2)).saw.endswith("leaves 1 cards for 2 ranks.")


def test_device_files_of_another_group(run_python: Any, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """Files that this user may not open fail the check, with the group that may; files that it may open pass."""
    if os.getuid():
        pytest.skip("Only root can become another user.")
    dev = _dev(tmp_path, "gcu0", "gcu1")
    code = (
        "import os, grp; from ddp_probe.doctor.checks import device_files_open as it\n"
        "from ddp_probe.doctor.host import Host, Request\n"
        "host = Host(Request(device='gcu'), {}, dev=%r); os.setgid(65534); os.setuid(65534)\n"
        "answer = it.check(host); print(answer.status, answer.saw, answer.remedy)"
    ) % dev
    for path in [tmp_path, *tmp_path.parents][:-2]:
        path.chmod(0o755)
    (tmp_path / "gcu1").chmod(0o600)
    (tmp_path / "gcu0").chmod(0o666)
    said = run_python(code, env=clean_env()).stdout
    assert said.startswith("fail 1 of 2 cannot be read and written by this user: %s/gcu1." % dev)
    assert "usermod -aG root $USER" in said
    (tmp_path / "gcu1").chmod(0o666)
    assert run_python(code, env=clean_env()).stdout.startswith("ok ")


_TOOLS = {
    "cuda": ("nvidia-smi", "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n", "nvidia"),
    "npu": (
        "npu-smi",
        "\tTotal Count                    : 2\n\n\tNPU ID                         : 0\n\tNPU ID                         : 1\n",
        "davinci",
    ),
    "rocm": ("rocm-smi", "GPU[0]\t\t: Device ID: 0x740f\nGPU[1]\t\t: Device ID: 0x740f\n", ""),
}


@pytest.mark.parametrize("name", sorted(_TOOLS))
def test_what_a_vendors_tool_lists(planter: Planter, tmp_path: Path, name: str) -> None:
    """The cards that a tool lists are counted and compared with the device files; a tool that fails or hangs is named."""
    tool, output, files = _TOOLS[name]
    dev = tmp_path / "dev"
    dev.mkdir()
    for number in range(2):
        (dev / ("%s%d" % (files, number) if files else "kfd")).touch()
    script = tmp_path / tool
    script.write_text("#!/bin/sh\ncat <<'TEXT'\n%sTEXT\n" % output)
    script.chmod(0o755)
    path = {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
    host = planter.host(environ=path, dev=str(dev), device=name)
    answer = vendor_tool.check(host)
    assert (answer.status, answer.saw, len(answer.details)) == ("ok", "%s lists 2 cards." % tool, 2)
    if files:
        (dev / (files + "2")).touch()
        assert vendor_tool.check(host).saw == "%s lists 2 cards, but there are 3 device files." % tool
    script.write_text("#!/bin/sh\necho no driver\nexit 9\n")
    assert vendor_tool.check(host).saw == "%s ended with exit code 9: no driver" % tool


def test_the_driver(planter: Planter, tmp_path: Path) -> None:
    """A driver below /sys/module is named with its version; device files without it warn."""
    dev = _dev(tmp_path, "nvidia0")
    module = tmp_path / "sys" / "module" / "nvidia"
    host = planter.host(dev=dev, sys=str(tmp_path / "sys"))
    assert driver_loaded.check(host).status == "warn"
    module.mkdir(parents=True)
    (module / "version").write_text("535.129.03\n")
    assert driver_loaded.check(host).saw == "The driver nvidia 535.129.03 is loaded."


_LAUNCHES = [
    ("python {script}", {}, {}),
    ("torchrun --nproc_per_node=8 {script}", {}, {}),
    ("torchrun --nproc_per_node=8 missing.py", {}, {"program-there": "fail"}),
    ("torchrun --nproc_per_node=8 {script}", {"WORLD_SIZE": "8"}, {"set-by-hand": "warn", "launcher-variables": "fail"}),
    ("env WORLD_SIZE=8 torchrun --nproc_per_node=8 {script}", {}, {"set-by-hand": "warn"}),
    ("python -m torch.distributed.launch --nproc_per_node=2 {underscore}", {}, {"local-rank-argument": "new"}),
    ("torchrun --nproc_per_node=2 {underscore}", {}, {"local-rank-argument": "warn"}),
    ("no-such-launcher {script}", {}, {"program-there": "fail"}),
]


@pytest.mark.parametrize(("command", "variables", "expected"), _LAUNCHES, ids=str)
def test_a_launch_command(
    planter: Planter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, variables: Dict[str, str], expected: Dict[str, str]
) -> None:
    """A mistake in the launch command is found by its own check, and a command without one by none."""
    (tmp_path / "train.py").write_text("import os\nprint(os.environ['LOCAL_RANK'])\n")
    (tmp_path / "old.py").write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int, default=0)\n")
    monkeypatch.chdir(tmp_path)
    for name in ("torchrun", "python"):
        (tmp_path / name).symlink_to(Path(sys.executable).with_name(name) if name == "python" else Path(sys.executable).with_name("torchrun"))
    words = command.format(script="train.py", underscore="old.py").split()
    host = planter.host(*words, environ={**variables, "PATH": "%s:%s" % (tmp_path, os.environ["PATH"])})
    found = {slug: result.answer.status for slug, result in planter.examined(host).items()}
    wanted = ("program-there", "set-by-hand", "local-rank-argument", "launcher-used", "ranks-and-cards", "launcher-variables")
    worse = {slug: found[slug] for slug in wanted if found[slug] in ("fail", "warn")}
    new = cards.torch_facts(host).last["torch"] >= "2"
    assert worse == {slug: status.replace("new", "fail") for slug, status in expected.items() if status != "new" or new}


def test_commands_on_a_host_with_cards(
    planter: Planter,
    gcu_env: Dict[str, str],  # noqa: F811  # the fixture above
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With eight cards, more ranks than cards fail, one plain process warns with the command that uses all, and mmengine's 'cpu' fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import os\nprint(os.environ['LOCAL_RANK'])\n")
    run = [sys.executable, "-m", "torch.distributed.run"]
    host = planter.host(*run, "--nproc_per_node=16", "train.py", environ=gcu_env)
    results = planter.failing(host)
    assert list(results) == ["mmengine-device", "ranks-and-cards"]
    assert "DDP_PROBE_FIX=auto" in results["mmengine-device"].answer.remedy
    answer = results["ranks-and-cards"].answer
    assert (answer.saw, answer.remedy) == ("16 ranks are to start, and torch counts 8 cards.", "--nproc_per_node=8")
    repaired = planter.host(*run, answer.remedy, "train.py", environ=gcu_env, like=host)
    assert list(planter.failing(repaired)) == ["mmengine-device"]
    plain = planter.examined(planter.host(sys.executable, "train.py", environ=gcu_env, like=host))
    assert (plain["launcher-used"].answer.status, plain["launcher-used"].answer.remedy) == ("warn", "torchrun --nproc_per_node=8 train.py")
    assert re.match(r"torch counts 8 \w+ cards\.$", plain["cards-present"].answer.saw)
