// Where LLVM keeps predicates, alignments, orderings, calling conventions and the like of a value; it
// shows them to derived classes only.
#pragma once

#include "llvm/IR/Value.h"

namespace xg {

struct Subclass : llvm::Value {
  static unsigned short data(const llvm::Value &value) {
    return (value.*static_cast<unsigned short (llvm::Value::*)() const>(
                       &Subclass::getSubclassDataFromValue))();
  }
};

}  // namespace xg
