// Loading, printing and counting of modules.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/log/globals.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/hlo/parser/hlo_parser.h"
#include "xla/primitive_util.h"
#include "xla/service/slow_operation_alarm.h"
#include "xla/shape_util.h"

// Exported by the library and free of MLIR types, but declared only in headers that need MLIR.
namespace xla {
absl::Status ParseMlirModuleStringAndConvertToXlaComputation(std::string_view module,
                                                             XlaComputation& computation,
                                                             bool use_tuple_args,
                                                             bool return_tuple);
absl::StatusOr<std::string> ConvertHloToStablehlo(const HloModule& module, bool emit_bytecode);
}  // namespace xla

// XLA warns of slow operations from a thread that it starts at the first one. A process with such a
// thread cannot be forked safely: in the fork, the thread's place in the queue of a lock remains
// while its stack is given to the next thread. So the worker has warnings of its own that do
// nothing; as they are defined in the executable, the library uses them instead of its own.
namespace xla {

SlowOperationAlarm::SlowOperationAlarm(absl::Duration, std::string, std::atomic<int64_t>* counter,
                                       absl::string_view)
    : counter_(counter) {}
SlowOperationAlarm::SlowOperationAlarm(absl::Duration, std::function<std::string()>,
                                       std::atomic<int64_t>* counter, absl::string_view)
    : counter_(counter) {}
SlowOperationAlarm::~SlowOperationAlarm() = default;
void SlowOperationAlarm::ScheduleAlarm(SlowOperationAlarm*) {}
void SlowOperationAlarm::UnscheduleAlarm(const SlowOperationAlarm*) {}
std::unique_ptr<SlowOperationAlarm> SlowCompilationAlarm(absl::string_view) { return nullptr; }

}  // namespace xla

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;

namespace {

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Owned own(std::unique_ptr<HloModule> hlo) {
  auto module = std::make_unique<Module>();
  module->hlo = std::move(hlo);
  return module;
}

Owned from_proto(const xla::HloModuleProto& proto) {
  xla::HloModuleConfig config =
      value_or_throw(HloModule::CreateModuleConfigFromProto(proto, default_debug_options()));
  return own(value_or_throw(HloModule::CreateFromProto(proto, config,
                                                       /*prohibit_empty_literal=*/true,
                                                       /*comp_envs=*/nullptr,
                                                       /*preserve_instruction_ids=*/false)));
}

// The computations whose instructions run one by one: the entry, loop bodies and conditions,
// branches and called functions. Not among them: what an instruction applies to elements
// (reducers, comparators) and the inside of a fusion.
std::vector<const HloComputation*> running_computations(const HloModule& hlo) {
  std::vector<const HloComputation*> found = {hlo.entry_computation()};
  absl::flat_hash_set<const HloComputation*> seen = {hlo.entry_computation()};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const HloInstruction* instruction : found[i]->instructions()) {
      switch (instruction->opcode()) {
        case HloOpcode::kWhile:
        case HloOpcode::kConditional:
        case HloOpcode::kCall:
        case HloOpcode::kAsyncStart:
          for (const HloComputation* called : instruction->called_computations()) {
            if (seen.insert(called).second) found.push_back(called);
          }
          break;
        default:
          break;
      }
    }
  }
  return found;
}

bool is_operation(HloOpcode opcode) {
  switch (opcode) {
    case HloOpcode::kParameter:
    case HloOpcode::kConstant:
    case HloOpcode::kTuple:
    case HloOpcode::kGetTupleElement:
      return false;
    default:
      return true;
  }
}

// Whether `call-inliner` would replace it, as long as it may.
bool can_be_inlined(const HloInstruction* call) {
  const auto& attributes = call->frontend_attributes().map();
  auto inlineable = attributes.find("inlineable");
  return !call->has_backend_config() && !call->parent()->IsAsyncComputation() &&
         (inlineable == attributes.end() || inlineable->second == "true");
}

