"""Every rule and every check has its texts in Chinese too, with the same names, numbers and quotations."""

import pytest
from texts import mistakes

from ddp_probe.diagnose.rules import modules as rule_modules
from ddp_probe.diagnose.rules import rule_of
from ddp_probe.doctor.checks import modules as check_modules

RULES = [rule_of(module) for module in rule_modules()]
CHECKS = [module.CHECK for module in check_modules()]
SLUGS = sorted({page.slug for page in (*RULES, *CHECKS) if "-" in page.slug})


@pytest.mark.parametrize("page", [*RULES, *CHECKS], ids=lambda page: page.id)
def test_a_page_has_all_its_texts_in_chinese(page) -> None:
    """Each text has its Chinese one, in Chinese characters and marks, with the names, numbers and quotations of the English one."""
    found = {field: mistakes(getattr(page, field), getattr(page.zh, field), SLUGS) for field in page.zh._fields}
    assert {field: wrong for field, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("chinese", "mistake"),
    [
        ("", "it is missing"),
        ("Move it: model.to(device).", "it has no Chinese character"),
        ("先移动模型。", "it lacks 2, model.to"),
        ("先用 model.to(device) 移动模型，2 次，再用 torch.load。", "it adds torch.load"),
        ("先移动模型, 用 model.to(device)，2 次。", "an ASCII mark beside a Chinese character"),
        ("先移动模型（model.to(device)）2次。", "no space between a Chinese character and a Latin one"),
        ("先移动模型 (用 model.to(device))，2 次。", "ASCII brackets around Chinese text"),
        ("先移动 模型：model.to(device)，2 次。", "a space between two Chinese characters"),
        ("先移动模型： model.to(device)，2 次。", "a space beside a Chinese mark"),
        ("用 model.to(device) 移动 2 次，见 model-never-moved。", "it adds model-never-moved"),
        ("用 model.to(device) 移动 2 次，否则报 'no device'。", "it adds 'no device'"),
    ],
)
def test_a_mistake_is_found(chinese: str, mistake: str) -> None:
    """Each of these texts is found to be wrong."""
    assert [text for text in mistakes("Move it twice: model.to(device), 2 times.", chinese, SLUGS) if text.startswith(mistake)]


def test_a_good_text_is_let_through() -> None:
    """A text that says the same in Chinese has no mistake."""
    assert mistakes("Move it: model.to(device), 2 times; see model-never-moved.", "移动 2 次：model.to(device)。见 model-never-moved。", SLUGS) == []
