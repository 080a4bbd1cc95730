// What a module is, whether XLA's verifier accepts it, and what XLA thinks it costs.
//
// These are asked for after every pass that changed something, so that their time matters. Both the
// verifier's checks of one instruction and its estimated cost depend on nothing but the instruction
// itself, the shapes it reads, and the computations it calls. So what was once found out for such an
// instruction is remembered, and only new kinds of instructions are looked at. A forked worker
// inherits what its parent remembered.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/printer.h"
#include "xla/service/cpu_gpu_shape_verifier.h"
#include "xla/service/hlo_cost_analysis.h"
#include "xla/service/hlo_verifier.h"
#include "xla/shape_util.h"

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;

namespace {

// Two independent 64-bit lanes of multiply-and-fold hashing: no seed and no address enters, so
// the value is the same in every process.
class Hasher {
 public:
  void word(uint64_t value) {
    low_ = fold(low_ ^ value, 0x9e3779b97f4a7c15ull);
    high_ = fold(high_ ^ value ^ 0xd6e8feb86659fd93ull, 0xa0761d6478bd642full);
  }

  void bytes(std::string_view text) {
    word(text.size());
    size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
      uint64_t chunk;
      std::memcpy(&chunk, text.data() + i, 8);
      word(chunk);
    }
    uint64_t rest = 0;
    std::memcpy(&rest, text.data() + i, text.size() - i);
    word(rest);
  }

  void words(std::array<uint64_t, 2> values) {
    word(values[0]);
    word(values[1]);
  }

  std::array<uint64_t, 2> value() const { return {low_, high_}; }

 private:
  static uint64_t fold(uint64_t a, uint64_t b) {
    __uint128_t product = static_cast<__uint128_t>(a) * (b | 1);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (a << 7);
  }

  uint64_t low_ = 0x8ebc6af09c88c6e3ull;
  uint64_t high_ = 0x589965cc75374cc3ull;
};

class HashPrinter : public xla::Printer {
 public:
  explicit HashPrinter(Hasher* hasher) : xla::Printer(/*is_hasher=*/true), hasher_(hasher) {}
  void Append(const absl::AlphaNum& text) override { hasher_->bytes(text.Piece()); }
  void AppendInt64List(absl::Span<const int64_t> list, bool) override {
    hasher_->word(list.size());
    for (int64_t value : list) hasher_->word(value);
  }

 private:
  Hasher* hasher_;
};

void hash_shape(const xla::Shape& shape, Hasher* hasher) {
  hasher->word(shape.element_type());
  if (shape.IsTuple()) {
    hasher->word(shape.tuple_shapes().size());
    for (const xla::Shape& element : shape.tuple_shapes()) hash_shape(element, hasher);
  } else if (shape.IsArray()) {
    hasher->word(shape.dimensions().size());
    for (int64_t i = 0; i < shape.dimensions().size(); ++i) {
      hasher->word(shape.dimensions(i) * 2 + shape.is_dynamic_dimension(i));
    }
    if (shape.has_layout()) {
      for (int64_t dimension : shape.layout().minor_to_major()) hasher->word(dimension);
      hasher->word(shape.layout().memory_space());
    }
  }
}

// Opcodes that carry nothing beyond operands and shape; printing their attributes, which is what
// costs time, would print nothing.
bool has_no_attributes(const HloInstruction& instruction) {
  switch (instruction.opcode()) {
    case HloOpcode::kAdd:
    case HloOpcode::kAnd:
    case HloOpcode::kBitcast:
    case HloOpcode::kBitcastConvert:
    case HloOpcode::kClamp:
    case HloOpcode::kConvert:
    case HloOpcode::kCopy:
    case HloOpcode::kDivide:
    case HloOpcode::kMaximum:
    case HloOpcode::kMinimum:
    case HloOpcode::kMultiply:
    case HloOpcode::kNegate:
    case HloOpcode::kNot:
    case HloOpcode::kOr:
    case HloOpcode::kPower:
    case HloOpcode::kRemainder:
    case HloOpcode::kSelect:
    case HloOpcode::kShiftLeft:
    case HloOpcode::kShiftRightArithmetic:
    case HloOpcode::kShiftRightLogical:
    case HloOpcode::kSubtract:
    case HloOpcode::kTuple:
    case HloOpcode::kXor:
      return !instruction.has_sharding() && !instruction.has_frontend_attributes() &&
             !instruction.has_backend_config();
    default:
      return false;
  }
}

const xla::HloPrintOptions& attribute_options() {
  static const auto* options = new xla::HloPrintOptions(
      xla::HloPrintOptions::Fingerprint()
          .set_print_subcomputation_mode(
              xla::HloPrintOptions::PrintSubcomputationMode::kOff)
          .set_print_backend_config(true));
  return *options;
}

