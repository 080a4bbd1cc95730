// Counts of a program: opcodes, the 70 of InstCount, the 56 of Autophase.
//
// What debuggers need (calls of llvm.dbg.*) is not counted: it computes nothing.

#include "shim.h"

#include <algorithm>

#include "llvm/Analysis/CFG.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

constexpr unsigned kOpcodes = 67;
static_assert(Instruction::OtherOpsEnd == kOpcodes + 1, "another LLVM has other opcodes");

bool counts(const Instruction &instruction) { return !isa<DbgInfoIntrinsic>(instruction); }

template <typename Count>
void count_opcodes(const Function &function, Count *out) {
  for (const BasicBlock &block : function)
    for (const Instruction &instruction : block)
      if (counts(instruction)) ++out[instruction.getOpcode() - 1];
}

xg_counts sizes(const Module &module) {
  xg_counts sizes = {0, 0, 0};
  for (const Function &function : module) {
    if (function.isDeclaration()) continue;
    ++sizes.functions;
    for (const BasicBlock &block : function) {
      ++sizes.blocks;
      for (const Instruction &instruction : block) sizes.instructions += counts(instruction);
    }
  }
  return sizes;
}

// In the order of the features' names, features.rs.
struct Autophase {
  uint64_t blocks_many_phi_args, blocks_few_phi_args;
  uint64_t one_pred, one_pred_one_succ, one_pred_two_succ, one_succ;
  uint64_t two_pred, two_pred_one_succ, two_each, two_succ, more_preds;
  uint64_t blocks_few_phis, blocks_many_phis, blocks_no_phi, begin_phi;
  uint64_t branches, return_int, critical_edges, edges;
  uint64_t const_32, const_64, const_zero, const_one;
  uint64_t unconditional, binary_const_arg;
  uint64_t ashr, add, alloca_, and_, block_mid, block_low, bitcast, br, call, gep, icmp, lshr, load;
  uint64_t mul, or_, phi, ret, sext, select, shl, store, sub, trunc, xor_, zext;
  uint64_t blocks, instructions, memory, functions, phi_args, unary;
};
static_assert(sizeof(Autophase) == 56 * sizeof(uint64_t), "Autophase has 56 features");

void add_block(const BasicBlock &block, Autophase &sum) {
  ++sum.blocks;
  if (const Instruction *end = block.getTerminator()) {
    unsigned successors = end->getNumSuccessors();
    unsigned predecessors = pred_size(&block);
    sum.edges += successors;
    for (unsigned which = 0; which < successors; ++which)
      sum.critical_edges += isCriticalEdge(end, which);
    sum.one_succ += successors == 1;
    sum.two_succ += successors == 2;
    sum.one_pred += predecessors == 1;
    sum.two_pred += predecessors == 2;
    sum.more_preds += predecessors > 2;
    sum.one_pred_one_succ += predecessors == 1 && successors == 1;
    sum.one_pred_two_succ += predecessors == 1 && successors == 2;
    sum.two_pred_one_succ += predecessors == 2 && successors == 1;
    sum.two_each += predecessors == 2 && successors == 2;
  }
  unsigned phis = 0, phi_args = 0, length = 0;
  for (const Instruction &instruction : block) {
    if (!counts(instruction)) continue;
    ++length;
    for (const Use &operand : instruction.operands()) {
      const auto *constant = dyn_cast<ConstantInt>(operand.get());
      if (!constant) continue;
      sum.const_32 += constant->getBitWidth() == 32;
      sum.const_64 += constant->getBitWidth() == 64;
      sum.const_zero += constant->isZero();
      sum.const_one += constant->isOne();
    }
    if (const auto *phi = dyn_cast<PHINode>(&instruction)) {
      sum.begin_phi += &instruction == &block.front();
      ++phis;
      phi_args += phi->getNumIncomingValues();
    } else if (const auto *branch = dyn_cast<BranchInst>(&instruction)) {
      ++sum.branches;
      sum.unconditional += branch->isUnconditional();
    } else if (const auto *call = dyn_cast<CallInst>(&instruction)) {
      const Function *callee = call->getCalledFunction();
      sum.return_int += callee && callee->getReturnType()->isIntegerTy();
    } else if (isa<BinaryOperator>(instruction)) {
      sum.binary_const_arg +=
          isa<Constant>(instruction.getOperand(0)) || isa<Constant>(instruction.getOperand(1));
    }
    sum.unary += isa<UnaryInstruction>(instruction);
  }
  sum.phi_args += phi_args;
  sum.blocks_no_phi += phis == 0;
  sum.blocks_few_phis += phis > 0 && phis <= 3;
  sum.blocks_many_phis += phis > 3;
  sum.blocks_many_phi_args += phi_args > 5;
  sum.blocks_few_phi_args += phi_args > 0 && phi_args <= 5;
  sum.block_low += length < 15;
  sum.block_mid += length >= 15 && length <= 500;
  sum.instructions += length;
}

