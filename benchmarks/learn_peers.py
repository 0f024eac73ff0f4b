"""SVIGP against GPyTorch, SVIBNN against Pyro, and the paper's presets against both, on the paper's configuration (a).

    python benchmarks/learn_peers.py [--minutes 12] [--quick]      prints ratios and writes results/learn_peers.json

Three questions, answered in one run:

1. How much sooner is a default SVIGP better than GPyTorch's SVGP has become, trained as the paper says (500 inducing
   points, all of them learned; batches of 100), and with ten times the learning rate, which suits it better?
2. The same of a default SVIBNN and Pyro's mean-field network (d-30-30-1, prior around a trained network).
3. Do our presets of the paper's two models do what GPyTorch and Pyro do? From the same start, with the same batches,
   and over several seeds.

A peer's error is followed over time, the time of looking at it excluded. Its final error is the median of the last
fifth of its time; errors are noisy, so two times count: when it first was as low as in the end, and when it first was
as low as ours. Errors are root mean squares against the exact f at the 1000 test points. All 2000 epochs of the paper's
setting take GPyTorch longer than the minutes allow: what they would take is extrapolated, and said to be. Our time is
that of a whole fit; that of the first fit, in which JAX compiles, is shown beside it. The peers compile nothing, and
run on as many threads as suit them best, which is found out first.

It needs torch (the CPU build: pip install torch==2.13.0+cpu), gpytorch and pyro-ppl beside sateen.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import gpytorch
import learning_data
import machine
import numpy as np
import pyro
import torch
from gpytorch.likelihoods.likelihood import _OneDimensionalLikelihood
from pyro.infer import SVI, TraceMeanField_ELBO
from scipy.special import ndtr
from scipy.stats import norm

import sateen as st
from sateen.core.types import FloatArray
from sateen.learning.gp import faithful as faithful_gp
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.recipes import FaithfulSVIGP
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.networks.network import arithmetic, log_ways

PAPER_EPOCHS: Final = 2000
PAPER_RATE: Final = 0.001
BETTER_RATE: Final = 0.01
BATCH: Final = 100
LEVEL: Final = 0.95
Bands = tuple[FloatArray, FloatArray, FloatArray]  # mean, lower and upper bound of f


class Peer(Protocol):
    """A model of another library, trained epoch by epoch."""

    def epoch(self) -> None: ...

    def predict(self, x: FloatArray) -> Bands: ...

    def elbo(self) -> float: ...


class Probit(_OneDimensionalLikelihood):
    """Binomial counts with f = Φ(g), the expectation by GPyTorch's own quadrature at 20 nodes."""

    def forward(self, function_samples: Any, *args: Any, **kwargs: Any) -> Any:
        return torch.distributions.Bernoulli(torch.special.ndtr(function_samples))

    def expected_log_prob(self, observations: Any, function_dist: Any, *args: Any, **kwargs: Any) -> Any:
        satisfied, trials = observations.unbind(-1)

        def value(g: Any) -> Any:
            return satisfied * torch.special.log_ndtr(g) + (trials - satisfied) * torch.special.log_ndtr(-g)

        return self.quadrature(value, function_dist)


