"""The server as a page uses it: what it shows is what Python gives, and it survives what happens to it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.core.seeds import stream_seed
from sateen.serve.clicks import seed_of
from sateen.serve.documents import Document, question_of, read_body
from sateen.serve.files import Folder
from sateen.serve.frames import STEPS, View, frame_of, grid_of, read_frame
from serving import DECAY, Serving, document, sir, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="worker processes are found in /proc")
AT = {"beta": 0.1, "gamma": 0.05}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def server(home):
    with Serving(home) as serving:
        yield serving


@pytest.fixture(scope="module")
def learned(server):
    """A session that has learned a little, and was stopped."""
    server.post("campaign", doc=sir(), name="sir")
    server.until(lambda state: state["points"] >= 128 and state["frame"])
    server.post("stop")
    return server.settled()


def question(doc, home):
    return question_of(read_body(Document, doc), Folder(home))


def test_it_says_what_there_is(server):
    told = server.get("hello")
    assert told["version"] == st.__version__
    assert {each["name"] for each in told["examples"]} >= {"sir", "decay"}
    assert "svi-gp" in told["learners"]
    assert told["open"] is None or told["open"]["text"]


def test_every_example_can_be_opened_and_asks_a_question(server, home):
    for each in server.get("hello")["examples"]:
        opened = server.client.post("/api/open", json={"example": each["name"]}).json()
        assert question(opened["doc"], home).formula is not None
        assert server.post("check/model", doc=opened["doc"])["ok"]
        assert server.post("check/formula", doc=opened["doc"])["parameters"]


def test_a_mistake_is_shown_as_python_shows_it(server):
    told = server.post("check/formula", doc=document(formula="F[0, 2 A == 0"))["error"]
    with pytest.raises(st.FormulaError) as caught:
        st.stl("F[0, 2 A == 0")
    assert (told["kind"], told["message"]) == ("formula", str(caught.value))
    assert (told["line"], told["column"]) == (caught.value.line, caught.value.column)
    told = server.post("check/model", doc=document(text="species A = 10\nA -> 0"))["error"]
    with pytest.raises(st.ModelError) as caught:
        st.Model.parse("species A = 10\nA -> 0")
    assert (told["kind"], told["message"], told["line"]) == ("model", str(caught.value), 2)


def test_a_model_is_told_with_ranges_around_its_values(server):
    text = "species A = 10\nparameter k = 0.2, c = 0, m\nA -> 0 @ k * A + c + m"
    told = server.post("check/model", doc=document(text=text))
    assert told["species"] == [{"name": "A", "initial": 10.0}]
    ranges = {each["name"]: (each["low"], each["high"], each["log"]) for each in told["parameters"]}
    low, high, log = ranges["k"]
    assert log
    assert low * 10 == pytest.approx(high, rel=0.01)
    assert low * high == pytest.approx(0.04, rel=0.01)
    assert not ranges["c"][2]
    assert ranges["m"][:2] == (None, None)


def test_the_frame_is_what_the_posterior_predicts(server, learned, home):
    header, values = read_frame(server.frame())
    assert (header["runs"], header["points"], header["preview"]) == (learned["runs"], learned["points"], False)
    space = question(sir(), home).space
    points, nx, ny = grid_of(space, View(**header["view"]))
    assert (nx, ny) == (header["nx"], header["ny"])
    told = server.post("predict", points=list(points), level=header["level"])
    assert told["frame"] == header["frame"]
    for name in ("mean", "lower", "upper"):
        exact = np.array(told[name])
        visible = exact > 1e-4 * exact.max()
        assert np.abs(values[name][visible] / exact[visible] - 1.0).max() <= 0.0016
        assert np.abs(values[name] - exact).max() <= 1.001 / STEPS * exact.max()


def test_the_rows_of_a_frame_go_from_low_to_high(home):
    space = st.Space(a=(0.0, 1.0), b=st.Range(0.1, 10.0, "log"), c=(5.0, 6.0))
    view = View("c", "b", {}).checked(space)
    points, nx, ny = grid_of(space, view)
    assert view.sliders == {"a": 0.5}
    table = points.theta.reshape(ny, nx, 3)
    assert np.allclose(table[0, :, 2], np.linspace(5.0, 6.0, nx))
    assert np.allclose(table[:, 0, 2], 5.0)
    assert np.allclose(table[:, 3, 1], np.geomspace(0.1, 10.0, ny))


def test_other_axes_make_a_new_frame_and_no_run(server, learned):
    before, _ = read_frame(server.frame())
    server.post("view", x="gamma", y=None, sliders={"beta": 0.2})
    after, values = read_frame(server.frame(before["frame"]))
    assert after["frame"] > before["frame"]
    assert (after["view"], after["runs"]) == ({"x": "gamma", "y": None, "sliders": {"beta": 0.2}}, before["runs"])
    low, high = after["x"]["low"], after["x"]["high"]
    told = server.post("slice", points=[{"beta": 0.2, "gamma": low}, {"beta": 0.2, "gamma": high}])
    assert np.allclose(values["mean"][[0, -1]], told["mean"], atol=1.01 / STEPS)
    server.post("view", x="beta", y="gamma", sliders={})


def test_the_chips_are_what_the_monitor_says_of_the_replayed_runs(server, learned, home):
    asked = question(sir(), home)
    st.replay(asked.model, AT, until=1.0, seed=1)  # compiles, where that was not done before
    told = server.post("runs", theta=AT, count=20, batch=3)
    assert told["by"] == "replay"
    seed = seed_of(asked, 3)
    for chip in told["runs"]:
        path = st.replay(asked.model, AT, until=asked.formula.horizon, seed=seed, run=chip["run"])
        assert (chip["seed"], chip["verdict"]) == (seed, str(st.monitor(asked.formula, path)))
    seen = st.observe(asked.model, asked.formula, asked.space.points([AT]), 20, seed=seed, workers=1)
    assert told["holds"] == int(seen.satisfied[0])
    assert told["fails"] == 20 - told["holds"]
    one = server.post("run", theta=AT, run=7, batch=3, by=told["by"])
    path = st.replay(asked.model, AT, until=asked.formula.horizon, seed=seed, run=7)
    assert (one["verdict"], one["times"][:50]) == (told["runs"][7]["verdict"], path.times[:50].tolist())
    why = st.explain(asked.formula, path)
    assert [bar["text"] for bar in one["bars"]] == [text for text, *_ in why.lanes]
    for bar, (_text, _depth, holds, _unknown) in zip(one["bars"], why.lanes, strict=True):
        assert bar["true"] == [[start, min(stop, one["end"])] for start, stop in holds]
        total = sum(stop - start for name in ("true", "false", "unknown") for start, stop in bar[name])
        assert total == pytest.approx(one["end"])


def test_a_reference_run_needs_no_campaign(server):
    told = server.post("run", doc=document(), theta={"k": 1.0}, seed=5)
    path = st.simulate(st.Model.parse(DECAY), {"k": 1.0}, until=2.0, seed=5)
    assert (told["times"], told["states"]) == (path.times.tolist(), [path.states[:, 0].tolist()])
    assert told["verdict"] == str(st.monitor(st.stl("F[0, 2] A == 0"), path))


def test_runs_are_added_where_they_were_asked_for(server, learned):
    before = server.state()
    server.post("refine", where={"theta": AT}, threshold=None, runs=320)
    server.until(lambda state: state["points"] > before["points"])
    state = server.settled()
    header, _ = read_frame(server.frame())
    near = np.array(header["train"])[-16:, :2]
    assert np.abs(near - [AT["beta"], AT["gamma"]]).max(axis=0) == pytest.approx([0, 0], abs=0.05)
    assert state["runs"] >= before["runs"] + 320


def test_the_claim_is_the_sentence_of_a_certificate_and_a_second_one_says_so(server, learned, home):
    server.post("certify", threshold=0.5, region="below", confidence=0.9, runs=None)
    state = server.until(lambda state: state["claims"] and state["claims"][-1]["done"] and state["phase"] == "stopped")
    server.post("certify", threshold=0.5, region="below", confidence=0.9, runs=None)
    state = server.until(lambda state: len([each for each in state["claims"] if each["done"]]) == 2)
    first, second = state["claims"]
    for claim in (first, second):
        assert claim["sentence"].startswith("with probability 90 % over the draw, the probability is at most 0.5")
        assert claim["text"].startswith("With probability 90 % over the draw")
        assert claim["runs"] > 0
    assert first["note"] is None
    assert "number 2 of the same posterior" in second["note"]
    assert (first["attempt"], second["attempt"]) == (1, 2)


def test_what_is_refused_has_a_remedy_of_the_page_and_is_forgotten_at_the_next_command(server, learned):
    server.post("certify", threshold=0.999, region="above", confidence=0.9, runs=None)
    error = server.until(lambda state: state["error"])["error"]
    assert "Refine where unsure" in error["message"]
    assert error["remedy"] in error["message"]
    for words in ("st.", "{", "wrong or tolerance", "level"):
        assert words not in error["message"]
    server.post("certify", threshold=0.5, region="below", confidence=0.9, runs=1)
    error = server.until(lambda state: state["error"] and state["error"] != error)["error"]
    assert "leave Runs empty" in error["message"]
    server.post("refine", where={"theta": AT}, threshold=None, runs=16)
    server.until(lambda state: state["error"] is None and state["phase"] == "stopped")


@pytest.mark.parametrize("p", [0, 1, -0.5])
def test_a_threshold_that_is_none_is_refused_by_name(server, learned, p):
    for path, body in (("refine", {"where": "unsure"}), ("certify", {"region": "above", "confidence": 0.9})):
        error = server.post(path, **body, threshold=p, runs=None)["error"]
        assert error["message"].startswith(f"the threshold p is between 0 and 1, and not {p} itself")


def test_a_saved_study_gives_the_same_bits_on_the_command_line(server, learned, home):
    told = server.post("save", name="epidemic")
    assert told == {"path": "epidemic.toml", "result": "epidemic-result", "report": "epidemic-result/report.html"}
    header, values = read_frame(server.frame())
    done = subprocess.run(
        [sys.executable, "-m", "sateen", "run", "epidemic.toml", "-o", "again"],
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = st.Result.load(home / "again")
    (answer,) = result.properties.values()
    assert int(answer.train.trials.sum()) == header["runs"] == server.state()["runs"]
    points, _, _ = grid_of(result.space, View(**header["view"]))
    posterior = answer.posteriors["svi-gp"]
    _, again = read_frame(frame_of(posterior, answer.train, View(**header["view"]), header["frame"]))
    assert all(np.array_equal(values[name], again[name]) for name in again)
    exact = server.post("predict", points=list(points)[:50])
    predicted = posterior.predict(points[:50], level=0.95)
    assert exact["mean"] == predicted.mean.tolist()
    assert exact["upper"] == predicted.upper.tolist()
    report = server.client.get("/api/report", params={"name": "epidemic"})
    assert report.status_code == 200
    assert b"<html" in report.content[:1000]
    assert report.headers["content-disposition"].startswith("attachment")


def test_a_study_of_the_users_own_is_not_replaced(server, learned, home):
    (home / "mine.toml").write_text("# mine\n")
    assert "not replaced" in server.post("save", name="mine")["error"]["message"]
    assert (home / "mine.toml").read_text() == "# mine\n"
    for name in ("../x", "a/b", "", ".hidden", "x" * 61):
        assert server.post("save", name=name)["error"]["kind"] == "input"


def test_a_session_goes_on_with_equal_counts_after_it_was_opened_again(server, learned, home):
    before = server.state()
    assert [each["name"] for each in server.get("sessions")] == ["sir"]
    server.post("open", example="decay")
    assert server.state()["phase"] == "empty"
    opened = server.post("open", session="sir")
    assert opened["doc"]["formula"] == sir()["formula"]
    after = server.until(lambda state: state["frame"] and state["points"])
    for name in ("runs", "points", "undecided", "claims", "saved"):
        assert after[name] == before[name], name
    server.post("resume")
    server.until(lambda state: state["points"] > before["points"])
    server.post("stop")


def test_the_learner_may_be_killed_and_the_counts_stay(server, learned, home):
    server.post("open", session="sir")
    server.until(lambda state: state["points"])
    server.post("resume")
    server.until(lambda state: state["phase"] == "learning" and state["points"] > learned["points"])
    server.post("pause")
    before = server.settled()
    os.kill(server.learner(), signal.SIGKILL)
    said = server.until(lambda state: state["worker"] == "restarted")
    assert "was killed" in said["message"]
    told = server.post("predict", points=[AT])
    assert 0.0 <= told["mean"][0] <= 1.0
    after = server.state()
    assert (after["runs"], after["points"], after["phase"]) == (before["runs"], before["points"], "paused")
    server.post("resume")
    gone_on = server.until(lambda state: state["points"] > before["points"])
    os.kill(server.learner(), signal.SIGKILL)
    later = server.until(lambda state: state["points"] > gone_on["points"] and state["frame"])
    assert later["phase"] == "learning"
    server.post("stop")
    asked = question(sir(), home)
    points = asked.space.sobol(4096, seed=stream_seed(1, "serve design"))[:32]
    stored = st.observe(asked.model, asked.formula, points, 20, seed=stream_seed(1, "serve runs", 0))
    header, _ = read_frame(server.frame())
    assert [row[2] for row in header["train"][:32]] == stored.satisfied.tolist()


def test_one_in_front_may_be_killed_too(server, learned):
    server.post("open", session="sir")
    server.settled()
    learner = server.learner()
    (front,) = (pid for pid in server.both_workers() if pid != learner)
    os.kill(front, signal.SIGKILL)
    server.until(lambda state: state["worker"] == "restarted" and front not in server.workers())
    assert server.post("check/formula", doc=document())["ok"]
    assert "mean" in server.post("predict", points=[AT])


def test_a_newer_click_wins(server, learned):
    server.post("open", session="sir")

    def click(batch):
        return server.post("runs", theta=AT, count=100, batch=batch)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(click, range(100, 108)))
    fine = [each for each in answers if "error" not in each]
    assert fine
    assert all(each["error"]["kind"] == "busy" for each in answers if "error" in each)


def test_a_second_tab_sees_the_same(server):
    with server.client.stream("GET", "/api/events") as first:
        lines = first.iter_lines()
        next(line for line in lines if line.startswith("data:"))
        assert server.state()["tabs"] >= 2


def test_a_new_campaign_takes_the_place_of_the_old_one(server, home):
    first = server.post("campaign", doc=document(), name=None)["state"]
    second = server.post("campaign", doc=document(formula="F[0, 2] A == 1"), name=None)["state"]
    assert second["session"] != first["session"]
    state = server.until(lambda state: state["frame"])
    assert state["session"] == second["session"]
    header, _ = read_frame(server.frame())
    assert header["ny"] == 1
    assert header["y"] is None
    assert len(header["x"]) == 4
    taken = server.post("campaign", doc=document(), name=first["session"])
    assert "already" in taken["error"]["message"]
    server.post("stop")


@pytest.mark.parametrize(("formula", "constant"), [("F[0, 2] A > 20", "false"), ("F[0, 2] A >= 0", "true")])
def test_a_property_that_all_runs_agree_on_is_said_to_be_so(server, formula, constant):
    server.post("campaign", doc=document(formula=formula))
    state, header = server.learned()
    assert (state["constant"], header["constant"]) == (constant, constant)
    server.post("stop")


def test_a_campaign_that_cannot_begin_says_why_and_the_old_one_stays(server, learned):
    server.post("open", session="sir")
    before = server.until(lambda state: state["frame"])
    for doc in (document(text="species"), document(ranges=[]), document(formula=""), document(learner="none")):
        assert server.post("campaign", doc=doc)["error"]["message"]
    after = server.state()
    assert (after["session"], after["runs"], after["frame"]) == (before["session"], before["runs"], before["frame"])


def test_a_model_that_goes_wrong_while_it_runs_is_an_error_on_the_page(server):
    text = "species A = 1\nA -> 0 @ k * (A - 2)"
    server.post("campaign", doc=document(text=text))
    state = server.until(lambda state: state["phase"] == "failed")
    assert state["error"]["kind"] == "model"
    assert "rate" in state["error"]["message"]


def test_the_server_listens_on_this_machine_only(server):
    """The kernel's own table says where: many a machine has no other address on which to try."""
    port = int(server.base.rpartition(":")[2])
    assert listening(port) == {"127.0.0.1"}
    with socket.socket() as everywhere:
        everywhere.bind(("0.0.0.0", 0))
        everywhere.listen()
        assert listening(everywhere.getsockname()[1]) == {"0.0.0.0"}


