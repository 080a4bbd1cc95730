// Runs passes by LLVM's own text, as `opt -passes=` does.

#include "shim.h"

#include <memory>
#include <string>

#include "diagnostics.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace {

// Everything that running a pass needs and that does not depend on the program: making it takes
// longer than many a pass. The analyses themselves are forgotten after each pass, so that a pass
// sees nothing but the program.
struct Runner {
  std::string triple;
  std::unique_ptr<TargetMachine> machine;
  PassInstrumentationCallbacks callbacks;
  OptNoneInstrumentation opt_none{false};
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  std::unique_ptr<PassBuilder> builder;

  explicit Runner(const std::string &triple) : triple(triple) {
    std::string reason;
    // No processor and level 0: what `opt` takes if it is told nothing.
    if (const Target *target = TargetRegistry::lookupTarget(triple, reason))
      machine.reset(target->createTargetMachine(triple, "", "", TargetOptions(), std::nullopt,
                                                std::nullopt, CodeGenOptLevel::None));
    builder = std::make_unique<PassBuilder>(machine.get(), PipelineTuningOptions(), std::nullopt,
                                            &callbacks);
    opt_none.registerCallbacks(callbacks);
    builder->registerModuleAnalyses(modules);
    builder->registerCGSCCAnalyses(components);
    builder->registerFunctionAnalyses(functions);
    builder->registerLoopAnalyses(loops);
    builder->crossRegisterProxies(loops, functions, components, modules);
  }

  // From the outside in: what holds results of the inner ones goes first.
  void forget() {
    modules.clear();
    components.clear();
    functions.clear();
    loops.clear();
  }

  static Runner &for_triple(const std::string &triple) {
    static std::unique_ptr<Runner> last;
    if (!last || last->triple != triple) last = std::make_unique<Runner>(triple);
    return *last;
  }
};

// Options of LLVM's command line, set for as long as this lives.
class Options {
 public:
  // False if one of them is unknown or does not take its value.
  bool set(StringRef lines) {
    auto &all = cl::getRegisteredOptions();
    while (!lines.empty()) {
      StringRef line;
      std::tie(line, lines) = lines.split('\n');
      auto [name, value] = line.split('=');
      auto found = all.find(name);
      if (found == all.end()) return false;
      cl::Option *option = found->second;
      option->reset();
      changed.push_back(option);
      if (option->addOccurrence(1, name, value)) return false;
    }
    return true;
  }

  ~Options() {
    for (cl::Option *option : changed) option->reset();
  }

 private:
  SmallVector<cl::Option *, 2> changed;
};

bool fail(xg_bytes *error, const std::string &message) {
  *error = xg::bytes(message.data(), message.size());
  return false;
}

}  // namespace

extern "C" bool xg_run(LLVMModuleRef ref, const char *passes, size_t passes_length,
                       const char *options, size_t options_length, bool *changed,
                       xg_bytes *error) {
  Module &module = *unwrap(ref);
  Runner &runner = Runner::for_triple(module.getTargetTriple());
  Options set;
  if (!set.set(StringRef(options, options_length)))
    return fail(error, "LLVM does not take the options " + std::string(options, options_length));
  ModulePassManager manager;
  // Parsed anew each time: some passes are used up by running.
  if (Error wrong = runner.builder->parsePassPipeline(manager, StringRef(passes, passes_length)))
    return fail(error, toString(std::move(wrong)));
  auto &diagnostics = xg::Diagnostics::of(module.getContext());
  diagnostics.take();
  PreservedAnalyses preserved = manager.run(module, runner.modules);
  runner.forget();
  *changed = !preserved.areAllPreserved();
  // Constants that nobody needs any more would count among the uses of what they name, for as long
  // as this process lives; read back from a file, they would be gone.
  for (GlobalValue &global : module.global_values()) global.removeDeadConstantUsers();
  std::string message = diagnostics.take();
  return message.empty() || fail(error, message);
}

extern "C" uint32_t xg_level(const char *text, size_t length) {
  Runner &runner = Runner::for_triple("");
  auto parses = [&](const std::string &pipeline) {
    ModulePassManager manager;
    Error wrong = runner.builder->parsePassPipeline(manager, pipeline);
    bool fine = !wrong;
    consumeError(std::move(wrong));
    return fine;
  };
  std::string pass(text, length);
  // A manager also takes passes of the managers that it can hold, so the innermost is asked first.
  if (parses("function(loop(" + pass + "))")) return 3;
  if (parses("function(" + pass + ")")) return 2;
  return parses("cgscc(" + pass + ")") ? 1 : 0;
}
