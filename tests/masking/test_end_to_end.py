"""Secrets in the arguments, the environment, the exceptions and the log of a real job are in nothing that is written or printed about it."""

import tarfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import schedule
import secret_corpus
from secret_corpus import Planted

from ddp_probe import cli
from ddp_probe.reading import fold_file
from ddp_probe.shared.errors import ProbeError

_JOB = """\
import json, os, sys
import torch, torch.distributed as dist

texts = json.load(open(sys.argv[1]))
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    print("\\n".join(texts), file=sys.stderr)
    try:
        raise ConnectionError(texts[0])
    except ConnectionError as exc:
        raise RuntimeError("; ".join(texts[1:])) from exc
dist.barrier()
"""
_VARIABLES = ("NCCL_DEBUG_FILE", "GLOO_PROXY", "MMENGINE_NOTE", "FSDP_NOTE", "ACCELERATE_NOTE", "DEEPSPEED_NOTE")


def _chosen() -> Tuple[List[Planted], List[Planted], List[Planted]]:
    """Return forms for the arguments, the environment and the messages: 40 of them, each of another kind."""
    seed = schedule.seed()
    commands = _one_of_each(each for each in secret_corpus.places(seed) if each.carrier == "argv")[3::6][:14]
    texts = _one_of_each(each for each in secret_corpus.places(seed) if each.carrier == "line" and "\n" not in each.text)[2::5][:14]
    keys = _one_of_each(each for each in secret_corpus.keys(seed) if each.carrier == "environment" and len(each.text) < 100)
    return commands, keys[5::40][: len(_VARIABLES)], texts + keys[8::40][:6]


def _one_of_each(planted: Any) -> List[Planted]:
    kinds: Dict[str, Planted] = {}
    for each in planted:
        if not each.leaks():  # A random value that looks like a word is counted by test_corpora.py.
            kinds.setdefault(each.kind, each)
    return list(kinds.values())


@pytest.fixture(scope="module")
def launched(run_python: Any, free_port: Callable[[], int], armed: Any, tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, Path, List[str]]:
    """A job of two ranks with 40 secrets; return its run's folder, its log and the secrets."""
    import json
    import shlex

    place = tmp_path_factory.mktemp("planted")
    commands, variables, texts = _chosen()
    assert len(commands) + len(variables) + len(texts) == 40
    (place / "train.py").write_text(_JOB, encoding="utf-8")
    (place / "texts.json").write_text(json.dumps([each.text for each in texts]), encoding="utf-8")
    extra = {name: each.text for name, each in zip(_VARIABLES, variables)}
    words = [word for each in commands for word in [*shlex.split(each.text), "--"]]
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
    command = [*launcher, place / "train.py", place / "texts.json", *words]
    done = run_python(command, env=armed(place / "runs", **extra), cwd=place)
    assert done.returncode != 0
    (place / "job.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    (run,) = [path for path in (place / "runs").iterdir() if path.is_dir() and not path.is_symlink()]
    return run, place / "job.log", [part for each in (*commands, *variables, *texts) for part in each.secret]


def _held(secrets: List[str], data: bytes) -> List[str]:
    return [secret for secret in secrets if secret.encode() in data]


def _files(folder: Path) -> Dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_none_of_40_secrets_is_in_the_folder_of_the_run(launched: Tuple[Path, Path, List[str]]) -> None:
    """The job's own log holds its secrets, and no byte of the run's folder does, nor the name of a file."""
    run, log, secrets = launched
    assert len(_held(secrets, log.read_bytes())) >= 20
    files = _files(run)
    assert {".jsonl", ".ledger"} <= {Path(name).suffix for name in files}
    assert {name: _held(secrets, data + name.encode()) for name, data in files.items()} == {name: [] for name in files}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["terminal", "json", "brief", "github", "junit"])
def test_none_is_in_a_report(launched: Tuple[Path, Path, List[str]], capsys: pytest.CaptureFixture[str], form: str) -> None:
    """A report over the run, over the run with the job's log, and over the log alone shows none of them, in any form."""
    run, log, secrets = launched
    for paths in ([run], [run, log], [log]):
        cli.main(["report", "--format", form, *map(str, paths)])
        shown = capsys.readouterr()
        assert len(shown.out) > 40
        assert _held(secrets, (shown.out + shown.err).encode()) == []


@pytest.mark.slow
def test_none_is_in_what_is_given_away(launched: Tuple[Path, Path, List[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page, the trace, the bundle, the fold and what 'logs' prints hold none of them."""
    run, log, secrets = launched
    page, trace, bundle, fold = (tmp_path / name for name in ("a.html", "a.json", "b.tar.gz", "c.fold"))
    cli.main(["report", str(run), str(log), "--html", str(page), "--trace", str(trace)])
    assert cli.main(["bundle", str(run), "-o", str(bundle)]) == 0
    assert cli.main(["fold", str(run), "-o", str(fold)]) == 0
    cli.main(["logs", str(run)])
    cli.main(["report", str(fold)])
    with tarfile.open(bundle) as tar:
        members = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        inside = {name: data.read() for name, data in members.items() if data is not None}
    assert any(name.endswith(".jsonl") for name in inside)
    shown = capsys.readouterr()
    written = {path.name: path.read_bytes() for path in (page, trace)}
    written["fold"] = fold_file.read(str(fold)) + b"".join(fold_file.held_data(str(fold), each) or b"" for each in fold_file.held_files(str(fold)))
    everything = {**inside, **written, "printed": (shown.out + shown.err).encode()}
    assert all(everything.values())
    assert {name: _held(secrets, data + name.encode()) for name, data in everything.items()} == {name: [] for name in everything}


_ADDRESSES = ("s3://AKIAIOSFODNN7EXAMPLE:hunter2planted@bucket/a.fold", "ftp://bob:hunter2planted@h.example.org/a", "https://h/t/hunter2planted/a")


@pytest.mark.parametrize("address", _ADDRESSES)
def test_an_error_says_an_address_without_its_password(address: str) -> None:
    """What happened, why and what to do may quote an address; a part of it that lets somebody in is masked."""
    error = ProbeError(what="%s cannot be reached." % address, why="It is %s" % address, what_to_do="Run: fold -o %s" % address)
    assert "hunter2" not in "%s %s %s %r" % (error, error.what, error.why, error)
    assert str(error).count("***") == 3


@pytest.mark.parametrize("command", [["fold", "{run}", "-o"], ["report"]])
@pytest.mark.parametrize("address", _ADDRESSES[:2])
def test_a_command_does_not_echo_a_password(run_python: Callable[..., Any], tmp_path: Path, repo: Path, command: List[str], address: str) -> None:
    """A command that cannot reach an address prints it without its password."""
    run = repo / "tests" / "recorded" / "new" / "12_data_error_on_one_rank"
    done = run_python(["-m", "ddp_probe", *[word.format(run=run) for word in command], address], cwd=tmp_path)
    assert done.returncode == 2
    assert "***" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
