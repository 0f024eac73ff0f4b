"""Every message about a missing library says in the same way how to install it, and what it says is true."""

from __future__ import annotations

import re
import tomllib

import pytest

from doc_pages import ROOT
from pages import PAGES, read
from sateen.core.extras import PACKAGES, install_command

DECLARED = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", PACKAGES)
def test_the_libraries_of_an_extra_are_those_that_the_package_declares(extra: str) -> None:
    assert list(PACKAGES[extra]) == [re.sub(r">=.*", "", each) for each in DECLARED[extra]]
    assert f"'.[{extra}]'" in install_command(extra)


def test_nothing_says_that_sateen_is_on_a_package_index() -> None:
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    wrong = "sateen" + "["
    assert [file.name for file in texts if f"pip install '{wrong}" in read(file)] == []