class SparseGP(gpytorch.models.ApproximateGP):
    """GPyTorch's whitened SVGP with a full covariance, a constant mean and a scaled isotropic RBF."""

    def __init__(self, inducing: Any) -> None:
        belief = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        strategy = gpytorch.variational.VariationalStrategy(self, inducing, belief, learn_inducing_locations=True)
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class GPyTorch:
    """The paper's SVI-GP in GPyTorch: data as tensors in memory, and no loader between."""

    def __init__(self, sample: Sample, rate: float, seed: int, dtype: Any = torch.float32) -> None:
        torch.manual_seed(seed)
        self.order = np.random.default_rng(seed)
        self.x = torch.tensor(sample.x, dtype=dtype)
        self.counts = torch.tensor(np.column_stack([sample.satisfied, sample.trials]), dtype=dtype)
        self.ways = log_ways(sample)
        self.model = SparseGP(self.x.clone()).to(dtype)
        self.likelihood = Probit().to(dtype)
        self.bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=len(sample))
        self.model.train()
        self.model(self.x[:1])  # makes the first belief
        self.adam = torch.optim.Adam(self.model.parameters(), lr=rate)

    def step(self, rows: Any) -> None:
        self.adam.zero_grad()
        (-self.bound(self.model(self.x[rows]), self.counts[rows])).backward()
        self.adam.step()

    def epoch(self) -> None:
        order = torch.from_numpy(self.order.permutation(len(self.x)))
        for rows in order.split(BATCH):
            self.step(rows)

    def predict(self, x: FloatArray) -> Bands:
        self.model.eval()
        with torch.no_grad():
            latent = self.model(torch.tensor(x, dtype=self.x.dtype))
            mean, variance = latent.mean.double().numpy(), latent.variance.double().numpy()
        self.model.train()
        deviation, reach = np.sqrt(variance), norm.ppf(0.5 + LEVEL / 2)
        return ndtr(mean / np.sqrt(1 + variance)), ndtr(mean - reach * deviation), ndtr(mean + reach * deviation)

    def elbo(self) -> float:
        with torch.no_grad():
            return float(self.bound(self.model(self.x), self.counts)) * len(self.x) + self.ways


