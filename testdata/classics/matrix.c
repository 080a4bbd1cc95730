/* Kernels over matrices: product, transposed product, elimination, stencil, triangular solve. */
#include "classic.h"

static void product(size_t n, const double *a, const double *b, double *c) {
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
}

static void transposed_twice(size_t n, const double *a, const double *x, double *y) {
  for (size_t j = 0; j < n; ++j) y[j] = 0;
  for (size_t i = 0; i < n; ++i) {
    double dot = 0;
    for (size_t j = 0; j < n; ++j) dot += a[i * n + j] * x[j];
    for (size_t j = 0; j < n; ++j) y[j] += a[i * n + j] * dot;
  }
}

static void eliminate(size_t n, double *a) {
  for (size_t k = 0; k < n; ++k)
    for (size_t i = k + 1; i < n; ++i) {
      double factor = a[i * n + k] / a[k * n + k];
      a[i * n + k] = factor;
      for (size_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
}

static void solve_lower(size_t n, const double *l, const double *b, double *x) {
  for (size_t i = 0; i < n; ++i) {
    double sum = b[i];
    for (size_t j = 0; j < i; ++j) sum -= l[i * n + j] * x[j];
    x[i] = sum;
  }
}

static void smooth(size_t n, double *from, double *to, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 1; i + 1 < n; ++i)
      for (size_t j = 1; j + 1 < n; ++j)
        to[i * n + j] = 0.2 * (from[i * n + j] + from[i * n + j - 1] + from[i * n + j + 1] +
                               from[(i - 1) * n + j] + from[(i + 1) * n + j]);
    double *swap = from;
    from = to;
    to = swap;
  }
}

static void integer_product(size_t n, const int32_t *a, const int32_t *b, uint32_t *c) {
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j)
        c[i * n + j] += (uint32_t)a[i * n + k] * (uint32_t)b[k * n + j];
}

static double element(void) { return (double)random_below(2001) / 1000.0 - 1.0; }

int main(int argc, char **argv) {
  size_t n = input_size(argc, argv);
  double *a = allocate(n * n, sizeof *a), *b = allocate(n * n, sizeof *b);
  double *c = allocate(n * n, sizeof *c), *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
  int32_t *p = allocate(n * n, sizeof *p), *q = allocate(n * n, sizeof *q);
  uint32_t *r = allocate(n * n, sizeof *r);
  for (size_t i = 0; i < n * n; ++i) {
    a[i] = element();
    b[i] = element();
    p[i] = (int32_t)random_below(200) - 100;
    q[i] = (int32_t)random_below(200) - 100;
  }
  for (size_t i = 0; i < n; ++i) x[i] = element();
  product(n, a, b, c);
  for (size_t i = 0; i < n * n; i += 7) checksum_double(c[i] / (double)n);
  transposed_twice(n, a, x, y);
  for (size_t i = 0; i < n; ++i) checksum_double(y[i] / (double)n);
  smooth(n, b, c, 5);
  for (size_t i = 0; i < n * n; i += 5) checksum_double((b[i] + c[i]) / (double)n);
  /* A strong diagonal keeps the elimination in bounds. */
  for (size_t i = 0; i < n; ++i) a[i * n + i] += (double)(2 * n);
  eliminate(n, a);
  solve_lower(n, a, x, y);
  for (size_t i = 0; i < n; ++i) checksum_double(y[i]);
  integer_product(n, p, q, r);
  for (size_t i = 0; i < n * n; ++i) checksum(r[i]);
  free(a), free(b), free(c), free(x), free(y), free(p), free(q), free(r);
  return print_checksum("matrix");
}
