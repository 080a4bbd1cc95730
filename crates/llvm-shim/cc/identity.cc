// Two identities of a program. Both are hashes over a stream of numbers that says what the program
// consists of; no address takes part, so that they are the same in every process.
//
// The *content* says what the program computes: functions and variables by name, instructions with
// their types, flags, attributes and operands. Left out: names of local values and of types, all
// metadata and debug records, the order of functions and variables in the module, and the order of
// blocks in a function (they are visited along the flow of control).
//
// The *exact* identity is all that a pass can see: the content in the order in which LLVM keeps it,
// metadata, and the order of the uses of every value. Programs that were compiled for a debugger
// are hashed as bitcode, which takes some times longer, because their metadata has many forms.

#include "shim.h"

#include <algorithm>
#include <array>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "subclass.h"

using namespace llvm;

namespace {

using Words = std::vector<uint64_t>;

uint64_t hash_text(StringRef text) { return xxh3_64bits(text); }

uint64_t hash_words(ArrayRef<uint64_t> words) {
  return xxh3_64bits(
      ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(words.data()), words.size() * 8));
}

xg_hash hash_long(const Words &words) {
  auto hash = xxh3_128bits(
      ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(words.data()), words.size() * 8));
  return {hash.low64, hash.high64};
}

class Identity {
 public:
  Identity(const Module &module, bool exact) : module(module), exact(exact) {
    if (!exact) return;
    SmallVector<StringRef, 64> names;
    module.getContext().getMDKindNames(names);
    // Numbers of kinds that LLVM does not know beforehand depend on what was read first.
    for (StringRef name : names) kinds.push_back(hash_text(name));
  }

  xg_hash hash() {
    unsigned unnamed = 0;
    for (const GlobalValue &global : module.global_values()) {
      globals[&global] = global.hasName() ? hash_text(global.getName()) : ++unnamed;
      if (exact) rank_uses(global);
    }
    std::vector<std::array<uint64_t, 2>> parts;
    auto part = [&](auto &&write) {
      out.clear();
      write();
      xg_hash hash = hash_long(out);
      parts.push_back({hash.low, hash.high});
    };
    for (const GlobalVariable &variable : module.globals()) part([&] { write(variable); });
    for (const GlobalAlias &alias : module.aliases())
      part([&] { write_global(alias), out.push_back(constant(alias.getAliasee())); });
    for (const GlobalIFunc &ifunc : module.ifuncs())
      part([&] { write_global(ifunc), out.push_back(constant(ifunc.getResolver())); });
    for (const Function &function : module) part([&] { write(function); });
    if (!exact) std::sort(parts.begin(), parts.end());
    out.clear();
    out.push_back(hash_text(module.getTargetTriple()));
    out.push_back(hash_text(module.getDataLayoutStr()));
    out.push_back(hash_text(module.getModuleInlineAsm()));
    for (const auto &hash : parts) out.insert(out.end(), hash.begin(), hash.end());
    if (exact) {
      out.push_back(hash_text(module.getSourceFileName()));
      for (const NamedMDNode &node : module.named_metadata()) {
        out.push_back(hash_text(node.getName()));
        for (const MDNode *operand : node.operands()) out.push_back(metadata(operand));
      }
      // Which texts a number stands for comes last: nodes may name each other in circles.
      out.insert(out.end(), nodes.begin(), nodes.end());
    }
    return hash_long(out);
  }

 private:
  // Every argument, block and instruction of a function gets a number, in the order of the stream.
  void number(const Function &function) {
    numbers.clear();
    unsigned next = 0;
    for (const Argument &argument : function.args()) numbers[&argument] = next++;
    for_each_block(function, [&](const BasicBlock &block) {
      numbers[&block] = next++;
      for (const Instruction &instruction : block)
        if (seen(instruction)) numbers[&instruction] = next++;
    });
  }

