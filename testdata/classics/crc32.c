/* Cyclic redundancy: bit by bit, by a table, by four tables; and Adler's sum. */
#include "classic.h"

#define POLYNOMIAL 0xEDB88320u

static uint32_t tables[4][256];

static void make_tables(void) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
    tables[0][byte] = value;
  }
  for (uint32_t byte = 0; byte < 256; ++byte)
    for (int table = 1; table < 4; ++table) {
      uint32_t before = tables[table - 1][byte];
      tables[table][byte] = before >> 8 ^ tables[0][before & 255];
    }
}

static uint32_t crc_bits(const uint8_t *data, size_t length) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < length; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (POLYNOMIAL & (0u - (crc & 1)));
  }
  return ~crc;
}

static uint32_t crc_bytes(const uint8_t *data, size_t length) {
  uint32_t crc = ~0u;
  while (length-- > 0) crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 255];
  return ~crc;
}

static uint32_t crc_words(const uint8_t *data, size_t length) {
  uint32_t crc = ~0u;
  for (; length >= 4; length -= 4, data += 4) {
    crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
    crc = tables[3][crc & 255] ^ tables[2][crc >> 8 & 255] ^ tables[1][crc >> 16 & 255] ^
          tables[0][crc >> 24];
  }
  while (length-- > 0) crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 255];
  return ~crc;
}

static uint32_t adler(const uint8_t *data, size_t length) {
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < length; ++i) {
    a = (a + data[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  uint8_t *data = allocate(size, 1);
  for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)random_u64();
  make_tables();
  for (size_t skip = 0; skip < 5 && skip < size; ++skip) {
    uint32_t by_bits = crc_bits(data + skip, size - skip);
    uint32_t by_bytes = crc_bytes(data + skip, size - skip);
    uint32_t by_words = crc_words(data + skip, size - skip);
    if (by_bits != by_bytes || by_bits != by_words) {
      puts("crc32: three ways, different sums");
      return 1;
    }
    checksum(by_bits);
    checksum(adler(data + skip, size - skip));
  }
  free(data);
  return print_checksum("crc32");
}