using Contents = absl::flat_hash_map<const HloComputation*, std::array<uint64_t, 2>>;

// What an instruction is, apart from its opcode, its shape and what it reads.
void hash_attributes(const HloInstruction& instruction, const Contents& called_by_content,
                     Hasher* hasher) {
  if (has_no_attributes(instruction)) return;
  for (const HloComputation* called : instruction.called_computations()) {
    hasher->words(called_by_content.at(called));
  }
  switch (instruction.opcode()) {
    case HloOpcode::kConstant: {
      const auto& literal = xla::Cast<xla::HloConstantInstruction>(&instruction)->literal();
      if (literal.shape().IsArray()) {
        hasher->bytes({static_cast<const char*>(literal.untyped_data()),
                       static_cast<size_t>(literal.size_bytes())});
      } else {
        hasher->bytes(literal.ToString());
      }
      break;
    }
    case HloOpcode::kParameter:
      hasher->word(instruction.parameter_number());
      break;
    case HloOpcode::kGetTupleElement:
      hasher->word(instruction.tuple_index());
      break;
    case HloOpcode::kCustomCall:
      hasher->bytes(instruction.custom_call_target());
      break;
    default:
      break;
  }
  HashPrinter printer(hasher);
  HloInstruction::AttributePrinter attributes([&]() -> xla::Printer* {
    hasher->word(0xa7);
    return &printer;
  });
  instruction.PrintExtraAttributes(attributes, attribute_options());
  if (instruction.has_backend_config()) hasher->bytes(instruction.raw_backend_config_string());
}

// The content of a computation, whatever its instructions are called and in whichever order the
// module keeps them: instructions are numbered as a walk from the root along the operands meets
// them. Instructions that the root does not need are walked to from those that nobody reads,
// each walk by itself, and enter as a sum.
class ComputationHash {
 public:
  explicit ComputationHash(const Contents& called) : called_(called) {}

  std::array<uint64_t, 2> of(const HloComputation& computation) {
    Hasher hasher;
    walk(computation.root_instruction(), &hasher);
    uint32_t needed = next_;
    if (needed == computation.instruction_count()) return hasher.value();

    uint64_t low = 0, high = 0;
    for (const HloInstruction* instruction : computation.instructions()) {
      if (number(instruction) != kUnseen || !instruction->users().empty()) continue;
      Hasher unneeded;
      std::vector<const HloInstruction*> met = walk(instruction, &unneeded);
      low += unneeded.value()[0];
      high += unneeded.value()[1];
      for (const HloInstruction* other : met) numbers_[other->local_id()] = kUnseen;
      next_ = needed;
    }
    hasher.words({low, high});
    return hasher.value();
  }

 private:
  static constexpr uint32_t kUnseen = 0;
  static constexpr uint32_t kWaiting = ~uint32_t{0};

  uint32_t& number(const HloInstruction* instruction) {
    size_t id = instruction->local_id();
    if (id >= numbers_.size()) numbers_.resize(std::max(id + 1, numbers_.size() * 2), kUnseen);
    return numbers_[id];
  }

  // Hashes what is reachable and not yet numbered, operands first. Returns it.
  std::vector<const HloInstruction*> walk(const HloInstruction* root, Hasher* hasher) {
    std::vector<const HloInstruction*> met;
    std::vector<const HloInstruction*> stack = {root};
    while (!stack.empty()) {
      const HloInstruction* instruction = stack.back();
      uint32_t state = number(instruction);
      if (state == kUnseen) {
        number(instruction) = kWaiting;
        auto later = [&](const HloInstruction* before) {
          if (number(before) == kUnseen) stack.push_back(before);
        };
        for (const HloInstruction* before : instruction->control_predecessors()) later(before);
        for (int64_t i = instruction->operand_count() - 1; i >= 0; --i) {
          later(instruction->operand(i));
        }
        continue;
      }
      stack.pop_back();
      if (state != kWaiting) continue;
      hash(*instruction, hasher);
      number(instruction) = ++next_;
      met.push_back(instruction);
    }
    return met;
  }

  void hash(const HloInstruction& instruction, Hasher* hasher) {
    hasher->word(static_cast<uint64_t>(instruction.opcode()) << 32 | instruction.operand_count());
    hash_shape(instruction.shape(), hasher);
    for (const HloInstruction* operand : instruction.operands()) hasher->word(number(operand));
    for (const HloInstruction* before : instruction.control_predecessors()) {
      hasher->word(uint64_t{0xb0} << 32 | number(before));
    }
    hash_attributes(instruction, called_, hasher);
  }

  const Contents& called_;
  std::vector<uint32_t> numbers_;
  uint32_t next_ = 0;
};


