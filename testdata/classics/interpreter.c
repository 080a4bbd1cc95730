/* A stack machine that runs three small programs: primes, Fibonacci by calls, Collatz. */
#include "classic.h"

enum opcode {
  PUSH, LOAD, STORE, GET, SET, ADD, SUB, MUL, DIV, MOD, LESS, EQUAL, NOT, JUMP, JUMP_IF, CALL, RETURN,
  DUP, DROP, EMIT, HALT
};

struct instruction {
  enum opcode opcode;
  int32_t argument;
};

struct machine {
  int64_t stack[256];
  int32_t calls[128];
  int64_t variables[8];
  int64_t *memory;
  size_t memory_size;
  uint64_t steps;
};

static void stop(const char *why) {
  printf("interpreter: %s\n", why);
  exit(1);
}

static void execute(struct machine *m, const struct instruction *code) {
  size_t sp = 0, cp = 0;
  for (const struct instruction *at = code;;) {
    struct instruction now = *at++;
    ++m->steps;
    if (sp > 250 || cp > 120) stop("too deep");
    switch (now.opcode) {
      case PUSH: m->stack[sp++] = now.argument; break;
      case LOAD: m->stack[sp++] = m->variables[now.argument]; break;
      case STORE: m->variables[now.argument] = m->stack[--sp]; break;
      case GET: {
        int64_t index = m->stack[sp - 1];
        if (index < 0 || (size_t)index >= m->memory_size) stop("out of memory bounds");
        m->stack[sp - 1] = m->memory[index];
        break;
      }
      case SET: {
        int64_t index = m->stack[--sp];
        if (index < 0 || (size_t)index >= m->memory_size) stop("out of memory bounds");
        m->memory[index] = m->stack[--sp];
        break;
      }
      case ADD: --sp; m->stack[sp - 1] += m->stack[sp]; break;
      case SUB: --sp; m->stack[sp - 1] -= m->stack[sp]; break;
      case MUL: --sp; m->stack[sp - 1] *= m->stack[sp]; break;
      case DIV:
      case MOD: {
        int64_t divisor = m->stack[--sp];
        if (divisor <= 0) stop("division");
        if (now.opcode == DIV) m->stack[sp - 1] /= divisor;
        else m->stack[sp - 1] %= divisor;
        break;
      }
      case LESS: --sp; m->stack[sp - 1] = m->stack[sp - 1] < m->stack[sp]; break;
      case EQUAL: --sp; m->stack[sp - 1] = m->stack[sp - 1] == m->stack[sp]; break;
      case NOT: m->stack[sp - 1] = !m->stack[sp - 1]; break;
      case JUMP: at = code + now.argument; break;
      case JUMP_IF:
        if (m->stack[--sp]) at = code + now.argument;
        break;
      case CALL:
        m->calls[cp++] = (int32_t)(at - code);
        at = code + now.argument;
        break;
      case RETURN: at = code + m->calls[--cp]; break;
      case DUP: m->stack[sp] = m->stack[sp - 1]; ++sp; break;
      case DROP: --sp; break;
      case EMIT: checksum((uint64_t)m->stack[--sp]); break;
      case HALT: return;
    }
  }
}

/* Variable 0 is the size. Counts primes below it by crossing out multiples. */
static const struct instruction primes[] = {
    {PUSH, 2},      {STORE, 1},                                         /* 0: i = 2 */
    {LOAD, 1},      {LOAD, 0},  {LESS, 0},   {NOT, 0},   {JUMP_IF, 30}, /* 2: while i < n */
    {LOAD, 1},      {GET, 0},   {JUMP_IF, 25},                          /* 7: if !crossed[i] */
    {LOAD, 1},      {EMIT, 0},                                          /* 10: emit i */
    {LOAD, 1},      {STORE, 2},                                         /* 12: j = i */
    {LOAD, 2},      {LOAD, 0},  {LESS, 0},   {NOT, 0},   {JUMP_IF, 25}, /* 14: while j < n */
    {PUSH, 1},      {LOAD, 2},  {SET, 0},                               /* 19: crossed[j] = 1 */
    {CALL, 31},     {JUMP, 14}, {HALT, 0},                              /* 22: j += i */
    {LOAD, 1},      {PUSH, 1},  {ADD, 0},    {STORE, 1}, {JUMP, 2},     /* 25: i += 1 */
    {HALT, 0},                                                          /* 30 */
    {LOAD, 2},      {LOAD, 1},  {ADD, 0},    {STORE, 2}, {RETURN, 0}};  /* 31 */

