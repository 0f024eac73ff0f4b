"""Every endpoint, with what no page would send: nothing is answered with a fault of the server, and nothing dies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sateen.serve.app import _HANDLERS
from sateen.serve.guard import MOST_BODY
from serving import Serving, document

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="worker processes are found in /proc")
THETA = {"k": 1.0}
VALID = {
    "check/model": {"doc": document()},
    "check/formula": {"doc": document()},
    "open": {"example": "decay"},
    "run": {"doc": document(), "theta": THETA, "seed": 1},
    "runs": {"theta": THETA, "count": 3, "batch": 0},
    "campaign": {"doc": document(), "name": None},
    "pause": {},
    "stop": {},
    "resume": {},
    "view": {"x": "k", "y": None, "sliders": {}},
    "slice": {"points": [THETA]},
    "predict": {"points": [THETA], "level": 0.9},
    "refine": {"where": {"theta": THETA}, "threshold": 0.5, "runs": 200},
    "certify": {"threshold": 0.5, "region": "below", "confidence": 0.5, "runs": 1000},
    "save": {"name": "fuzz"},
}
STRANGE = {
    "nothing or a truth": [None, True, False],
    "a number": [0, -1, 3.5, 1e308, 2**63, 2**100, 1e-320],
    "a text": ["", "x", "\0", "../../etc/passwd", "/etc/passwd", "a\\..\\b", "ü", "x" * 10_000, "-1", "1e999"],
    "a list": [[], [[]], [None], [1] * 1000, ["k", "k"]],
    "an object": [{}, {"": 1}, {"k": "1"}, {"k": None}, {"theta": {}}, {"k": 1e300}, {"__class__": "x"}],
}
BAD = [
    *(b"", b"{", b"[]", b"3", b"null", b'"x"', b"\xff\xfe", b'{"doc": NaN}', b'{"doc": Infinity}', b'{"a": 1e999}'),
    *(b'{"a":' * 2000, b"[" * 100_000, b'{"doc": {"text": "\\ud800"}}', b'{"doc"', b"\0" * 100),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "here.sateen").write_text("species A = 1\nA -> 0 @ k")
    (folder.parent / "outside.sateen").write_text("species SECRET = 1")
    with Serving(folder) as serving:
        serving.until(lambda state: state["worker"] == "warm")
        serving.post("campaign", doc=document(), name="fuzzed")
        serving.until(lambda state: state["frame"])
        serving.post("stop")
        yield serving


@pytest.fixture
def sound(server):
    """After the test there are two workers, and they answer."""
    server.until(lambda state: state["worker"] != "starting")
    yield server
    server.both_workers()
    assert server.post("check/formula", doc=document())["ok"]


def judge(answer):
    """An answer is JSON, and if it is an error, one that names what is wrong."""
    assert answer.status_code in (200, 400, 413, 503), answer.text
    told = answer.json()
    if "error" in told:
        assert told["error"]["kind"] in ("formula", "model", "space", "input", "store", "busy"), told
        assert told["error"]["message"]
        assert "SECRET" not in answer.text
        assert "root:" not in answer.text
    return told


def strange(names, begin):
    """For each name one value of every kind; from name to name the next ones, so that in the end all were tried."""
    for turn, name in enumerate(names):
        for kind in STRANGE.values():
            yield name, kind[(begin + turn) % len(kind)]


def test_every_endpoint_is_tried():
    assert set(VALID) == set(_HANDLERS)


@pytest.mark.parametrize("path", sorted(VALID))
def test_what_is_no_json_is_refused(sound, path):
    """One function reads the bodies of all endpoints: each gets every third, and the first one all of them."""
    number = sorted(VALID).index(path)
    for body in BAD[number % 3 :: 3] if number else BAD:
        answer = sound.client.post(f"/api/{path}", content=body, headers={"content-type": "application/json"})
        told = judge(answer)
        if path not in ("pause", "stop", "resume"):
            assert "error" in told, body


@pytest.mark.parametrize("path", sorted(set(VALID) - {"pause", "stop", "resume"}))
def test_values_of_the_wrong_kind_are_refused_by_name(sound, path):
    for key, value in strange([*VALID[path], "unheard_of"], 3 * sorted(VALID).index(path)):
        judge(sound.client.post(f"/api/{path}", json={**VALID[path], key: value}))
    for key in VALID[path]:
        judge(sound.client.post(f"/api/{path}", json={name: each for name, each in VALID[path].items() if name != key}))
    sound.post("stop")


def test_documents_of_the_wrong_kind_are_refused_by_name(sound):
    whole = {**document(), "source": None, "negate": False, "fixed": {}, "learner": None, "seed": 1}
    whole |= {"settings": {}, "caps": {"max_events": 1000}, "name": "decay"}
    for path, begin in (("check/model", 0), ("check/formula", 3)):
        for key, value in strange([*whole, "unheard_of"], begin):
            judge(sound.client.post(f"/api/{path}", json={"doc": {**whole, key: value}}))
    for each in ({"name": "k", "low": 2, "high": 1}, {"name": "k", "low": -1, "high": 1, "log": True}, {"name": "k"}):
        assert "error" in sound.post("run", doc={**whole, "ranges": [each]}, theta=THETA, seed=1)


@pytest.mark.parametrize(
    "name",
    ["../outside.sateen", "/etc/passwd", "here.sateen/../../outside.sateen", "link.sateen", "..", "", "\0", "a" * 999],
)
def test_no_file_outside_is_opened(sound, name, tmp_path_factory):
    folder = Path(f"/proc/{sound.process.pid}/cwd")
    assert folder.exists()
    for body in ({"path": name}, {"session": name}, {"example": name}):
        told = judge(sound.client.post("/api/open", json=body))
        assert "error" in told
    doc = {**document(), "text": None, "source": name}
    assert "error" in judge(sound.client.post("/api/check/model", json={"doc": doc}))
    for language in ("sbml", "antimony", "prism", "black-box"):
        told = judge(sound.client.post("/api/check/model", json={"doc": {**doc, "language": language}}))
        assert "error" in told
    report = sound.client.get("/api/report", params={"name": name})
    assert "error" in report.json()


def test_a_black_box_that_was_not_named_is_never_run(sound, tmp_path):
    for source in ("os:system", "here.py:run", "sateen.cli:main", None):
        doc = {**document(), "language": "black-box", "text": None, "source": source}
        for path in ("check/model", "campaign"):
            told = judge(sound.client.post(f"/api/{path}", json={"doc": doc}))
            assert "not allowed here" in told["error"]["message"]


def test_a_body_that_is_too_large_is_refused_unread(sound):
    body = b'{"doc": "' + b"x" * MOST_BODY + b'"}'
    answer = sound.client.post("/api/check/model", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    large = document(text="#" * 1_900_000)
    assert "error" in sound.client.post("/api/check/model", content=json.dumps({"doc": large}).encode(),
                                        headers={"content-type": "application/json"}).json()  # fmt: skip


def test_a_frame_has_a_number(sound):
    for after in ("-1", "x", "", "1e3", "9" * 40, "٣"):
        assert "error" in sound.client.get("/api/frame", params={"after": after}).json()