def listening(port):
    """The addresses on which something listens at a port."""
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    if not tables:
        pytest.skip("there is no /proc/net/tcp, which says who listens where")
    found = set()
    for table in tables:
        for line in table.read_text().splitlines()[1:]:
            address, number = line.split()[1].split(":")
            if line.split()[3] == "0A" and int(number, 16) == port:
                words = [
                    bytes.fromhex(address[n : n + 8])[:: -1 if sys.byteorder == "little" else 1]
                    for n in range(0, len(address), 8)
                ]
                whole = b"".join(words)
                found.add(socket.inet_ntop(socket.AF_INET if len(whole) == 4 else socket.AF_INET6, whole))
    return found


def test_the_page_and_its_parts_are_served_and_nothing_else(server):
    assert server.client.get("/").headers["content-type"].startswith("text/html")
    for name in ("../app.py", "..%2fapp.py", "app.py", "%2e%2e/app.py", "__init__.py"):
        assert server.client.get(f"/static/{name}").status_code == 404


def test_a_study_that_was_run_goes_on_from_its_training(tmp_path):
    (tmp_path / "decay.toml").write_text(
        'study = { name = "decay", seed = 3 }\n'
        f"model = {{ text = {json.dumps(DECAY)} }}\n"
        "space = { k = [0.1, 2] }\n"
        'property = { gone = "F[0, 2] A == 0" }\n'
        "observe = { train = { points = 64, runs = 25 } }\n"
    )
    result = st.Study.load(tmp_path / "decay.toml").run()
    with Serving(tmp_path / "decay.toml") as serving:
        assert serving.get("hello")["open"]["formula"] == "F[0, 2] A == 0"
        opened = serving.post("open", path="decay.toml")
        assert opened["state"]["session"] == "decay"
        state = serving.until(lambda state: state["frame"])
        assert (state["points"], state["runs"], state["phase"]) == (64, 1600, "stopped")
        header, _ = read_frame(serving.frame())
        assert [row[2] for row in header["train"]] == result.properties["gone"].train.satisfied.tolist()
        serving.post("resume")
        serving.until(lambda state: state["points"] > 64)