  // The users of a global value are scattered over the program. So its uses are numbered in the order
  // in which LLVM keeps them, and the numbers are written where the uses are met.
  void rank_uses(const GlobalValue &global) {
    if (global.hasOneUse()) return;
    uint32_t rank = 0;
    for (const Use &use : global.uses()) ranks[&use] = ++rank;
  }

  bool seen(const Instruction &instruction) const {
    return exact || !isa<DbgInfoIntrinsic>(instruction);
  }

  template <typename Each>
  void for_each_block(const Function &function, Each each) const {
    if (function.isDeclaration()) return;
    if (exact || function.size() == 1) {
      for (const BasicBlock &block : function) each(block);
      return;
    }
    ReversePostOrderTraversal<const Function *> order(&function);
    unsigned reached = 0;
    for (const BasicBlock *block : order) ++reached, each(*block);
    if (reached == function.size()) return;
    SmallPtrSet<const BasicBlock *, 16> done(order.begin(), order.end());
    for (const BasicBlock &block : function)
      if (!done.count(&block)) each(block);
  }

  uint64_t type(Type *type) {
    auto found = types.find(type);
    if (found != types.end()) return found->second;
    SmallVector<uint64_t, 8> words = {type->getTypeID()};
    if (auto *integer = dyn_cast<IntegerType>(type)) {
      words.push_back(integer->getBitWidth());
    } else if (auto *pointer = dyn_cast<PointerType>(type)) {
      words.push_back(pointer->getAddressSpace());
    } else if (auto *array = dyn_cast<ArrayType>(type)) {
      words.push_back(array->getNumElements());
    } else if (auto *vector = dyn_cast<VectorType>(type)) {
      words.push_back(vector->getElementCount().getKnownMinValue());
    } else if (auto *structure = dyn_cast<StructType>(type)) {
      words.push_back(structure->isPacked() | structure->isOpaque() << 1);
    } else if (auto *function = dyn_cast<FunctionType>(type)) {
      words.push_back(function->isVarArg());
    } else if (auto *target = dyn_cast<TargetExtType>(type)) {
      words.push_back(hash_text(target->getName()));
      for (unsigned parameter : target->int_params()) words.push_back(parameter);
    }
    // Pointers are opaque, so that no type contains itself.
    for (Type *part : type->subtypes()) words.push_back(this->type(part));
    return types[type] = hash_words(words);
  }

  uint64_t attributes(AttributeList list) {
    if (list.isEmpty()) return 0;
    uint64_t &known = attribute_lists[list.getRawPointer()];
    if (known) return known;
    Words words;
    for (unsigned index : list.indexes()) {
      if (!list.hasAttributesAtIndex(index)) continue;
      words.push_back(uint64_t(index) << 32);
      for (Attribute attribute : list.getAttributes(index)) {
        if (attribute.isStringAttribute()) {
          words.push_back(hash_text(attribute.getKindAsString()));
          words.push_back(hash_text(attribute.getValueAsString()));
          continue;
        }
        words.push_back(attribute.getKindAsEnum());
        if (attribute.isIntAttribute()) {
          words.push_back(attribute.getValueAsInt());
        } else if (attribute.isTypeAttribute()) {
          if (Type *value = attribute.getValueAsType()) words.push_back(type(value));
        } else if (attribute.isConstantRangeAttribute()) {
          add_range(attribute.getValueAsConstantRange(), words);
        } else if (attribute.isConstantRangeListAttribute()) {
          for (const ConstantRange &range : attribute.getValueAsConstantRangeList())
            add_range(range, words);
        }
      }
    }
    return attribute_lists[list.getRawPointer()] = hash_words(words) | 1;
  }

  template <typename List>
  static void add_number(const APInt &number, List &words) {
    words.append(number.getRawData(), number.getRawData() + number.getNumWords());
  }
  static void add_number(const APInt &number, Words &words) {
    words.insert(words.end(), number.getRawData(), number.getRawData() + number.getNumWords());
  }
  template <typename List>
  static void add_range(const ConstantRange &range, List &words) {
    add_number(range.getLower(), words);
    add_number(range.getUpper(), words);
  }

