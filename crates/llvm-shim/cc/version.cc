// A number that stays the same while nobody touches the program: cheaper than an identity, for passes
// that say that they changed nothing. It is made of addresses, so that it means nothing elsewhere.

#include "shim.h"

#include <atomic>

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "subclass.h"

using namespace llvm;

namespace {

class Version {
 public:
  void add(uint64_t word) {
    state = (state ^ word) * 0x9E3779B97F4A7C15u;
    state ^= state >> 29;
  }
  void add(const void *address) { add(reinterpret_cast<uintptr_t>(address)); }

  template <typename Object>
  void add_metadata(const Object &object) {
    all.clear();
    object.getAllMetadata(all);
    for (auto [kind, node] : all) add(kind), add(node);
  }

  void add(const GlobalValue &global) {
    add(&global);
    add(uint64_t(global.getLinkage()) | global.getVisibility() << 8 |
        uint64_t(global.getUnnamedAddr()) << 16 | uint64_t(global.isDSOLocal()) << 24);
    for (const Use &operand : global.operands()) add(operand.get());
    if (const auto *object = dyn_cast<GlobalObject>(&global)) {
      add(object->getAlign() ? object->getAlign()->value() : 0);
      if (object->hasMetadata()) add_metadata(*object);
    }
  }

  void add(const Instruction &instruction) {
    add(&instruction);
    add(instruction.getOpcode() | uint64_t(xg::Subclass::data(instruction)) << 8 |
        uint64_t(instruction.getRawSubclassOptionalData()) << 24);
    add(instruction.getType());
    for (const Use &operand : instruction.operands()) add(operand.get());
    if (const auto *phi = dyn_cast<PHINode>(&instruction)) {
      for (const BasicBlock *block : phi->blocks()) add(block);
    } else if (const auto *call = dyn_cast<CallBase>(&instruction)) {
      add(call->getAttributes().getRawPointer());
    } else if (const auto *address = dyn_cast<GetElementPtrInst>(&instruction)) {
      add(address->getSourceElementType());
    } else if (const auto *slot = dyn_cast<AllocaInst>(&instruction)) {
      add(slot->getAllocatedType());
    }
    if (instruction.hasMetadata()) add_metadata(instruction);
  }

  uint64_t state = 0;

 private:
  SmallVector<std::pair<unsigned, MDNode *>, 4> all;
};

}  // namespace

extern "C" uint64_t xg_version(LLVMModuleRef ref) {
  const Module &module = *unwrap(ref);
  // Records for debuggers have many forms: such a program always counts as touched.
  static std::atomic<uint64_t> touched{0};
  if (module.getNamedMetadata("llvm.dbg.cu")) return ++touched;
  Version version;
  for (const GlobalValue &global : module.global_values()) version.add(global);
  for (const GlobalVariable &variable : module.globals())
    version.add(variable.getAttributes().begin());
  for (const NamedMDNode &node : module.named_metadata())
    for (const MDNode *operand : node.operands()) version.add(operand);
  for (const Function &function : module) {
    version.add(function.getAttributes().getRawPointer());
    for (const BasicBlock &block : function) {
      version.add(&block);
      for (const Instruction &instruction : block) version.add(instruction);
    }
  }
  return version.state;
}
