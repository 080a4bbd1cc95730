// Calls of functions that are not in this process (LAPACK's, a framework's own).
//
// Whether two programs compute the same does not depend on what such a function does, as long as
// it does the same for both. So for a run an arbitrary smooth function of all operands takes its
// place, as verifiers put an uninterpreted one there.

#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_computation.h"
#include "xla/hlo/ir/hlo_instruction.h"
#include "xla/literal_util.h"
#include "xla/shape_util.h"

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;
using xla::PrimitiveType;
using xla::Shape;
using xla::ShapeUtil;

bool is_unknown_call(const HloInstruction& call) {
  return call.opcode() == HloOpcode::kCustomCall &&
         (absl::StartsWith(call.custom_call_target(), "lapack_") ||
          absl::StartsWith(call.custom_call_target(), "blas_"));
}

namespace {

// Builds the instructions that take a call's place.
class Stand_in {
 public:
  explicit Stand_in(HloInstruction* call)
      : call_(call), computation_(call->parent()), module_(call->GetModule()) {
    for (const HloInstruction* operand : call->operands()) {
      PrimitiveType type = operand->shape().element_type();
      if (type == xla::F64 || type == xla::C128) type_ = xla::F64;
    }
  }

  HloInstruction* build() {
    HloInstruction* mixed = mix();
    const Shape& shape = call_->shape();
    if (!shape.IsTuple()) return leaf(shape, mixed, 0, /*position=*/true);
    std::vector<HloInstruction*> leaves;
    for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
      leaves.push_back(leaf(shape.tuple_shapes(i), mixed, i, is_position(shape, i)));
    }
    return add(HloInstruction::CreateTuple(leaves));
  }

 private:
  HloInstruction* add(std::unique_ptr<HloInstruction> instruction) {
    return computation_->AddInstruction(std::move(instruction));
  }

  HloInstruction* number(double value) {
    xla::Literal literal = xla::LiteralUtil::CreateR0<double>(value);
    return add(HloInstruction::CreateConstant(value_or_throw(literal.Convert(type_))));
  }

  HloInstruction* binary(HloOpcode opcode, HloInstruction* a, HloInstruction* b) {
    const Shape& shape = a->shape().dimensions().empty() ? b->shape() : a->shape();
    auto spread = [&](HloInstruction* x) {
      return x->shape().dimensions().empty() && !shape.dimensions().empty()
                 ? add(HloInstruction::CreateBroadcast(shape, x, {}))
                 : x;
    };
    return add(HloInstruction::CreateBinary(shape, opcode, spread(a), spread(b)));
  }

  // 0, 1, 2, … times `step`, plus `offset`.
  HloInstruction* ramp(int64_t size, double step, double offset) {
    Shape shape = ShapeUtil::MakeShape(type_, {size});
    HloInstruction* iota = add(HloInstruction::CreateIota(shape, 0));
    return binary(HloOpcode::kAdd, binary(HloOpcode::kMultiply, iota, number(step)),
                  number(offset));
  }