// What was found out of an instruction, wherever it stands.
struct Facts {
  bool shapes_are_right = false;
  std::optional<std::array<double, 3>> cost;
};

using Key = std::array<uint64_t, 2>;

// Beyond so many kinds of instructions everything is forgotten, which bounds the memory.
constexpr size_t kMostFacts = 1 << 20;

absl::flat_hash_map<Key, Facts>& facts() {
  static auto* facts = new absl::flat_hash_map<Key, Facts>();
  if (facts->size() > kMostFacts) facts->clear();
  return *facts;
}

// Whether the verifier's check of an instruction looks no further than at the shapes it reads.
// Pairs that belong together, such as the start and the end of something asynchronous, look at each
// other.
bool is_checked_by_itself(const HloInstruction& instruction) {
  switch (instruction.opcode()) {
    case HloOpcode::kAsyncStart:
    case HloOpcode::kAsyncUpdate:
    case HloOpcode::kAsyncDone:
    case HloOpcode::kAllGatherStart:
    case HloOpcode::kAllGatherDone:
    case HloOpcode::kAllReduceStart:
    case HloOpcode::kAllReduceDone:
    case HloOpcode::kCollectivePermuteStart:
    case HloOpcode::kCollectivePermuteDone:
    case HloOpcode::kCopyStart:
    case HloOpcode::kCopyDone:
    case HloOpcode::kSend:
    case HloOpcode::kSendDone:
    case HloOpcode::kRecv:
    case HloOpcode::kRecvDone:
    case HloOpcode::kFusion:
    case HloOpcode::kDomain:
    case HloOpcode::kCustomCall:
    case HloOpcode::kBitcast:
      return false;
    default:
      return true;
  }
}

// A walk over the module that finds its exact identity, and the key of every instruction.
class Look {
 public:
  explicit Look(const HloModule& hlo) {
    for (const HloComputation* computation : hlo.MakeComputationPostOrder()) {
      contents_.emplace(computation, look_at(*computation));
    }
    Hasher hasher;
    for (const HloComputation* computation : hlo.computations()) {
      auto content = contents_.find(computation);
      if (content == contents_.end()) continue;
      hasher.words(content->second);
      hasher.word(computation->caller_instructions().size());
    }
    hasher.words(contents_.at(hlo.entry_computation()));
    hasher.bytes(hlo.input_output_alias_config().ToString());
    hasher.word(hlo.has_schedule());
    exact_ = hasher.value();
  }

  std::array<uint64_t, 2> exact() const { return exact_; }
  const std::vector<std::pair<const HloInstruction*, Key>>& keys() const { return keys_; }

 private:
  // As the computation lies in memory: its instructions in the order of its list, each with the
  // order of its users and the rank of its id, which passes sort and walk by.
  std::array<uint64_t, 2> look_at(const HloComputation& computation) {
    std::vector<std::pair<int64_t, uint32_t>> ids;
    uint32_t next = 0;
    for (const HloInstruction* instruction : computation.instructions()) {
      size_t id = instruction->local_id();
      if (id >= numbers_.size()) {
        numbers_.resize(std::max(id + 1, numbers_.size() * 2));
        shapes_.resize(numbers_.size());
      }
      numbers_[id] = ++next;
      Hasher shape;
      hash_shape(instruction->shape(), &shape);
      shapes_[id] = shape.value();
      ids.emplace_back(instruction->unique_id(), next);
    }
    auto number = [&](const HloInstruction* instruction) {
      return numbers_[instruction->local_id()];
    };
    Hasher hasher;
    for (const HloInstruction* instruction : computation.instructions()) {
      Hasher own;
      own.word(static_cast<uint64_t>(instruction->opcode()) << 32 | instruction->operand_count());
      own.words(shapes_[instruction->local_id()]);
      for (const HloInstruction* operand : instruction->operands()) {
        own.words(shapes_[operand->local_id()]);
      }
      hash_attributes(*instruction, contents_, &own);
      keys_.emplace_back(instruction, own.value());
      hasher.words(own.value());
      for (const HloInstruction* operand : instruction->operands()) hasher.word(number(operand));
      for (const HloInstruction* before : instruction->control_predecessors()) {
        hasher.word(uint64_t{0xb0} << 32 | number(before));
      }
      for (const HloInstruction* user : instruction->users()) hasher.word(number(user));
    }
    std::sort(ids.begin(), ids.end());
    for (const auto& [id, position] : ids) hasher.word(position);
    hasher.word(number(computation.root_instruction()));
    return hasher.value();
  }

  Contents contents_;
  std::vector<uint32_t> numbers_;
  std::vector<std::array<uint64_t, 2>> shapes_;
  std::vector<std::pair<const HloInstruction*, Key>> keys_;
  std::array<uint64_t, 2> exact_;
};

