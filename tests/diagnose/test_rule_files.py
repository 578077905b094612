"""What may be in a file of a rule: code in rules/, data in rules/by_words/, logs in rules/recorded/."""

import ast
from pathlib import Path

import pytest

from ddp_probe.diagnose import rules
from ddp_probe.diagnose.rules import modules

FOLDER = Path(rules.__file__).parent
DATA = sorted(path for path in (FOLDER / "by_words").glob("*.py") if path.name != "__init__.py")
RECORDED = sorted(path for path in (FOLDER / "recorded").glob("*.py") if path.name != "__init__.py")
CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.If, ast.For, ast.While, ast.Try, ast.ListComp, ast.GeneratorExp)


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_a_rule_by_words_is_data(path: Path) -> None:
    """A file in by_words/ has no function, no class and no loop."""
    code = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, CODE)]
    assert not code, "%s:%d is code: a rule with a check() belongs in rules/." % (path.name, code[0].lineno)


def test_a_rule_in_the_folder_of_code_has_a_check() -> None:
    """A file in rules/ defines check(run); one without belongs in by_words/."""
    without = [module.__name__ for module in modules() if not hasattr(module, "check") and ".by_words." not in module.__name__]
    assert not without, "Write check(run) in %s, or move the file to rules/by_words/ if its texts decide." % ", ".join(without)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_file_of_logs_holds_logs_only(path: Path) -> None:
    """A file in recorded/ is named after a rule and holds strings with names, each of which the rule's examples use."""
    body = ast.parse(path.read_text(encoding="utf-8")).body[1:]
    values = [node.value for node in body if isinstance(node, ast.Assign)]
    assert [type(value) for value in values] == [ast.Constant] * len(body)
    names = {target.id for node in body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)}
    own = [module for module in modules() if module.__name__.rpartition(".")[2] == path.stem]
    assert len(own) == 1, "No rule is named %s." % path.stem
    logs = {example.log for example in own[0].EXAMPLES}
    assert {name for name in names if getattr(own[0].recorded, name) not in logs} == set()
