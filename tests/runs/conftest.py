"""Real runs under the probe, and the events that they leave."""

from typing import Any, Callable, Dict, List

import pytest
from run_pieces import PROGRAMS, Run


@pytest.fixture(scope="session")
def launch(
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    read_events: Callable[..., List[Dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Run]:
    """Two ranks under torchrun, with the probe."""

    def run(program: str, *args: str) -> Run:
        folder = tmp_path_factory.mktemp(program.split(".", maxsplit=1)[0])
        command = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
        done = run_python([*command, PROGRAMS / program, *args], env=armed(folder / "runs"), cwd=folder, timeout=240)
        return Run(done, folder / "runs", read_events)

    return run


@pytest.fixture(scope="session")
def alone(
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    read_events: Callable[..., List[Dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Run]:
    """Rank 0 of one, started by hand, with or without the probe."""

    def run(program: str, *args: str, probed: bool = True) -> Run:
        folder = tmp_path_factory.mktemp(program.split(".", maxsplit=1)[0])
        place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        env = armed(folder / "runs" if probed else None, **place)
        done = run_python([PROGRAMS / program, *args], env=env, cwd=folder, timeout=240)
        return Run(done, folder / "runs", read_events)

    return run
