// XLA's PJRT headers mention MLIR types that this project never touches, and the wheel ships no
// MLIR headers. These declarations have the sizes that the mentions need and nothing else.
#pragma once
#include <utility>

namespace mlir {

class MLIRContext;
class Operation;

class ModuleOp {
 public:
  ModuleOp() = default;
  explicit operator bool() const { return operation_ != nullptr; }

 private:
  Operation* operation_ = nullptr;
};

template <typename Op>
class OwningOpRef {
 public:
  OwningOpRef() = default;
  OwningOpRef(OwningOpRef&&) = default;
  OwningOpRef& operator=(OwningOpRef&&) = default;
  Op get() const { return op_; }
  Op operator*() const { return op_; }

 private:
  Op op_;
};

}  // namespace mlir
