"""Signals: Fourier transforms, filters, spectrograms, and learned Fourier layers."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.fft import dct

from families.layers import dense, dense_params, of, programs
from lowering import abstract, lower
from variants import Task

BATCH, SAMPLES = 2, 128


def frames(signal, size, step):
    """Overlapping windows of a signal [..., time] as [..., frame, time]."""
    count = (signal.shape[-1] - size) // step + 1
    places = step * jnp.arange(count)[:, None] + jnp.arange(size)[None]
    return signal[..., places]


def hann(size):
    return 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(size) / size)


def stft(signal, size=32, step=16):
    return jnp.fft.rfft(frames(signal, size, step) * hann(size))


def spectrogram():
    """Log-mel spectrogram of sound, normalised: framing, FFT, filter bank."""

    def compute(signal, bank):
        power = jnp.abs(stft(signal)) ** 2
        mel = jnp.log(jnp.maximum(power @ bank, 1e-10))
        mean = jnp.mean(mel, axis=1, keepdims=True)
        return (mel - mean) / (jnp.std(mel, axis=1, keepdims=True) + 1e-5)

    return lower(compute, abstract(BATCH, SAMPLES), abstract(17, 12), name="spectrogram")


def cepstrum():
    """Cepstral coefficients: spectrogram, logarithm, cosine transform, deltas."""

    def compute(signal, bank):
        mel = jnp.log(jnp.abs(stft(signal)) ** 2 @ bank + 1e-6)
        coefficients = dct(mel, axis=-1)[..., :8]
        padded = jnp.pad(coefficients, ((0, 0), (1, 1), (0, 0)), mode="edge")
        delta = 0.5 * (padded[:, 2:] - padded[:, :-2])
        return jnp.concatenate([coefficients, delta], axis=-1)

    return lower(compute, abstract(BATCH, SAMPLES), abstract(17, 12), name="cepstrum")


def phase_retrieval():
    """Griffin-Lim: a signal from magnitudes, by repeated transforms in a loop."""

    def synthesise(spectrum):
        pieces = jnp.fft.irfft(spectrum, n=32) * hann(32)
        places = 16 * jnp.arange(pieces.shape[1])[:, None] + jnp.arange(32)[None]
        return jnp.zeros((pieces.shape[0], SAMPLES)).at[:, places].add(pieces)

    def retrieve(magnitude, phase):
        def step(_, phase):
            signal = synthesise(magnitude * jnp.exp(1j * phase))
            return jnp.angle(stft(signal))

        phase = lax.fori_loop(0, 8, step, phase)
        return synthesise(magnitude * jnp.exp(1j * phase))

    shape = abstract(BATCH, 7, 17)
    return lower(retrieve, shape, shape)


def deconvolution():
    """Blind deconvolution: a long convolution by FFT, fitted by gradient steps in a scan."""

    def convolve(signal, kernel):
        size = 2 * SAMPLES
        product = jnp.fft.rfft(signal, n=size) * jnp.fft.rfft(kernel, n=size)
        return jnp.fft.irfft(product, n=size)[:, :SAMPLES]

    def loss(guess, observed):
        signal, kernel = guess
        gap = convolve(signal, kernel / jnp.sum(jnp.abs(kernel))) - observed
        return jnp.mean(gap**2) + 1e-3 * jnp.mean(jnp.abs(jnp.diff(signal, axis=1)))

    def fit(signal, kernel, observed):
        def step(guess, _):
            value, slope = jax.value_and_grad(loss)(guess, observed)
            return jax.tree.map(lambda g, s: g - 0.1 * s, guess, slope), value

        return lax.scan(step, (signal, kernel), None, length=20)

    rows = abstract(BATCH, SAMPLES)
    return lower(fit, rows, abstract(33), rows)


def recursive_filter():
    """A cascade of second-order recursive filters, run forward and backward over time."""

    def smooth(signal, feed, back):
        def section(signal, taps):
            feed, back = taps

            def step(state, x):
                y = feed[0] * x + state[0]
                rest = jnp.stack([feed[1] * x - back[0] * y + state[1], feed[2] * x - back[1] * y])
                return rest, y

            start = jnp.zeros((2, signal.shape[1]))
            _, found = lax.scan(step, start, signal)
            return found, None

        ahead, _ = lax.scan(section, signal.T, (feed, back))
        both, _ = lax.scan(section, ahead[::-1], (feed, back))
        return both[::-1].T

    return lower(smooth, abstract(BATCH, 64), abstract(3, 3), abstract(3, 2))


def image_pyramid():
    """Edges on three scales of an image: blurs, slopes, suppression, downsampling."""

    def edges(image):
        line = jnp.array([1.0, 2.0, 1.0]) / 4
        blur = jnp.outer(line, line)[None, None]
        slope = jnp.outer(line, jnp.array([1.0, 0.0, -1.0]))
        kernels = jnp.stack([slope, slope.T])[:, None]
        found = []
        for _ in range(3):
            smooth = lax.conv(image, blur, (1, 1), "SAME")
            gradient = lax.conv(smooth, kernels, (1, 1), "SAME")
            size = jnp.sqrt(jnp.sum(gradient**2, axis=1) + 1e-12)
            highest = lax.reduce_window(size, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")
            angle = jnp.arctan2(gradient[:, 1], gradient[:, 0])
            found.append((jnp.where(size >= highest, size, 0.0), angle))
            image = lax.reduce_window(smooth, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
        return found

    return lower(edges, abstract(BATCH, 1, 16, 16))


def wavelet():
    """Haar wavelets on four levels, soft thresholds, and the inverse."""

    def denoise(signal, threshold):
        details = []
        for _ in range(4):
            even, odd = signal[:, ::2], signal[:, 1::2]
            signal, detail = (even + odd) / jnp.sqrt(2.0), (even - odd) / jnp.sqrt(2.0)
            details.append(jnp.sign(detail) * jnp.maximum(jnp.abs(detail) - threshold, 0))
        for detail in reversed(details):
            pair = jnp.stack([signal + detail, signal - detail], axis=-1) / jnp.sqrt(2.0)
            signal = pair.reshape(pair.shape[0], -1)
        return signal

    return lower(denoise, abstract(BATCH, SAMPLES), abstract())


def correlation_2d():
    """Phase correlation of two images: how far one is shifted, by 2-D FFT."""

    def register(first, second):
        spectrum = jnp.fft.fft2(first) * jnp.conj(jnp.fft.fft2(second))
        peaks = jnp.real(jnp.fft.ifft2(spectrum / (jnp.abs(spectrum) + 1e-6)))
        place = jnp.argmax(peaks.reshape(BATCH, -1), axis=1)
        rows, columns = jnp.unravel_index(place, (16, 16))
        shifted = jax.vmap(lambda image, r, c: jnp.roll(image, (r, c), (0, 1)))
        return rows, columns, shifted(second, rows, columns)

    return lower(register, abstract(BATCH, 16, 16), abstract(BATCH, 16, 16))


def fourier_operator(depth=2, planar=False, dropout=False):
    """A Fourier neural operator: products on low frequencies, between dense layers."""
    width, modes, size = 16, 6, 32
    weights = (modes, modes, width, width) if planar else (modes, width, width)
    layer = {
        "real": abstract(*weights),
        "imaginary": abstract(*weights),
        "local": dense_params(width, width),
    }
    params = {
        "enter": dense_params(1, width),
        "layers": [layer] * depth,
        "leave": dense_params(width, 1),
    }
    space = (16, 16) if planar else (size,)
    field = abstract(BATCH, *space, 1)

    def spectral(p, x):
        weights = lax.complex(p["real"], p["imaginary"])
        if planar:
            spectrum = jnp.fft.rfft2(x, axes=(1, 2))
            low = jnp.einsum("bxyi,xyio->bxyo", spectrum[:, :modes, :modes], weights)
            whole = jnp.zeros_like(spectrum).at[:, :modes, :modes].set(low)
            return jnp.fft.irfft2(whole, s=space, axes=(1, 2))
        spectrum = jnp.fft.rfft(x, axis=1)
        low = jnp.einsum("bxi,xio->bxo", spectrum[:, :modes], weights)
        whole = jnp.zeros_like(spectrum).at[:, :modes].set(low)
        return jnp.fft.irfft(whole, n=size, axis=1)

    def forward(params, batch, key=None):
        x = dense(params["enter"], batch["input"])
        for p in params["layers"]:
            x = jax.nn.gelu(spectral(p, x) + dense(p["local"], x))
        return dense(params["leave"], x)

    def loss(params, batch, key=None):
        gap = jnp.sqrt(jnp.sum((forward(params, batch) - batch["target"]) ** 2) + 1e-12)
        return gap / (jnp.sqrt(jnp.sum(batch["target"] ** 2)) + 1e-6)

    return Task(params, {"input": field, "target": field}, forward, loss)


def specs():
    yield from programs(
        "signal",
        (
            spectrogram, cepstrum, phase_retrieval, deconvolution, recursive_filter,
            image_pyramid, wavelet, correlation_2d,
        ),
    )  # fmt: skip

    def operator(kind, **options):
        return of(
            "signal", "operator", "Fourier neural operator", fourier_operator, kind, **options
        )

    yield operator("forward", depth=3)
    yield operator("train", depth=2, optimizer="adam")
    yield operator("train", depth=2, planar=True, optimizer="adamw")