  uint64_t constant(const Constant *constant) {
    if (const auto *global = dyn_cast<GlobalValue>(constant)) return globals.lookup(global) * 2 + 1;
    if (const auto *integer = dyn_cast<ConstantInt>(constant)) {
      const APInt &value = integer->getValue();
      uint64_t words[3] = {Value::ConstantIntVal, type(integer->getType()), value.getRawData()[0]};
      if (value.getNumWords() == 1) return hash_words(words);
    }
    auto found = constants.find(constant);
    if (found != constants.end()) return found->second;
    SmallVector<uint64_t, 8> words = {constant->getValueID(), type(constant->getType())};
    if (const auto *integer = dyn_cast<ConstantInt>(constant)) {
      add_number(integer->getValue(), words);
    } else if (const auto *number = dyn_cast<ConstantFP>(constant)) {
      add_number(number->getValueAPF().bitcastToAPInt(), words);
    } else if (const auto *data = dyn_cast<ConstantDataSequential>(constant)) {
      words.push_back(hash_text(data->getRawDataValues()));
    } else if (const auto *address = dyn_cast<BlockAddress>(constant)) {
      words.push_back(globals.lookup(address->getFunction()));
      const BasicBlock *block = address->getBasicBlock();
      const Function &function = *address->getFunction();
      words.push_back(std::distance(function.begin(), block->getIterator()));
    } else if (!isa<ConstantData>(constant)) {
      words.push_back(xg::Subclass::data(*constant) | constant->getRawSubclassOptionalData() << 16);
      if (const auto *expression = dyn_cast<ConstantExpr>(constant)) {
        words.push_back(expression->getOpcode());
        if (const auto *address = dyn_cast<GEPOperator>(expression)) {
          words.push_back(type(address->getSourceElementType()));
          if (auto range = address->getInRange()) add_range(*range, words);
        }
      }
      for (const Use &operand : constant->operands())
        words.push_back(this->constant(cast<Constant>(operand.get())));
    }
    return constants[constant] = hash_words(words);
  }

  // A number for a node, whose content is written once, into `nodes`.
  uint64_t metadata(const Metadata *data) {
    if (!data) return 0;
    if (const auto *text = dyn_cast<MDString>(data)) return hash_text(text->getString());
    if (const auto *value = dyn_cast<ValueAsMetadata>(data)) return operand(*value->getValue());
    auto [place, fresh] = node_numbers.try_emplace(data, node_numbers.size() + 1);
    uint64_t number = place->second;
    if (!fresh) return number;
    SmallVector<uint64_t, 8> words = {number, data->getMetadataID()};
    if (const auto *arguments = dyn_cast<DIArgList>(data)) {
      for (const ValueAsMetadata *argument : arguments->getArgs())
        words.push_back(operand(*argument->getValue()));
    } else if (const auto *node = dyn_cast<MDNode>(data)) {
      words.push_back(node->isDistinct() | uint64_t(node->getNumOperands()) << 1);
      for (const MDOperand &part : node->operands()) words.push_back(metadata(part.get()));
    }
    nodes.insert(nodes.end(), words.begin(), words.end());
    return number;
  }

  template <typename Object>
  void write_metadata(const Object &object) {
    if (!exact || !object.hasMetadata()) return;
    SmallVector<std::pair<unsigned, MDNode *>, 4> all;
    object.getAllMetadata(all);
    for (auto [kind, node] : all) {
      out.push_back(kinds[kind]);
      out.push_back(metadata(node));
    }
  }

  // The order in which users of a local value are found; they are in the same function.
  void write_uses(const Value &value) {
    if (!exact || value.use_empty() || value.hasOneUse()) return;
    for (const Use &use : value.uses()) {
      uint64_t user = numbers.lookup(use.getUser());
      out.push_back(user << 32 | use.getOperandNo());
    }
  }

