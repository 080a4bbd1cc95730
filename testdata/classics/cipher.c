/* Two block ciphers in two modes: XTEA by counters, and a Feistel network with tables that the key
   makes, by chaining, there and back. */
#include "classic.h"

static void xtea(uint32_t block[2], const uint32_t key[4]) {
  uint32_t a = block[0], b = block[1], sum = 0;
  for (int round = 0; round < 32; ++round) {
    a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
    sum += 0x9E3779B9u;
    b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
  }
  block[0] = a;
  block[1] = b;
}

struct network {
  uint32_t keys[18];
  uint32_t boxes[4][256];
};

static uint32_t mix(const struct network *n, uint32_t x) {
  return ((n->boxes[0][x >> 24] + n->boxes[1][x >> 16 & 255]) ^ n->boxes[2][x >> 8 & 255]) +
         n->boxes[3][x & 255];
}

static void turn(const struct network *n, uint32_t block[2], int backwards) {
  uint32_t left = block[0], right = block[1];
  for (int round = 0; round < 16; ++round) {
    left ^= n->keys[backwards ? 17 - round : round];
    right ^= mix(n, left);
    uint32_t swap = left;
    left = right;
    right = swap;
  }
  block[0] = right ^ n->keys[backwards ? 0 : 17];
  block[1] = left ^ n->keys[backwards ? 1 : 16];
}

static void set_key(struct network *n, const uint8_t *key, size_t length) {
  for (int i = 0; i < 18; ++i) n->keys[i] = (uint32_t)random_u64();
  for (int box = 0; box < 4; ++box)
    for (int i = 0; i < 256; ++i) n->boxes[box][i] = (uint32_t)random_u64();
  for (size_t i = 0, at = 0; i < 18; ++i) {
    uint32_t word = 0;
    for (int byte = 0; byte < 4; ++byte, at = (at + 1) % length) word = word << 8 | key[at];
    n->keys[i] ^= word;
  }
  uint32_t block[2] = {0, 0};
  for (int i = 0; i < 18; i += 2) {
    turn(n, block, 0);
    n->keys[i] = block[0];
    n->keys[i + 1] = block[1];
  }
  for (int box = 0; box < 4; ++box)
    for (int i = 0; i < 256; i += 2) {
      turn(n, block, 0);
      n->boxes[box][i] = block[0];
      n->boxes[box][i + 1] = block[1];
    }
}

int main(int argc, char **argv) {
  size_t blocks = input_size(argc, argv);
  uint32_t *data = allocate(2 * blocks, sizeof *data);
  uint32_t *plain = allocate(2 * blocks, sizeof *plain);
  for (size_t i = 0; i < 2 * blocks; ++i) plain[i] = (uint32_t)random_u64();
  memcpy(data, plain, 2 * blocks * sizeof *data);

  uint32_t key[4];
  for (int i = 0; i < 4; ++i) key[i] = (uint32_t)random_u64();
  for (size_t i = 0; i < blocks; ++i) {
    uint32_t counter[2] = {(uint32_t)i, 0x01234567u};
    xtea(counter, key);
    data[2 * i] ^= counter[0];
    data[2 * i + 1] ^= counter[1];
    checksum((uint64_t)data[2 * i] << 32 | data[2 * i + 1]);
  }

  static struct network network;
  static const uint8_t secret[] = "a key of some length";
  set_key(&network, secret, sizeof secret - 1);
  memcpy(data, plain, 2 * blocks * sizeof *data);
  uint32_t last[2] = {1, 2};
  for (size_t i = 0; i < blocks; ++i) {
    data[2 * i] ^= last[0];
    data[2 * i + 1] ^= last[1];
    turn(&network, data + 2 * i, 0);
    memcpy(last, data + 2 * i, sizeof last);
    checksum((uint64_t)last[0] << 32 | last[1]);
  }
  last[0] = 1;
  last[1] = 2;
  for (size_t i = 0; i < blocks; ++i) {
    uint32_t next[2] = {data[2 * i], data[2 * i + 1]};
    turn(&network, data + 2 * i, 1);
    data[2 * i] ^= last[0];
    data[2 * i + 1] ^= last[1];
    memcpy(last, next, sizeof last);
  }
  if (memcmp(data, plain, 2 * blocks * sizeof *data) != 0) {
    puts("cipher: what was encrypted does not come back");
    return 1;
  }
  free(data);
  free(plain);
  return print_checksum("cipher");
}