using Unknown = absl::flat_hash_set<const HloInstruction*>;

// Checks only the shapes of instructions that were never checked.
class ShapesOfUnknown : public xla::CpuGpuShapeVerifier {
 public:
  ShapesOfUnknown(const xla::HloVerifierOpts& options, const Unknown& unknown)
      : xla::CpuGpuShapeVerifier(options), unknown_(unknown) {}
  bool ShouldProcessNode(HloInstruction* instruction) override {
    return unknown_.contains(instruction);
  }

 private:
  const Unknown& unknown_;
};

class VerifyUnknown : public xla::TargetVerifierMetadata {
 public:
  explicit VerifyUnknown(const Unknown& unknown)
      : xla::TargetVerifierMetadata(xla::HloVerifierOpts{}), unknown_(unknown) {}
  std::unique_ptr<xla::ShapeVerifier> GetVerifier() const override {
    return std::make_unique<ShapesOfUnknown>(GetVerifierOpts(), unknown_);
  }

 private:
  const Unknown& unknown_;
};

void verify_with(Module& module, const Look& look) {
  auto& known = facts();
  Unknown unknown;
  std::vector<Key> learnt;
  for (const auto& [instruction, key] : look.keys()) {
    if (!is_checked_by_itself(*instruction)) {
      unknown.insert(instruction);
    } else if (auto fact = known.find(key); fact == known.end() || !fact->second.shapes_are_right) {
      unknown.insert(instruction);
      learnt.push_back(key);
    }
  }
  xla::HloVerifier verifier(std::make_unique<VerifyUnknown>(unknown), "xla-gym");
  throw_if_error(verifier.Run(module.hlo.get()).status());
  for (const Key& key : learnt) known[key].shapes_are_right = true;
}

// The sum over the instructions of the entry, each as XLA's cost analysis sees it.
Cost cost_with(const Module& module, const Look& look) {
  auto& known = facts();
  const HloComputation* entry = module.hlo->entry_computation();
  std::optional<xla::HloCostAnalysis> analysis;
  std::array<double, 3> sum = {};
  for (const auto& [instruction, key] : look.keys()) {
    if (instruction->parent() != entry) continue;
    std::optional<std::array<double, 3>>& cost = known[key].cost;
    if (!cost.has_value()) {
      if (!analysis.has_value()) analysis.emplace();
      throw_if_error(analysis->Preprocess(instruction));
      throw_if_error(
          instruction->Visit(static_cast<xla::ConstDfsHloVisitor*>(&*analysis)));
      throw_if_error(analysis->Postprocess(instruction));
      cost = {static_cast<double>(analysis->flop_count(*instruction)),
              static_cast<double>(analysis->transcendental_count(*instruction)),
              static_cast<double>(analysis->bytes_accessed(*instruction))};
    }
    for (int i = 0; i < 3; ++i) sum[i] += (*cost)[i];
  }
  return Cost{sum[0], sum[1], sum[2]};
}

}  // namespace

std::array<uint64_t, 2> fingerprint(const Module& module) {
  // Called computations come before their callers here, and enter the callers by content.
  absl::flat_hash_map<const HloComputation*, std::array<uint64_t, 2>> contents;
  uint64_t low = 0, high = 0;
  for (const HloComputation* computation : module.hlo->MakeComputationPostOrder()) {
    auto content = ComputationHash(contents).of(*computation);
    contents.emplace(computation, content);
    // Two equal computations differ from a shared one: each counts, with its number of callers.
    Hasher each;
    each.words(content);
    each.word(computation->caller_instructions().size());
    low += each.value()[0];
    high += each.value()[1];
  }
  Hasher hasher;
  hasher.words(contents[module.hlo->entry_computation()]);
  hasher.words({low, high});
  hasher.bytes(module.hlo->input_output_alias_config().ToString());
  hasher.word(module.hlo->has_schedule());
  return hasher.value();
}

std::vector<std::pair<const HloInstruction*, std::array<uint64_t, 2>>> instruction_keys(
    const HloModule& hlo) {
  return Look(hlo).keys();
}

void verify(Module& module) { verify_with(module, Look(*module.hlo)); }

Together look(Module& module, bool cost, bool verdict) {
  Look look(*module.hlo);
  Together seen{};
  seen.exact = look.exact();
  if (cost) {
    try {
      seen.cost = cost_with(module, look);
    } catch (const std::exception& error) {
      seen.cost_error = error.what();
    }
  }
  if (verdict) {
    try {
      verify_with(module, look);
    } catch (const std::exception& error) {
      seen.verdict = error.what();
    }
  }
  return seen;
}

}  // namespace xla_gym