class Pyro:
    """The paper's SVI-BNN in Pyro: the divergence in closed form, which is its best estimate of the bound."""

    width, first_epochs, first_rate, first_spread, draws = 30, 500, 0.01, 0.2, 1000

    def __init__(self, sample: Sample, rate: float, seed: int) -> None:
        pyro.clear_param_store()
        pyro.set_rng_seed(seed)
        self.order = np.random.default_rng(seed)
        self.x = torch.tensor(sample.x, dtype=torch.float32)
        self.satisfied, self.trials = (torch.tensor(c, dtype=torch.float32) for c in (sample.satisfied, sample.trials))
        self.centre = self._trained(sample.x.shape[1])
        self.svi = SVI(self._model, self._guide, pyro.optim.Adam({"lr": rate}), TraceMeanField_ELBO())

    def _trained(self, dimension: int) -> list[Any]:
        """The weights of a network of the same shape, trained in the usual way."""
        weights = []
        for size, width in ((dimension, self.width), (self.width, self.width), (self.width, 1)):
            first = np.sqrt(2 / size) * (1.0 if width > 1 else 0.1)
            weights += [first * torch.randn(width, size), torch.zeros(width)]
        weights[-1] += torch.logit(self.satisfied.sum() / self.trials.sum())
        for weight in weights:
            weight.requires_grad_()
        adam = torch.optim.Adam(weights, lr=self.first_rate)
        for _ in range(self.first_epochs):
            for rows in torch.from_numpy(self.order.permutation(len(self.x))).split(BATCH):
                adam.zero_grad()
                chance = torch.distributions.Binomial(self.trials[rows], logits=self._net(weights, self.x[rows]))
                (-chance.log_prob(self.satisfied[rows]).mean()).backward()
                adam.step()
        return [weight.detach() for weight in weights]

    @staticmethod
    def _net(weights: Sequence[Any], x: Any) -> Any:
        for weight, bias in zip(weights[:4:2], weights[1:4:2], strict=True):
            x = torch.nn.functional.leaky_relu(x @ weight.mT + bias.unsqueeze(-2))
        return (x @ weights[4].mT + weights[5].unsqueeze(-2)).squeeze(-1)

    def _model(self, rows: Any) -> None:
        weights = [
            pyro.sample(f"w{i}", pyro.distributions.Normal(centre, 1 / self.width).to_event(centre.dim()))
            for i, centre in enumerate(self.centre)
        ]
        with pyro.plate("rows", len(rows)), pyro.poutine.scale(scale=len(self.x) / len(rows)):
            logit = self._net(weights, self.x[rows])
            chance = pyro.distributions.Binomial(self.trials[rows], logits=logit)
            pyro.sample("satisfied", chance, obs=self.satisfied[rows])

    def _belief(self) -> list[tuple[Any, Any]]:
        """The mean and the deviation of each weight."""
        found = []
        for i, centre in enumerate(self.centre):
            mean = pyro.param(f"mean{i}", centre.clone())
            first = torch.full_like(centre, np.log(self.first_spread / self.width))
            log_deviation = pyro.param(f"log_deviation{i}", first)
            found.append((mean, log_deviation.exp()))
        return found

    def _guide(self, rows: Any) -> None:
        for i, (mean, deviation) in enumerate(self._belief()):
            pyro.sample(f"w{i}", pyro.distributions.Normal(mean, deviation).to_event(mean.dim()))

    def epoch(self) -> None:
        for rows in torch.from_numpy(self.order.permutation(len(self.x))).split(BATCH):
            self.svi.step(rows)

    def predict(self, x: FloatArray) -> Bands:
        with torch.no_grad():
            weights = [mean + spread * torch.randn(self.draws, *mean.shape) for mean, spread in self._belief()]
            f = torch.sigmoid(self._net(weights, torch.tensor(x, dtype=torch.float32))).double().numpy()
        lower, upper = np.quantile(f, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
        return f.mean(axis=0), lower, upper

    def elbo(self) -> float:
        """By 200 draws, for here the expectation has no closed form."""
        rows = torch.arange(len(self.x))
        return -float(np.mean([self.svi.evaluate_loss(rows) for _ in range(200)]))


class Stopwatch:
    """Wall and CPU seconds of what is done between `start` and `stop`, summed."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.start()

    def start(self) -> None:
        self.began = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self.began[0]
        self.cpu += time.process_time() - self.began[1]


@dataclass(frozen=True)
class Task:
    """Configuration (a): counts to learn from, and the exact f at the test points."""

    observations: st.Observations
    points: st.Points
    truth: FloatArray

    @property
    def sample(self) -> Sample:
        return sample_of(self.observations, inputs_of(self.observations, "linear"))

    @property
    def x(self) -> FloatArray:
        return inputs_of(self.observations, "linear").unit(self.points.theta)

    def errors(self, bands: Bands) -> dict[str, float]:
        mean, lower, upper = bands
        covered = (lower <= self.truth) & (self.truth <= upper)
        rmse = float(np.sqrt(np.mean((mean - self.truth) ** 2)))
        return {"rmse": rmse, "width": float(np.mean(upper - lower)), "coverage": float(covered.mean())}

    def errors_of(self, posterior: Any) -> dict[str, float]:
        found = posterior.predict(self.points, level=LEVEL)
        return self.errors((found.mean, found.lower, found.upper))


def best_threads(make: Callable[[], Peer]) -> int:
    """How many threads make a peer's epochs shortest, in wall time."""
    peer, seconds = make(), {}
    for threads in (1, os.cpu_count() or 1):
        torch.set_num_threads(threads)
        peer.epoch()
        watch = Stopwatch()
        for _ in range(3):
            peer.epoch()
        watch.stop()
        seconds[threads] = watch.wall
    return min(seconds, key=seconds.__getitem__)


def follow(make: Callable[[], Peer], seconds: float, task: Task) -> dict[str, Any]:
    """Train a peer for so many wall seconds, and look at its error whenever its time has grown by a twentieth."""
    watch = Stopwatch()
    peer = make()
    watch.stop()
    before, trace, epochs, next_look = watch.wall, [], 0, 0.0
    while (watch.wall < seconds and epochs < PAPER_EPOCHS) or not epochs:
        watch.start()
        peer.epoch()
        watch.stop()
        epochs += 1
        if watch.wall >= next_look or epochs == PAPER_EPOCHS:
            next_look = 1.05 * watch.wall
            trace.append({"epoch": epochs, "wall": watch.wall, "cpu": watch.cpu, **task.errors(peer.predict(task.x))})
    late = [row["rmse"] for row in trace if row["wall"] >= 0.8 * watch.wall]
    per_epoch = (watch.wall - before) / epochs
    return {
        "epochs": epochs,
        "seconds_before_the_first_epoch": before,
        "seconds_per_epoch": per_epoch,
        "extrapolated_seconds_of_2000_epochs": before + per_epoch * PAPER_EPOCHS,
        "final_rmse": float(np.median(late or [trace[-1]["rmse"]])),  # of the last fifth of its time
        "trace": trace,
    }


def ours(recipe: Any, task: Task, rounds: int) -> dict[str, Any]:
    """The seconds of a fit, best of `rounds` after one that compiles, and its errors."""
    times = []
    for _ in range(rounds + 1):
        watch = Stopwatch()
        posterior = recipe.fit(task.observations, seed=1)
        watch.stop()
        times.append((watch.wall, watch.cpu))
    wall, cpu = min(times[1:])
    return {"recipe": str(recipe), "wall": wall, "cpu": cpu, "first_wall": times[0][0], **task.errors_of(posterior)}


def race(name: str, own: dict[str, Any], make: Callable[[float], Peer], minutes: float, task: Task) -> dict[str, Any]:
    """How much later than ours a peer reached its own final error, and ours, at each learning rate."""
    print(f"{own['recipe']}\n  {own['wall']:.3f} s, {own['cpu']:.3f} s CPU; {own['first_wall']:.1f} s the first time")
    print(f"  RMSE {own['rmse']:.5f}, width {own['width']:.4f}, coverage {own['coverage']:.3f}", flush=True)
    threads = best_threads(lambda: make(PAPER_RATE))
    torch.set_num_threads(threads)
    runs: dict[str, Any] = {"threads": threads}
    for rate in (PAPER_RATE, BETTER_RATE):
        found = follow(lambda rate=rate: make(rate), 60 * minutes / 2, task)
        final, trace = found["final_rmse"], found["trace"]
        there = next((row for row in trace if row["rmse"] <= final), trace[-1])
        level = next((row for row in trace if row["rmse"] <= own["rmse"]), None)
        ahead = own["rmse"] <= final
        found |= {
            "wall_of_final_rmse": there["wall"],
            "ours_is_at_least_as_good": ahead,
            "times_sooner_than_final": there["wall"] / own["wall"] if ahead else None,
            "times_sooner_than_final_cpu": there["cpu"] / own["cpu"] if ahead else None,
            "times_sooner_than_final_compiling_included": there["wall"] / own["first_wall"] if ahead else None,
            "wall_of_our_rmse": level and level["wall"],  # None: it never was as good as ours
            "times_sooner_than_equal": (level or trace[-1])["wall"] / own["wall"],  # at least so, if it never was
            "extrapolated_times_sooner_than_2000_epochs": found["extrapolated_seconds_of_2000_epochs"] / own["wall"],
        }
        runs[f"{rate:g}"] = found
        show(name, rate, found)
    return {"ours": own, name: runs}


def show(name: str, rate: float, found: dict[str, Any]) -> None:
    print(f"  {name}, learning rate {rate:g}: {found['epochs']} epochs of {found['seconds_per_epoch']:.3f} s")
    times, cpu = found["times_sooner_than_final"] or 0, found["times_sooner_than_final_cpu"] or 0
    better = f"ours is as good {times:.0f} times sooner ({cpu:.0f} times in CPU time)"
    verdict = better if found["ours_is_at_least_as_good"] else "ours is NOT as good"
    print(f"    final RMSE {found['final_rmse']:.5f}, first after {found['wall_of_final_rmse']:.1f} s: {verdict}")
    reached = found["wall_of_our_rmse"]
    when = "it never reached" if reached is None else f"after {reached:.1f} s it first reached"
    bound = "more than " if reached is None else ""
    print(f"    {when} our RMSE: ours is there {bound}{found['times_sooner_than_equal']:.0f} times sooner")
    whole, times = found["extrapolated_seconds_of_2000_epochs"], found["extrapolated_times_sooner_than_2000_epochs"]
    print(f"    extrapolated: {PAPER_EPOCHS} epochs take {whole:.0f} s, {times:.0f} times ours", flush=True)


def same_steps(task: Task, steps: int) -> dict[str, Any]:
    """The paper's SVI-GP, ours and GPyTorch's, both in double precision: from one start, with the same batches."""
    sample = task.sample
    peer = GPyTorch(sample, BETTER_RATE, 1, torch.float64)
    with arithmetic("cpu", "float64"):
        recipe = FaithfulSVIGP(learning_rate=BETTER_RATE, jitter=1e-6)  # GPyTorch's in double precision
        course = faithful_gp._Course.of(recipe, sample, 1)
        state = course.start()
        belief = peer.model.variational_strategy._variational_distribution
        belief.variational_mean.data = torch.tensor(np.asarray(state.parameters.mean))
        for done in range(0, steps, course.per_epoch):
            rows, _ = course._batches(done, course.per_epoch)
            for own in rows[: course.per_epoch]:
                peer.step(torch.from_numpy(own.astype(np.int64)))
            state = course.advanced(state, done, course.per_epoch)
        learned = [np.asarray(value) for value in state.parameters]
    kernel = peer.model.covar_module
    theirs = (peer.model.mean_module.raw_constant, kernel.raw_outputscale, kernel.base_kernel.raw_lengthscale)
    theirs += (peer.model.variational_strategy.inducing_points, belief.variational_mean, belief.chol_variational_covar)
    apart = {
        name: float(np.abs(np.reshape(other.detach().numpy(), np.shape(own)) - own).max())
        for name, own, other in zip(state.parameters._fields, learned, theirs, strict=True)
    }
    # What the differences come to: GPyTorch's model with its own numbers, and with ours in their place.
    before, elbo = peer.predict(task.x), peer.elbo()
    for own, other in zip(learned, theirs, strict=True):
        other.data = torch.tensor(np.reshape(own, other.shape))
    peer.model.variational_strategy._clear_cache()
    after = peer.predict(task.x)
    apart["mean of f"] = float(np.abs(before[0] - after[0]).max())
    apart["bounds of f"] = float(max(np.abs(a - b).max() for a, b in zip(before[1:], after[1:], strict=True)))
    apart["elbo"] = abs(elbo - peer.elbo())
    return {"steps": steps, "learning_rate": BETTER_RATE, "largest_difference": apart}


def elbo_of(posterior: Any, sample: Sample) -> float:
    """The bound at a fitted posterior: as it tells, or, of a network, by 200 draws as for Pyro's."""
    if isinstance(posterior, GPPosterior):
        return float(posterior.record.values[-1])
    f = posterior.sample(posterior.training.observations.points, 200, seed=0).clip(1e-12, 1 - 1e-12)
    fit = sample.satisfied * np.log(f) + (sample.trials - sample.satisfied) * np.log1p(-f)
    prior = posterior.recipe.prior_scale / posterior.recipe.width
    mean, spread = posterior.mean.astype(float), posterior.spread.astype(float)
    squares = (spread**2 + (mean - posterior.centre) ** 2) / (2 * prior**2)
    return log_ways(sample) + float(fit.sum(axis=1).mean() - np.sum(np.log(prior / spread) + squares - 0.5))


def same_seeds(
    name: str, fit: Callable[[int], Any], make: Callable[[int], Peer], epochs: int, seeds: int, task: Task
) -> dict[str, Any]:
    """A preset and its peer after as many epochs, over seeds: mean and deviation of errors and ELBO, and how apart."""
    rows: dict[str, list[dict[str, float]]] = {"ours": [], name: []}
    for seed in range(1, seeds + 1):
        posterior = fit(seed)
        rows["ours"].append({**task.errors_of(posterior), "elbo": elbo_of(posterior, task.sample)})
        peer = make(seed)
        for _ in range(epochs):
            peer.epoch()
        rows[name].append({**task.errors(peer.predict(task.x)), "elbo": peer.elbo()})
    table: dict[str, Any] = {}
    for figure in ("rmse", "width", "elbo"):
        own, other = (np.array([row[figure] for row in rows[who]]) for who in ("ours", name))
        noise = float(np.sqrt((own.var(ddof=1) + other.var(ddof=1)) / seeds))
        apart = float(own.mean() - other.mean())
        table[figure] = {
            "ours": [float(own.mean()), float(own.std(ddof=1))],
            name: [float(other.mean()), float(other.std(ddof=1))],
            "difference": apart,
            "in_deviations_of_the_difference": apart / noise,
        }
        print(f"    {figure:<6} ours {own.mean():.5g} ± {own.std(ddof=1):.2g},", end="")
        print(
            f" {name} {other.mean():.5g} ± {other.std(ddof=1):.2g}: {apart / noise:+.1f} deviations apart", flush=True
        )
    return {"epochs": epochs, "seeds": seeds, "figures": table, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=12.0, help="that peers may train in the races on one data set")
    parser.add_argument("--sets", type=int, nargs="+", default=[1], help="numbers of the training sets to race on")
    parser.add_argument("--epochs", type=int, default=100, help="of the presets and their peers, when compared")
    parser.add_argument("--seeds", type=int, default=4, help="over which they are compared")
    parser.add_argument("--folder", type=Path, help="where the data are kept; see learning_data.py")
    parser.add_argument("--quick", action="store_true", help="a few minutes in all, and nothing written")
    options = parser.parse_args()
    minutes, epochs, seeds, rounds = options.minutes, options.epochs, options.seeds, 5
    if options.quick:
        minutes, epochs, seeds, rounds = 0.4, 4, 2, 1
    about = machine.note("sateen", "jax", "numpy", "scipy", "torch", "gpytorch", "pyro-ppl")
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}, {about['versions']}")
    problem = learning_data.problem("a")
    truth = learning_data.truth(problem, folder=options.folder)
    result: dict[str, Any] = {"machine": about, "level": LEVEL, "batch": BATCH, "minutes": minutes, "races": {}}
    for number in options.sets:
        task = Task(learning_data.training(problem, number, folder=options.folder), truth.points, truth.probability)
        print(
            f"configuration (a), training set {number}: {len(task.sample)} points of {task.sample.trials[0]:.0f} runs"
        )
        result["races"][f"{number}"] = races(task, minutes, rounds)
    task = Task(learning_data.training(problem, 1, folder=options.folder), truth.points, truth.probability)
    result |= same(task, epochs, seeds)
    if not options.quick:
        print(machine.write("learn_peers", result))