  void write_global(const GlobalValue &global) {
    out.push_back(globals.lookup(&global));
    out.push_back(global.getValueID() | global.getLinkage() << 8 | global.getVisibility() << 16 |
                  uint64_t(global.getUnnamedAddr()) << 20 | global.getThreadLocalMode() << 24 |
                  global.getDLLStorageClass() << 28 | uint64_t(global.isDSOLocal()) << 32);
    out.push_back(type(global.getValueType()));
    out.push_back(global.getAddressSpace());
    if (global.hasPartition()) out.push_back(hash_text(global.getPartition()));
    if (const auto *object = dyn_cast<GlobalObject>(&global)) {
      out.push_back(object->getAlign() ? object->getAlign()->value() : 0);
      if (object->hasSection()) out.push_back(hash_text(object->getSection()));
      if (const Comdat *comdat = object->getComdat()) {
        out.push_back(hash_text(comdat->getName()));
        out.push_back(comdat->getSelectionKind());
      }
      write_metadata(*object);
    }
    if (!exact) return;
    // Uses by constants, which are not met on the way.
    for (const Use &use : global.uses())
      if (const auto *user = dyn_cast<Constant>(use.getUser()))
        out.push_back(constant(user) + (uint64_t(ranks.lookup(&use)) << 32));
  }

  void write(const GlobalVariable &variable) {
    write_global(variable);
    out.push_back(variable.isConstant() | variable.isExternallyInitialized() << 1 |
                  variable.hasInitializer() << 2);
    out.push_back(attributes(variable.getAttributes().hasAttributes()
                                 ? AttributeList::get(module.getContext(), {{0, variable.getAttributes()}})
                                 : AttributeList()));
    if (variable.hasInitializer()) out.push_back(constant(variable.getInitializer()));
  }

  void write(const Function &function) {
    number(function);
    write_global(function);
    out.push_back(function.getCallingConv());
    out.push_back(attributes(function.getAttributes()));
    if (function.hasGC()) out.push_back(hash_text(function.getGC()));
    out.push_back(function.hasPersonalityFn() | function.hasPrefixData() << 1 |
                  function.hasPrologueData() << 2);
    for (const Use &operand : function.operands())
      if (const auto *value = dyn_cast<Constant>(operand.get())) out.push_back(constant(value));
    for (const Argument &argument : function.args()) write_uses(argument);
    for_each_block(function, [&](const BasicBlock &block) {
      write_uses(block);
      for (const Instruction &instruction : block)
        if (seen(instruction)) write(instruction);
    });
  }

  uint64_t operand(const Value &value) {
    if (const auto *known = dyn_cast<Constant>(&value)) return constant(known);
    if (const auto *data = dyn_cast<MetadataAsValue>(&value))
      return exact ? metadata(data->getMetadata()) : hash_metadata(data->getMetadata());
    if (const auto *assembly = dyn_cast<InlineAsm>(&value)) {
      uint64_t words[] = {hash_text(assembly->getAsmString()),
                          hash_text(assembly->getConstraintString()),
                          uint64_t(assembly->hasSideEffects()) | assembly->isAlignStack() << 1 |
                              assembly->canThrow() << 2 | assembly->getDialect() << 3};
      return hash_words(words);
    }
    return uint64_t(numbers.lookup(&value)) * 2;
  }

  // Metadata that a call takes as an argument, such as a register's name or a rounding mode.
  uint64_t hash_metadata(const Metadata *data) {
    if (const auto *text = dyn_cast<MDString>(data)) return hash_text(text->getString());
    if (const auto *node = dyn_cast<MDNode>(data))
      if (node->getNumOperands() == 1)
        if (const auto *text = dyn_cast_or_null<MDString>(node->getOperand(0).get()))
          return hash_text(text->getString());
    return 0;
  }

  static uint64_t ordering(AtomicOrdering order) { return uint64_t(order); }

