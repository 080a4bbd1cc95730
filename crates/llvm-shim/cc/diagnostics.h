// Keeps the first error that LLVM reports about a program. LLVM's own handler would print it and
// end the process.
#pragma once

#include <string>
#include <utility>

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"

namespace xg {

class Diagnostics final : public llvm::DiagnosticHandler {
 public:
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override;

  // The error since the last call; empty if there was none.
  std::string take() { return std::exchange(error, std::string()); }

  // That of a context made by xg_context_create.
  static Diagnostics &of(llvm::LLVMContext &context) {
    return *static_cast<Diagnostics *>(
        const_cast<llvm::DiagnosticHandler *>(context.getDiagHandlerPtr()));
  }

 private:
  std::string error;
};

}  // namespace xg
