// What LLVM's C API has no way for, as C functions. The Rust side is src/ffi.rs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "llvm-c/Types.h"

extern "C" {

// A text or bytes that the receiver gives back with xg_bytes_free. Empty: data is null.
struct xg_bytes {
  char *data;
  size_t length;
};

struct xg_hash {
  uint64_t low, high;
};

struct xg_counts {
  uint64_t instructions, blocks, functions;
};

// A node of the program graph. `kind`: 0 instruction, 1 variable, 2 constant, 3 what is outside.
struct xg_node {
  uint32_t kind;
  uint32_t opcode;    // instructions: LLVM's number; else 0
  uint32_t type;      // position among the graph's types
  uint32_t function;  // position among functions of the module; UINT32_MAX: none
  uint32_t block;     // position in its function; UINT32_MAX: none
};

// An edge of the program graph. `flow`: 0 control, 1 data, 2 call.
struct xg_edge {
  uint32_t from, to, flow, position;
};

struct xg_graph {
  const xg_node *nodes;
  size_t node_count;
  const xg_edge *edges;
  size_t edge_count;
  // One after the other, each ended by a zero byte.
  const char *types;
  size_t types_length;
  const char *functions;
  size_t functions_length;
};

// module.cc
void xg_initialize(void (*out_of_memory)(void));
LLVMContextRef xg_context_create(void);
LLVMModuleRef xg_parse(LLVMContextRef context, const char *data, size_t length, xg_bytes *error);
bool xg_verify(LLVMModuleRef module, xg_bytes *error);
xg_bytes xg_print(LLVMModuleRef module);
xg_bytes xg_bitcode(LLVMModuleRef module, bool use_list_order);
void xg_bytes_free(xg_bytes bytes);

// run.cc: options are lines `name=value`. False if the text is no pipeline or the pass reported an
// error; `changed` is what the passes say, who may exaggerate.
bool xg_run(LLVMModuleRef module, const char *passes, size_t passes_length, const char *options,
            size_t options_length, bool *changed, xg_bytes *error);
// What a pass runs over: 0 modules, 1 parts of the graph of calls, 2 functions, 3 loops.
uint32_t xg_level(const char *text, size_t length);

// identity.cc
xg_hash xg_content(LLVMModuleRef module);
xg_hash xg_exact(LLVMModuleRef module);

// version.cc
uint64_t xg_version(LLVMModuleRef module);

// features.cc
xg_counts xg_count(LLVMModuleRef module);
void xg_opcodes(LLVMModuleRef module, uint32_t out[67]);
void xg_inst_count(LLVMModuleRef module, uint64_t out[70]);
void xg_autophase(LLVMModuleRef module, uint64_t out[56]);
void xg_opcodes_by_function(LLVMModuleRef module,
                            void (*each)(void *state, const char *name, size_t length,
                                         const uint32_t *opcodes),
                            void *state);

// graph.cc
xg_graph *xg_graph_build(LLVMModuleRef module);
void xg_graph_free(xg_graph *graph);

// clone.cc
LLVMModuleRef xg_clone(LLVMModuleRef module);

// object.cc: machine code of a copy; `text_size` is what the code in it takes, in bytes.
bool xg_object(LLVMModuleRef module, xg_bytes *object, uint64_t *text_size, xg_bytes *error);
bool xg_text_size(const char *object, size_t length, uint64_t *text_size, xg_bytes *error);
}

#ifdef __cplusplus
namespace xg {
// A copy that the caller of the C function frees.
xg_bytes bytes(const char *data, size_t length);
}  // namespace xg
#endif
