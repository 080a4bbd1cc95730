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

// How a value of the program flows to the places where it is an index. Looks through what keeps
// the value (or nearly), through tuples, calls and loops.
class IndexUse {
 public:
  // The number of values that make sense at every index position reached; 0 if none was reached.
  static int64_t bound(const HloInstruction* parameter, int64_t tuple_index) {
    IndexUse use;
    use.visit(parameter, tuple_index);
    while (!use.pending_.empty()) {
      auto [instruction, index] = use.pending_.back();
      use.pending_.pop_back();
      for (const HloInstruction* user : instruction->users()) use.follow(instruction, index, user);
      use.leave(instruction, index);
    }
    return use.bound_;
  }

 private:
  static constexpr int64_t kWhole = -1;  // not an element of a tuple

  void visit(const HloInstruction* instruction, int64_t index) {
    if (seen_.insert({instruction, index}).second) pending_.push_back({instruction, index});
  }

  void limit(int64_t size) {
    if (size > 0) bound_ = bound_ == 0 ? size : std::min(bound_, size);
  }

  // The root of a loop body feeds the loop's next turn.
  void leave(const HloInstruction* instruction, int64_t index) {
    if (!instruction->IsRoot() || instruction->parent()->IsEntryComputation()) return;
    for (const HloInstruction* caller : instruction->parent()->caller_instructions()) {
      if (caller->opcode() == HloOpcode::kCall || caller->opcode() == HloOpcode::kWhile) {
        visit(caller, index);
      }
    }
  }

  void follow(const HloInstruction* from, int64_t index, const HloInstruction* user) {
    for (int64_t operand = 0; operand < user->operand_count(); ++operand) {
      if (user->operand(operand) == from) follow_operand(index, user, operand);
    }
  }

  void follow_operand(int64_t index, const HloInstruction* user, int64_t operand) {
    switch (user->opcode()) {
      case HloOpcode::kTuple:
        if (index == kWhole) visit(user, operand);
        return;
      case HloOpcode::kGetTupleElement:
        if (index == user->tuple_index()) visit(user, kWhole);
        return;
      case HloOpcode::kWhile:
        visit(user->while_body()->parameter_instruction(0), index);
        visit(user->while_condition()->parameter_instruction(0), index);
        visit(user, index);
        return;
      case HloOpcode::kCall:
        visit(user->to_apply()->parameter_instruction(operand), index);
        return;
      case HloOpcode::kConditional:
        if (operand > 0) {
          visit(user->branch_computation(operand - 1)->parameter_instruction(0), index);
        }
        return;
      case HloOpcode::kGather:
        if (operand == 1) {
          const auto& numbers = user->gather_dimension_numbers();
          for (int64_t dimension : numbers.start_index_map()) {
            limit(user->operand(0)->shape().dimensions(dimension) -
                  user->gather_slice_sizes()[dimension] + 1);
          }
        }
        return;
      case HloOpcode::kScatter: {
        const auto* scatter = xla::Cast<xla::HloScatterInstruction>(user);
        if (operand == scatter->scatter_operand_count()) {
          for (int64_t dimension :
               scatter->scatter_dimension_numbers().scatter_dims_to_operand_dims()) {
            limit(user->operand(0)->shape().dimensions(dimension));
          }
        }
        return;
      }
      case HloOpcode::kDynamicSlice:
        if (operand >= 1) {
          limit(user->operand(0)->shape().dimensions(operand - 1) -
                user->shape().dimensions(operand - 1) + 1);
        }
        return;
      case HloOpcode::kDynamicUpdateSlice:
        if (operand >= 2) {
          limit(user->operand(0)->shape().dimensions(operand - 2) -
                user->operand(1)->shape().dimensions(operand - 2) + 1);
        }
        return;
      case HloOpcode::kCompare: {
        // A one-hot encoding compares with an iota.
        const HloInstruction* other = user->operand(1 - operand);
        while (other->opcode() == HloOpcode::kBroadcast || other->opcode() == HloOpcode::kReshape) {
          other = other->operand(0);
        }
        if (other->opcode() == HloOpcode::kIota) {
          limit(other->shape().dimensions(
              xla::Cast<xla::HloIotaInstruction>(other)->iota_dimension()));
        }
        return;
      }
      case HloOpcode::kAdd:
      case HloOpcode::kBroadcast:
      case HloOpcode::kClamp:
      case HloOpcode::kConcatenate:
      case HloOpcode::kConvert:
      case HloOpcode::kCopy:
      case HloOpcode::kMaximum:
      case HloOpcode::kMinimum:
      case HloOpcode::kPad:
      case HloOpcode::kReshape:
      case HloOpcode::kReverse:
      case HloOpcode::kSelect:
      case HloOpcode::kSlice:
      case HloOpcode::kTranspose:
        if (index == kWhole && user->shape().IsArray()) visit(user, kWhole);
        return;
      default:
        return;
    }
  }

