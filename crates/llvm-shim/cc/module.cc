// The process, contexts, reading and writing.

#include "shim.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <unistd.h>

#include "diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace xg {

bool Diagnostics::handleDiagnostics(const DiagnosticInfo &info) {
  // Remarks and warnings say nothing about the program's validity.
  if (info.getSeverity() == DS_Error && error.empty()) {
    raw_string_ostream stream(error);
    DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    if (error.empty()) error = "the compiler reported an error without a word";
  }
  return true;
}

xg_bytes bytes(const char *data, size_t length) {
  if (length == 0) return {nullptr, 0};
  char *copy = static_cast<char *>(malloc(length));
  if (!copy) report_bad_alloc_error("no memory for a result");
  memcpy(copy, data, length);
  return {copy, length};
}

}  // namespace xg

namespace {

void (*out_of_memory)(void) = nullptr;

// LLVM's own would end with status 1 where it thinks that the user is to blame, and a process that
// ends in silence looks as if somebody else had killed it.
void on_fatal_error(void *, const char *reason, bool) {
  std::string line = "LLVM ERROR: ";
  line += reason;
  line += '\n';
  ssize_t written = write(2, line.data(), line.size());
  (void)written;
  abort();
}

void on_bad_alloc(void *, const char *, bool) {
  if (out_of_memory) out_of_memory();
  abort();
}

void drop_local_names(Module &module) {
  for (Function &function : module) {
    for (Argument &argument : function.args()) argument.setName("");
    for (BasicBlock &block : function) {
      block.setName("");
      for (Instruction &instruction : block)
        if (instruction.hasName()) instruction.setName("");
    }
  }
}

void on_failed_new() { on_bad_alloc(nullptr, nullptr, false); }

}  // namespace

extern "C" {

void xg_initialize(void (*callback)(void)) {
  out_of_memory = callback;
  std::set_new_handler(on_failed_new);
  install_fatal_error_handler(on_fatal_error);
  install_bad_alloc_error_handler(on_bad_alloc);
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  InitializeNativeTargetAsmParser();
}

LLVMContextRef xg_context_create() {
  auto *context = new LLVMContext();
  context->setDiagnosticHandler(std::make_unique<xg::Diagnostics>());
  return wrap(context);
}

LLVMModuleRef xg_parse(LLVMContextRef context, const char *data, size_t length, xg_bytes *error) {
  LLVMContext &in = *unwrap(context);
  // The reader of text wants a zero byte at the end, so this copies.
  auto buffer = MemoryBuffer::getMemBufferCopy(StringRef(data, length), "program");
  SMDiagnostic diagnostic;
  // Names of local values mean nothing and cost time; printed, they are numbers. Text cannot be read
  // without them.
  in.setDiscardValueNames(isBitcode(reinterpret_cast<const unsigned char *>(data),
                                    reinterpret_cast<const unsigned char *>(data) + length));
  std::unique_ptr<Module> module = parseIR(buffer->getMemBufferRef(), diagnostic, in);
  if (module && !in.shouldDiscardValueNames()) drop_local_names(*module);
  in.setDiscardValueNames(true);
  std::string message = xg::Diagnostics::of(in).take();
  if (!module) {
    std::string text;
    raw_string_ostream stream(text);
    if (diagnostic.getLineNo() > 0)
      stream << "line " << diagnostic.getLineNo() << ", column " << diagnostic.getColumnNo() + 1
             << ": ";
    stream << diagnostic.getMessage();
    StringRef line = diagnostic.getLineContents().trim();
    if (!line.empty()) stream << "\n  " << line.take_front(160);
    stream.flush();
    *error = xg::bytes(text.data(), text.size());
    return nullptr;
  }
  if (!message.empty()) {
    *error = xg::bytes(message.data(), message.size());
    return nullptr;
  }
  // A program that names no machine is meant for this one: passes ask the target, code needs it.
  if (module->getTargetTriple().empty()) {
    module->setTargetTriple(sys::getDefaultTargetTriple());
    std::string reason;
    const Target *target = TargetRegistry::lookupTarget(module->getTargetTriple(), reason);
    if (target && module->getDataLayoutStr().empty()) {
      std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
          module->getTargetTriple(), "", "", TargetOptions(), std::nullopt));
      if (machine) module->setDataLayout(machine->createDataLayout());
    }
  }
  return wrap(module.release());
}

bool xg_verify(LLVMModuleRef module, xg_bytes *error) {
  std::string text;
  raw_string_ostream stream(text);
  if (!verifyModule(*unwrap(module), &stream)) return true;
  stream.flush();
  *error = xg::bytes(text.data(), text.size());
  return false;
}

xg_bytes xg_print(LLVMModuleRef module) {
  std::string text;
  raw_string_ostream stream(text);
  unwrap(module)->print(stream, nullptr);
  stream.flush();
  return xg::bytes(text.data(), text.size());
}

xg_bytes xg_bitcode(LLVMModuleRef module, bool use_list_order) {
  SmallString<0> buffer;
  buffer.reserve(64 << 10);
  raw_svector_ostream stream(buffer);
  WriteBitcodeToFile(*unwrap(module), stream, use_list_order);
  return xg::bytes(buffer.data(), buffer.size());
}

void xg_bytes_free(xg_bytes bytes) { free(bytes.data); }
}