def races(task: Task, minutes: float, rounds: int) -> dict[str, Any]:
    """Both races on one data set; GPyTorch, the slower, has three quarters of the time."""
    sample = task.sample
    gp = race("GPyTorch", ours(st.SVIGP(), task, rounds), lambda rate: GPyTorch(sample, rate, 1), 0.75 * minutes, task)
    bnn = race("Pyro", ours(st.SVIBNN(), task, rounds), lambda rate: Pyro(sample, rate, 1), 0.25 * minutes, task)
    return {"gp": gp, "bnn": bnn}


def same(task: Task, epochs: int, seeds: int) -> dict[str, Any]:
    """The presets beside their peers, at both learning rates."""
    sample = task.sample
    torch.set_num_threads(1)
    steps = same_steps(task, 5 * epochs)
    print(f"the paper's SVI-GP, ours and GPyTorch's, {steps['steps']} steps from one start with the same batches:")
    print("    apart by at most " + ", ".join(f"{k} {v:.2g}" for k, v in steps["largest_difference"].items()))
    found: dict[str, Any] = {}
    for rate in (PAPER_RATE, BETTER_RATE):
        presets = {
            "GPyTorch": replace(st.SVIGP.faithful(), epochs=epochs, learning_rate=rate),
            "Pyro": replace(st.SVIBNN.faithful(), epochs=epochs, rate=rate),
        }
        for (name, recipe), peer in zip(presets.items(), (GPyTorch, Pyro), strict=True):
            print(f"the paper's {recipe.__class__.__name__} and {name}, {epochs} epochs at {rate:g}, {seeds} seeds:")
            found[f"{name} {rate:g}"] = same_seeds(
                name,
                lambda seed, recipe=recipe: recipe.fit(task.observations, seed=seed),
                lambda seed, peer=peer, rate=rate: peer(sample, rate, seed),
                epochs,
                seeds,
                task,
            )
    return {"same_steps": steps, "same_seeds": found}


if __name__ == "__main__":
    main()
