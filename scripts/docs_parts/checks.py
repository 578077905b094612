"""Prints docs/checks.md and docs/checks.zh-CN.md from ddp_probe/doctor/checks."""

from typing import Dict, Tuple

from ddp_probe.doctor.checks import HUNDREDS, modules
from ddp_probe.showing.language import CHINESE, ENGLISH, Language
from docs_parts.markdown import NOTE, prose

_HEAD: Dict[str, Tuple[str, ...]] = {
    "en": (
        "# Checks of doctor",
        "",
        "[中文](checks.zh-CN.md)",
        "",
        "One file each under `ddp_probe/doctor/checks/`. `python -m ddp_probe explain DOC301` prints one. An id and a slug never change.",
        "A check says ok, warn, fail, unknown (it could not be checked) or skipped, with the reason; a check that fails says what to do.",
    ),
    "zh": (
        "# doctor 的检查",
        "",
        "[English](checks.md)",
        "",
        "每项检查是 `ddp_probe/doctor/checks/` 下的一个文件。`python -m ddp_probe explain DOC301` 打印其中一项。编号和名称永远不变。",
        "检查的结果是 ok（正常）、warn（警告）、fail（失败）、unknown（未能检查）或 skipped（跳过），并给出原因；失败时会写明怎么办。",
    ),
}
_COLUMNS = {
    "en": "| check | expected | what it looks at | if it fails |",
    "zh": "| 检查 | 应当如此 | 检查什么 | 失败时怎么办 |",
}


def checks_page() -> str:
    """Return docs/checks.md."""
    return _page(ENGLISH)


def checks_page_in_chinese() -> str:
    """Return docs/checks.zh-CN.md."""
    return _page(CHINESE)


def _page(say: Language) -> str:
    lines = [NOTE % "ddp_probe/doctor/checks", *_HEAD[say.name]]
    hundred = ""
    for module in modules():
        check = module.CHECK
        if check.id[:4] != hundred:
            hundred = check.id[:4]
            lines += ["", "## %s" % say(HUNDREDS[hundred]), "", _COLUMNS[say.name], "|---|---|---|---|"]
        name = "%s %s%s" % (check.id, check.slug, " (live)" if check.live else "")
        texts = (name, *(say.of(check, field) for field in ("title", "looks_at", "remedy")))
        lines.append("| %s |" % " | ".join(prose(" ".join(text.split())) for text in texts))
    return "\n".join(lines) + "\n"
