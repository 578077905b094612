"""What commands print on a Chinese terminal, their help too, is Chinese: quotes, code and names stay."""

import re
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.activation.installer import activator_files, child
from ddp_probe.cli import _commands, main, status
from ddp_probe.showing import safe
from ddp_probe.showing.language import CHINESE
from ddp_probe.wording.text import say

_SENTENCE = re.compile(r"[A-Za-z][a-z]+(?:,? [a-z'-]{2,}){2,}")
_LINE_OF_CODE = r"^  .*(?:torchrun|python -m) .*"
_CODE = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|%s|python -m ddp_probe|pip install" % _LINE_OF_CODE, re.MULTILINE)
_SAME = re.compile(r"--[a-z][a-z-]*|\b[A-Z]+_[A-Z_]+\b|^  \d(?=  )", re.MULTILINE)
_CURRENT = activator_files.current_version()
_COMMANDS = ["", *_commands.names()]


def _page(
    command: str,
    language: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    monkeypatch.setenv("DDP_PROBE_LANG", language)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["help", *filter(None, [command])]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_page_has_no_english_sentence(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No sentence and no heading of the page is English, and no line is wider than the terminal."""
    page = _page(command, "zh", monkeypatch, capsys)
    assert _SENTENCE.findall(_CODE.sub("…", page)) == []
    assert page.startswith("用法：")
    assert re.findall(r"^(?:usage|options|optional|positional|exit codes)\b.*", page, re.MULTILINE) == []
    assert [line for line in page.splitlines() if safe.width(line) > 80] == []


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_page_names_the_same_options(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A Chinese page has each option, variable and exit code that the English one has."""
    pages: List[List[str]] = []
    for language in ("en", "zh"):
        page = _page(command, language, monkeypatch, capsys)
        pages.append(sorted(set(_SAME.findall(page))))
    assert pages[0] == pages[1] != []


@pytest.mark.parametrize("arguments", [["status"], ["status", "-v"], ["install", "--dry-run"]], ids=" ".join)
def test_what_is_installed_is_told_in_chinese(
    arguments: List[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The labels and sentences of status and install are Chinese; commands, paths and versions stay."""
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    assert main(arguments) in (0, 1)
    lines = [line for line in capsys.readouterr().out.splitlines() if "进程" not in line]
    assert lines[0].startswith("解释器")
    assert _SENTENCE.findall("\n".join(_CODE.sub("…", line) for line in lines)) == []


@pytest.mark.parametrize(
    ("of_state", "told"),
    [
        ({"state": "active", "via": "both"}, "有效，通过 sitecustomize 和 pth；已由子解释器验证"),
        ({"state": "absent", "installable": True}, "未安装。下一步：python -m ddp_probe install"),
        (
            {
                "state": "absent",
                "because": child.nothing_recorded(["msgspec"]),
                "missing": ["msgspec"],
            },
            "未安装。没有安装 msgspec。什么也不会记录。",
        ),
        (
            {
                "state": "shadowed",
                "because": say("{path} comes first on the path and wins.", path="/x/y.py"),
                "shadowed_by": "/x/y.py",
            },
            "被遮住。/x/y.py 在路径中靠前，因而生效的是它。下一步：python -m ddp_probe install，或 uninstall",
        ),
        (
            {
                "state": "outdated",
                "via": "pth",
                "version": "0",
                "because": say(
                    "It is of version {version}, this package writes version {current}.",
                    version="0",
                    current=_CURRENT,
                ),
            },
            "有效，通过 pth。它是版本 0，本包写入的是版本 %s。下一步：python -m ddp_probe install" % _CURRENT,
        ),
    ],
    ids=["active", "absent", "lacking", "shadowed", "outdated"],
)
def test_the_state_of_the_activator_is_told_in_chinese(of_state: Dict[str, Any], told: str) -> None:
    """What the installer found is told in Chinese, with the names and versions in it."""
    plain: Dict[str, Any] = dict.fromkeys(("via", "version", "because", "shadowed_by"), "")
    assert CHINESE.text(status._activator({**plain, "missing": [], "installable": False, **of_state})) == told


def test_the_runs_are_listed_in_chinese(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The list of runs has Chinese headings, verdicts and ends."""
    recorded = Path(__file__).resolve().parent.parent / "recorded" / "new"
    for job in ("00_healthy_ddp", "08_batchnorm_skips"):
        shutil.copytree(recorded / job, tmp_path / job)
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    assert main(["runs", str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["运行", "距今", "rank", "结论", "结束状态", "命令"]
    of_job = {row[0]: row[3:] for row in rows[1:]}
    assert of_job["00_healthy_ddp"][:2] == ["无异常", "正常"]
    assert of_job["08_batchnorm_skips"][:4] == ["已找到原因", "DDP629", "3", "个失败"]


def test_what_uninstall_leaves_is_told_in_chinese(tmp_path: Path) -> None:
    """uninstall names in Chinese what it has removed, and what it leaves to the person."""
    slot = tmp_path / "sitecustomize.py"
    slot.write_text("# somebody's own\n")
    gone = [str(slot), str(tmp_path / "ddp_probe.pth")]
    lines = activator_files.said(gone, [], CHINESE)
    assert lines == [
        "已移除  %s：只移除我们写的行，别的程序写的保留" % gone[0],
        "已移除  %s" % gone[1],
    ]
