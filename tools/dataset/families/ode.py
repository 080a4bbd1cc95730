"""Physics and differential equations: integrators, simulations, learned dynamics."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.ode import odeint

from families.layers import dense, dense_params, of, programs
from lowering import abstract, integers, lower
from variants import Task


def runge_kutta(field, x, step):
    k1 = field(x)
    k2 = field(x + 0.5 * step * k1)
    k3 = field(x + 0.5 * step * k2)
    k4 = field(x + step * k3)
    return x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz():
    """The Lorenz system by Runge-Kutta, with the sensitivity to its start."""

    def field(state):
        x, y, z = state
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def simulate(start):
        def end(start):
            last, path = lax.scan(
                lambda x, _: (runge_kutta(field, x, 0.01),) * 2, start, None, length=50
            )
            return last, path

        return end(start), jax.jacfwd(lambda x: end(x)[0])(start)

    return lower(simulate, abstract(3))


def adaptive_ode():
    """An adaptive Dormand-Prince integration, as jax.experimental.ode writes it."""

    def simulate(start, rate, times):
        def field(x, t, rate):
            return jnp.stack([x[1], rate * (1 - x[0] ** 2) * x[1] - x[0]])

        return odeint(field, start, times, rate)

    return lower(simulate, abstract(2), abstract(), abstract(10))


def n_body():
    """Gravity among bodies by leapfrog steps, with energy."""

    def simulate(place, speed, mass):
        def pull(place):
            gap = place[None] - place[:, None]
            distance = jnp.sum(gap**2, axis=-1) + 0.01
            return jnp.sum(gap * (mass / distance**1.5)[..., None], axis=1)

        def step(state, _):
            place, speed = state
            speed = speed + 0.005 * pull(place)
            place = place + 0.01 * speed
            speed = speed + 0.005 * pull(place)
            return (place, speed), 0.5 * jnp.sum(mass[:, None] * speed**2)

        return lax.scan(step, (place, speed), None, length=20)

    return lower(simulate, abstract(8, 3), abstract(8, 3), abstract(8))


def molecular_forces():
    """Lennard-Jones energy with a cutoff, its forces and the Hessian's diagonal."""

    def energy(place):
        gap = place[:, None] - place[None]
        gap = gap - 5.0 * jnp.round(gap / 5.0)
        square = jnp.sum(gap**2, axis=-1) + jnp.eye(place.shape[0])
        sixth = 1 / square**3
        pairs = jnp.where((square < 6.25) & ~jnp.eye(place.shape[0], dtype=bool), 1.0, 0.0)
        return 2 * jnp.sum(pairs * (sixth**2 - sixth))

    def forces(place):
        value, slope = jax.value_and_grad(energy)(place)
        _, stiffness = jax.jvp(jax.grad(energy), (place,), (jnp.ones_like(place),))
        return value, -slope, stiffness

    return lower(forces, abstract(10, 3))


def fluid():
    """Incompressible flow on a grid: advection, then pressure by Jacobi sweeps."""
    size = 16

    def shift(x, amount, axis):
        return jnp.roll(x, amount, axis)

    def sample(field, rows, columns):
        low_row, low_column = jnp.floor(rows), jnp.floor(columns)
        a, b = rows - low_row, columns - low_column
        i, j = low_row.astype(jnp.int32) % size, low_column.astype(jnp.int32) % size
        k, n = (i + 1) % size, (j + 1) % size
        top = (1 - b) * field[i, j] + b * field[i, n]
        return (1 - a) * top + a * ((1 - b) * field[k, j] + b * field[k, n])

    def step(state, _):
        u, v, ink = state
        rows, columns = jnp.meshgrid(jnp.arange(size), jnp.arange(size), indexing="ij")
        u, v, ink = (sample(f, rows - 0.1 * u, columns - 0.1 * v) for f in (u, v, ink))
        source = shift(u, -1, 0) - shift(u, 1, 0) + shift(v, -1, 1) - shift(v, 1, 1)

        def sweep(_, p):
            around = shift(p, 1, 0) + shift(p, -1, 0) + shift(p, 1, 1) + shift(p, -1, 1)
            return (around - 0.5 * source) / 4

        p = lax.fori_loop(0, 10, sweep, jnp.zeros((size, size)))
        u = u - 0.5 * (shift(p, -1, 0) - shift(p, 1, 0))
        v = v - 0.5 * (shift(p, -1, 1) - shift(p, 1, 1))
        return (u, v, ink), jnp.sum(ink)

    def simulate(u, v, ink):
        return lax.scan(step, (u, v, ink), None, length=5)

    grid = abstract(size, size)
    return lower(simulate, grid, grid, grid)


