// The program as a graph in the manner of ProGraML (Cummins et al., ICML 2021): instructions,
// variables and constants; flow of control, of data and of calls.

#include "shim.h"

#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

constexpr uint32_t kNone = UINT32_MAX;
enum Kind : uint32_t { kInstruction, kVariable, kConstant, kExternal };
enum Flow : uint32_t { kControl, kData, kCall };

struct Owner : xg_graph {
  std::vector<xg_node> all_nodes;
  std::vector<xg_edge> all_edges;
  std::string all_types, all_functions;
};

class Builder {
 public:
  Builder(const Module &module, Owner &graph) : module(module), graph(graph) {}

  void build() {
    size_t instructions = module.getInstructionCount();
    graph.all_nodes.reserve(instructions * 2);
    graph.all_edges.reserve(instructions * 4);
    values.reserve(instructions);
    // Node 0: whoever calls what other programs can see.
    node(kExternal, 0, void_type());
    uint32_t number = 0;
    for (const Function &function : module) add_function(function, number++);
    for (const Function &function : module) connect(function);
  }

 private:
  uint32_t void_type() { return type(Type::getVoidTy(module.getContext())); }

  uint32_t type(Type *type) {
    auto [place, fresh] = types.try_emplace(type, types.size());
    if (fresh) {
      raw_string_ostream stream(graph.all_types);
      // A struct by its name: what it consists of may be long.
      type->print(stream, false, true);
      stream.flush();
      graph.all_types.push_back('\0');
    }
    return place->second;
  }

  uint32_t node(Kind kind, uint32_t opcode, uint32_t type, uint32_t function = kNone,
                uint32_t block = kNone) {
    graph.all_nodes.push_back({kind, opcode, type, function, block});
    return graph.all_nodes.size() - 1;
  }

  void edge(uint32_t from, uint32_t to, Flow flow, uint32_t position) {
    graph.all_edges.push_back({from, to, flow, position});
  }

  static bool shown(const Instruction &instruction) {
    return !isa<DbgInfoIntrinsic>(instruction);
  }

  // Its instructions, and a variable for each argument and for each result.
  void add_function(const Function &function, uint32_t number) {
    StringRef name = function.getName();
    graph.all_functions.append(name.data(), name.size());
    graph.all_functions.push_back('\0');
    Ends &own = ends[&function];
    if (function.isDeclaration()) {
      // Its code is elsewhere: one node stands for it, if anybody needs it.
      if (function.use_empty()) return;
      own.entry = node(kExternal, 0, type(function.getReturnType()), number);
      own.exits.push_back(own.entry);
      return;
    }
    for (const Argument &argument : function.args())
      values[&argument] = node(kVariable, 0, type(argument.getType()), number);
    uint32_t block_number = 0;
    for (const BasicBlock &block : function) {
      for (const Instruction &instruction : block) {
        if (!shown(instruction)) continue;
        uint32_t at = node(kInstruction, instruction.getOpcode(), type(instruction.getType()),
                           number, block_number);
        places[&instruction] = at;
        if (!instruction.getType()->isVoidTy()) {
          values[&instruction] =
              node(kVariable, 0, type(instruction.getType()), number, block_number);
        }
        blocks.try_emplace(&block, at);
        if (isa<ReturnInst>(instruction) || isa<ResumeInst>(instruction)) own.exits.push_back(at);
      }
      ++block_number;
    }
    own.entry = blocks.lookup(&function.getEntryBlock());
  }

  void connect(const Function &function) {
    if (function.isDeclaration()) return;
    const Ends &own = ends[&function];
    if (!function.hasLocalLinkage()) {
      edge(0, own.entry, kCall, 0);
      for (uint32_t exit : own.exits) edge(exit, 0, kCall, 0);
    }
    for (const BasicBlock &block : function) {
      uint32_t before = kNone;
      for (const Instruction &instruction : block) {
        if (!shown(instruction)) continue;
        uint32_t at = places.lookup(&instruction);
        if (before != kNone) edge(before, at, kControl, 0);
        before = at;
        if (!instruction.getType()->isVoidTy()) edge(at, values.lookup(&instruction), kData, 0);
        connect_operands(instruction, at);
        if (const auto *call = dyn_cast<CallBase>(&instruction)) connect_call(*call, at);
      }
      const Instruction *end = block.getTerminator();
      if (!end) continue;
      for (unsigned which = 0; which < end->getNumSuccessors(); ++which)
        edge(before, blocks.lookup(end->getSuccessor(which)), kControl, which);
    }
  }

  void connect_operands(const Instruction &instruction, uint32_t at) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    for (const Use &use : instruction.operands()) {
      const Value *value = use.get();
      // Blocks are flow of control; a function that is called directly is flow of calls.
      if (isa<BasicBlock>(value) || isa<MetadataAsValue>(value)) continue;
      if (call && call->isCallee(&use) && (call->getCalledFunction() || isa<InlineAsm>(value)))
        continue;
      auto found = values.find(value);
      if (found == values.end()) {
        if (!isa<Constant>(value)) continue;
        found = values.try_emplace(value, node(kConstant, 0, type(value->getType()))).first;
      }
      edge(found->second, at, kData, use.getOperandNo());
    }
  }

  void connect_call(const CallBase &call, uint32_t at) {
    const Function *callee = call.getCalledFunction();
    if (!callee) {
      // It may be anything: what is outside.
      edge(at, 0, kCall, 0);
      edge(0, at, kCall, 0);
      return;
    }
    const Ends &other = ends[callee];
    if (other.entry == kNone) return;
    edge(at, other.entry, kCall, 0);
    for (uint32_t exit : other.exits) edge(exit, at, kCall, 0);
  }

  struct Ends {
    uint32_t entry = kNone;
    std::vector<uint32_t> exits;
  };

  const Module &module;
  Owner &graph;
  DenseMap<const Value *, uint32_t> values;
  DenseMap<const Instruction *, uint32_t> places;
  DenseMap<const BasicBlock *, uint32_t> blocks;
  DenseMap<const Function *, Ends> ends;
  DenseMap<Type *, uint32_t> types;
};

}  // namespace

extern "C" {

xg_graph *xg_graph_build(LLVMModuleRef module) {
  auto *graph = new Owner();
  Builder(*unwrap(module), *graph).build();
  graph->nodes = graph->all_nodes.data();
  graph->node_count = graph->all_nodes.size();
  graph->edges = graph->all_edges.data();
  graph->edge_count = graph->all_edges.size();
  graph->types = graph->all_types.data();
  graph->types_length = graph->all_types.size();
  graph->functions = graph->all_functions.data();
  graph->functions_length = graph->all_functions.size();
  return graph;
}

void xg_graph_free(xg_graph *graph) { delete static_cast<Owner *>(graph); }
}
