"""Simulations on a 512 x 512 grid, 100 time steps in one loop: turbulence and shallow water."""

import jax.numpy as jnp
from jax import lax

from families.full_size import full_size
from families.ode import runge_kutta
from lowering import abstract, lower

SIZE, STEPS = 512, 100


def turbulence():
    """Two-dimensional Navier-Stokes in vorticity, by Fourier transforms and Runge-Kutta steps."""
    viscosity, step = 1e-4, 1e-3

    def simulate(vorticity):
        rows = jnp.fft.fftfreq(SIZE, 1 / SIZE)[:, None]
        columns = jnp.fft.rfftfreq(SIZE, 1 / SIZE)[None]
        square = rows**2 + columns**2
        inverse = jnp.where(square == 0, 0.0, 1 / jnp.where(square == 0, 1.0, square))
        # The upper third of the waves is cut, or products would fold back onto the others.
        kept = (jnp.abs(rows) < SIZE / 3) & (columns < SIZE / 3)

        def grid(waves):
            return jnp.fft.irfft2(waves, s=(SIZE, SIZE))

        def change(waves):
            stream = waves * inverse
            across, along = grid(1j * columns * stream), grid(-1j * rows * stream)
            slope_across, slope_along = grid(1j * rows * waves), grid(1j * columns * waves)
            carried = jnp.fft.rfft2(across * slope_across + along * slope_along)
            return jnp.where(kept, -carried, 0.0) - viscosity * square * waves

        start = jnp.fft.rfft2(vorticity)
        waves = lax.fori_loop(0, STEPS, lambda _, waves: runge_kutta(change, waves, step), start)
        energy = 0.5 * jnp.mean(grid(waves) * grid(waves * inverse))
        return grid(waves), energy

    return {}, lower(simulate, abstract(SIZE, SIZE))


def shallow_water():
    """Waves over an uneven ground on a turning earth: Lax-Friedrichs fluxes, closed borders."""
    gravity, turning, width, step = 9.81, 1e-4, 1000.0, 2.0

    def simulate(height, across, along, ground):
        def flux(state):
            """The flow of water and of both momenta through each cell, along both axes."""
            h, u, v = state
            pressure = 0.5 * gravity * h**2
            rows = jnp.stack([u, u**2 / h + pressure, u * v / h])
            columns = jnp.stack([v, u * v / h, v**2 / h + pressure])
            return rows, columns

        def with_border(state):
            """One more cell on each side, in which the flow through the border turns round."""
            wide = jnp.pad(state, ((0, 0), (1, 1), (1, 1)), mode="edge")
            wide = wide.at[1, 0].multiply(-1).at[1, -1].multiply(-1)
            return wide.at[2, :, 0].multiply(-1).at[2, :, -1].multiply(-1)

        def advance(_, state):
            wide = with_border(state)
            rows, columns = flux(wide)
            h, u, v = wide
            speed = jnp.max(jnp.sqrt(gravity * h) + jnp.maximum(jnp.abs(u), jnp.abs(v)) / h)
            between_rows = 0.5 * (rows[:, 1:, 1:-1] + rows[:, :-1, 1:-1])
            between_rows -= 0.5 * speed * (wide[:, 1:, 1:-1] - wide[:, :-1, 1:-1])
            between_columns = 0.5 * (columns[:, 1:-1, 1:] + columns[:, 1:-1, :-1])
            between_columns -= 0.5 * speed * (wide[:, 1:-1, 1:] - wide[:, 1:-1, :-1])
            change = between_rows[:, 1:] - between_rows[:, :-1]
            change += between_columns[:, :, 1:] - between_columns[:, :, :-1]
            h, u, v = state
            slope_rows, slope_columns = jnp.gradient(ground, width)
            source = jnp.stack(
                [
                    jnp.zeros_like(h),
                    turning * v - gravity * h * slope_rows,
                    -turning * u - gravity * h * slope_columns,
                ]
            )
            return state - step / width * change + step * source

        start = jnp.stack([height, height * across, height * along])
        height, across, along = lax.fori_loop(0, STEPS, advance, start)
        return height, across / height, along / height

    grid = abstract(SIZE, SIZE)
    return {}, lower(simulate, grid, grid, grid, grid)


def specs():
    sizes = {"size": SIZE, "steps": STEPS, "dtype": "f32"}
    yield full_size(
        "physics", "turbulence", "other",
        "Two-dimensional turbulence by Fourier transforms, 512 x 512 points, 100 steps in a loop.",
        turbulence, 0, ("jax",), **sizes,
    )  # fmt: skip
    yield full_size(
        "physics", "shallow-water", "other",
        "Shallow water over uneven ground, 512 x 512 cells, 100 steps in a loop.",
        shallow_water, 0, ("jax",), **sizes,
    )  # fmt: skip
