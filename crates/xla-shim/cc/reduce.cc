// A smaller program with the same kinds of places: where a large one repeats itself, layer after
// layer, only a few of the repetitions stay. Passes do to it what they do to the whole, in a
// fraction of the time. It is for searching only: what it computes means nothing.

#include <algorithm>
#include <cstring>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_clone_context.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_opcode.h"

namespace xla_gym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;

namespace {

// How far two places have to look alike, in steps along operands and users. Where layers begin and end,
// places within that distance are all different, and stay.
constexpr int kDepth = 6;

// How many places that look alike stay.
constexpr int kRepetitions = 2;

// What has more users than this is shared by the layers, and belongs to none.
constexpr size_t kShared = 6;

uint64_t mixed(uint64_t a, uint64_t b) {
  __uint128_t product = static_cast<__uint128_t>(a ^ 0x9e3779b97f4a7c15ull) * (b | 1);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (b << 9);
}

class Reduction {
 public:
  explicit Reduction(const HloModule& hlo)
      : entry_(*hlo.entry_computation()), order_(entry_.MakeInstructionPostOrder()) {
    for (size_t i = 0; i < order_.size(); ++i) places_[order_[i]] = i;
    kept_.resize(order_.size());
    find_kinds(hlo);
    keep_some_of_each_kind();
    close();
  }

  std::unique_ptr<HloModule> module() const {
    xla::HloModuleConfig config;
    config.set_debug_options(default_debug_options());
    auto reduced = std::make_unique<HloModule>("reduced", config);
    xla::HloCloneContext context(reduced.get(), "");
    HloComputation::Builder builder("main");
    absl::flat_hash_map<const HloInstruction*, HloInstruction*> copies;
    int64_t parameters = 0;
    std::vector<HloInstruction*> outputs;
    for (size_t i = 0; i < order_.size(); ++i) {
      const HloInstruction* instruction = order_[i];
      if (!kept_[i]) continue;
      std::vector<HloInstruction*> operands;
      for (const HloInstruction* operand : instruction->operands()) {
        HloInstruction*& copy = copies[operand];
        if (copy == nullptr) {
          copy = builder.AddInstruction(HloInstruction::CreateParameter(
              parameters, operand->shape(), "p" + std::to_string(parameters)));
          ++parameters;
        }
        operands.push_back(copy);
      }
      HloInstruction* copy = builder.AddInstruction(
          instruction->CloneWithNewOperands(instruction->shape(), operands, &context));
      // Where it came from is told by tables of the module that it leaves.
      copy->set_metadata(xla::OpMetadata());
      copies[instruction] = copy;
      // What is made of constants alone, the other layers make for themselves.
      if (!constant_[i] && is_needed_outside(instruction)) outputs.push_back(copy);
    }
    HloInstruction* root = builder.AddInstruction(HloInstruction::CreateTuple(outputs));
    reduced->AddEntryComputation(builder.Build(root));
    return reduced;
  }

 private:
  bool is_root_tuple(const HloInstruction* instruction) const {
    return instruction == entry_.root_instruction() && instruction->opcode() == HloOpcode::kTuple;
  }

  // Parameters are made anew where they are needed, and so is the tuple of outputs.
  bool can_be_kept(const HloInstruction* instruction) const {
    return instruction->opcode() != HloOpcode::kParameter && !is_root_tuple(instruction);
  }

  bool is_kept(const HloInstruction* instruction) const {
    return kept_[places_.at(instruction)];
  }

  bool is_needed_outside(const HloInstruction* instruction) const {
    if (instruction == entry_.root_instruction()) return true;
    return std::any_of(instruction->users().begin(), instruction->users().end(),
                       [&](const HloInstruction* user) { return !is_kept(user); });
  }

  // What each place looks like from nearby: a few rounds in which it takes in what its neighbours
  // look like (Weisfeiler and Leman).
  void find_kinds(const HloModule& hlo) {
    kinds_.resize(order_.size());
    for (const auto& [instruction, key] : instruction_keys(hlo)) {
      auto place = places_.find(instruction);
      if (place != places_.end()) kinds_[place->second] = key[0];
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      // Which of the parameters it is does not matter.
      if (order_[i]->opcode() == HloOpcode::kParameter) {
        kinds_[i] = std::hash<std::string>()(order_[i]->shape().ToString());
      }
    }
    std::vector<uint64_t> users;
    for (int round = 0; round < kDepth; ++round) {
      std::vector<uint64_t> next(order_.size());
      for (size_t i = 0; i < order_.size(); ++i) {
        uint64_t kind = kinds_[i];
        for (const HloInstruction* operand : order_[i]->operands()) {
          kind = mixed(kind, kinds_[places_.at(operand)]);
        }
        if (!is_shared(order_[i])) {
          users.clear();
          for (const HloInstruction* user : order_[i]->users()) {
            users.push_back(is_root_tuple(user) ? 1 : kinds_[places_.at(user)]);
          }
          std::sort(users.begin(), users.end());
          for (uint64_t user : users) kind = mixed(kind, user);
        }
        next[i] = kind;
      }
      kinds_ = std::move(next);
    }
  }

