/* Looking for words in a text: directly, by Knuth, Morris and Pratt, by Boyer, Moore and Horspool, by
   rolling hashes; and the edit distance of words. */
#include "classic.h"

static size_t find_directly(const char *text, size_t length, const char *word, size_t word_length) {
  size_t found = 0;
  for (size_t at = 0; at + word_length <= length; ++at) {
    size_t same = 0;
    while (same < word_length && text[at + same] == word[same]) ++same;
    if (same == word_length) found += at + 1;
  }
  return found;
}

static size_t find_by_borders(const char *text, size_t length, const char *word,
                              size_t word_length) {
  size_t border[64] = {0};
  for (size_t i = 1, k = 0; i < word_length; ++i) {
    while (k > 0 && word[i] != word[k]) k = border[k - 1];
    if (word[i] == word[k]) ++k;
    border[i] = k;
  }
  size_t found = 0;
  for (size_t i = 0, k = 0; i < length; ++i) {
    while (k > 0 && text[i] != word[k]) k = border[k - 1];
    if (text[i] == word[k]) ++k;
    if (k == word_length) {
      found += i + 2 - word_length;
      k = border[k - 1];
    }
  }
  return found;
}

static size_t find_by_skips(const char *text, size_t length, const char *word, size_t word_length) {
  size_t skip[256];
  for (int c = 0; c < 256; ++c) skip[c] = word_length;
  for (size_t i = 0; i + 1 < word_length; ++i) skip[(uint8_t)word[i]] = word_length - 1 - i;
  size_t found = 0;
  for (size_t at = 0; at + word_length <= length; at += skip[(uint8_t)text[at + word_length - 1]])
    if (memcmp(text + at, word, word_length) == 0) found += at + 1;
  return found;
}

static size_t find_by_hashes(const char *text, size_t length, const char *word,
                             size_t word_length) {
  if (length < word_length) return 0;
  uint32_t wanted = 0, hash = 0, power = 1;
  for (size_t i = 0; i < word_length; ++i) {
    wanted = wanted * 257 + (uint8_t)word[i];
    hash = hash * 257 + (uint8_t)text[i];
    if (i > 0) power *= 257;
  }
  size_t found = 0;
  for (size_t at = 0;; ++at) {
    if (hash == wanted && memcmp(text + at, word, word_length) == 0) found += at + 1;
    if (at + word_length >= length) return found;
    hash = (hash - (uint8_t)text[at] * power) * 257 + (uint8_t)text[at + word_length];
  }
}

static uint32_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  uint32_t row[65];
  for (size_t j = 0; j <= b_length; ++j) row[j] = (uint32_t)j;
  for (size_t i = 1; i <= a_length; ++i) {
    uint32_t diagonal = row[0];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= b_length; ++j) {
      uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b_length];
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  char *text = allocate(size + 1, 1);
  for (size_t i = 0; i < size; ++i) {
    /* Repeats itself, so that words are found and nearly found. */
    text[i] = i > 40 && random_below(8) > 0 ? text[i - 40 + random_below(2)]
                                            : (char)('a' + random_below(4));
  }
  for (int round = 0; round < 12; ++round) {
    char word[33] = {0};
    size_t word_length = 2 + random_below(30);
    if (word_length > size) word_length = size;
    memcpy(word, text + random_below((uint32_t)(size - word_length + 1)), word_length);
    size_t found = find_directly(text, size, word, word_length);
    if (found != find_by_borders(text, size, word, word_length) ||
        found != find_by_skips(text, size, word, word_length) ||
        found != find_by_hashes(text, size, word, word_length)) {
      puts("stringsearch: four ways, different places");
      return 1;
    }
    checksum(found);
    for (size_t at = 0; at + 32 < size; at += 97)
      checksum(edit_distance(word, word_length, text + at, 32));
  }
  free(text);
  return print_checksum("stringsearch");
}
