"""Random draws and what is done with them: Markov chains, particles, shuffles, bootstrap."""

import jax
import jax.numpy as jnp
from jax import lax

from families.layers import dense, dense_params, programs
from lowering import KEY, abstract, integers, lower

SEED = integers()
CHAINS, SIZE = 4, 6


def log_density(x):
    """A banana-shaped density, the usual test of samplers."""
    return -0.5 * (x[..., 0] ** 2 / 4 + jnp.sum((x[..., 1:] + 0.1 * x[..., :1] ** 2) ** 2, axis=-1))


def rbg_key(seed):
    """The generator that maps to HLO's rng-bit-generator."""
    return jax.random.key(seed, impl="rbg")


def uniform_and_normal():
    """Uniform, normal, exponential and integer draws by rng-bit-generator."""

    def draw(seed):
        keys = jax.random.split(rbg_key(seed), 4)
        return (
            jax.random.uniform(keys[0], (4, 8)),
            jax.random.normal(keys[1], (4, 8)),
            jax.random.exponential(keys[2], (16,)),
            jax.random.randint(keys[3], (16,), 0, 10),
        )

    return lower(draw, SEED)


def distributions():
    """Gamma, beta, Poisson and Student draws: rejection loops over threefry."""

    def draw(key, rate):
        keys = jax.random.split(key, 4)
        return (
            jax.random.gamma(keys[0], 2.0 + rate),
            jax.random.beta(keys[1], 0.5, 0.5 + rate),
            jax.random.poisson(keys[2], 4.0 * rate + 1.0),
            jax.random.t(keys[3], 3.0, rate.shape),
        )

    return lower(draw, KEY, abstract(8))


def metropolis():
    """Metropolis sampling with several chains, a scan over steps, and acceptance rates."""

    def sample(key, start):
        def step(carry, key):
            x, density = carry
            move_key, accept_key = jax.random.split(key)
            proposal = x + 0.5 * jax.random.normal(move_key, x.shape)
            proposed = log_density(proposal)
            accepted = jnp.log(jax.random.uniform(accept_key, (CHAINS,))) < proposed - density
            x = jnp.where(accepted[:, None], proposal, x)
            return (x, jnp.where(accepted, proposed, density)), (x, accepted)

        keys = jax.random.split(key, 50)
        _, (chain, accepted) = lax.scan(step, (start, log_density(start)), keys)
        return jnp.mean(chain, axis=0), jnp.var(chain, axis=0), jnp.mean(accepted)

    return lower(sample, KEY, abstract(CHAINS, SIZE))


def hamiltonian():
    """Hamiltonian Monte Carlo: leapfrog steps inside a scan, by rng-bit-generator."""

    def sample(seed, start, step_size):
        slope = jax.grad(lambda x: jnp.sum(log_density(x)))

        def leapfrog(_, state):
            x, momentum = state
            momentum = momentum + 0.5 * step_size * slope(x)
            x = x + step_size * momentum
            return x, momentum + 0.5 * step_size * slope(x)

        def step(x, key):
            momentum_key, accept_key = jax.random.split(key)
            momentum = jax.random.normal(momentum_key, x.shape)
            moved, after = lax.fori_loop(0, 5, leapfrog, (x, momentum))
            gain = log_density(moved) - log_density(x)
            gain += 0.5 * jnp.sum(momentum**2 - after**2, axis=-1)
            accepted = jnp.log(jax.random.uniform(accept_key, (CHAINS,))) < gain
            x = jnp.where(accepted[:, None], moved, x)
            return x, x

        return lax.scan(step, start, jax.random.split(rbg_key(seed), 20))

    return lower(sample, SEED, abstract(CHAINS, SIZE), abstract())


def langevin():
    """Langevin dynamics on a small energy network, with clipped gradients."""
    params = [dense_params(SIZE, 16), dense_params(16, 1)]

    def sample(params, key, x):
        def energy(x):
            return jnp.sum(dense(params[1], jax.nn.softplus(dense(params[0], x))))

        def step(x, key):
            slope = jnp.clip(jax.grad(energy)(x), -1.0, 1.0)
            return x - 0.1 * slope + 0.05 * jax.random.normal(key, x.shape), None

        x, _ = lax.scan(step, x, jax.random.split(key, 20))
        return x, energy(x)

    return lower(sample, params, KEY, abstract(CHAINS, SIZE))