  int64_t bound_ = 0;
  std::vector<std::pair<const HloInstruction*, int64_t>> pending_;
  absl::flat_hash_set<std::pair<const HloInstruction*, int64_t>> seen_;
};

ArraySpec array_spec(const xla::Shape& shape, int64_t index_bound) {
  if (!shape.IsArray()) {
    throw std::runtime_error("nested tuples, tokens and opaque values cannot be passed: " +
                             xla::ShapeUtil::HumanString(shape));
  }
  if (shape.is_dynamic()) {
    throw std::runtime_error("arrays of dynamic size cannot be passed: " +
                             xla::ShapeUtil::HumanString(shape));
  }
  ArraySpec spec;
  spec.dtype = xla::primitive_util::LowercasePrimitiveTypeName(shape.element_type());
  for (int64_t dimension : shape.dimensions()) spec.dims.push_back(dimension);
  spec.index_bound = xla::ShapeUtil::ElementIsIntegral(shape) ? index_bound : 0;
  return spec;
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

Signature signature(const Module& module) {
  Signature signature;
  const HloComputation* entry = module.hlo->entry_computation();
  signature.tupled = entry->num_parameters() == 1 &&
                     entry->parameter_instruction(0)->shape().IsTuple();
  for (const HloInstruction* parameter : entry->parameter_instructions()) {
    if (!signature.tupled) {
      signature.inputs.push_back(
          array_spec(parameter->shape(), IndexUse::bound(parameter, /*tuple_index=*/-1)));
      continue;
    }
    const auto& elements = parameter->shape().tuple_shapes();
    for (size_t i = 0; i < elements.size(); ++i) {
      signature.inputs.push_back(array_spec(elements[i], IndexUse::bound(parameter, i)));
    }
  }
  const xla::Shape& result = entry->root_instruction()->shape();
  xla::ShapeUtil::ForEachSubshape(result, [&](const xla::Shape& shape, const xla::ShapeIndex&) {
    if (!shape.IsTuple()) signature.outputs.push_back(array_spec(shape, 0));
  });

  absl::flat_hash_set<std::string> not_comparable, custom_calls, collectives;
  for (const HloComputation* computation : module.hlo->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      std::string name(xla::HloOpcodeString(instruction->opcode()));
      switch (instruction->opcode()) {
        case HloOpcode::kRng:
        case HloOpcode::kRngGetAndUpdateState:
        case HloOpcode::kInfeed:
        case HloOpcode::kOutfeed:
        case HloOpcode::kSend:
        case HloOpcode::kRecv:
          not_comparable.insert(name);
          break;
        case HloOpcode::kCustomCall:
          custom_calls.insert(instruction->custom_call_target());
          break;
        case HloOpcode::kAllGather:
        case HloOpcode::kAllGatherStart:
        case HloOpcode::kAllReduce:
        case HloOpcode::kAllReduceStart:
        case HloOpcode::kAllToAll:
        case HloOpcode::kCollectiveBroadcast:
        case HloOpcode::kCollectivePermute:
        case HloOpcode::kCollectivePermuteStart:
        case HloOpcode::kRaggedAllToAll:
        case HloOpcode::kReduceScatter:
          collectives.insert(name);
          break;
        default:
          break;
      }
    }
  }
  auto sorted = [](const absl::flat_hash_set<std::string>& names) {
    std::vector<std::string> order(names.begin(), names.end());
    std::sort(order.begin(), order.end());
    rust::Vec<rust::String> out;
    for (const std::string& name : order) out.push_back(rust::String::lossy(name));
    return out;
  };
  signature.not_comparable = sorted(not_comparable);
  signature.custom_calls = sorted(custom_calls);
  signature.collectives = sorted(collectives);
  return signature;
}

}  // namespace xla_gym
