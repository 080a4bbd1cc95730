/* SHA-256 of a message in pieces, and a chain of hashes. */
#include "classic.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct sha {
  uint32_t state[8];
  uint8_t block[64];
  size_t filled;
  uint64_t length;
};

static uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void compress(struct sha *sha) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = (uint32_t)sha->block[4 * i] << 24 | (uint32_t)sha->block[4 * i + 1] << 16 |
           (uint32_t)sha->block[4 * i + 2] << 8 | sha->block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t s[8];
  memcpy(s, sha->state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    uint32_t big1 = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t one = s[7] + big1 + choice + round_constants[i] + w[i];
    uint32_t big0 = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    for (int j = 7; j > 0; --j) s[j] = s[j - 1];
    s[4] += one;
    s[0] = one + big0 + majority;
  }
  for (int i = 0; i < 8; ++i) sha->state[i] += s[i];
}

static void begin(struct sha *sha) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(sha->state, start, sizeof start);
  sha->filled = 0;
  sha->length = 0;
}

static void add(struct sha *sha, const uint8_t *data, size_t length) {
  sha->length += length;
  while (length-- > 0) {
    sha->block[sha->filled++] = *data++;
    if (sha->filled == 64) {
      compress(sha);
      sha->filled = 0;
    }
  }
}

static void finish(struct sha *sha, uint8_t digest[32]) {
  uint64_t bits = sha->length * 8;
  uint8_t byte = 0x80;
  do {
    add(sha, &byte, 1);
    byte = 0;
  } while (sha->filled != 56);
  uint8_t end[8];
  for (int i = 0; i < 8; ++i) end[i] = (uint8_t)(bits >> (56 - 8 * i));
  add(sha, end, 8);
  for (int i = 0; i < 32; ++i) digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  uint8_t *data = allocate(size, 1);
  for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)random_u64();
  struct sha sha;
  uint8_t digest[32];
  begin(&sha);
  for (size_t at = 0; at < size;) {
    size_t piece = 1 + random_below(200);
    if (piece > size - at) piece = size - at;
    add(&sha, data + at, piece);
    at += piece;
  }
  finish(&sha, digest);
  for (size_t round = 0; round < size / 256; ++round) {
    begin(&sha);
    add(&sha, digest, sizeof digest);
    finish(&sha, digest);
  }
  for (int i = 0; i < 32; ++i) checksum(digest[i]);
  free(data);
  return print_checksum("sha256");
}