// How many operations there would be if every call were replaced by a copy of what it calls. Cut at
// kMost: functions that call one another twice make it grow exponentially.
uint64_t operations_inlined(const HloModule& hlo,
                            const std::vector<const HloComputation*>& running) {
  constexpr uint64_t kMost = 1'000'000'000'000'000;
  // What would still be there.
  absl::flat_hash_set<const HloComputation*> stays = {hlo.entry_computation()};
  for (const HloComputation* computation : running) {
    for (const HloInstruction* instruction : computation->instructions()) {
      switch (instruction->opcode()) {
        case HloOpcode::kCall:
          if (!can_be_inlined(instruction)) stays.insert(instruction->to_apply());
          break;
        case HloOpcode::kWhile:
        case HloOpcode::kConditional:
        case HloOpcode::kAsyncStart:
          for (const HloComputation* called : instruction->called_computations()) {
            stays.insert(called);
          }
          break;
        default:
          break;
      }
    }
  }
  uint64_t all = 0;
  absl::flat_hash_map<const HloComputation*, uint64_t> inside;
  for (const HloComputation* computation : hlo.MakeComputationPostOrder()) {
    uint64_t& sum = inside[computation] = 0;
    for (const HloInstruction* instruction : computation->instructions()) {
      bool goes = instruction->opcode() == HloOpcode::kCall && can_be_inlined(instruction);
      sum += goes ? inside.at(instruction->to_apply()) : is_operation(instruction->opcode());
      sum = std::min(sum, kMost);
    }
    if (stays.contains(computation)) all = std::min(all + sum, kMost);
  }
  return all;
}

}  // namespace

void prepare_process(rust::Fn<void()> on_out_of_memory) {
  static rust::Fn<void()> give_up = on_out_of_memory;
  std::set_new_handler([] { give_up(); });
  // What XLA logs on the way down is wanted (it names the failed check), its chatter is not.
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);
}

rust::Vec<rust::String> opcode_names() {
  rust::Vec<rust::String> names;
  for (uint32_t i = 0; i < xla::HloOpcodeCount(); ++i) {
    absl::string_view name = xla::HloOpcodeString(static_cast<HloOpcode>(i));
    names.push_back(rust::String(name.data(), name.size()));
  }
  return names;
}

Owned load_hlo_text(Bytes text) {
  xla::HloModuleConfig config;
  config.set_debug_options(default_debug_options());
  auto module = value_or_throw(xla::ParseAndReturnUnverifiedModule(
      as_text(text), config,
      xla::HloParserOptions().set_fill_shortform_constants_with_random_values(false)));
  return own(std::move(module));
}

Owned load_proto(Bytes bytes) {
  // Both messages start with a length-delimited field 1: the name of a module, or a module.
  // Only the right reading yields computations.
  xla::HloModuleProto module;
  if (module.ParseFromArray(bytes.data(), bytes.size()) && module.computations_size() > 0) {
    return from_proto(module);
  }
  xla::HloProto wrapper;
  if (wrapper.ParseFromArray(bytes.data(), bytes.size()) &&
      wrapper.hlo_module().computations_size() > 0) {
    return from_proto(wrapper.hlo_module());
  }
  throw std::runtime_error(
      "not a known program format: neither HLO text, nor StableHLO text or bytecode, nor an "
      "HloModuleProto or HloProto with at least one computation");
}

Owned load_stablehlo(Bytes bytes) {
  xla::XlaComputation computation;
  throw_if_error(xla::ParseMlirModuleStringAndConvertToXlaComputation(
      as_text(bytes), computation, /*use_tuple_args=*/false, /*return_tuple=*/false));
  return from_proto(computation.proto());
}

// Not by HloModule::Clone, which gives every caller its own copy of a shared computation.
Owned clone_module(const Module& module) { return from_proto(module.hlo->ToProto()); }

rust::Vec<uint8_t> print_text(const Module& module) {
  return to_bytes(module.hlo->ToString(xla::HloPrintOptions()
                                           .set_print_large_constants(true)
                                           .set_print_operand_shape(false)));
}

rust::Vec<uint8_t> print_proto(const Module& module) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!module.hlo->ToProto().SerializeToCodedStream(&coded)) {
      throw std::runtime_error("the module could not be serialised");
    }
  }
  return to_bytes(out);
}

