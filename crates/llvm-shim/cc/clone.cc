// Copies a module exactly.

#include "shim.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace {

// CloneModule makes the uses of a value in the order in which it meets them, and passes walk uses
// in order. This puts those of the copy in the order of the original's.
void restore_use_order(const Value &original, Value &copy, const ValueToValueMapTy &map) {
  if (original.use_empty() || original.hasOneUse()) return;
  DenseMap<std::pair<const User *, unsigned>, unsigned> wanted;
  unsigned place = 0;
  for (const Use &use : original.uses()) {
    auto found = map.find(use.getUser());
    // A constant is the same in both, unless it names something of the module.
    const Value *user = found == map.end() ? use.getUser() : found->second;
    if (!user) continue;
    wanted[{cast<User>(user), use.getOperandNo()}] = place++;
  }
  auto rank = [&](const Use &use) {
    auto found = wanted.find({use.getUser(), use.getOperandNo()});
    return found == wanted.end() ? place : found->second;
  };
  copy.sortUseList([&](const Use &a, const Use &b) { return rank(a) < rank(b); });
}

}  // namespace

extern "C" LLVMModuleRef xg_clone(LLVMModuleRef ref) {
  const Module &original = *unwrap(ref);
  ValueToValueMapTy map;
  std::unique_ptr<Module> copy = CloneModule(original, map);
  auto restore = [&](const Value &value) {
    auto found = map.find(&value);
    if (found != map.end() && found->second) restore_use_order(value, *found->second, map);
  };
  for (const GlobalValue &global : original.global_values()) restore(global);
  for (const Function &function : original) {
    for (const Argument &argument : function.args()) restore(argument);
    for (const BasicBlock &block : function) {
      restore(block);
      for (const Instruction &instruction : block) restore(instruction);
    }
  }
  return wrap(copy.release());
}
