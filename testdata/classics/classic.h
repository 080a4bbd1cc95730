/* What all programs of this folder share: a generator of numbers, a checksum, the input size. */
#ifndef CLASSIC_H
#define CLASSIC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64*: the same numbers on every machine. */
static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_u64(void) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 2685821657736338717u;
}

static inline uint32_t random_below(uint32_t bound) {
  return (uint32_t)((random_u64() >> 32) * bound >> 32);
}

/* FNV-1a over the bytes of numbers. */
static uint64_t checksum_state = 14695981039346656037u;

static inline void checksum(uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    checksum_state ^= value >> (8 * byte) & 255;
    checksum_state *= 1099511628211u;
  }
}

/* Numbers of floating point, to nine decimal places: what no legal reordering changes here. */
static inline void checksum_double(double value) {
  checksum((uint64_t)(int64_t)(value * 1e9 + (value < 0 ? -0.5 : 0.5)));
}

static inline int print_checksum(const char *name) {
  printf("%s %016llx\n", name, (unsigned long long)checksum_state);
  return 0;
}

/* The size from the command line. */
static inline size_t input_size(int argc, char **argv) {
  char *end = NULL;
  unsigned long size = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
  if (size == 0 || *end != '\0') {
    fprintf(stderr, "usage: %s SIZE, with SIZE above 0\n", argv[0]);
    exit(2);
  }
  return size;
}

static inline void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    fprintf(stderr, "no memory\n");
    exit(3);
  }
  return memory;
}

#endif