def slow(folder, seconds):
    """The document of a black box, in a file of the folder, of which each run takes so long."""
    (folder / "slow.py").write_text(
        f"import time\n\ndef slow(theta, rng):\n    time.sleep({seconds})\n    return bool(rng.random() < theta['p'])\n"
    )
    ranges = [{"name": "p", "low": 0.1, "high": 0.9, "log": False}]
    return document(language="black-box", text=None, source="slow.py:slow", formula="", ranges=ranges)


def test_a_model_that_is_slow_begins_with_fewer_runs(tmp_path):
    doc = slow(tmp_path, 0.025)
    with Serving(tmp_path / "slow.py:slow") as serving:
        assert serving.get("hello")["open"]["source"] == "slow.py:slow"
        serving.post("campaign", doc=doc)
        state = serving.until(lambda state: state["frame"])
        assert state["session"] == "slow"
        assert 2 <= state["runs"] / state["points"] < 10
        told = serving.post("runs", theta={"p": 0.5}, count=5, batch=0)
        assert told["holds"] + told["fails"] == 5
        later = serving.until(lambda later: later["points"] > state["points"])
        assert later["runs"] / later["points"] == state["runs"] / state["points"]
        serving.post("stop")
        before = serving.settled()
        serving.post("open", example="decay")
        serving.post("open", session="slow")
        assert serving.settled()["runs"] == before["runs"]


