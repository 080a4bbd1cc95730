// What a program takes and gives, and what its inputs are used for.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/evaluator/hlo_evaluator.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/primitive_util.h"
#include "xla/shape_util.h"

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;

namespace {

// How a value of the program flows to the places that say what it is. Looks through what keeps
// the value (or nearly), through tuples, calls and loops.
class Use {
 public:
  explicit Use(const HloInstruction* parameter, int64_t tuple_index) {
    visit(parameter, tuple_index);
    while (!pending_.empty()) {
      auto [instruction, index] = pending_.back();
      pending_.pop_back();
      for (const HloInstruction* user : instruction->users()) follow(instruction, index, user);
      leave(instruction, index);
    }
  }

  // The number of values that make sense at every index position reached; 0 if none was reached.
  int64_t index_bound = 0;
  // Ends under a root or a logarithm.
  bool positive = false;
  // Decides when a loop ends.
  bool loop_bound = false;

 private:
  static constexpr int64_t kWhole = -1;  // not an element of a tuple

  void visit(const HloInstruction* instruction, int64_t index) {
    if (seen_.insert({instruction, index}).second) pending_.push_back({instruction, index});
  }

  void limit(int64_t size) {
    if (size > 0) index_bound = index_bound == 0 ? size : std::min(index_bound, size);
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
      if (user->operand(operand) == from) follow_operand(from, index, user, operand);
    }
  }

  static bool decides_a_loop(const HloInstruction* instruction) {
    for (const HloInstruction* caller : instruction->parent()->caller_instructions()) {
      if (caller->opcode() == HloOpcode::kWhile &&
          caller->while_condition() == instruction->parent()) {
        return true;
      }
    }
    return false;
  }

  void follow_operand(const HloInstruction* from, int64_t index, const HloInstruction* user,
                      int64_t operand) {
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
        } else if (index == kWhole) {
          visit(user, kWhole);
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
        } else if (index == kWhole) {
          visit(user, kWhole);
        }
        return;
      case HloOpcode::kDynamicUpdateSlice:
        if (operand >= 2) {
          limit(user->operand(0)->shape().dimensions(operand - 2) -
                user->operand(1)->shape().dimensions(operand - 2) + 1);
        }
        return;
      case HloOpcode::kCompare: {
        if (decides_a_loop(user)) loop_bound = true;
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
      case HloOpcode::kSqrt:
      case HloOpcode::kRsqrt:
      case HloOpcode::kLog:
        positive = true;
        return;
      case HloOpcode::kPower:
        if (operand == 0) positive = true;
        return;
      case HloOpcode::kMultiply:
        // A square is positive by itself.
        if (user->operand(0) == user->operand(1)) return;
        [[fallthrough]];
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
      case HloOpcode::kDivide:
        if (operand == 0 && index == kWhole) visit(user, kWhole);
        return;
      default:
        return;
    }
  }

  std::vector<std::pair<const HloInstruction*, int64_t>> pending_;
  absl::flat_hash_set<std::pair<const HloInstruction*, int64_t>> seen_;
};

ArraySpec array_spec(const xla::Shape& shape) {
  if (!shape.IsArray()) {
    throw std::runtime_error("nested tuples, tokens and opaque values cannot be passed: " +
                             xla::ShapeUtil::HumanString(shape));
  }
  if (shape.is_dynamic()) {
    throw std::runtime_error("arrays of dynamic size cannot be passed: " +
                             xla::ShapeUtil::HumanString(shape));
  }
  ArraySpec spec{};
  spec.dtype = xla::primitive_util::LowercasePrimitiveTypeName(shape.element_type());
  for (int64_t dimension : shape.dimensions()) spec.dims.push_back(dimension);
  return spec;
}

ArraySpec input_spec(const xla::Shape& shape, const HloInstruction* parameter, int64_t index) {
  ArraySpec spec = array_spec(shape);
  Use use(parameter, index);
  spec.index_bound = use.index_bound;
  spec.positive = use.positive;
  spec.loop_bound = use.loop_bound;
  return spec;
}

bool has_narrow_floats(const xla::Shape& shape) {
  return shape.IsArray() && xla::primitive_util::IsFloatingPointType(shape.element_type()) &&
         xla::primitive_util::BitWidth(shape.element_type()) <= 16;
}

