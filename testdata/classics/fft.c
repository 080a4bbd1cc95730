/* Fast Fourier transform, its inverse, and a filter between them. */
#include "classic.h"

#define PI 3.14159265358979323846

struct complex_number {
  double re, im;
};

/* Sine by its series: the same bits whatever the C library. */
static double sine(double x) {
  while (x > PI) x -= 2 * PI;
  while (x < -PI) x += 2 * PI;
  double term = x, sum = x;
  for (int i = 1; i < 14; ++i) {
    term *= -x * x / ((2 * i) * (2 * i + 1));
    sum += term;
  }
  return sum;
}

static double cosine(double x) { return sine(x + PI / 2); }

static void reorder(struct complex_number *a, size_t count) {
  for (size_t i = 1, j = 0; i < count; ++i) {
    size_t bit = count >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      struct complex_number swap = a[i];
      a[i] = a[j];
      a[j] = swap;
    }
  }
}

static void transform(struct complex_number *a, size_t count, int inverse) {
  reorder(a, count);
  for (size_t length = 2; length <= count; length *= 2) {
    double angle = 2 * PI / (double)length * (inverse ? -1 : 1);
    struct complex_number step = {cosine(angle), sine(angle)};
    for (size_t start = 0; start < count; start += length) {
      struct complex_number w = {1, 0};
      for (size_t k = 0; k < length / 2; ++k) {
        struct complex_number *even = &a[start + k], *odd = &a[start + k + length / 2];
        struct complex_number turned = {odd->re * w.re - odd->im * w.im,
                                        odd->re * w.im + odd->im * w.re};
        *odd = (struct complex_number){even->re - turned.re, even->im - turned.im};
        *even = (struct complex_number){even->re + turned.re, even->im + turned.im};
        w = (struct complex_number){w.re * step.re - w.im * step.im,
                                    w.re * step.im + w.im * step.re};
      }
    }
  }
  if (inverse)
    for (size_t i = 0; i < count; ++i) {
      a[i].re /= (double)count;
      a[i].im /= (double)count;
    }
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  size_t count = 8;
  while (count < size) count *= 2;
  struct complex_number *a = allocate(count, sizeof *a);
  for (size_t i = 0; i < count; ++i)
    a[i].re = sine((double)(i % 64) * 0.1) + (double)random_below(1000) / 5000.0;
  transform(a, count, 0);
  for (size_t i = 0; i < count; i += count / 8) checksum_double(a[i].re / (double)count);
  /* What is fast goes. */
  for (size_t i = count / 8; i < count - count / 8; ++i) a[i].re = a[i].im = 0;
  transform(a, count, 1);
  double energy = 0;
  for (size_t i = 0; i < count; ++i) {
    energy += a[i].re * a[i].re;
    if (i % 16 == 0) checksum_double(a[i].re);
  }
  checksum_double(energy / (double)count);
  free(a);
  return print_checksum("fft");
}