def test_a_learner_that_is_killed_before_its_first_map_is_followed_by_one_with_maps(tmp_path):
    doc = slow(tmp_path, 0.05)
    with Serving(tmp_path / "slow.py:slow") as serving:
        serving.both_workers()
        serving.post("campaign", doc=doc)
        os.kill(serving.learner(), signal.SIGKILL)
        _, header = serving.learned()
        assert header["runs"] > 0
        serving.post("stop")


def test_runs_that_stay_undecided_are_counted_and_shown(tmp_path):
    (tmp_path / "short.py").write_text(
        "import sateen as st\n\ndef short(theta, rng):\n"
        "    end = 10 if rng.random() < theta['p'] else 1\n"
        "    return st.Path([0, 0.5], [1, 0], 'A', end=end)\n"
    )
    doc = document(language="black-box", text=None, source="short.py:short", formula="F[2, 5] A == 0")
    with Serving(tmp_path / "short.py:short") as serving:
        doc["ranges"] = [{"name": "p", "low": 0.1, "high": 0.9, "log": False}]
        serving.post("campaign", doc=doc)
        state = serving.until(lambda state: state["frame"])
        assert 0 < state["undecided"] < state["runs"]
        assert state["constant"] is None
        told = serving.post("runs", theta={"p": 0.5}, count=20, batch=0)
        assert told["undecided"] == sum(run["verdict"] == "undecided" for run in told["runs"]) > 0
        undecided = next(run["run"] for run in told["runs"] if run["verdict"] == "undecided")
        one = serving.post("run", theta={"p": 0.5}, run=undecided, batch=0, by=told["by"])
        assert one["end"] == 1.0
        assert one["bars"][0]["unknown"] == [[0.0, 1.0]]
        doc["ranges"] = [{"name": "p", "low": -0.2, "high": -0.1, "log": False}]
        serving.post("campaign", doc=doc)
        state = serving.until(lambda state: state["phase"] == "failed")
        assert "no run at any point was decided" in state["error"]["message"]


