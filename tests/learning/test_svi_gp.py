"""Natural-gradient variational inference, at once, in blocks and by batches, and the learner SVIGP."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import binom

from processes import DECADES, Small, observed, wave
from sateen.core.errors import InputError
from sateen.core.space import Space
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.recipes import SVIGP
from sateen.learning.gp.sparse import Basis, choose_inducing
from sateen.learning.gp.streaming import Natural, Stream, by_batches, by_passes
from sateen.learning.gp.variational import Sites, converge, elbo_slopes
from sateen.learning.inputs import inputs_of, sample_of
from sateen.learning.likelihood import Counts


def best(problem, **settings):
    return converge(problem.counts, problem.features, problem.spare, Sites.guess(problem.counts), **settings)


def dense_elbo(problem):
    """The largest ELBO over all normal distributions of the three latent values, by blind search."""
    K = problem.kernel.between(problem.x, problem.x)
    inverse, (_, log_det) = np.linalg.inv(K), np.linalg.slogdet(K)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    lower = np.tril_indices(3)

    def loss(packed):
        mean, root = packed[:3], np.zeros((3, 3))
        root[lower] = packed[3:]
        S = root @ root.T
        g = mean[:, None] + np.sqrt(np.diag(S))[:, None] * nodes
        chances = np.clip(ndtr(g), 1e-300, 1 - 1e-16)
        logs = binom.logpmf(problem.counts.satisfied[:, None], problem.counts.trials[:, None], chances)
        trace = np.trace(inverse @ S) + mean @ inverse @ mean
        divergence = 0.5 * (trace - 3 + log_det - 2 * np.log(np.abs(np.diag(root))).sum())
        return divergence - float((logs @ weights).sum())

    start = np.concatenate([np.zeros(3), np.eye(3)[lower]])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6, "maxiter": 500})
    root = np.zeros((3, 3))
    root[lower] = found.x[3:]
    return -found.fun, found.x[:3], np.sqrt(np.diag(root @ root.T))


@pytest.mark.parametrize(("satisfied", "trials"), [((1, 6, 8), (8, 8, 8)), ((0, 3, 1), (5, 20, 1))])
def test_with_all_points_inducing_it_is_dense_variational_inference(satisfied, trials):
    problem = Small(satisfied, trials)
    found = best(problem, tolerance=1e-12, most=200)
    elbo, mean, deviation = dense_elbo(problem)
    assert found.elbo == pytest.approx(elbo, abs=1e-4)
    assert problem.features @ found.q.mean == pytest.approx(mean, abs=1e-3)
    assert np.sqrt(found.q.spread(problem.features)) == pytest.approx(deviation, rel=1e-3)


@pytest.mark.parametrize("undecided", [(0, 0, 0), (3, 0, 0)])
def test_the_elbo_is_below_the_evidence_and_close(undecided):
    problem = Small(undecided=undecided)
    found = best(problem)
    assert problem.log_evidence - 0.05 < found.elbo < problem.log_evidence


@pytest.mark.parametrize("link", ["probit", "logit"])
@pytest.mark.parametrize("inducing", [12, 4])
def test_slopes_of_the_elbo_are_its_derivatives(link, inducing):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (12, 2))
    counts = Counts(rng.binomial(15, 0.3, 12).astype(float), np.zeros(12), np.full(12, 15.0), link)
    kernel, points, h = Kernel("matern", (0.6, 1.1), 1.4), x[:inducing].copy(), 1e-4

    def elbo(kernel=kernel, points=points):
        basis = Basis.of(kernel, points)
        features = basis.features(x)
        found = converge(counts, features, basis.spare(features), Sites.guess(counts), tolerance=1e-12, most=300)
        return found, basis, features

    found, basis, features = elbo()
    by_logs, by_points = elbo_slopes(found, basis, x, features)
    for axis in range(3):
        step = np.eye(3)[axis] * h
        up, down = (elbo(kernel.at_logs(kernel.logs + sign * step))[0].elbo for sign in (1, -1))
        assert by_logs[axis] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-5)
    for index in [(0, 0), (3, 1)]:
        move = np.zeros_like(points)
        move[index] = h
        up, down = (elbo(points=points + sign * move)[0].elbo for sign in (1, -1))
        assert by_points[index] == pytest.approx((up - down) / (2 * h), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_the_elbo_never_falls(link):
    """From sites of absurd weight, where full steps overshoot."""
    problem = Small((0, 8, 0))
    counts = Counts(problem.counts.satisfied, problem.counts.undecided, problem.counts.trials, link)
    elbos: list[float] = []
    start = Sites(np.full(3, 0.01), np.array([5.0, -5.0, 5.0]))
    converge(counts, problem.features, problem.spare, start, step=elbos.append)
    assert len(elbos) > 1
    assert all(late >= early for early, late in pairwise(elbos))


def streamed(points=3000):
    """A problem in two dimensions for streams, its basis, and the best q with all features in memory."""
    space = Space(a=(0.0, 1.0), b=(0.0, 1.0))
    obs = observed(points, 10, space=space, f=lambda theta: ndtr(np.sin(4 * theta[:, 0]) - theta[:, 1]))
    sample = sample_of(obs, inputs_of(obs, "linear"))
    kernel = Kernel("matern", (1.0, 2.0), 1.0)
    basis = Basis.of(kernel, choose_inducing(kernel, sample.x, 25))
    counts, features = Counts.of(sample, "probit"), basis.features(sample.x)
    exact = converge(counts, features, basis.spare(features), Sites.guess(counts), tolerance=1e-9)
    return basis, sample.x, counts, exact


@pytest.mark.parametrize("single", [False, True])
def test_reading_in_blocks_changes_nothing(single):
    """The best q stays where it is; 5000 rows are two blocks. Single precision moves it by less than a hundredth."""
    basis, x, counts, exact = streamed(5000)
    found, asked = Stream(basis, x, counts, single).sweep(exact.q)
    moved = exact.q.root.T @ (asked.belief().mean - exact.q.mean)
    assert np.abs(moved).max() < (1e-2 if single else 1e-4)
    likelihood = exact_likelihood(exact, counts, basis, x).sum()
    assert found == pytest.approx(likelihood, rel=1e-6 if single else 1e-12)


def test_a_single_pass_from_few_rows_nearly_arrives():
    basis, x, counts, exact = streamed(8000)
    few = slice(0, 400)
    features = basis.features(x[few])
    start = converge(counts[few], features, basis.spare(features), Sites.guess(counts[few])).q
    found = by_passes(Stream(basis, x, counts, False), start, 1, np.arange(0, len(x), 10))
    moved = exact.q.root.T @ (found.q.mean - exact.q.mean)
    assert found.shift < 0.05
    assert np.abs(moved).max() < 0.05
    assert found.values[0] < exact.elbo


def exact_likelihood(exact, counts, basis, x):
    features = basis.features(x)
    return counts.expected(features @ exact.q.mean, exact.q.spread(features) + basis.spare(features))[0]


@pytest.mark.parametrize("batch", [100, 700])
def test_mini_batches_reach_the_elbo_of_the_full_batch(batch):
    basis, x, counts, exact = streamed()
    found = by_batches(Stream(basis, x, counts, False), batch, 10, np.random.default_rng(1))
    assert exact.elbo - 0.05 < found.values[-1] <= exact.elbo + 1e-6
    assert found.shift < 0.01


def test_a_batch_asks_for_what_all_rows_ask_for_on_average():
    basis, x, counts, exact = streamed()
    stream = Stream(basis, x, counts, False)
    whole = stream.sweep(exact.q)[1]
    parts = [stream.sweep(exact.q, np.arange(i, len(x), 3), 3.0)[1] for i in range(3)]
    assert np.mean([part.precision for part in parts], axis=0) == pytest.approx(whole.precision, rel=1e-9, abs=1e-9)
    assert np.mean([part.shift for part in parts], axis=0) == pytest.approx(whole.shift, rel=1e-9, abs=1e-9)


def test_natural_parameters_lead_back():
    _, _, _, exact = streamed(300)
    again = Natural.of(exact.q).belief()
    assert again.mean == pytest.approx(exact.q.mean, rel=1e-8, abs=1e-10)
    assert again.root == pytest.approx(exact.q.root, rel=1e-8, abs=1e-10)


def test_fitting_by_batches_gives_the_posterior_of_the_whole():
    obs = observed(300)
    whole, batches = (SVIGP(batch=batch).fit(obs, seed=2) for batch in (None, 50))
    at = DECADES.grid(40)
    assert batches.record.values[-1] == pytest.approx(whole.record.values[-1], abs=0.05)
    assert batches.predict(at).mean == pytest.approx(whole.predict(at).mean, abs=2e-3)


def test_what_is_too_much_for_memory_is_read_in_blocks(monkeypatch):
    from sateen.learning.gp import svi_gp

    obs = observed(5000, 10)
    settings = {"length_scales": 0.7, "variance": 1.0, "inputs": "log", "inducing": 20}
    whole = SVIGP(**settings).fit(obs, seed=2)
    monkeypatch.setattr(svi_gp, "_AT_ONCE", 1e3)
    blocks = SVIGP(**settings).fit(obs, seed=2)
    assert "the data were read in blocks" in blocks.record.notes[-1]
    assert blocks.record.converged
    at = DECADES.grid(40)
    assert blocks.predict(at).mean == pytest.approx(whole.predict(at).mean, abs=5e-4)
    assert blocks.predict(at).std == pytest.approx(whole.predict(at).std, rel=0.02)


def test_inducing_points_that_may_move_find_a_better_place():
    obs = observed(200)
    settings = {"inducing": 4, "inputs": "log", "length_scales": 0.5, "variance": 1.0}
    fixed, moved = (SVIGP(optimise_inducing=moves, **settings).fit(obs, seed=2) for moves in (False, True))
    assert moved.record.values[-1] > fixed.record.values[-1] + 0.1
    assert moved.points.shape == fixed.points.shape
    assert np.abs(moved.points).max() <= 1.0


def test_sparse_vi_uses_the_points_it_is_given():
    obs = observed(150)
    rows = [[0.01], [0.1], [0.5], [1.0]]
    recipe = SVIGP.sparse_vi(rows, inputs="log")
    posterior = recipe.fit(obs, seed=1)
    assert posterior.points == pytest.approx(posterior.inputs.unit(np.array(rows)))
    assert recipe.inducing_points == ((0.01,), (0.1,), (0.5,), (1.0,))
    with pytest.raises(InputError, match="outside its range"):
        SVIGP.sparse_vi([[7.0]]).fit(obs, seed=1)


def test_sparse_vi_without_points_fixes_a_random_part_of_the_training_points():
    obs = observed(150)
    one, other = (SVIGP.sparse_vi(inducing=12, inputs="log").fit(obs, seed=seed) for seed in (1, 2))
    training = one.inputs.unit(obs.theta)
    assert one.points.shape == (12, 1)
    assert np.isin(one.points, training).all()
    assert not np.array_equal(one.points, other.points)
    chosen = SVIGP(inducing=12, inputs="log").fit(obs, seed=1)
    assert chosen.record.values[-1] > one.record.values[-1]  # points chosen for the process explain the data better


def test_random_points_can_be_neither_moved_nor_given():
    with pytest.raises(InputError, match="fixes the inducing points, but optimise_inducing moves them"):
        SVIGP(selection="random", optimise_inducing=True)
    with pytest.raises(InputError, match="fixes the inducing points, but inducing_points gives them"):
        SVIGP.sparse_vi([[0.1]], selection="random")


def test_joint_learning_takes_in_every_row(monkeypatch):
    from sateen.learning.gp import prior as gp_prior
    from sateen.learning.gp import svi_gp

    monkeypatch.setattr(gp_prior, "KERNEL_ROWS", 50)
    obs = observed(200)
    subset, joint = (SVIGP(hyperparameters=how).fit(obs, seed=1) for how in ("subset", "joint"))
    assert "the kernel was learned from 50 of 200 points" in subset.record.notes
    assert not any("was learned from" in note for note in joint.record.notes)
    assert joint.record.values[-1] >= subset.record.values[-1]
    monkeypatch.setattr(svi_gp, "_JOINT", 1e5)
    with pytest.raises(InputError, match=r"hyperparameters='joint' needs 0\.0008 GB for 200 points and 100 inducing"):
        SVIGP(hyperparameters="joint").fit(obs, seed=1)


def test_too_few_passes_are_said():
    posterior = SVIGP(passes=1, length_scales=0.5, variance=50.0, inputs="log").fit(observed(60), seed=1)
    assert not posterior.record.converged
    assert "raise passes" in posterior.record.verdict
    few = SVIGP(batch=30, passes=1).fit(observed(60), seed=1)
    assert "another step would move the posterior" in few.record.verdict


def test_the_paper_s_own_recipe_is_at_hand():
    recipe = SVIGP.faithful(epochs=3)
    assert (type(recipe).__name__, recipe.epochs) == ("FaithfulSVIGP", 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": -5}, "batch is a whole number from 1 up, not -5"),
        ({"batch": 2.5}, "batch is a whole number"),
        ({"passes": 0}, "passes is a whole number"),
        ({"inducing": 0}, "inducing is a whole number"),
        ({"link": "probbit"}, "did you mean probit"),
        ({"hyperparameters": "subsets"}, "did you mean subset"),
        ({"kernel": "matérn"}, "did you mean matern"),
        ({"inputs": "linea"}, "did you mean linear"),
        ({"optimise_inducing": 1}, "optimise_inducing is True or False"),
        ({"inducing_points": ()}, "inducing_points are rows of parameter values"),
        ({"inducing_points": ((1.0,), (1.0, 2.0))}, "inducing_points are rows of parameter values"),
        ({"inducing_points": ((1.0,),), "inducing": 5}, "inducing_points are fixed, so inducing has nothing"),
        ({"inducing_points": ((1.0,),), "optimise_inducing": True}, "so optimise_inducing has nothing"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        SVIGP(**settings)


def test_the_function_is_found():
    obs = observed(300, 50)
    at = DECADES.grid(200)
    truth = wave(at.theta)
    pred = SVIGP().fit(obs, seed=1).predict(at)
    assert np.sqrt(np.mean((pred.mean - truth) ** 2)) < 0.015
    assert np.mean((pred.lower <= truth) & (truth <= pred.upper)) > 0.7
