"""Chinese characters take two columns, and a line of them is broken between two characters."""

import pytest

from ddp_probe.judging import rule
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.showing import safe
from ddp_probe.showing.language import CHINESE
from ddp_probe.showing.layout import columns, labelled, wrap

TEXTS = [CHINESE.of(rule_of(module), field) for module in modules() for field in rule.TEXTS]


@pytest.mark.parametrize("width", [40, 80, 110])
def test_chinese_text_fits_the_width(width: int) -> None:
    """Only a word that cannot be broken is wider than the page; nothing is lost, no mark begins a line, and no bracket ends one."""
    for text in TEXTS:
        lines = wrap(text, width, "  ", "    ")
        assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
        for line in lines:
            assert safe.width(line) <= width or " " not in line.strip(), line
            assert line.strip()[0] not in "，。：；、！？）》”"
            assert line.strip()[-1] not in "（《“"


def test_lines_of_chinese_are_full() -> None:
    """Text without a space is broken where the page ends, at two columns for a character."""
    assert wrap("进程组的后端不支持张量所在的设备。", 20) == ["进程组的后端不支持张", "量所在的设备。"]
    assert wrap("进程组的后端不支持张。", 20) == ["进程组的后端不支持", "张。"]
    assert wrap("进程组的后端不支持（张量）", 20) == ["进程组的后端不支持", "（张量）"]
    assert wrap("等待 rank 0 的是其他进程", 12) == ["等待 rank 0", "的是其他进程"]


@pytest.mark.parametrize("word", ["/数据/训练/模型.py:17", "模型目录/train.py:3", "--nproc_per_node=<卡数>", "обучение", "device_ids…module"])
def test_a_path_is_not_broken(word: str) -> None:
    """A word is whole if it has another letter than a Chinese one in it, so that a path can be copied."""
    assert wrap("at " + word + " of", 8) == ["at", word, "of"]


def test_labels_and_cells_are_padded_by_columns() -> None:
    """A Chinese label takes as much room as an English one, and cells of a table stand below each other."""
    starts = [next(iter(labelled(label, "x", 80))).text for label in ("read", "读取")]
    assert [safe.width(text) for text in starts] == [12, 12]
    assert columns([("参数", "end"), ("cpu", "x")]) == ["参数  end", "cpu   x"]