def test_a_study_with_caps_and_settings_is_learned_with_them(tmp_path):
    """Runs stop after six jumps, on the map, at a click, in a claim and in what is saved."""
    (tmp_path / "few.toml").write_text(
        'study = { name = "few", seed = 3 }\n'
        'model = { text = "species A = 10\\nA -> 0 @ k*A" }\n'
        "space = { k = [0.1, 2] }\n"
        'property = { gone = "F[0, 2] A == 0" }\n'
        "observe = { train = { points = 64, runs = 25 }, max_events = 6 }\n"
        'learn = { learners = ["svi-gp"], svi-gp = { inducing = 7 } }\n'
    )
    with Serving(tmp_path) as serving:
        doc = serving.post("open", path="few.toml")["doc"]
        assert (doc["caps"], doc["settings"]) == ({"max_events": 6}, {"inducing": 7})
        serving.post("campaign", doc=doc)
        serving.learned()
        serving.post("stop")
        state = serving.settled()
        assert state["session"] == "few"
        assert state["undecided"] > state["runs"] / 2
        asked = question({name: doc[name] for name in Document.__annotations__}, tmp_path)
        points = asked.space.sobol(4096, seed=stream_seed(3, "serve design"))[:32]
        seen = st.observe(asked.model, asked.formula, points, 20, seed=stream_seed(3, "serve runs", 0), max_events=6)
        header, _ = read_frame(serving.frame())
        assert [row[2] for row in header["train"][:32]] == seen.satisfied.tolist()
        at = {"k": 1.9}
        st.replay(asked.model, at, until=1.0, seed=1)  # compiles, where that was not done before
        seen = st.observe(
            asked.model, asked.formula, asked.space.points([at]), 20, seed=seed_of(asked, 1), max_events=6
        )
        told = serving.post("runs", theta=at, count=20, batch=1)
        counts = (int(seen.satisfied[0]), int(seen.undecided[0]))
        assert (told["by"], told["holds"], told["undecided"]) == ("replay", *counts)
        serving.post("certify", threshold=0.9, region="below", confidence=0.9, runs=None)
        done = serving.until(lambda state: state["error"] or (state["claims"] and state["claims"][-1]["done"]))
        assert done["error"] is None
        assert serving.post("save", name="saved")["path"] == "saved.toml"
        saved = st.Study.load(tmp_path / "saved.toml")
        assert (dict(saved.caps), saved.settings["svi-gp"]) == ({"max_events": 6}, {"inducing": 7})


