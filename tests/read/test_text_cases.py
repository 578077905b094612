"""scripts/judge_cases: what it counts, and what it says where there is nothing to judge by."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

VOCABULARY = "| group | keys |\n|---|---|\n| moved | model_on_cpu_at_ddp_wrap, mixed_cpu_cuda_params |\n| other | port |\n"
_LEFT_BEHIND = (
    "ValueError: DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {'cpu', 'cuda'}."
)


@pytest.fixture
def judge_cases(repo: Path, tmp_path: Path, run_python: Any) -> Any:
    """Run the script over cases of the given causes and texts."""

    def run(cases: List[Any], vocabulary: str = VOCABULARY, part: str = "", more: Optional[Dict[str, Any]] = None) -> Any:
        rows = [{"id": "C%d" % number, "cause_key": cause, "error_text": words} for number, (cause, words) in enumerate(cases)]
        lines = [json.dumps({**row, **(more or {})}) for row in rows]
        (tmp_path / "cases.jsonl").write_text("\n".join(lines))
        (tmp_path / "README.md").write_text(vocabulary)
        return run_python([repo / "scripts" / "judge_cases", tmp_path / "cases.jsonl", "--vocabulary", tmp_path / "README.md", "--part", part])

    return run


def test_counts(judge_cases: Any) -> None:
    """The right cause, another one of its group, a wrong one and no answer are counted each as what it is."""
    words = ("mixed_cpu_cuda_params", "model_on_cpu_at_ddp_wrap", "port")
    done = judge_cases([*((cause, _LEFT_BEHIND) for cause in words), ("port", "all is well")])
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()[:4]] == ["right", "group", "WRONG", "open"]
    assert [line.split("  target")[0].split()[-4:] for line in done.stdout.splitlines()[-3:]] == [
        ["3", "of", "4", "0.75"],
        ["2", "of", "3", "0.67"],
        ["1", "of", "3", "0.33"],
    ]


def test_unseen_part(judge_cases: Any) -> None:
    """Cases of the unseen part are counted and not shown; a healthy log with a cause is an alarm, and ranks that are not the text's are not right."""
    more = {"part": "unseen", "ranks": [3], "group": "own"}
    done = judge_cases([("port", "[rank1]: " + _LEFT_BEHIND), (None, _LEFT_BEHIND), (None, "all is well")], part="unseen", more=more)
    assert done.returncode == 0, done.stderr
    lines = [line.split("  target")[0].split() for line in done.stdout.splitlines() if line]
    assert [line[-4:-1] for line in lines] == [["1", "of", "1"], ["0", "of", "1"], ["0", "of", "1"], ["0", "of", "1"], ["1", "of", "2"]]


@pytest.mark.parametrize("arguments", [["nowhere.jsonl"], ["nowhere.jsonl", "--vocabulary", "nowhere.md"]])
def test_nothing_to_judge_by(repo: Path, run_python: Any, tmp_path: Path, arguments: List[str]) -> None:
    """A file that is not there is one clear error and exit code 2."""
    (tmp_path / "README.md").write_text(VOCABULARY)
    given = arguments if len(arguments) > 1 else [*arguments, "--vocabulary", "README.md"]
    done = run_python([repo / "scripts" / "judge_cases", *given], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_broken_case(judge_cases: Any) -> None:
    """A vocabulary without a table is an error too."""
    done = judge_cases([("port", "x")], vocabulary="no table\n")
    assert done.returncode == 2
    assert "lists no cause" in done.stderr