void add_opcodes(const uint64_t *opcodes, Autophase &sum) {
  auto of = [&](unsigned opcode) { return opcodes[opcode - 1]; };
  sum.ashr = of(Instruction::AShr);
  sum.add = of(Instruction::Add);
  sum.alloca_ = of(Instruction::Alloca);
  sum.and_ = of(Instruction::And);
  sum.bitcast = of(Instruction::BitCast);
  sum.br = of(Instruction::Br);
  sum.call = of(Instruction::Call);
  sum.gep = of(Instruction::GetElementPtr);
  sum.icmp = of(Instruction::ICmp);
  sum.lshr = of(Instruction::LShr);
  sum.load = of(Instruction::Load);
  sum.mul = of(Instruction::Mul);
  sum.or_ = of(Instruction::Or);
  sum.phi = of(Instruction::PHI);
  sum.ret = of(Instruction::Ret);
  sum.sext = of(Instruction::SExt);
  sum.select = of(Instruction::Select);
  sum.shl = of(Instruction::Shl);
  sum.store = of(Instruction::Store);
  sum.sub = of(Instruction::Sub);
  sum.trunc = of(Instruction::Trunc);
  sum.xor_ = of(Instruction::Xor);
  sum.zext = of(Instruction::ZExt);
  sum.memory = sum.gep + sum.load + sum.store + sum.call + of(Instruction::Invoke) + sum.alloca_;
}

}  // namespace

extern "C" {

xg_counts xg_count(LLVMModuleRef module) { return sizes(*unwrap(module)); }

void xg_opcodes(LLVMModuleRef module, uint32_t out[67]) {
  std::fill_n(out, kOpcodes, 0);
  for (const Function &function : *unwrap(module)) count_opcodes(function, out);
}

void xg_inst_count(LLVMModuleRef module, uint64_t out[70]) {
  std::fill_n(out, 70, 0);
  for (const Function &function : *unwrap(module)) {
    if (function.isDeclaration()) continue;
    ++out[2];
    out[1] += function.size();
    count_opcodes(function, out + 3);
  }
  for (unsigned opcode = 0; opcode < kOpcodes; ++opcode) out[0] += out[3 + opcode];
}

void xg_autophase(LLVMModuleRef module, uint64_t out[56]) {
  Autophase sum = {};
  uint64_t opcodes[kOpcodes] = {};
  for (const Function &function : *unwrap(module)) {
    if (function.isDeclaration()) continue;
    ++sum.functions;
    count_opcodes(function, opcodes);
    for (const BasicBlock &block : function) add_block(block, sum);
  }
  add_opcodes(opcodes, sum);
  std::copy_n(reinterpret_cast<const uint64_t *>(&sum), 56, out);
}

void xg_opcodes_by_function(LLVMModuleRef module,
                            void (*each)(void *, const char *, size_t, const uint32_t *),
                            void *state) {
  for (const Function &function : *unwrap(module)) {
    if (function.isDeclaration()) continue;
    uint32_t opcodes[kOpcodes] = {};
    count_opcodes(function, opcodes);
    StringRef name = function.getName();
    each(state, name.data(), name.size(), opcodes);
  }
}
}