def test_while_there_is_one_worker_it_may_be_killed_and_stopped(tmp_path):
    """The second one begins when the first is warm."""
    with Serving(tmp_path) as serving:
        wait_until(lambda: len(serving.workers()) > 0)
        os.kill(serving.workers()[0], signal.SIGKILL)
        serving.until(lambda state: state["worker"] == "restarted")
        assert "session" in serving.post("campaign", doc=document(name="soon"))["state"]
        stopped = serving.post("stop")["state"]
        assert (stopped["phase"], stopped["session"]) == ("stopped", "soon")
        serving.post("resume")
        serving.learned()
        assert len(serving.both_workers()) == 2
        serving.post("stop")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two servers of one folder, and the folder."""
    folder = tmp_path_factory.mktemp("pair")
    with Serving(folder) as first, Serving(folder) as second:
        yield first, second, folder


def learn_a_little(serving, name):
    """Leave a session that was stopped after its first map."""
    serving.post("campaign", doc=document(), name=name)
    serving.learned()
    serving.post("stop")
    serving.settled()


def test_a_session_is_open_in_one_server_only(pair):
    first, second, _ = pair
    learn_a_little(first, "mine")
    second.post("open", session="mine")
    state = second.until(lambda state: state["phase"] == "failed")
    assert state["error"]["kind"] == "store"
    assert "another run is in progress" in state["error"]["message"]
    assert "ended" in second.post("resume")["error"]["message"]
    first.post("open", example="sir")
    first.post("campaign", doc=document(), name="other")
    second.post("open", session="mine")
    second.until(lambda state: state["phase"] == "stopped" and state["frame"])


def test_a_damaged_session_is_refused_and_not_listed(pair):
    serving, _, folder = pair
    learn_a_little(serving, "damaged")
    file = folder / "damaged-session" / "session.json"
    assert "damaged" in [each["name"] for each in serving.get("sessions")]
    sound = file.read_text()
    file.write_text(re.sub(r'"runs": (\d+)', lambda found: f'"runs": {int(found[1]) + 1}', sound, count=1))
    assert file.read_text() != sound
    assert "damaged" not in [each["name"] for each in serving.get("sessions")]
    assert serving.post("open", session="damaged")["error"]["kind"] == "store"
    for name in ("../damaged", "damaged/../damaged", "none", ""):
        assert "error" in serving.post("open", session=name)


@pytest.mark.parametrize(("which", "how", "code"), [(0, signal.SIGINT, 130), (1, signal.SIGTERM, 143)])
def test_it_ends_and_leaves_no_process(pair, which, how, code):
    """After this nobody can use the pair."""
    serving = pair[which]
    serving.post("campaign", doc=sir())
    serving.until(lambda state: state["frame"])
    workers = serving.both_workers()
    serving.process.send_signal(how)
    wait_until(lambda: serving.process.poll() is not None)
    assert serving.process.returncode == code
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_nothing_more_is_heard_of_a_question_that_was_left(server, learned):
    server.post("open", session="sir")
    server.post("resume")
    server.until(lambda state: state["phase"] == "learning")
    server.post("open", example="decay")
    assert "started" in server.post("predict", points=[AT])["error"]["message"]
    state = server.state()
    assert [state[name] for name in ("phase", "session", "runs", "points", "frame")] == ["empty", None, 0, 0, 0]
    assert server.frame() == b""


def test_workers_end_with_a_server_that_is_killed(server):
    """The last test, for after it there is no server."""
    workers = server.both_workers()
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
