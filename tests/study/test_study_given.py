"""train = { file = ... }: a study that learns from observations that are there already."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st

MODEL = "species A = 10\nA -> 0 @ mass_action(k)"
TEXT = """
study = {{ name = "decay", seed = 7 }}
model = {{ text = "species A = 10\\nA -> 0 @ mass_action(k)" }}
space = {{ k = [0.1, 2] }}
property = {{ {property} }}
observe = {{ train = {train} }}
learn = {{ learners = ["svi-gp"] }}
"""
GONE = 'gone = "F[0, 2] A == 0"'
FILE = '{ file = "train.safetensors" }'


@pytest.fixture
def seen(tmp_path):
    """Observations of a design and of points that were chosen."""
    space = st.Space(k=(0.1, 2.0))
    model, formula = st.Model.parse(MODEL), st.stl("F[0, 2] A == 0")
    first = st.observe(model, formula, space.sobol(32, seed=1), 20, seed=2, workers=1)
    chosen = st.Points(np.array([[0.9], [1.0]]), space, "active")
    both = first + st.observe(model, formula, chosen, 40, seed=3, workers=1)
    both.save(tmp_path / "train.safetensors")
    return both


def written(folder, train=FILE, properties=GONE):
    file = folder / "decay.toml"
    file.write_text(TEXT.format(train=train, property=properties))
    return file


def test_the_study_learns_from_the_file_and_makes_no_run(tmp_path, seen):
    study = st.Study.load(written(tmp_path))
    assert study.forecast().runs == 0
    result = study.run()
    answer = result.properties["gone"]
    assert answer.train == seen
    points = seen.space.grid(9)
    asked = st.SVIGP().fit(seen, seed=study.seed_of("learn svi-gp")).predict(points)
    assert np.array_equal(answer.posteriors["svi-gp"].predict(points).mean, asked.mean)


def test_another_file_is_another_training_and_the_same_one_is_reused(tmp_path, seen):
    study = st.Study.load(written(tmp_path))
    study.run()
    assert set(st.Study.load(study.file).run().stages.values()) == {"reused"}
    seen[:20].save(tmp_path / "train.safetensors")
    again = st.Study.load(study.file).run()
    assert again.stages["train gone"] == again.stages["learn gone svi-gp"] == "computed"
    assert len(again.properties["gone"].train) == 20


def test_a_part_of_such_a_study_has_no_training_to_make(tmp_path, seen):
    train = '{ file = "train.safetensors" }, test = { points = 4, runs = 10 }'
    study = st.Study.load(written(tmp_path, train))
    assert dict(study.run_part((1, 2)).runs) == {"test": 20}


@pytest.mark.parametrize(
    ("train", "properties", "words"),
    [
        ('{ file = "none.safetensors" }', GONE, "none.safetensors"),
        ('{ file = "train.safetensors", points = 3 }', GONE, "there is no such key"),
        ("{ file = 3 }", GONE, "text in quotes is needed"),
        (FILE, 'gone = "F[0, 3] A == 0"', "of another formula"),
        (FILE, 'gone = { formula = "F[0, 2] A == 0", end = 1 }', "of another end"),
        (FILE, 'gone = "F[0, 2] A == 0", left = "G[0, 2] A > 0"', "the study has 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path, seen, train, properties, words):
    with pytest.raises(st.TextError) as caught:
        st.Study.load(written(tmp_path, train, properties))
    assert words in str(caught.value)
    assert caught.value.line == 6


def test_observations_of_another_space_or_model_are_refused(tmp_path, seen):
    file = written(tmp_path)
    file.write_text(file.read_text().replace("[0.1, 2]", "[0.1, 3]"))
    with pytest.raises(st.TextError, match="of another space"):
        st.Study.load(file)
    file.write_text(written(tmp_path).read_text().replace("A = 10", "A = 11"))
    with pytest.raises(st.TextError, match="of another model"):
        st.Study.load(file)


def test_a_damaged_file_is_refused(tmp_path, seen):
    data = bytearray((tmp_path / "train.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "train.safetensors").write_bytes(bytes(data))
    with pytest.raises(st.SateenError, match=r"train\.safetensors"):
        st.Study.load(written(tmp_path))
