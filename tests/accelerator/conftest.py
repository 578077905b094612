"""Fixtures that run a program on the stand-ins for cards and read its answer."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, List, Union

import pytest

from accelerator.fixtures import gcu_env, labelled_env

__all__ = ["gcu_env", "labelled_env"]


@pytest.fixture(scope="session")
def old_torch() -> bool:
    """Whether this is torch 1.12, where the cards are named xla."""
    return metadata.version("torch").startswith("1.")


@pytest.fixture(scope="session")
def card(old_torch: bool) -> str:
    """The type of the cards' devices."""
    return "xla" if old_torch else "gcu"


@pytest.fixture(scope="session")
def on_cards(gcu_env: Dict[str, str], clean_env: Callable[..., Dict[str, str]], run_python: Callable[..., Any], card: str) -> Callable[..., Any]:
    """Run code that sets `answer` in an interpreter with eight cards, and return the answer; CARD stands for their type."""

    def run(code: str, **variables: str) -> Any:
        program = "import json, torch, torch_gcu\nanswer = None\n%s\nprint(json.dumps(answer))" % code.replace("CARD", card)
        done = run_python(program, env=clean_env(**gcu_env, **variables))
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture
def ranks(clean_env: Callable[..., Dict[str, str]], torchrun: Callable[..., Any], tmp_path: Path, card: str) -> Callable[..., List[Any]]:
    """Launch a script, or the text of one, that writes rank<N>.json into its first argument, and return what the ranks wrote."""

    def launch(script: Union[str, Path], nproc: int, env: Dict[str, str]) -> List[Any]:
        if isinstance(script, str):
            job = tmp_path / "job.py"
            job.write_text(script.replace("CARD", card), encoding="utf-8")
            script = job
        done = torchrun(script, nproc=nproc, args=[tmp_path], env=clean_env(**env), timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads((tmp_path / ("rank%d.json" % rank)).read_text(encoding="utf-8")) for rank in range(nproc)]

    return launch
