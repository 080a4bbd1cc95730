// The functions that the Rust side calls, over XLA's own classes. One file of implementation per
// subject: module.cc (load, print, look at), signature.cc (what a program takes and gives), passes.cc
// (the pass table), pipeline.cc (what the real CPU compiler does), promote.cc (the same in higher
// precision), reduce.cc (the same with fewer layers), unknown_calls.cc (functions that are not here),
// execute.cc (compile and run).
//
// Errors of XLA become C++ exceptions with XLA's text; cxx turns them into Rust errors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rust/cxx.h"
#include "xla/debug_options_flags.h"
#include "xla/hlo/ir/hlo_module.h"

namespace xla_gym {

struct Array;
struct Cost;
struct Counts;
struct MemoryStats;
struct OpcodeCount;
struct ProgramGraph;
struct PassInfo;
struct PipelinePass;
struct Signature;
struct Together;
struct Version;

struct Module {
  std::unique_ptr<xla::HloModule> hlo;
};

// The states that the real compiler passed through, and what it did.
struct PipelineRun {
  struct Pass {
    std::string pipeline;
    std::string name;
    bool changed;
  };
  std::unique_ptr<xla::HloModule> middle;
  std::unique_ptr<xla::HloModule> end;
  std::vector<Pass> passes;
  uint64_t nanos = 0;
  // Bytes by the compiler's own buffer assignment; -1 if there is none.
  int64_t temporaries = -1;
  int64_t constants = -1;
};

// A module in higher precision, with the decisions that it reports.
struct Promoted {
  std::unique_ptr<Module> module;
  rust::Vec<rust::String> decisions;
};

// A compiled module with its inputs; PJRT's types stay inside execute.cc.
struct Executable {
  struct State;
  std::shared_ptr<State> state;
};

using Bytes = rust::Slice<const uint8_t>;
using Names = rust::Slice<const rust::String>;
using Owned = std::unique_ptr<Module>;

// module.cc
void prepare_process(rust::Fn<void()> on_out_of_memory);
rust::Vec<rust::String> opcode_names();
Owned load_hlo_text(Bytes text);
Owned load_proto(Bytes bytes);
Owned load_stablehlo(Bytes bytes);
Owned clone_module(const Module& module);
rust::Vec<uint8_t> print_text(const Module& module);
rust::Vec<uint8_t> print_proto(const Module& module);
rust::Vec<uint8_t> print_stablehlo(const Module& module, bool bytecode);
Counts counts(const Module& module);
rust::Vec<uint32_t> opcode_counts(const Module& module);
rust::Vec<OpcodeCount> opcode_counts_by_computation(const Module& module);
Version version(const Module& module);
ProgramGraph graph(const Module& module);

// signature.cc
Signature signature(const Module& module);

// identity.cc
std::array<uint64_t, 2> fingerprint(const Module& module);
void verify(Module& module);
Together look(Module& module, bool cost, bool verdict);

// passes.cc
rust::Vec<PassInfo> pass_table();
bool run_pass(Module& module, uint32_t pass);

// pipeline.cc
std::unique_ptr<PipelineRun> run_pipeline(const Module& module, Names disable,
                                          rust::Str dump_dir, bool until_middle,
                                          int32_t intra_op_threads);
rust::Vec<PipelinePass> pipeline_passes(const PipelineRun& run);
uint64_t pipeline_nanos(const PipelineRun& run);
int64_t pipeline_temporaries(const PipelineRun& run);
int64_t pipeline_constants(const PipelineRun& run);
Owned take_middle(PipelineRun& run);
Owned take_end(PipelineRun& run);

// promote.cc
std::unique_ptr<Promoted> promote(const Module& module, bool decisions, uint64_t nudge);
Owned take_promoted(Promoted& promoted);
rust::Vec<rust::String> promoted_decisions(const Promoted& promoted);

// reduce.cc
Owned reduce(const Module& module);

// execute.cc
std::unique_ptr<Executable> compile(const Module& module, Names disable, bool interpreter,
                                    bool quick);
uint64_t compile_nanos(const Executable& executable);
MemoryStats memory_stats(const Executable& executable);
void set_input(Executable& executable, size_t place, const Array& input);
uint64_t execute(Executable& executable);
rust::Vec<uint64_t> output_sizes(const Executable& executable);
Array output(const Executable& executable, size_t place);

// Shared by the implementation files.

// XLA's defaults whatever XLA_FLAGS says: a figure must not depend on the caller's environment.
inline xla::DebugOptions default_debug_options() {
  return xla::DefaultDebugOptionsIgnoringFlags();
}

// For how many devices a program is meant (pipeline.cc).
int64_t partitions(const xla::HloModule& hlo);
// Whether a shape has floating point in it of less than the widest type (promote.cc).
bool can_be_promoted(const xla::Shape& shape);
// What each instruction is and which shapes it reads, as a hash (identity.cc).
std::vector<std::pair<const xla::HloInstruction*, std::array<uint64_t, 2>>> instruction_keys(
    const xla::HloModule& hlo);
// Calls of functions that are not in this process (unknown_calls.cc).
bool is_unknown_call(const xla::HloInstruction& call);
void replace_unknown_calls(xla::HloModule& hlo);

inline void throw_if_error(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <typename T>
T value_or_throw(absl::StatusOr<T> result) {
  throw_if_error(result.status());
  return *std::move(result);
}

inline rust::Vec<uint8_t> to_bytes(const std::string& text) {
  rust::Vec<uint8_t> bytes;
  bytes.reserve(text.size());
  for (char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

}  // namespace xla_gym
