"""The pages for a person in Chinese, over recorded runs; what programs read does not change."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from docs_parts import translations

from ddp_probe.cli import main
from ddp_probe.doctor.check import TEXTS as CHECK_TEXTS
from ddp_probe.doctor.check import Answer, Result
from ddp_probe.doctor.checks import modules as check_modules
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rule import TEXTS as RULE_TEXTS
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.showing import doctor_page, ranks_table, safe, terminal
from ddp_probe.showing.language import CHINESE
from ddp_probe.wording import words

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
JOBS = ["03_submodule_left_behind", "00_healthy_cards", "12_killed_by_sigkill", "10_rank_never_started", "09_other_shape_on_one_rank"]
WEAKER = (
    "ValueError: DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {'cpu', 'cuda'}."
)
OPEN = '{"event":"process.start","rank":0,"world_size":2}\n{"event":"process.end","rank":0}'
LABELS = CHINESE.translations
RULES = {rule_of(module).slug: rule_of(module) for module in modules()}
# Words of a page that also stand in what a run says of itself.
_OF_RUNS = {"rank", "init", "failed", "host", "card", "file", "exit", "low", "clear", "at %s", "killed", "stopped", "read"}


@pytest.fixture(scope="module")
def diagnoses() -> List[Diagnosis]:
    """Return what the rules say of some recorded jobs, of a plain log, and of a run without an end."""
    return [*(judge(load([str(RECORDED / job)])) for job in JOBS), judge(from_lines(WEAKER)), judge(from_lines(OPEN))]


def _starts() -> Dict[str, "re.Pattern[str]"]:
    """Return the English labels of pages that are translated, each with what a line looks like that begins with it or consists of it."""
    starts = {label: re.split(r"%(?:\.\d)?[a-z]", label)[0].strip() for label in translations.labels() if label in LABELS and label not in _OF_RUNS}
    return {label: re.compile(re.escape(start) + r"(?:$|\s\s|:? ?$)") for label, start in starts.items() if len(start) > 3}


STARTS = _starts()


def _labels(line: str) -> List[str]:
    """Return the English labels that a line of a page begins with, or consists of."""
    bare = line.strip()
    return [label for label, start in STARTS.items() if start.match(bare)]


def test_a_report_has_the_chinese_verdict_and_no_english_label(diagnoses: List[Diagnosis]) -> None:
    """Each finding has its verdict in Chinese, and what frames the run's own words is Chinese."""
    for diagnosis in diagnoses:
        lines = [line.text for line in terminal.lines(diagnosis, 80, say=CHINESE)]
        page = "".join(line.strip() for line in lines).replace(" ", "")
        for finding in diagnosis.findings:
            verdict = CHINESE.text(finding.verdict)
            assert re.search("[\u3400-\u9fff]", verdict)
            assert verdict.replace(" ", "") in page
        assert [(line, _labels(line)) for line in lines if _labels(line)] == []
        assert any(_labels(line.text) for line in terminal.lines(diagnosis))
        assert [line for line in lines if safe.width(line) > 80 and " " in line.strip()] == []


def test_the_three_verdicts_are_in_chinese(diagnoses: List[Diagnosis]) -> None:
    """A found cause, a clear run and an open question are told in Chinese, with the reasons."""
    pages = ["\n".join(line.text for line in terminal.lines(diagnosis, 110, say=CHINESE)) for diagnosis in diagnoses]
    assert "\n  如何修改\n" in pages[0]
    assert "无异常：rank 0-1 都正常结束，没有规则发现问题。" in pages[1]
    assert "仅依据打印出的文本，证据较弱。" in pages[-2]
    assert "无法判定：没有规则能给出原因，因为" in pages[-1]
    assert "  - rank 1 没有留下文件（应有 2 个 rank）。" in pages[-1]
    assert "\n    下一步：" in pages[-1]


def test_ranks_stay_ranks() -> None:
    """Ranks are named by their numbers, one or many, and what a list leaves out is counted."""
    named = [CHINESE.text(words.named(ranks, limit)) for ranks, limit in (([3], 9), ([0, 1, 2, 5], 9), ([], 9), ([0, 2, 4], 1), ([0, 2], 1))]
    assert named == ["rank 3", "rank 0-2，5", "一个进程", "rank 0，另有 2 段", "rank 0，另有 1 段"]
    assert [CHINESE.text(ranks_table.who(ranks)) for ranks in ([3], [0, 1, 5], [])] == ["rank 3", "rank 0-1，5", "一个进程"]