/* Fibonacci of variable 1, by calls of itself. */
static const struct instruction fibonacci[] = {
    {LOAD, 1},  {CALL, 4}, {EMIT, 0}, {HALT, 0},                       /* 0 */
    {DUP, 0},   {PUSH, 2}, {LESS, 0}, {JUMP_IF, 19},                   /* 4: n < 2: n */
    {DUP, 0},   {PUSH, 1}, {SUB, 0},  {CALL, 4},                       /* 8: f(n - 1) */
    {STORE, 3}, {PUSH, 2}, {SUB, 0},  {LOAD, 3},     {CALL, 20},       /* 12: n - 2 below it */
    {ADD, 0},   {RETURN, 0},                                           /* 17 */
    {RETURN, 0},                                                       /* 19 */
    {STORE, 5}, {STORE, 6}, {LOAD, 5}, {LOAD, 6}, {CALL, 4}, {RETURN, 0}}; /* 20: turned; f(n - 2) */

/* The longest way to 1 of all starts up to variable 0. */
static const struct instruction collatz[] = {
    {PUSH, 0},  {STORE, 3}, {PUSH, 1},  {STORE, 1},                           /* 0: best = 0, s = 1 */
    {LOAD, 1},  {LOAD, 0},  {LESS, 0},  {NOT, 0},   {JUMP_IF, 46},            /* 4: while s < n */
    {LOAD, 1},  {STORE, 2}, {PUSH, 0},  {STORE, 4},                           /* 9: x = s, k = 0 */
    {LOAD, 2},  {PUSH, 1},  {EQUAL, 0}, {JUMP_IF, 34},                        /* 13: while x != 1 */
    {LOAD, 4},  {PUSH, 1},  {ADD, 0},   {STORE, 4},                           /* 17: k += 1 */
    {LOAD, 2},  {PUSH, 2},  {MOD, 0},   {JUMP_IF, 29},                        /* 21 */
    {LOAD, 2},  {PUSH, 2},  {DIV, 0},   {JUMP, 32},                           /* 25: x / 2 */
    {LOAD, 2},  {CALL, 47}, {JUMP, 32},                                       /* 29: 3 x + 1 */
    {STORE, 2}, {JUMP, 13},                                                   /* 32 */
    {LOAD, 3},  {LOAD, 4},  {LESS, 0},  {NOT, 0},   {JUMP_IF, 41},            /* 34 */
    {LOAD, 4},  {STORE, 3},                                                   /* 39: best = k */
    {LOAD, 1},  {PUSH, 1},  {ADD, 0},   {STORE, 1}, {JUMP, 4},                /* 41: s += 1 */
    {JUMP, 52},                                                               /* 46 */
    {PUSH, 3},  {MUL, 0},   {PUSH, 1},  {ADD, 0},   {RETURN, 0},              /* 47 */
    {LOAD, 3},  {EMIT, 0},  {HALT, 0}};                                       /* 52 */

int main(int argc, char **argv) {
  size_t size = input_size(argc, argv);
  struct machine machine = {.memory = allocate(size + 1, sizeof(int64_t)), .memory_size = size + 1};
  machine.variables[0] = (int64_t)size;
  execute(&machine, primes);
  for (int n = 1; n <= 20; ++n) {
    machine.variables[1] = n;
    execute(&machine, fibonacci);
  }
  execute(&machine, collatz);
  checksum(machine.steps);
  free(machine.memory);
  return print_checksum("interpreter");
}
