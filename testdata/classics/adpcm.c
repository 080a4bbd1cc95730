/* Speech in four bits a sample (adaptive differential pulse code), there and back; and a comb filter. */
#include "classic.h"

static const int32_t index_step[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

static int32_t step_sizes[89];

struct state {
  int32_t predicted, index;
};

static void make_steps(void) {
  int32_t step = 7;
  for (int i = 0; i < 89; ++i) {
    step_sizes[i] = step;
    step += step / 10 + 1;
    if (step > 32767) step = 32767;
  }
}

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

static int32_t rebuild(struct state *state, uint32_t code) {
  int32_t step = step_sizes[state->index];
  int32_t change = step >> 3;
  if (code & 4) change += step;
  if (code & 2) change += step >> 1;
  if (code & 1) change += step >> 2;
  state->predicted = clamp(state->predicted + (code & 8 ? -change : change), -32768, 32767);
  state->index = clamp(state->index + index_step[code & 7], 0, 88);
  return state->predicted;
}

static uint32_t encode(struct state *state, int32_t sample) {
  int32_t difference = sample - state->predicted;
  int32_t step = step_sizes[state->index];
  uint32_t code = 0;
  if (difference < 0) {
    code = 8;
    difference = -difference;
  }
  for (uint32_t bit = 4; bit > 0; bit >>= 1, step >>= 1)
    if (difference >= step) {
      code |= bit;
      difference -= step;
    }
  rebuild(state, code);
  return code;
}

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  int16_t *samples = allocate(size, sizeof *samples);
  uint8_t *packed = allocate(size / 2 + 1, 1);
  int16_t *decoded = allocate(size, sizeof *decoded);
  int32_t level = 0, slope = 0;
  for (size_t i = 0; i < size; ++i) {
    slope = clamp(slope + (int32_t)random_below(401) - 200 - level / 64, -2000, 2000);
    level = clamp(level + slope, -32000, 32000);
    samples[i] = (int16_t)level;
  }
  make_steps();
  struct state state = {0, 0};
  for (size_t i = 0; i < size; ++i) {
    uint32_t code = encode(&state, samples[i]);
    packed[i / 2] = (uint8_t)(i % 2 ? packed[i / 2] | code << 4 : code);
  }
  state = (struct state){0, 0};
  uint64_t error = 0;
  for (size_t i = 0; i < size; ++i) {
    decoded[i] = (int16_t)rebuild(&state, i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15u);
    int32_t wrong = decoded[i] - samples[i];
    error += (uint64_t)((int64_t)wrong * wrong);
  }
  checksum(error);
  for (size_t i = 0; i < size / 2; ++i) checksum(packed[i]);
  for (size_t i = 32; i < size; ++i) {
    int32_t sum = 0;
    for (size_t tap = 0; tap < 8; ++tap) sum += decoded[i - 4 * tap] * (int32_t)(8 - tap);
    checksum((uint64_t)(int64_t)(sum / 36));
  }
  free(samples);
  free(packed);
  free(decoded);
  return print_checksum("adpcm");
}
