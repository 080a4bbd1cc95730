// The same program in higher precision: what it would compute if nothing were rounded but at the
// last of 53 bits. Both a program and what passes made of it are judged by it.

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/literal_util.h"
#include "xla/primitive_util.h"
#include "xla/service/call_inliner.h"
#include "xla/shape_util.h"

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;
using xla::PrimitiveType;
using xla::Shape;
using xla::ShapeUtil;

namespace {

PrimitiveType wider(PrimitiveType type) {
  switch (type) {
    case xla::F16:
    case xla::BF16:
    case xla::F32:
      return xla::F64;
    case xla::C64:
      return xla::C128;
    default:
      return type;
  }
}

void widen(Shape* shape) {
  if (shape->IsTuple()) {
    for (size_t i = 0; i < shape->tuple_shapes().size(); ++i) widen(shape->mutable_tuple_shapes(i));
  } else if (shape->IsArray()) {
    shape->set_element_type(wider(shape->element_type()));
  }
}

// What is defined by the bits of its operands, or works only in its own type.
bool keeps_its_type(const HloInstruction& instruction) {
  switch (instruction.opcode()) {
    case HloOpcode::kCustomCall:
      return !absl::c_linear_search(
          std::initializer_list<absl::string_view>{"Eigh", "Qr",
                                                   "ProductOfElementaryHouseholderReflectors",
                                                   "Sharding", "SPMDFullToShardShape",
                                                   "SPMDShardToFullShape"},
          instruction.custom_call_target());
    case HloOpcode::kBitcastConvert:
    case HloOpcode::kFft:
    case HloOpcode::kRng:
    case HloOpcode::kReducePrecision:
    case HloOpcode::kStochasticConvert:
    case HloOpcode::kTopK:
      return true;
    default:
      return false;
  }
}

HloInstruction* converted(HloInstruction* value, const Shape& shape) {
  return value->parent()->AddInstruction(HloInstruction::CreateConvert(shape, value));
}

// Puts conversions around an instruction that keeps its type; `kept` are those that stay.
void fence(HloInstruction* instruction, absl::flat_hash_set<const HloInstruction*>& kept) {
  kept.insert(instruction);
  for (int64_t i = 0; i < instruction->operand_count(); ++i) {
    HloInstruction* operand = instruction->mutable_operand(i);
    if (!can_be_promoted(operand->shape()) || !operand->shape().IsArray()) continue;
    HloInstruction* narrow = converted(operand, operand->shape());
    kept.insert(narrow);
    throw_if_error(instruction->ReplaceOperandWithDifferentShape(i, narrow));
  }
  if (!can_be_promoted(instruction->shape())) return;
  HloComputation* computation = instruction->parent();
  std::vector<HloInstruction*> users(instruction->users().begin(), instruction->users().end());
  bool root = computation->root_instruction() == instruction;
  HloInstruction* wide;
  if (instruction->shape().IsTuple()) {
    std::vector<HloInstruction*> elements;
    for (size_t i = 0; i < instruction->shape().tuple_shapes().size(); ++i) {
      const Shape& shape = instruction->shape().tuple_shapes(i);
      HloInstruction* element = computation->AddInstruction(
          HloInstruction::CreateGetTupleElement(shape, instruction, i));
      kept.insert(element);
      elements.push_back(can_be_promoted(shape) ? converted(element, shape) : element);
    }
    wide = computation->AddInstruction(HloInstruction::CreateTuple(elements));
  } else {
    wide = converted(instruction, instruction->shape());
  }
  throw_if_error(instruction->ReplaceAllUsesWithDifferentShape(users, wide));
  if (root) computation->set_root_instruction(wide, true);
}

// Numbers that have nothing to do with one another (a step of SplitMix64).
uint64_t mixed(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// Moves every number by one unit in the last place of the type that it had.
void nudge_constant(xla::Literal& literal, PrimitiveType had, uint64_t seed) {
  if (literal.shape().element_type() != xla::F64) return;
  const double unit = had == xla::BF16 ? 0x1p-8 : had == xla::F16 ? 0x1p-11 : 0x1p-24;
  for (double& value : literal.data<double>()) {
    seed = mixed(seed);
    value *= seed & 1 ? 1 + unit : 1 - unit;
  }
}

// The narrowest type to which a constant is rounded on its way, which folding does for good.
PrimitiveType narrowest(const HloInstruction* constant) {
  PrimitiveType narrow = constant->shape().element_type();
  std::vector<const HloInstruction*> pending = {constant};
  for (size_t i = 0; i < pending.size() && i < 1000; ++i) {
    for (const HloInstruction* user : pending[i]->users()) {
      switch (user->opcode()) {
        case HloOpcode::kConvert:
          if (can_be_promoted(user->shape()) &&
              xla::primitive_util::BitWidth(user->shape().element_type()) <
                  xla::primitive_util::BitWidth(narrow)) {
            narrow = user->shape().element_type();
          }
          [[fallthrough]];
        case HloOpcode::kBroadcast:
        case HloOpcode::kCopy:
        case HloOpcode::kReshape:
        case HloOpcode::kSlice:
        case HloOpcode::kTranspose:
          pending.push_back(user);
          break;
        default:
          break;
      }
    }
  }
  return narrow;
}

void widen_constant(HloInstruction* constant, PrimitiveType had, uint64_t nudge) {
  HloComputation* computation = constant->parent();
  xla::Literal literal =
      value_or_throw(constant->literal().Convert(wider(constant->shape().element_type())));
  if (nudge != 0) nudge_constant(literal, had, nudge);
  HloInstruction* wide =
      computation->AddInstruction(HloInstruction::CreateConstant(std::move(literal)));
  throw_if_error(constant->ReplaceAllUsesWithDifferentShape(wide));
  if (computation->root_instruction() == constant) computation->set_root_instruction(wide, true);
  throw_if_error(computation->RemoveInstruction(constant));
}

void widen_module(HloModule& hlo, uint64_t nudge) {
  absl::flat_hash_set<const HloInstruction*> kept;
  std::vector<HloInstruction*> fenced;
  std::vector<std::pair<HloInstruction*, PrimitiveType>> constants;
  for (HloComputation* computation : hlo.computations()) {
    for (HloInstruction* instruction : computation->instructions()) {
      if (keeps_its_type(*instruction)) fenced.push_back(instruction);
    }
  }
  for (HloInstruction* instruction : fenced) fence(instruction, kept);
  // Before shapes change: afterwards nobody sees what a conversion was for.
  for (HloComputation* computation : hlo.computations()) {
    for (HloInstruction* instruction : computation->instructions()) {
      if (instruction->opcode() == HloOpcode::kConstant && can_be_promoted(instruction->shape())) {
        constants.push_back({instruction, narrowest(instruction)});
      }
    }
  }
  for (HloComputation* computation : hlo.computations()) {
    for (HloInstruction* instruction : computation->instructions()) {
      if (kept.contains(instruction) || !can_be_promoted(instruction->shape())) continue;
      if (instruction->opcode() == HloOpcode::kConstant) continue;
      widen(instruction->mutable_shape());
      // Dots that are told how to multiply narrow numbers cannot do so with wide ones.
      if (instruction->opcode() == HloOpcode::kDot) {
        instruction->mutable_precision_config()->set_algorithm(xla::PrecisionConfig::ALG_UNSET);
      }
    }
  }
  for (auto [constant, had] : constants) {
    if (nudge != 0) nudge = mixed(nudge) | 1;
    widen_constant(constant, had, nudge);
  }
}

// Which decisions a run takes: comparisons, and values that a clamp cuts off.
class Decisions {
 public:
  explicit Decisions(HloModule& hlo) : hlo_(hlo), entry_(hlo.entry_computation()) {}

  rust::Vec<rust::String> report() {
    either_ = combiner("either", HloOpcode::kOr);
    both_ = combiner("both", HloOpcode::kAnd);
    std::vector<HloInstruction*> all = entry_->MakeInstructionPostOrder();
    absl::flat_hash_set<const HloInstruction*> reached;
    for (const HloInstruction* instruction : all) {
      bool depends = instruction->opcode() == HloOpcode::kParameter;
      for (const HloInstruction* operand : instruction->operands()) {
        depends |= reached.contains(operand);
      }
      if (depends) reached.insert(instruction);
    }
    for (HloInstruction* instruction : all) {
      // Nobody asked for a dead one, and what no input reaches always falls the same way.
      if (instruction->IsDead() || !reached.contains(instruction)) continue;
      switch (instruction->opcode()) {
        case HloOpcode::kCompare:
          look_at(instruction, std::string(instruction->name()));
          break;
        case HloOpcode::kClamp: {
          HloInstruction* value = instruction->mutable_operand(1);
          look_at(compared(value, instruction->mutable_operand(0), xla::ComparisonDirection::kLt),
                  std::string(instruction->name()) + " (below)");
          look_at(compared(value, instruction->mutable_operand(2), xla::ComparisonDirection::kGt),
                  std::string(instruction->name()) + " (above)");
          break;
        }
        default:
          break;
      }
    }
    add_outputs();
    return std::move(names_);
  }

 private:
  HloInstruction* add(std::unique_ptr<HloInstruction> instruction) {
    return entry_->AddInstruction(std::move(instruction));
  }

  HloComputation* combiner(const char* name, HloOpcode opcode) {
    HloComputation::Builder builder(name);
    Shape scalar = ShapeUtil::MakeShape(xla::PRED, {});
    HloInstruction* a = builder.AddInstruction(HloInstruction::CreateParameter(0, scalar, "a"));
    HloInstruction* b = builder.AddInstruction(HloInstruction::CreateParameter(1, scalar, "b"));
    builder.AddInstruction(HloInstruction::CreateBinary(scalar, opcode, a, b));
    return hlo_.AddEmbeddedComputation(builder.Build());
  }

  HloInstruction* compared(HloInstruction* value, HloInstruction* bound,
                           xla::ComparisonDirection direction) {
    Shape shape = ShapeUtil::ChangeElementType(value->shape(), xla::PRED);
    if (bound->shape().dimensions().empty() && !value->shape().dimensions().empty()) {
      Shape spread = value->shape();
      bound = add(HloInstruction::CreateBroadcast(spread, bound, {}));
    }
    return add(HloInstruction::CreateCompare(shape, value, bound, direction));
  }

  HloInstruction* reduced(HloInstruction* value, HloComputation* by, bool start) {
    std::vector<int64_t> dimensions;
    for (size_t i = 0; i < value->shape().dimensions().size(); ++i) dimensions.push_back(i);
    HloInstruction* initial =
        add(HloInstruction::CreateConstant(xla::LiteralUtil::CreateR0<bool>(start)));
    HloInstruction* scalar = dimensions.empty()
                                 ? value
                                 : add(HloInstruction::CreateReduce(
                                       ShapeUtil::MakeShape(xla::PRED, {}), value, initial,
                                       dimensions, by));
    return add(HloInstruction::CreateReshape(ShapeUtil::MakeShape(xla::PRED, {1}), scalar));
  }

  void look_at(HloInstruction* decision, std::string name) {
    if (ShapeUtil::IsZeroElementArray(decision->shape())) return;
    names_.push_back(name);
    ever_true_.push_back(reduced(decision, either_, false));
    HloInstruction* all = reduced(decision, both_, true);
    ever_false_.push_back(add(HloInstruction::CreateUnary(all->shape(), HloOpcode::kNot, all)));
  }

  void add_outputs() {
    HloInstruction* root = entry_->root_instruction();
    std::vector<HloInstruction*> outputs;
    if (root->shape().IsTuple()) {
      for (size_t i = 0; i < root->shape().tuple_shapes().size(); ++i) {
        outputs.push_back(add(HloInstruction::CreateGetTupleElement(
            root->shape().tuple_shapes(i), root, i)));
      }
    } else {
      outputs.push_back(root);
    }
    Shape shape = ShapeUtil::MakeShape(xla::PRED, {static_cast<int64_t>(names_.size())});
    for (const auto& side : {ever_true_, ever_false_}) {
      outputs.push_back(side.empty() ? add(HloInstruction::CreateConstant(
                                           xla::LiteralUtil::CreateFromDimensions(xla::PRED, {0})))
                                     : add(HloInstruction::CreateConcatenate(shape, side, 0)));
    }
    entry_->set_root_instruction(add(HloInstruction::CreateTuple(outputs)), true);
  }

  HloModule& hlo_;
  HloComputation* entry_;
  HloComputation* either_ = nullptr;
  HloComputation* both_ = nullptr;
  rust::Vec<rust::String> names_;
  std::vector<HloInstruction*> ever_true_, ever_false_;
};

}  // namespace

bool can_be_promoted(const Shape& shape) {
  if (shape.IsTuple()) {
    for (const Shape& element : shape.tuple_shapes()) {
      if (can_be_promoted(element)) return true;
    }
    return false;
  }
  return shape.IsArray() && wider(shape.element_type()) != shape.element_type();
}

std::unique_ptr<Promoted> promote(const Module& module, bool decisions, uint64_t nudge) {
  Owned copy = clone_module(module);
  HloModule& hlo = *copy->hlo;
  replace_unknown_calls(hlo);
  auto promoted = std::make_unique<Promoted>();
  if (decisions) {
    // Decisions are looked at in the entry computation; the compiler inlines calls anyway.
    value_or_throw(xla::CallInliner().Run(&hlo));
  }
  widen_module(hlo, nudge);
  if (decisions) promoted->decisions = Decisions(hlo).report();
  // Nothing is given away here, and the shapes are new.
  hlo.set_input_output_alias_config(
      xla::HloInputOutputAliasConfig(hlo.entry_computation()->root_instruction()->shape()));
  hlo.set_buffer_donor_config(xla::HloBufferDonorConfig());
  hlo.mutable_config().SetDefaultComputationLayout(hlo.entry_computation()->ComputeProgramShape());
  promoted->module = clone_module(*copy);
  return promoted;
}

Owned take_promoted(Promoted& promoted) { return std::move(promoted.module); }

rust::Vec<rust::String> promoted_decisions(const Promoted& promoted) {
  return promoted.decisions;
}

}  // namespace xla_gym
