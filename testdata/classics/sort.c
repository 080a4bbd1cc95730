/* Quicksort, merge sort and heap sort, of numbers and of records through a comparison. */
#include "classic.h"

struct record {
  uint32_t key;
  uint32_t group;
  char name[8];
};

typedef int (*compare_fn)(const struct record *, const struct record *);

static int by_key(const struct record *a, const struct record *b) {
  return (a->key > b->key) - (a->key < b->key);
}

static int by_group_and_name(const struct record *a, const struct record *b) {
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  return memcmp(a->name, b->name, sizeof a->name);
}

static void quicksort(int32_t *a, long low, long high) {
  while (low < high) {
    int32_t pivot = a[low + (high - low) / 2];
    long i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) ++i;
      while (a[j] > pivot) --j;
      if (i <= j) {
        int32_t swap = a[i];
        a[i++] = a[j];
        a[j--] = swap;
      }
    }
    if (j - low < high - i) {
      quicksort(a, low, j);
      low = i;
    } else {
      quicksort(a, i, high);
      high = j;
    }
  }
}

static void merge_sort(struct record *a, struct record *scratch, size_t count, compare_fn compare) {
  if (count < 2) return;
  size_t half = count / 2;
  merge_sort(a, scratch, half, compare);
  merge_sort(a + half, scratch, count - half, compare);
  size_t i = 0, j = half, k = 0;
  while (i < half && j < count) scratch[k++] = compare(&a[j], &a[i]) < 0 ? a[j++] : a[i++];
  while (i < half) scratch[k++] = a[i++];
  while (j < count) scratch[k++] = a[j++];
  memcpy(a, scratch, count * sizeof *a);
}

static void sift_down(uint32_t *heap, size_t at, size_t count) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
    if (heap[at] >= heap[child]) return;
    uint32_t swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
    at = child;
  }
}

static void heap_sort(uint32_t *a, size_t count) {
  for (size_t at = count / 2; at-- > 0;) sift_down(a, at, count);
  for (size_t end = count; end-- > 1;) {
    uint32_t swap = a[0];
    a[0] = a[end];
    a[end] = swap;
    sift_down(a, 0, end);
  }
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  int32_t *numbers = allocate(size, sizeof *numbers);
  uint32_t *heap = allocate(size, sizeof *heap);
  struct record *records = allocate(size, sizeof *records);
  struct record *scratch = allocate(size, sizeof *scratch);
  for (size_t i = 0; i < size; ++i) {
    numbers[i] = (int32_t)random_below(2000000) - 1000000;
    heap[i] = (uint32_t)random_u64();
    records[i].key = random_below(1000);
    records[i].group = random_below(16);
    for (int c = 0; c < 7; ++c) records[i].name[c] = (char)('a' + random_below(26));
  }
  quicksort(numbers, 0, (long)size - 1);
  heap_sort(heap, size);
  merge_sort(records, scratch, size, by_key);
  for (size_t i = 0; i < size; ++i) checksum(records[i].key * 31u + records[i].group);
  merge_sort(records, scratch, size, by_group_and_name);
  for (size_t i = 0; i < size; ++i) {
    checksum((uint64_t)(int64_t)numbers[i]);
    checksum(heap[i]);
    checksum((uint64_t)records[i].name[0] << 8 | (uint64_t)records[i].name[6]);
  }
  free(numbers);
  free(heap);
  free(records);
  free(scratch);
  return print_checksum("sort");
}