  bool is_shared(const HloInstruction* instruction) const {
    return instruction->operand_count() == 0 || instruction->user_count() > kShared;
  }

  std::vector<size_t> neighbours(size_t place) const {
    std::vector<size_t> found;
    auto add = [&](const HloInstruction* other) {
      if (can_be_kept(other) && !is_shared(other)) found.push_back(places_.at(other));
    };
    for (const HloInstruction* operand : order_[place]->operands()) add(operand);
    if (!is_shared(order_[place])) {
      for (const HloInstruction* user : order_[place]->users()) add(user);
    }
    return found;
  }

  // What is rare stays; the rest grows from there, what has most of its neighbours first, so that
  // whole layers stay and not pieces of all of them.
  void keep_some_of_each_kind() {
    absl::flat_hash_map<uint64_t, int> all, left;
    for (uint64_t kind : kinds_) {
      ++all[kind];
      left[kind] = kRepetitions;
    }
    std::priority_queue<std::tuple<double, int64_t, size_t>> waiting;
    auto offer = [&](size_t place) {
      std::vector<size_t> near = neighbours(place);
      int64_t kept = std::count_if(near.begin(), near.end(), [&](size_t i) { return kept_[i]; });
      // Of equals, the first.
      waiting.emplace(static_cast<double>(kept) / std::max<size_t>(near.size(), 1),
                      -static_cast<int64_t>(place), place);
    };
    auto keep = [&](size_t place) {
      if (kept_[place] || !can_be_kept(order_[place]) || left[kinds_[place]] <= 0) return;
      --left[kinds_[place]];
      kept_[place] = true;
      for (size_t near : neighbours(place)) {
        if (!kept_[near] && left[kinds_[near]] > 0) offer(near);
      }
    };
    auto grow = [&] {
      while (!waiting.empty()) {
        size_t place = std::get<2>(waiting.top());
        waiting.pop();
        keep(place);
      }
    };
    for (size_t i = 0; i < order_.size(); ++i) {
      if (all[kinds_[i]] <= kRepetitions) keep(i);
    }
    grow();
    for (size_t i = 0; i < order_.size(); ++i) {
      keep(i);
      grow();
    }
  }

  // What goes with what stays: constants and what is made of them alone, since passes fold it, and
  // the producers and elements of tuples, so that none crosses the border.
  void close() {
    constant_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      const HloInstruction* instruction = order_[i];
      constant_[i] = can_be_kept(instruction) && !instruction->HasSideEffect() &&
                    std::all_of(instruction->operands().begin(), instruction->operands().end(),
                                [&](const HloInstruction* operand) {
                                  return constant_[places_.at(operand)];
                                });
      if (instruction->opcode() == HloOpcode::kGetTupleElement &&
          is_kept(instruction->operand(0))) {
        kept_[i] = true;
      }
    }
    for (size_t i = order_.size(); i-- > 0;) {
      if (!kept_[i]) continue;
      for (const HloInstruction* operand : order_[i]->operands()) {
        size_t place = places_.at(operand);
        if (constant_[place] || (operand->shape().IsTuple() && can_be_kept(operand))) {
          kept_[place] = true;
        }
      }
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i]->opcode() == HloOpcode::kGetTupleElement && is_kept(order_[i]->operand(0))) {
        kept_[i] = true;
      }
    }
  }

  const HloComputation& entry_;
  std::vector<HloInstruction*> order_;
  absl::flat_hash_map<const HloInstruction*, size_t> places_;
  std::vector<uint64_t> kinds_;
  std::vector<bool> kept_;
  std::vector<bool> constant_;
};

}  // namespace

Owned reduce(const Module& module) {
  if (partitions(*module.hlo) > 1 || module.hlo->config().replica_count() > 1) {
    throw std::runtime_error("it is meant for several devices");
  }
  auto reduced = std::make_unique<Module>();
  reduced->hlo = Reduction(*module.hlo).module();
  return reduced;
}

}  // namespace xla_gym