bool is_interpretable(const HloInstruction& instruction) {
  switch (instruction.opcode()) {
    // An arbitrary function stands for those that are not here; the others are the compiler's own.
    case HloOpcode::kCustomCall:
      return is_unknown_call(instruction);
    case HloOpcode::kRng:
    case HloOpcode::kRngGetAndUpdateState:
      return false;
    default:
      return xla::HloEvaluator::IsOpcodeImplemented(instruction.opcode());
  }
}

rust::Vec<rust::String> sorted(const absl::flat_hash_set<std::string>& names) {
  std::vector<std::string> order(names.begin(), names.end());
  std::sort(order.begin(), order.end());
  rust::Vec<rust::String> out;
  for (const std::string& name : order) out.push_back(rust::String::lossy(name));
  return out;
}

// Where the leaves of a tuple begin, or the array itself, counted one by one.
int64_t leaf_number(const xla::Shape& shape, const xla::ShapeIndex& wanted) {
  int64_t number = 0, found = -1;
  xla::ShapeUtil::ForEachSubshape(shape, [&](const xla::Shape& part, const xla::ShapeIndex& at) {
    if (part.IsTuple()) return;
    if (at == wanted) found = number;
    ++number;
  });
  return found;
}

// Who is written into whose memory, and who may be.
void describe_aliases(const HloModule& hlo, Signature& signature) {
  const HloComputation* entry = hlo.entry_computation();
  const xla::Shape& result = entry->root_instruction()->shape();
  auto input_number = [&](int64_t parameter, const xla::ShapeIndex& index) {
    return signature.tupled ? leaf_number(entry->parameter_instruction(0)->shape(), index)
                            : parameter;
  };
  hlo.input_output_alias_config().ForEachAlias(
      [&](const xla::ShapeIndex& output, const xla::HloInputOutputAliasConfig::Alias& alias) {
        AliasSpec spec{};
        spec.output = leaf_number(result, output);
        spec.input = input_number(alias.parameter_number, alias.parameter_index);
        spec.must = alias.must_alias();
        signature.aliases.push_back(spec);
      });
  for (const auto& donor : hlo.buffer_donor_config().buffer_donor()) {
    signature.donated.push_back(input_number(donor.param_number, donor.param_index));
  }
}

}  // namespace

Signature signature(const Module& module) {
  Signature signature{};
  const HloComputation* entry = module.hlo->entry_computation();
  signature.tupled = entry->num_parameters() == 1 &&
                     entry->parameter_instruction(0)->shape().IsTuple();
  for (const HloInstruction* parameter : entry->parameter_instructions()) {
    if (!signature.tupled) {
      signature.inputs.push_back(input_spec(parameter->shape(), parameter, -1));
      continue;
    }
    const auto& elements = parameter->shape().tuple_shapes();
    for (size_t i = 0; i < elements.size(); ++i) {
      signature.inputs.push_back(input_spec(elements[i], parameter, i));
    }
  }
  const xla::Shape& result = entry->root_instruction()->shape();
  xla::ShapeUtil::ForEachSubshape(result, [&](const xla::Shape& shape, const xla::ShapeIndex&) {
    if (!shape.IsTuple()) signature.outputs.push_back(array_spec(shape));
  });
  describe_aliases(*module.hlo, signature);

  signature.interpretable = true;
  absl::flat_hash_set<std::string> not_comparable, random, unknown, collectives;
  for (const HloComputation* computation : module.hlo->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      std::string name(xla::HloOpcodeString(instruction->opcode()));
      signature.can_be_promoted |= can_be_promoted(instruction->shape());
      signature.interpretable &= is_interpretable(*instruction);
      signature.narrow_floats |= has_narrow_floats(instruction->shape());
      switch (instruction->opcode()) {
        case HloOpcode::kRng:
        case HloOpcode::kRngGetAndUpdateState:
          random.insert(name);
          break;
        case HloOpcode::kInfeed:
        case HloOpcode::kOutfeed:
        case HloOpcode::kSend:
        case HloOpcode::kRecv:
          not_comparable.insert(name);
          break;
        case HloOpcode::kCustomCall:
          if (is_unknown_call(*instruction)) unknown.insert(instruction->custom_call_target());
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
          // Between the devices of a sharded program they run on as many devices of this process.
          if (partitions(*module.hlo) == 1) collectives.insert(name);
          break;
        default:
          break;
      }
    }
  }
  signature.not_comparable = sorted(not_comparable);
  signature.random = sorted(random);
  signature.unknown_calls = sorted(unknown);
  signature.collectives = sorted(collectives);
  return signature;
}

}  // namespace xla_gym
