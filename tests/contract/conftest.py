"""Programs that are run with and without the probe, and what there is to compare."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
from contract_pieces import ARGUMENTS, PROGRAMS, SECRETS, Failure, Training

Done = "subprocess.CompletedProcess[str]"
_TRAP = "import os\nwith open(os.environ['TRAP'], 'a') as file:\n    file.write(__name__ + chr(10))\nraise SystemExit('imported by somebody')\n"


@pytest.fixture(scope="session")
def run_program(run_python: Callable[..., Done], armed: Callable[..., Dict[str, str]]) -> Callable[..., Done]:
    """Run a program of this folder; by default no activator is on the path, and it arms itself."""

    def run(name: str, *args: Any, env: Optional[Dict[str, str]] = None, cwd: Optional[Path] = None, timeout: float = 120) -> Done:
        return run_python([PROGRAMS / (name + ".py"), *args], env=env, cwd=cwd, timeout=timeout)

    return run


@pytest.fixture(scope="session")
def told(run_program: Callable[..., Done], clean_env: Callable[..., Dict[str, str]]) -> Callable[..., Dict[str, Any]]:
    """Run a program that arms itself and writes what it found as JSON; returns that."""

    def run(name: str, folder: Path, *args: str, **extra: Optional[str]) -> Dict[str, Any]:
        answer = folder / (name + ".json")
        done = run_program(name, answer, *args, env=clean_env(DDP_PROBE_DIR=str(folder / "runs"), **extra), cwd=folder)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr[-4000:]
        found: Dict[str, Any] = json.loads(answer.read_text())
        return found

    return run


@pytest.fixture(scope="session")
def training(
    run_python: Callable[..., Done],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Dict[str, Training]:
    """The training program over two ranks, 'plain' and 'probed', with secrets in its environment and traps on its path."""

    def launch(how: str) -> Training:
        folder = tmp_path_factory.mktemp(how)
        for name in ("torch_gcu", "habana_frameworks"):
            (folder / "traps" / name).mkdir(parents=True)
            (folder / "traps" / name / "__init__.py").write_text(_TRAP)
        env = armed(folder / "runs" if how == "probed" else None, TRAP=str(folder / "trap"), **SECRETS)
        env["PYTHONPATH"] += ":%s" % (folder / "traps")
        command = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
        done = run_python([*command, PROGRAMS / "training.py", folder, *ARGUMENTS], env=env, cwd=folder, timeout=240)
        assert done.returncode == 0, done.stderr[-6000:]
        facts = [json.loads((folder / ("rank%d.json" % rank)).read_text()) for rank in (0, 1)]
        trap = folder / "trap"
        return Training(done, facts, folder / "runs", trap.read_text() if trap.exists() else "")

    return {how: launch(how) for how in ("plain", "probed")}


@pytest.fixture(scope="session")
def failures(
    run_program: Callable[..., Done],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Dict[str, Dict[str, Failure]]:
    """Each way of the failing program that is asked for, as one rank of one, with and without the probe."""

    def run(name: str, folder: Path, port: int) -> Failure:
        place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        env = armed(folder / "runs" if folder.name == "probed" else None, **place)
        done = run_program("failing", name, env=env, cwd=folder)
        return Failure(done.returncode, done.stdout, done.stderr, folder / "runs")

    class Ways(Dict[str, Dict[str, Failure]]):
        def __missing__(self, name: str) -> Dict[str, Failure]:
            root = tmp_path_factory.mktemp(name)
            folders = [root / "plain", root / "probed"]
            for folder in folders:
                folder.mkdir()
            with ThreadPoolExecutor(max_workers=2) as pool:
                found = pool.map(run, [name] * 2, folders, [free_port(), free_port()])
                self[name] = dict(zip(("plain", "probed"), found))
            return self[name]

    return Ways()
