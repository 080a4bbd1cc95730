/* Addresses and words in trees: a trie over bits, a tree of three ways over letters, a hash table with
   lists. */
#include "classic.h"

struct bit_node {
  struct bit_node *child[2];
  uint32_t value, used;
};

struct letter_node {
  struct letter_node *less, *same, *more;
  uint32_t count;
  char letter;
};

struct item {
  struct item *next;
  uint64_t key;
  uint32_t count;
};

/* All nodes come from one block, which is freed at once. */
struct arena {
  char *memory;
  size_t used, size;
};

static void *take(struct arena *arena, size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (arena->used + size > arena->size) {
    puts("trie: the arena is full");
    exit(1);
  }
  void *memory = arena->memory + arena->used;
  arena->used += size;
  return memory;
}

static void insert_prefix(struct arena *arena, struct bit_node *root, uint32_t address, int bits,
                          uint32_t value) {
  struct bit_node *node = root;
  for (int bit = 0; bit < bits; ++bit) {
    struct bit_node **next = &node->child[address >> (31 - bit) & 1];
    if (*next == NULL) *next = take(arena, sizeof **next);
    node = *next;
  }
  node->value = value;
  node->used = 1;
}

static uint32_t longest_prefix(const struct bit_node *node, uint32_t address) {
  uint32_t best = 0;
  for (int bit = 31; node != NULL; --bit) {
    if (node->used) best = node->value;
    if (bit < 0) break;
    node = node->child[address >> bit & 1];
  }
  return best;
}

static struct letter_node *insert_word(struct arena *arena, struct letter_node *node,
                                       const char *word) {
  if (node == NULL) {
    node = take(arena, sizeof *node);
    node->letter = *word;
  }
  if (*word < node->letter) node->less = insert_word(arena, node->less, word);
  else if (*word > node->letter) node->more = insert_word(arena, node->more, word);
  else if (word[1] != '\0') node->same = insert_word(arena, node->same, word + 1);
  else ++node->count;
  return node;
}

static void walk(const struct letter_node *node, uint64_t prefix) {
  if (node == NULL) return;
  walk(node->less, prefix);
  uint64_t here = prefix * 31 + (uint64_t)node->letter;
  if (node->count > 0) checksum(here + node->count);
  walk(node->same, here);
  walk(node->more, prefix);
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  struct arena arena = {NULL, 0, size * (32 * 32 + 12 * 48 + 48) + 4096};
  arena.memory = allocate(arena.size, 1);
  struct bit_node *root = take(&arena, sizeof *root);
  for (size_t i = 0; i < size; ++i) {
    int bits = 4 + (int)random_below(28);
    insert_prefix(&arena, root, (uint32_t)random_u64(), bits, (uint32_t)i + 1);
  }
  for (size_t i = 0; i < size * 4; ++i) checksum(longest_prefix(root, (uint32_t)random_u64()));

  struct letter_node *words = NULL;
  size_t buckets = 64;
  while (buckets < size) buckets *= 2;
  struct item **table = allocate(buckets, sizeof *table);
  for (size_t i = 0; i < size; ++i) {
    char word[12] = {0};
    uint64_t key = 0;
    size_t length = 1 + random_below(6);
    for (size_t c = 0; c < length; ++c) {
      word[c] = (char)('a' + random_below(5));
      key = key * 37 + (uint64_t)word[c];
    }
    words = insert_word(&arena, words, word);
    struct item **slot = &table[(key * 0x9E3779B97F4A7C15u >> 32) & (buckets - 1)];
    while (*slot != NULL && (*slot)->key != key) slot = &(*slot)->next;
    if (*slot == NULL) {
      *slot = take(&arena, sizeof **slot);
      (*slot)->key = key;
    }
    ++(*slot)->count;
  }
  walk(words, 7);
  for (size_t i = 0; i < buckets; ++i)
    for (const struct item *item = table[i]; item != NULL; item = item->next)
      checksum(item->key ^ item->count);
  free(arena.memory);
  free(table);
  return print_checksum("trie");
}