def test_a_remedy_is_in_chinese(diagnoses: List[Diagnosis]) -> None:
    """What a rule says to change in general is in Chinese; a change with the run's own lines follows it as it is."""
    diagnosis = diagnoses[0]
    rule = RULES[diagnosis.findings[0].slug]
    general = CHINESE.of(rule, "remedy")
    for remedy, shown, english in ((rule.remedy, general, False), ("Write x at train.py:3.", general + "Write x at train.py:3.", True)):
        diagnosis.findings[0] = replace(diagnosis.findings[0], remedy=remedy)
        page = "".join(line.text.strip() for line in terminal.lines(diagnosis, 80, say=CHINESE)).replace(" ", "")
        assert shown.replace(" ", "") in page
        assert (remedy.replace(" ", "") in page) == english


@pytest.mark.parametrize("form", ["json", "brief", "github", "junit"])
def test_the_forms_for_programs_are_the_same(form: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """--json, --brief and the forms for pipelines print the same bytes in both languages."""
    said = []
    for word in ("en", "zh"):
        monkeypatch.setenv("DDP_PROBE_LANG", word)
        main(["report", "--format", form, str(RECORDED / JOBS[0])])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


def test_the_command_takes_the_language_of_its_environment(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`report` is Chinese under a Chinese locale, and English under DDP_PROBE_LANG=en."""
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    main(["report", str(RECORDED / JOBS[0])])
    assert "\n  证据\n" in capsys.readouterr().out
    monkeypatch.setenv("DDP_PROBE_LANG", "en")
    main(["report", str(RECORDED / JOBS[0])])
    assert "\n  evidence\n" in capsys.readouterr().out


@pytest.mark.parametrize("slug", ["submodule-left-behind", "shared-memory"])
def test_a_page_of_explain_is_in_chinese(slug: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`explain NAME` prints the Chinese texts of a rule and of a check, below Chinese headings."""
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    assert main(["explain", slug]) == 0
    page = capsys.readouterr().out
    own = {**RULES, **{module.CHECK.slug: module.CHECK for module in check_modules()}}[slug]
    texts = [CHINESE.of(own, field) for field in (RULE_TEXTS if slug in RULES else CHECK_TEXTS)]
    assert all(text.replace(" ", "") in re.sub(r"\s", "", page) for text in texts)
    assert [line for line in page.splitlines() if _labels(line)] == []


def test_the_list_of_explain_is_in_chinese(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`explain` lists every rule and every check with its Chinese title, below Chinese headings."""
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    assert main(["explain", "--all"]) == 0
    page = capsys.readouterr().out
    flat = re.sub(r"\s", "", page)
    pages = [*RULES.values(), *(module.CHECK for module in check_modules())]
    assert [each.slug for each in pages if CHINESE.of(each, "title").replace(" ", "") not in flat] == []
    assert "DDP1xx  封装时模型所在的设备" in page
    assert "DOC1xx  Python 包" in page


def test_doctor_is_in_chinese() -> None:
    """Doctor's page has Chinese titles, results and general remedies, beside what it saw in English."""
    statuses = {"shared-memory": "fail", "limits": "ok", "clock": "skipped"}
    checks = [module.CHECK for module in check_modules() if module.CHECK.slug in statuses]
    results = [
        Result(check, Answer(statuses[check.slug], "It saw 3.", check.remedy if check.slug == "shared-memory" else ""), 0.0) for check in checks
    ]
    texts = [line.text for line in doctor_page.lines(results, 80, CHINESE)]
    assert texts[0] == "1 项检查失败，1 项正常，1 项跳过。"
    place = texts.index("DOC301 shared-memory 失败")
    assert texts[place + 1].startswith("    应当如此：共享内存（/dev/shm）足够大")
    assert "    处理：启动容器时加上 --shm-size=8g 或 --ipc=host。" in texts
    assert "  正常 DOC302 limits" in texts
    assert "跳过" in texts
    assert sum("It saw 3." in text for text in texts) == 3


def test_a_stream_that_cannot_show_chinese_gets_english(tmp_path: Path, run_python: Callable[..., Any], clean_env: Callable[..., Any]) -> None:
    """A stdout that cannot encode Chinese gets the English page."""
    env = clean_env(DDP_PROBE_LANG="zh", PYTHONIOENCODING="ascii")
    done = run_python(["-m", "ddp_probe", "report", RECORDED / JOBS[0]], env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\n  evidence\n" in done.stdout
    assert "\\u" not in done.stdout


def test_the_report_goes_to_a_stream(diagnoses: List[Diagnosis], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown is in the language of this process's environment, whatever the stream."""
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    stream = io.StringIO()
    terminal.show(diagnoses[1], stream)
    assert "无异常：" in stream.getvalue()
