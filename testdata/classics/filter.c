/* Filters of a grey image: smoothing that keeps edges, gradients, medians, corners, a histogram. */
#include "classic.h"

struct image {
  size_t width, height;
  uint8_t *pixels;
};

static struct image make(size_t width, size_t height) {
  return (struct image){width, height, allocate(width * height, 1)};
}

static int at(const struct image *image, size_t x, size_t y) {
  return image->pixels[y * image->width + x];
}

static int absolute(int value) { return value < 0 ? -value : value; }

/* Near pixels count by how bright they are beside the middle one. */
static void smooth(const struct image *from, struct image *to, const uint8_t weight[256]) {
  for (size_t y = 2; y + 2 < from->height; ++y)
    for (size_t x = 2; x + 2 < from->width; ++x) {
      int middle = at(from, x, y), total = 0, sum = 0;
      for (size_t dy = 0; dy < 5; ++dy)
        for (size_t dx = 0; dx < 5; ++dx) {
          int near = at(from, x + dx - 2, y + dy - 2);
          int by = weight[absolute(near - middle)];
          total += by;
          sum += by * near;
        }
      to->pixels[y * to->width + x] = (uint8_t)(total > 0 ? sum / total : middle);
    }
}

static void gradient(const struct image *from, struct image *to) {
  for (size_t y = 1; y + 1 < from->height; ++y)
    for (size_t x = 1; x + 1 < from->width; ++x) {
      int across = at(from, x + 1, y - 1) + 2 * at(from, x + 1, y) + at(from, x + 1, y + 1) -
                   at(from, x - 1, y - 1) - 2 * at(from, x - 1, y) - at(from, x - 1, y + 1);
      int down = at(from, x - 1, y + 1) + 2 * at(from, x, y + 1) + at(from, x + 1, y + 1) -
                 at(from, x - 1, y - 1) - 2 * at(from, x, y - 1) - at(from, x + 1, y - 1);
      int size = (absolute(across) + absolute(down)) / 4;
      to->pixels[y * to->width + x] = (uint8_t)(size > 255 ? 255 : size);
    }
}

static void median(const struct image *from, struct image *to) {
  for (size_t y = 1; y + 1 < from->height; ++y)
    for (size_t x = 1; x + 1 < from->width; ++x) {
      int sorted[9], count = 0;
      for (size_t dy = 0; dy < 3; ++dy)
        for (size_t dx = 0; dx < 3; ++dx) {
          int value = at(from, x + dx - 1, y + dy - 1), place = count++;
          for (; place > 0 && sorted[place - 1] > value; --place) sorted[place] = sorted[place - 1];
          sorted[place] = value;
        }
      to->pixels[y * to->width + x] = (uint8_t)sorted[4];
    }
}

/* Pixels that few of their neighbours are like. */
static size_t corners(const struct image *image) {
  size_t found = 0;
  for (size_t y = 3; y + 3 < image->height; ++y)
    for (size_t x = 3; x + 3 < image->width; ++x) {
      int like = 0, middle = at(image, x, y);
      for (size_t dy = 0; dy < 7; ++dy)
        for (size_t dx = 0; dx < 7; ++dx)
          like += absolute(at(image, x + dx - 3, y + dy - 3) - middle) < 20;
      if (like < 12) found += y * image->width + x;
    }
  return found;
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv) + 8;
  struct image image = make(size, size), other = make(size, size);
  uint8_t weight[256];
  for (int i = 0; i < 256; ++i) weight[i] = (uint8_t)(1000 / (10 + i * i / 4));
  for (size_t y = 0; y < size; ++y)
    for (size_t x = 0; x < size; ++x)
      image.pixels[y * size + x] =
          (uint8_t)(((x / 9 + y / 7) % 2 ? 170 : 60) + (int)random_below(40));
  uint32_t histogram[256] = {0};
  smooth(&image, &other, weight);
  for (size_t i = 0; i < size * size; ++i) ++histogram[other.pixels[i]];
  checksum(corners(&other));
  gradient(&other, &image);
  for (size_t i = 0; i < size * size; ++i) ++histogram[image.pixels[i]];
  median(&image, &other);
  for (size_t i = 0; i < size * size; ++i) ++histogram[other.pixels[i]];
  for (int i = 0; i < 256; ++i) checksum(histogram[i]);
  free(image.pixels);
  free(other.pixels);
  return print_checksum("filter");
}
