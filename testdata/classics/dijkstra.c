/* Shortest paths: Dijkstra with a binary heap on a sparse graph, Floyd and Warshall on a dense one. */
#include "classic.h"

#define NO_PATH UINT32_MAX
#define DEGREE 6

struct edge {
  uint32_t to, weight;
};

struct entry {
  uint32_t distance, node;
};

struct heap {
  struct entry *entries;
  size_t count;
};

static void push(struct heap *heap, struct entry entry) {
  size_t at = heap->count++;
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (heap->entries[parent].distance <= entry.distance) break;
    heap->entries[at] = heap->entries[parent];
    at = parent;
  }
  heap->entries[at] = entry;
}

static struct entry pop(struct heap *heap) {
  struct entry first = heap->entries[0];
  struct entry last = heap->entries[--heap->count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap->count) break;
    if (child + 1 < heap->count &&
        heap->entries[child + 1].distance < heap->entries[child].distance)
      ++child;
    if (last.distance <= heap->entries[child].distance) break;
    heap->entries[at] = heap->entries[child];
    at = child;
  }
  heap->entries[at] = last;
  return first;
}

static void dijkstra(const struct edge *edges, size_t nodes, uint32_t from, uint32_t *distance,
                     struct heap *heap) {
  for (size_t i = 0; i < nodes; ++i) distance[i] = NO_PATH;
  distance[from] = 0;
  heap->count = 0;
  push(heap, (struct entry){0, from});
  while (heap->count > 0) {
    struct entry next = pop(heap);
    if (next.distance > distance[next.node]) continue;
    const struct edge *out = edges + (size_t)next.node * DEGREE;
    for (int i = 0; i < DEGREE; ++i) {
      uint32_t through = next.distance + out[i].weight;
      if (through < distance[out[i].to]) {
        distance[out[i].to] = through;
        push(heap, (struct entry){through, out[i].to});
      }
    }
  }
}

static void all_pairs(uint32_t *distance, size_t nodes) {
  for (size_t k = 0; k < nodes; ++k)
    for (size_t i = 0; i < nodes; ++i) {
      uint32_t first = distance[i * nodes + k];
      if (first == NO_PATH) continue;
      for (size_t j = 0; j < nodes; ++j) {
        uint32_t second = distance[k * nodes + j];
        if (second != NO_PATH && first + second < distance[i * nodes + j])
          distance[i * nodes + j] = first + second;
      }
    }
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  size_t nodes = size * 16;
  struct edge *edges = allocate(nodes * DEGREE, sizeof *edges);
  uint32_t *distance = allocate(nodes, sizeof *distance);
  struct heap heap = {allocate(nodes * DEGREE + 1, sizeof *heap.entries), 0};
  for (size_t i = 0; i < nodes * DEGREE; ++i) {
    edges[i].to = random_below((uint32_t)nodes);
    edges[i].weight = 1 + random_below(1000);
  }
  for (int round = 0; round < 4; ++round) {
    dijkstra(edges, nodes, random_below((uint32_t)nodes), distance, &heap);
    for (size_t i = 0; i < nodes; ++i) checksum(distance[i]);
  }
  uint32_t *matrix = allocate(size * size, sizeof *matrix);
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j)
      matrix[i * size + j] = i == j ? 0 : random_below(4) == 0 ? 1 + random_below(100) : NO_PATH;
  all_pairs(matrix, size);
  for (size_t i = 0; i < size * size; ++i) checksum(matrix[i]);
  free(edges);
  free(distance);
  free(heap.entries);
  free(matrix);
  return print_checksum("dijkstra");
}
