// Machine code.

#include "shim.h"

#include <string>

#include "diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace {

bool fail(xg_bytes *error, const std::string &message) {
  *error = xg::bytes(message.data(), message.size());
  return false;
}

}  // namespace

extern "C" bool xg_object(LLVMModuleRef ref, xg_bytes *object, uint64_t *text_size,
                          xg_bytes *error) {
  // Generating code changes the module, so it is generated from a copy.
  std::unique_ptr<Module> module = CloneModule(*unwrap(ref));
  std::string reason;
  const Target *target = TargetRegistry::lookupTarget(module->getTargetTriple(), reason);
  if (!target) return fail(error, "there is no code for this program's machine here: " + reason);
  // Like clang: position independent if the program was compiled for that.
  auto relocation = module->getPICLevel() == PICLevel::NotPIC ? Reloc::Static : Reloc::PIC_;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      module->getTargetTriple(), "", "", TargetOptions(), relocation, std::nullopt,
      CodeGenOptLevel::Default));
  if (!machine) return fail(error, "LLVM knows the program's machine and has no code for it");
  if (module->getDataLayoutStr().empty()) module->setDataLayout(machine->createDataLayout());
  auto &diagnostics = xg::Diagnostics::of(module->getContext());
  diagnostics.take();
  SmallString<0> buffer;
  raw_svector_ostream stream(buffer);
  legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, stream, nullptr, CodeGenFileType::ObjectFile))
    return fail(error, "LLVM writes no object files for the program's machine");
  manager.run(*module);
  std::string message = diagnostics.take();
  if (!message.empty()) return fail(error, message);
  if (!xg_text_size(buffer.data(), buffer.size(), text_size, error)) return false;
  *object = xg::bytes(buffer.data(), buffer.size());
  return true;
}

extern "C" bool xg_text_size(const char *data, size_t length, uint64_t *text_size,
                             xg_bytes *error) {
  MemoryBufferRef buffer(StringRef(data, length), "object");
  auto object = object::ObjectFile::createObjectFile(buffer);
  if (!object) return fail(error, toString(object.takeError()));
  *text_size = 0;
  // All that holds code: `.text`, and the hot, cold and per-function sections beside it.
  for (const object::SectionRef &section : (*object)->sections())
    if (section.isText()) *text_size += section.getSize();
  return true;
}
