"""Control flow: conditionals, switches, nested loops, early exits, recursion by scan."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.optimize import minimize

from families.layers import dense, dense_params, programs
from lowering import KEY, abstract, integers, lower

WIDTH = 16
MATRIX, VECTOR = abstract(WIDTH, WIDTH), abstract(WIDTH)


def branches():
    """A conditional whose branches do different work, and its gradient."""

    def run(weights, x, flag):
        def loss(weights):
            found = lax.cond(
                flag,
                lambda w: jnp.tanh(w @ x) * 2,
                lambda w: jax.nn.softmax(w.T @ x) + jnp.sum(w),
                weights,
            )
            return jnp.sum(found**2)

        return jax.value_and_grad(loss)(weights)

    return lower(run, MATRIX, VECTOR, abstract(dtype=jnp.bool_))


def switch_layers():
    """A switch among four activations inside a scan over layers, with gradient."""

    def run(weights, choices, x):
        kinds = [jax.nn.relu, jnp.tanh, jax.nn.gelu, lambda x: x]

        def loss(weights):
            def layer(x, inputs):
                weight, choice = inputs
                return lax.switch(choice, kinds, weight @ x), None

            return jnp.sum(lax.scan(layer, x, (weights, choices))[0] ** 2)

        return jax.value_and_grad(loss)(weights)

    return lower(run, abstract(5, WIDTH, WIDTH), integers(5), VECTOR)


def nested_loops():
    """A while loop in a while loop in a fori loop: fixed points, to a tolerance."""

    def run(matrix, start):
        def solve(right, guess):
            def unfinished(state):
                count, x, gap = state
                return (gap > 1e-4) & (count < 50)

            def improve(state):
                count, x, _ = state
                found = 0.5 * (matrix @ x) / WIDTH + right
                return count + 1, found, jnp.max(jnp.abs(found - x))

            return lax.while_loop(unfinished, improve, (0, guess, jnp.float32(1.0)))

        def outer(state):
            count, x, used = state

            def inner(index, carry):
                x, used = carry
                steps, found, _ = solve(jnp.sin(x + index), x)
                return found, used + steps

            x, used = lax.fori_loop(0, 3, inner, (x, used))
            return count + 1, x, used

        return lax.while_loop(lambda s: (s[0] < 4) & (s[2] < 300), outer, (0, start, 0))

    return lower(run, MATRIX, VECTOR)


def adaptive_computation():
    """A recurrent cell that halts each row when it is sure, in a while loop with masks."""
    params = {"cell": dense_params(WIDTH, WIDTH), "halt": dense_params(WIDTH, 1)}

    def run(params, x):
        def unfinished(state):
            step, _, _, running = state
            return (step < 12) & jnp.any(running)

        def ponder(state):
            step, x, mass, running = state
            moved = jnp.tanh(dense(params["cell"], x))
            mass = mass + jnp.where(running, jax.nn.sigmoid(dense(params["halt"], x))[:, 0], 0)
            return step + 1, jnp.where(running[:, None], moved, x), mass, running & (mass < 1)

        rows = x.shape[0]
        start = (0, x, jnp.zeros(rows), jnp.ones(rows, bool))
        return lax.while_loop(unfinished, ponder, start)

    return lower(run, params, abstract(4, WIDTH))


def line_search():
    """Gradient descent with backtracking: a while loop for each step's length."""

    def run(matrix, x):
        def loss(x):
            return jnp.sum(jnp.log(jnp.cosh(matrix @ x - 1.0))) + 0.01 * x @ x

        def step(x, _):
            value, slope = jax.value_and_grad(loss)(x)
            length = lax.while_loop(
                lambda t: (loss(x - t * slope) > value - 0.3 * t * slope @ slope) & (t > 1e-6),
                lambda t: t / 2,
                jnp.float32(1.0),
            )
            return x - length * slope, value

        return lax.scan(step, x, None, length=10)

    return lower(run, MATRIX, VECTOR)


def bfgs():
    """Minimisation by BFGS with its line searches, as jax.scipy writes it."""

    def run(matrix, start):
        def loss(x):
            y = matrix @ x
            return jnp.sum(100.0 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

        found = minimize(loss, start, method="BFGS", options={"maxiter": 20})
        return found.x, found.fun, found.nit

    return lower(run, abstract(6, 6), abstract(6))


def collatz():
    """Integer loops with data-dependent length, vmapped so that rows wait for each other."""

    def run(numbers):
        def one(number):
            def step(state):
                number, count = state
                following = jnp.where(number % 2 == 0, number // 2, 3 * number + 1)
                return following, count + 1

            return lax.while_loop(lambda s: (s[0] > 1) & (s[1] < 100), step, (number, 0))[1]

        return jax.vmap(one)(numbers)

    return lower(run, integers(16))


def dynamic_programming():
    """Edit distance of two token sequences, a scan in a scan; then a traceback loop."""

    def run(first, second):
        size = second.shape[0]

        def row(above, inputs):
            token, index = inputs

            def cell(left, pair):
                diagonal, up, other = pair
                found = jnp.minimum(
                    jnp.minimum(left + 1, up + 1), diagonal + (token != other).astype(jnp.int32)
                )
                return found, found

            _, found = lax.scan(cell, index + 1, (above[:-1], above[1:], second))
            current = jnp.concatenate([jnp.array([index + 1]), found])
            return current, current

        start = jnp.arange(size + 1)
        _, table = lax.scan(row, start, (first, jnp.arange(first.shape[0])))
        return table[-1, -1], jnp.argmin(table, axis=1)

    return lower(run, integers(10), integers(12))


def viterbi():
    """The best path of a hidden Markov model: maxima forward, pointers backward."""

    def run(transitions, emissions, observations):
        scores = emissions[:, observations]

        def forward(best, score):
            options = best[:, None] + transitions
            return jnp.max(options, axis=0) + score, jnp.argmax(options, axis=0)

        best, pointers = lax.scan(forward, scores[:, 0], scores.T[1:])
        last = jnp.argmax(best)
        _, path = lax.scan(lambda s, p: (p[s], s), last, pointers, reverse=True)
        return path, jnp.max(best)

    return lower(run, abstract(5, 5), abstract(5, 8), integers(14))


def environment_rollout():
    """A policy acting in a cart-pole world: physics, resets by conditional, returns."""
    params = [dense_params(4, WIDTH), dense_params(WIDTH, 2)]

    def rollout(params, key):
        def step(carry, key):
            state, total = carry
            act_key, reset_key = jax.random.split(key)
            logits = dense(params[1], jnp.tanh(dense(params[0], state)))
            action = jax.random.categorical(act_key, logits)
            place, speed, angle, spin = state
            force = jnp.where(action == 1, 10.0, -10.0)
            push = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
            turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * push) / (
                0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1)
            )
            pull = push - 0.05 * turn * jnp.cos(angle) / 1.1
            moved = state + 0.02 * jnp.stack([speed, pull, spin, turn])
            fallen = (jnp.abs(moved[0]) > 2.4) | (jnp.abs(moved[2]) > 0.21)
            state = lax.cond(
                fallen,
                lambda: jax.random.uniform(reset_key, (4,), minval=-0.05, maxval=0.05),
                lambda: moved,
            )
            return (state, total + 1.0), (action, fallen, logits)

        return lax.scan(step, (jnp.zeros(4), 0.0), jax.random.split(key, 64))

    return lower(rollout, params, KEY)


def specs():
    yield from programs(
        "control",
        (
            branches, switch_layers, nested_loops, adaptive_computation, line_search, bfgs,
            collatz, dynamic_programming, viterbi, environment_rollout,
        ),
    )  # fmt: skip