  void write(const Instruction &instruction) {
    out.push_back(instruction.getOpcode() | uint64_t(xg::Subclass::data(instruction)) << 8 |
                  uint64_t(instruction.getRawSubclassOptionalData()) << 24 |
                  uint64_t(instruction.getNumOperands()) << 32);
    out.push_back(type(instruction.getType()));
    for (const Use &use : instruction.operands()) {
      uint64_t word = operand(*use.get());
      if (exact && isa<GlobalValue>(use.get())) word += uint64_t(ranks.lookup(&use)) << 32;
      out.push_back(word);
    }
    // What is neither an operand nor a flag.
    switch (instruction.getOpcode()) {
      case Instruction::PHI:
        for (const BasicBlock *block : cast<PHINode>(instruction).blocks())
          out.push_back(numbers.lookup(block));
        break;
      case Instruction::Alloca:
        out.push_back(type(cast<AllocaInst>(instruction).getAllocatedType()));
        break;
      case Instruction::GetElementPtr:
        out.push_back(type(cast<GetElementPtrInst>(instruction).getSourceElementType()));
        break;
      case Instruction::Load:
        out.push_back(cast<LoadInst>(instruction).getSyncScopeID());
        break;
      case Instruction::Store:
        out.push_back(cast<StoreInst>(instruction).getSyncScopeID());
        break;
      case Instruction::Fence:
        out.push_back(cast<FenceInst>(instruction).getSyncScopeID());
        break;
      case Instruction::AtomicCmpXchg:
        out.push_back(cast<AtomicCmpXchgInst>(instruction).getSyncScopeID());
        break;
      case Instruction::AtomicRMW:
        out.push_back(cast<AtomicRMWInst>(instruction).getSyncScopeID());
        break;
      case Instruction::ExtractValue:
        for (unsigned index : cast<ExtractValueInst>(instruction).indices()) out.push_back(index);
        break;
      case Instruction::InsertValue:
        for (unsigned index : cast<InsertValueInst>(instruction).indices()) out.push_back(index);
        break;
      case Instruction::ShuffleVector:
        for (int index : cast<ShuffleVectorInst>(instruction).getShuffleMask())
          out.push_back(uint64_t(index));
        break;
      case Instruction::Call:
      case Instruction::Invoke:
      case Instruction::CallBr: {
        const auto &call = cast<CallBase>(instruction);
        out.push_back(type(call.getFunctionType()));
        out.push_back(attributes(call.getAttributes()));
        for (unsigned which = 0; which < call.getNumOperandBundles(); ++which) {
          OperandBundleUse bundle = call.getOperandBundleAt(which);
          out.push_back(hash_text(bundle.getTagName()));
          out.push_back(bundle.Inputs.size());
        }
        break;
      }
      default:
        break;
    }
    write_metadata(instruction);
    write_uses(instruction);
  }

  const Module &module;
  const bool exact;
  Words out;
  Words nodes;
  SmallVector<uint64_t, 64> kinds;
  DenseMap<const GlobalValue *, uint64_t> globals;
  DenseMap<const Value *, uint32_t> numbers;
  DenseMap<const Use *, uint32_t> ranks;
  DenseMap<Type *, uint64_t> types;
  DenseMap<const void *, uint64_t> attribute_lists;
  DenseMap<const Constant *, uint64_t> constants;
  DenseMap<const Metadata *, uint64_t> node_numbers;
};

}  // namespace

extern "C" {

xg_hash xg_content(LLVMModuleRef module) { return Identity(*unwrap(module), false).hash(); }

xg_hash xg_exact(LLVMModuleRef ref) {
  const Module &module = *unwrap(ref);
  if (!module.getNamedMetadata("llvm.dbg.cu")) return Identity(module, true).hash();
  SmallString<0> buffer;
  raw_svector_ostream stream(buffer);
  WriteBitcodeToFile(module, stream, true);
  auto hash = xxh3_128bits(
      ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(buffer.data()), buffer.size()));
  return {hash.low64, hash.high64};
}
}