  // One number that every element of every operand has a part in.
  HloInstruction* mix() {
    HloInstruction* sum = number(0.25);
    HloComputation::Builder builder("sum");
    Shape scalar = ShapeUtil::MakeShape(type_, {});
    HloInstruction* a = builder.AddInstruction(HloInstruction::CreateParameter(0, scalar, "a"));
    HloInstruction* b = builder.AddInstruction(HloInstruction::CreateParameter(1, scalar, "b"));
    builder.AddInstruction(HloInstruction::CreateBinary(scalar, HloOpcode::kAdd, a, b));
    HloComputation* adder = module_->AddEmbeddedComputation(builder.Build());
    for (int64_t i = 0; i < call_->operand_count(); ++i) {
      HloInstruction* operand = call_->mutable_operand(i);
      if (!operand->shape().IsArray()) continue;
      int64_t size = ShapeUtil::ElementsIn(operand->shape());
      if (size == 0) continue;
      if (ShapeUtil::ElementIsComplex(operand->shape())) {
        Shape part = ShapeUtil::ComplexComponentShape(operand->shape());
        HloInstruction* real =
            add(HloInstruction::CreateUnary(part, HloOpcode::kReal, operand));
        HloInstruction* imaginary =
            add(HloInstruction::CreateUnary(part, HloOpcode::kImag, operand));
        operand = add(HloInstruction::CreateBinary(part, HloOpcode::kAdd, real, imaginary));
      }
      Shape flat = ShapeUtil::MakeShape(type_, {size});
      Shape own = ShapeUtil::MakeShape(operand->shape().element_type(), {size});
      operand = add(HloInstruction::CreateReshape(own, operand));
      if (own.element_type() != type_) {
        operand = add(HloInstruction::CreateConvert(flat, operand));
      }
      HloInstruction* weights = add(HloInstruction::CreateUnary(
          flat, HloOpcode::kCos, ramp(size, 0.7, static_cast<double>(i) + 0.1)));
      HloInstruction* reduced = add(HloInstruction::CreateReduce(
          scalar, binary(HloOpcode::kMultiply, operand, weights), number(0), {0}, adder));
      sum = binary(HloOpcode::kAdd, sum,
                   binary(HloOpcode::kMultiply, reduced,
                          number(1.0 / std::sqrt(static_cast<double>(size)))));
    }
    return sum;
  }

  // Of two integer results, the one of higher rank holds positions (from 1), the other says that
  // all went well (0).
  static bool is_position(const Shape& tuple, size_t which) {
    const Shape& own = tuple.tuple_shapes(which);
    for (const Shape& other : tuple.tuple_shapes()) {
      if (&other != &own && ShapeUtil::ElementIsIntegral(other) &&
          other.dimensions().size() < own.dimensions().size()) {
        return true;
      }
    }
    return false;
  }

  // Numbers from 1 to 2, which can be divided by, and of which roots and logarithms exist.
  HloInstruction* leaf(const Shape& shape, HloInstruction* mixed, size_t which, bool position) {
    int64_t size = ShapeUtil::ElementsIn(shape);
    HloInstruction* values;
    Shape flat = ShapeUtil::MakeShape(type_, {size});
    if (ShapeUtil::ElementIsIntegral(shape) || shape.element_type() == xla::PRED) {
      values = add(HloInstruction::CreateBroadcast(flat, number(position ? 1 : 0), {}));
    } else {
      HloInstruction* wave = add(HloInstruction::CreateUnary(
          flat, HloOpcode::kSin,
          binary(HloOpcode::kAdd, ramp(size, 0.37, static_cast<double>(which)), mixed)));
      values = binary(HloOpcode::kAdd, binary(HloOpcode::kMultiply, wave, number(0.5)),
                      number(1.5));
    }
    Shape typed = ShapeUtil::MakeShape(shape.element_type(), {size});
    if (ShapeUtil::ElementIsComplex(shape)) {
      Shape part = ShapeUtil::ComplexComponentShape(typed);
      if (part.element_type() != type_) values = add(HloInstruction::CreateConvert(part, values));
      values = add(HloInstruction::CreateBinary(typed, HloOpcode::kComplex, values, values));
    } else if (shape.element_type() != type_) {
      values = add(HloInstruction::CreateConvert(typed, values));
    }
    return add(HloInstruction::CreateReshape(shape, values));
  }

  HloInstruction* call_;
  HloComputation* computation_;
  HloModule* module_;
  PrimitiveType type_ = xla::F32;
};

}  // namespace

void replace_unknown_calls(HloModule& hlo) {
  std::vector<HloInstruction*> calls;
  for (HloComputation* computation : hlo.computations()) {
    for (HloInstruction* instruction : computation->instructions()) {
      if (is_unknown_call(*instruction)) calls.push_back(instruction);
    }
  }
  for (HloInstruction* call : calls) {
    HloComputation* computation = call->parent();
    HloInstruction* instead = Stand_in(call).build();
    throw_if_error(call->ReplaceAllUsesWithDifferentShape(instead));
    if (computation->root_instruction() == call) computation->set_root_instruction(instead, true);
    throw_if_error(computation->RemoveInstruction(call));
  }
}

}  // namespace xla_gym