def wave_inversion():
    """A wave on a string, and the gradient of its misfit by its speed (remat by steps)."""

    def misfit(speed, start, observed):
        @jax.checkpoint
        def step(state, target):
            before, now = state
            bend = jnp.roll(now, 1) + jnp.roll(now, -1) - 2 * now
            after = 2 * now - before + speed**2 * 0.1 * bend
            return (now, after), jnp.sum((after[::4] - target) ** 2)

        _, errors = lax.scan(step, (start, start), observed)
        return jnp.mean(errors)

    gradient = jax.value_and_grad(misfit)
    return lower(gradient, abstract(32), abstract(32), abstract(20, 8), name="inversion")


def life():
    """Conway's Game of Life until nothing changes, counted by convolution."""

    def run(cells):
        kernel = jnp.ones((1, 1, 3, 3)).at[0, 0, 1, 1].set(0.0)

        def step(state):
            count, cells, _ = state
            wide = jnp.pad(cells.astype(jnp.float32), 1, mode="wrap")[None, None]
            around = lax.conv(wide, kernel, (1, 1), "VALID")[0, 0].astype(jnp.int32)
            following = ((around == 3) | ((cells == 1) & (around == 2))).astype(jnp.int32)
            return count + 1, following, jnp.any(following != cells)

        return lax.while_loop(lambda s: s[2] & (s[0] < 100), step, (0, cells, True))

    return lower(run, integers(16, 16))


def neural_ode(hidden=16, dropout=False):
    """A perceptron as a vector field, fitted to paths through the integrator."""
    params = [dense_params(2, hidden), dense_params(hidden, 2)]
    batch = {"start": abstract(4, 2), "path": abstract(10, 4, 2)}

    def forward(params, batch, key=None):
        def field(x):
            return dense(params[1], jnp.tanh(dense(params[0], x)))

        def step(x, _):
            x = runge_kutta(field, x, 0.1)
            return x, x

        return lax.scan(step, batch["start"], None, length=10)[1]

    def loss(params, batch, key=None):
        return jnp.mean((forward(params, batch) - batch["path"]) ** 2)

    return Task(params, batch, forward, loss)


def informed_network(dropout=False):
    """A physics-informed network for Burgers' equation: derivatives inside the loss."""
    params = [dense_params(2, 16), dense_params(16, 16), dense_params(16, 1)]
    batch = {"inside": abstract(16, 2), "border": abstract(8, 2), "value": abstract(8)}

    def apply(params, point):
        for p in params[:-1]:
            point = jnp.tanh(dense(p, point))
        return dense(params[-1], point)[0]

    def forward(params, batch, key=None):
        return jax.vmap(apply, (None, 0))(params, batch["inside"])

    def loss(params, batch, key=None):
        def residual(point):
            value, slope = jax.value_and_grad(apply, argnums=1)(params, point)
            bend = jax.hessian(apply, argnums=1)(params, point)
            return slope[1] + value * slope[0] - 0.01 * bend[0, 0]

        inside = jnp.mean(jax.vmap(residual)(batch["inside"]) ** 2)
        border = jax.vmap(apply, (None, 0))(params, batch["border"]) - batch["value"]
        return inside + jnp.mean(border**2)

    return Task(params, batch, forward, loss)


def specs():
    yield from programs(
        "ode",
        (lorenz, adaptive_ode, n_body, molecular_forces, fluid, wave_inversion, life),
    )
    title = "neural differential equation"
    yield of("ode", "neural-ode", title, neural_ode, "train", optimizer="adabelief")
    title = "physics-informed network"
    yield of("ode", "informed", title, informed_network, "train", optimizer="adam")
