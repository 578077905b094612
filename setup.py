"""Adds what setup.cfg cannot say: the addresses of the project, a README whose links work on an index, and an sdist with setup.cfg as it is.

The addresses and the links are made from [release] in setup.cfg, which is the only place that names the repository.
"""

import configparser
import re
import shutil
from pathlib import Path
from typing import Dict, List, Match

from setuptools import setup
from setuptools.command.sdist import sdist

_HERE = Path(__file__).resolve().parent
_LINK = re.compile(r"(!?)\[([^\]\n]+)\]\((?!#|[a-z]+:)([^)\s]+)\)")


def project_urls(repository: str, version: str) -> Dict[str, str]:
    """Return the addresses that an index shows; none if the repository has none."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": "%s/tree/v%s/docs" % (repository, version),
        "Changelog": "%s/blob/v%s/CHANGELOG.md" % (repository, version),
        "Issues": "%s/issues" % repository,
    }


def description(readme: str, repository: str, version: str) -> str:
    """Return the README with absolute links; without a repository, a link to a file of it becomes its text."""

    def absolute(found: "Match[str]") -> str:
        image, text, target = found.groups()
        kind = "raw" if image else "tree" if target.endswith("/") else "blob"
        return "%s[%s](%s/%s/v%s/%s)" % (image, text, repository, kind, version, target.rstrip("/")) if repository else text

    return _LINK.sub(absolute, readme)


class SourceDistribution(sdist):
    """setuptools writes setup.cfg anew, without its comments; the linters and scripts/render_docs read the original."""

    def make_release_tree(self, base_dir: str, files: List[str]) -> None:
        """Make the tree, and put setup.cfg back."""
        super().make_release_tree(base_dir, files)
        shutil.copy(str(_HERE / "setup.cfg"), base_dir)


def _main() -> None:
    config = configparser.ConfigParser()
    config.read(_HERE / "setup.cfg", encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', (_HERE / "ddp_probe" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    version, repository = found[1] if found else "", config["release"]["repository"].rstrip("/")
    readme = (_HERE / "README.md").read_text(encoding="utf-8")
    setup(
        cmdclass={"sdist": SourceDistribution},
        project_urls=project_urls(repository, version),
        long_description=description(readme, repository, version),
    )


if __name__ == "__main__":
    _main()