rust::Vec<uint8_t> print_stablehlo(const Module& module, bool bytecode) {
  return to_bytes(value_or_throw(xla::ConvertHloToStablehlo(*module.hlo, bytecode)));
}

Counts counts(const Module& module) {
  Counts counts{};
  counts.instructions = module.hlo->instruction_count();
  counts.computations = module.hlo->computation_count();
  auto running = running_computations(*module.hlo);
  bool calls = false;
  for (const HloComputation* computation : running) {
    for (const HloInstruction* instruction : computation->instructions()) {
      counts.operations += is_operation(instruction->opcode());
      calls |= instruction->opcode() == HloOpcode::kCall;
    }
  }
  counts.inlined = calls ? operations_inlined(*module.hlo, running) : counts.operations;
  return counts;
}

rust::Vec<uint32_t> opcode_counts(const Module& module) {
  std::vector<uint32_t> counts(xla::HloOpcodeCount());
  for (const HloComputation* computation : module.hlo->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      ++counts[static_cast<size_t>(instruction->opcode())];
    }
  }
  rust::Vec<uint32_t> out;
  out.reserve(counts.size());
  for (uint32_t count : counts) out.push_back(count);
  return out;
}

rust::Vec<OpcodeCount> opcode_counts_by_computation(const Module& module) {
  auto running = running_computations(*module.hlo);
  absl::flat_hash_set<const HloComputation*> runs(running.begin(), running.end());
  rust::Vec<OpcodeCount> rows;
  for (const HloComputation* computation : module.hlo->MakeComputationPostOrder()) {
    std::vector<uint32_t> counts(xla::HloOpcodeCount());
    for (const HloInstruction* instruction : computation->instructions()) {
      ++counts[static_cast<size_t>(instruction->opcode())];
    }
    for (size_t opcode = 0; opcode < counts.size(); ++opcode) {
      if (counts[opcode] == 0) continue;
      OpcodeCount row;
      row.computation = std::string(computation->name());
      row.runs = runs.contains(computation);
      row.opcode = opcode;
      row.count = counts[opcode];
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Some passes leave instructions behind that nobody reads, and report that nothing changed.
Version version(const Module& module) {
  Version version;
  version.size = module.hlo->computation_count();
  version.ids = module.hlo->next_unique_computation_id();
  for (const HloComputation* computation : module.hlo->computations()) {
    version.size += computation->instruction_count() << 16;
    version.ids += computation->next_unique_instruction_internal_id();
  }
  return version;
}

ProgramGraph graph(const Module& module) {
  ProgramGraph graph;
  absl::flat_hash_map<const HloInstruction*, uint32_t> numbers;
  auto edge = [&](const HloInstruction* from, const HloInstruction* to, uint32_t kind,
                  uint32_t position) {
    graph.edges.push_back(GraphEdge{numbers.at(from), numbers.at(to), kind, position});
  };
  uint32_t number_of_computation = 0;
  for (const HloComputation* computation : module.hlo->MakeComputationPostOrder()) {
    for (const HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
      numbers[instruction] = graph.nodes.size();
      const xla::Shape& shape = instruction->shape();
      GraphNode node;
      node.opcode = static_cast<uint32_t>(instruction->opcode());
      node.dtype = shape.element_type();
      node.rank = shape.IsArray() ? shape.dimensions().size() : 0;
      node.computation = number_of_computation;
      node.elements = shape.IsArray() ? xla::ShapeUtil::ElementsIn(shape) : 0;
      graph.nodes.push_back(node);
      for (int64_t i = 0; i < instruction->operand_count(); ++i) {
        edge(instruction->operand(i), instruction, 0, i);
      }
      for (const HloInstruction* before : instruction->control_predecessors()) {
        edge(before, instruction, 1, 0);
      }
      uint32_t position = 0;
      for (const HloComputation* called : instruction->called_computations()) {
        edge(called->root_instruction(), instruction, 2, position++);
      }
    }
    ++number_of_computation;
  }
  return graph;
}

}  // namespace xla_gym