def gibbs_ising():
    """Gibbs sampling of the Ising model on a checkerboard, by rng-bit-generator."""

    def sample(seed, spins, coupling):
        rows, columns = jnp.indices(spins.shape)
        black = (rows + columns) % 2 == 0

        def half(spins, mask, key):
            field = sum(jnp.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
            up = jax.nn.sigmoid(2 * coupling * field)
            drawn = jnp.where(jax.random.uniform(key, spins.shape) < up, 1.0, -1.0)
            return jnp.where(mask, drawn, spins)

        def sweep(spins, key):
            first, second = jax.random.split(key)
            spins = half(half(spins, black, first), ~black, second)
            return spins, jnp.mean(spins)

        return lax.scan(sweep, spins, jax.random.split(rbg_key(seed), 16))

    return lower(sample, SEED, abstract(12, 12), abstract())


def categorical_choice():
    """Categorical draws in four ways: Gumbel, inverse distribution, top-k and top-p filters."""

    def draw(key, logits, temperature):
        keys = jax.random.split(key, 4)
        scaled = logits / temperature
        plain = jax.random.categorical(keys[0], scaled)
        mass = jnp.cumsum(jax.nn.softmax(scaled), axis=-1)
        inverse = jnp.sum(mass < jax.random.uniform(keys[1], (logits.shape[0], 1)), axis=-1)
        values, places = lax.top_k(scaled, 5)
        among = jax.random.categorical(keys[2], values)
        best = jnp.take_along_axis(places, among[:, None], axis=-1)[:, 0]
        ordered = jnp.sort(scaled, axis=-1, descending=True)
        covered = jnp.cumsum(jax.nn.softmax(ordered), axis=-1)
        limit = jnp.take_along_axis(ordered, jnp.sum(covered < 0.9, -1, keepdims=True), axis=-1)
        nucleus = jax.random.categorical(keys[3], jnp.where(scaled >= limit, scaled, -jnp.inf))
        return plain, inverse, best, nucleus

    return lower(draw, KEY, abstract(4, 32), abstract())


def permutation():
    """Shuffles: a permutation, rows shuffled independently, a choice without replacement."""

    def shuffle(key, table, weights):
        keys = jax.random.split(key, 3)
        order = jax.random.permutation(keys[0], table.shape[0])
        rows = jax.random.permutation(keys[1], table, axis=1, independent=True)
        picked = jax.random.choice(keys[2], table.shape[0], (4,), replace=False, p=weights)
        return table[order], rows, table[picked]

    return lower(shuffle, KEY, abstract(12, 8), abstract(12))


def particle_filter():
    """A particle filter: systematic resampling by searchsorted and gather in each step."""

    def run(key, observations):
        count = 32

        def step(particles, inputs):
            key, observed = inputs
            move_key, offset_key = jax.random.split(key)
            particles = 0.9 * particles + jax.random.normal(move_key, (count,))
            weights = jax.nn.softmax(-0.5 * (particles - observed) ** 2)
            places = (jnp.arange(count) + jax.random.uniform(offset_key)) / count
            chosen = jnp.searchsorted(jnp.cumsum(weights), places)
            estimate = jnp.sum(weights * particles)
            return particles[jnp.clip(chosen, 0, count - 1)], estimate

        keys = jax.random.split(key, observations.shape[0])
        return lax.scan(step, jnp.zeros(count), (keys, observations))[1]

    return lower(run, KEY, abstract(20))


def bootstrap():
    """Bootstrap of a regression slope: resampled fits by vmap, then quantiles."""

    def run(seed, x, y):
        def fit(key):
            rows = jax.random.randint(key, x.shape, 0, x.shape[0])
            a, b = x[rows], y[rows]
            centred = a - jnp.mean(a)
            return jnp.sum(centred * b) / jnp.maximum(jnp.sum(centred**2), 1e-6)

        slopes = jax.vmap(fit)(jax.random.split(rbg_key(seed), 32))
        return jnp.quantile(slopes, jnp.array([0.05, 0.5, 0.95])), jnp.std(slopes)

    return lower(run, SEED, abstract(24), abstract(24))


def monte_carlo_option():
    """Price and sensitivities of an option on simulated paths, by differentiating the mean."""

    def price(inputs, key):
        spot, rate, volatility = inputs
        noise = jax.random.normal(key, (64, 16))
        antithetic = jnp.concatenate([noise, -noise])
        step = 1.0 / 16
        steps = (rate - volatility**2 / 2) * step + volatility * jnp.sqrt(step) * antithetic
        paths = spot * jnp.exp(jnp.cumsum(steps, axis=1))
        payoff = jnp.maximum(jnp.mean(paths, axis=1) - 100.0, 0.0)
        return jnp.mean(payoff) * jnp.exp(-rate)

    gradient = jax.value_and_grad(price)
    return lower(gradient, (abstract(),) * 3, KEY, name="option_price")


def specs():
    yield from programs(
        "sampling",
        (
            uniform_and_normal, distributions, metropolis, hamiltonian, langevin, gibbs_ising,
            categorical_choice, permutation, particle_filter, bootstrap, monte_carlo_option,
        ),
    )  # fmt: skip
