"""Readers of models: one contract for every language, found by the suffix, and open to other packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sateen.core.errors import ModelError
from sateen.model.model import Model
from sateen.model.readers import READERS, ModelReader, reader_of

DECAY = "species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X\n"
PRISM = "ctmc\nconst int n;\nmodule m\n    x : [0..n];\n    [] x<n -> 1 : (x'=x+1);\nendmodule\n"
# A small language: the initial count of X, which then decays at the rate 1.
PLUGIN = """
from sateen.model.model import Model
from sateen.model.readers import ModelReader

def read(text):
    return Model.parse(f"species X = {int(text)}\\ndecay: X -> 0 @ X")

def write(model):
    return model.variables[0].initial.text()

READER = ModelReader(read, write)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a reader for files that end in .count."""
    (tmp_path / "counted.py").write_text(PLUGIN)
    (tmp_path / "counted-1.dist-info").mkdir()
    (tmp_path / "counted-1.dist-info" / "METADATA").write_text("Name: counted\nVersion: 1\n")
    entry_points = "[sateen.models]\n.count = counted:READER\n"
    (tmp_path / "counted-1.dist-info" / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("suffix", READERS.builtin)
def test_every_suffix_has_a_reader(suffix: str) -> None:
    reader = reader_of(Path(f"model{suffix.upper()}"))
    assert isinstance(reader, ModelReader)
    assert reader is READERS[suffix]
    assert reader.takes_constants == (suffix in (".prism", ".sm"))


@pytest.mark.parametrize("suffix", [each for each in READERS.builtin if READERS[each].write])
def test_what_a_language_writes_it_reads_back(suffix: str, tmp_path: Path) -> None:
    model = Model.parse(DECAY)
    model.save(tmp_path / f"decay{suffix}")
    assert Model.load(tmp_path / f"decay{suffix}") == model


@pytest.mark.parametrize("suffix", READERS.builtin)
def test_constants_are_taken_or_refused_by_name(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"model{suffix}"
    file.write_text(PRISM)
    if READERS[suffix].takes_constants:
        assert Model.load(file, constants={"n": 3}).variables[0].high == 3
    else:
        with pytest.raises(ModelError, match="takes no constants, and n is given"):
            Model.load(file, constants={"n": 3})


@pytest.mark.usefixtures("plugin")
def test_another_package_adds_a_language_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "ten.count").write_text("10")
    model = Model.load(tmp_path / "ten.count")
    assert str(model) == "species X = 10\ndecay: X -> 0 @ X\n"
    model.save(tmp_path / "again.count")
    assert (tmp_path / "again.count").read_text() == "10"
    assert READERS.names()[-1] == ".count"
    with pytest.raises(ModelError, match=r"no reader for \.counts") as raised:
        Model.load(tmp_path / "ten.counts")
    assert ".count" in raised.value.remedy


def test_a_model_loads_only_what_its_language_needs(tmp_path: Path) -> None:
    (tmp_path / "decay.sateen").write_text(DECAY)
    program = (
        "import sys\nfrom sateen.model.model import Model\nprint('lark' in sys.modules)\n"
        f"Model.load({str(tmp_path / 'decay.sateen')!r})\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, loaded = done.stdout.splitlines()
    assert before == "False"
    heavy = {
        "jax",
        "llvmlite",
        "scipy.stats",
        "matplotlib",
        "libsbml",
        "antimony",
        "sateen.model.sbml",
        "sateen.model.prism",
    }
    assert heavy.isdisjoint(loaded.split())
    assert "lark" in loaded.split()
