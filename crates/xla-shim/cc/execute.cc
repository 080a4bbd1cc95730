// Compiling and running modules on the CPU through PJRT.

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/literal.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/pjrt_executable.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/primitive_util.h"

namespace xla_gym {

struct Executable::State {
  std::unique_ptr<xla::PjRtLoadedExecutable> loaded;
  uint64_t compile_nanos = 0;
  // Kept on the device side so that timing does not count the transfer.
  std::vector<xla::Literal> literals;
  std::vector<std::unique_ptr<xla::PjRtBuffer>> inputs;
  std::vector<std::unique_ptr<xla::PjRtBuffer>> results;
};

namespace {

xla::PjRtClient& client() {
  static auto* instance = [] {
    xla::CpuClientOptions options;
    options.asynchronous = false;
    options.cpu_device_count = 1;
    return value_or_throw(xla::GetXlaPjrtCpuClient(options)).release();
  }();
  return *instance;
}

uint64_t nanos_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start)
      .count();
}

// Donated inputs are consumed by a run, so each run gets fresh buffers of the same literals.
void upload(Executable::State& executable) {
  xla::PjRtMemorySpace* memory =
      value_or_throw(client().addressable_devices()[0]->default_memory_space());
  executable.inputs.clear();
  for (const xla::Literal& literal : executable.literals) {
    auto buffer = value_or_throw(client().BufferFromHostLiteral(literal, memory));
    throw_if_error(buffer->GetReadyFuture().Await());
    executable.inputs.push_back(std::move(buffer));
  }
}

}  // namespace

std::unique_ptr<Executable> compile(const Module& module, Names disable) {
  auto state = std::make_shared<Executable::State>();
  xla::CompileOptions options;
  xla::DebugOptions* debug = options.executable_build_options.mutable_debug_options();
  *debug = default_debug_options();
  for (const auto& name : disable) debug->add_xla_disable_hlo_passes(std::string(name));
  const auto* entry = module.hlo->entry_computation();
  options.parameter_is_tupled_arguments =
      entry->num_parameters() == 1 && entry->parameter_instruction(0)->shape().IsTuple();

  xla::XlaComputation computation(module.hlo->ToProto());
  auto start = std::chrono::steady_clock::now();
  state->loaded = value_or_throw(client().CompileAndLoad(computation, options));
  state->compile_nanos = nanos_since(start);
  return std::make_unique<Executable>(Executable{std::move(state)});
}

uint64_t compile_nanos(const Executable& executable) { return executable.state->compile_nanos; }

MemoryStats memory_stats(const Executable& executable) {
  auto stats = value_or_throw(executable.state->loaded->GetExecutable()->GetCompiledMemoryStats());
  MemoryStats out;
  out.peak = stats.peak_memory_in_bytes;
  out.temporaries = stats.temp_size_in_bytes;
  out.arguments = stats.argument_size_in_bytes;
  out.outputs = stats.output_size_in_bytes;
  out.code = stats.generated_code_size_in_bytes;
  return out;
}

void set_inputs(Executable& executable, rust::Slice<const Array> inputs) {
  std::vector<xla::Literal>& literals = executable.state->literals;
  literals.clear();
  for (const Array& array : inputs) {
    xla::PrimitiveType type =
        value_or_throw(xla::primitive_util::StringToPrimitiveType(std::string(array.dtype)));
    std::vector<int64_t> dims(array.dims.begin(), array.dims.end());
    xla::Literal literal(xla::ShapeUtil::MakeShape(type, dims));
    if (literal.size_bytes() != array.bytes.size()) {
      throw std::runtime_error("an input has " + std::to_string(array.bytes.size()) +
                               " bytes where its shape needs " +
                               std::to_string(literal.size_bytes()));
    }
    if (!array.bytes.empty()) {
      std::memcpy(literal.untyped_data(), array.bytes.data(), array.bytes.size());
    }
    literals.push_back(std::move(literal));
  }
}

uint64_t execute(Executable& executable) {
  Executable::State& state = *executable.state;
  upload(state);
  std::vector<xla::PjRtBuffer*> arguments;
  for (const auto& buffer : state.inputs) arguments.push_back(buffer.get());
  xla::ExecuteOptions options;
  std::vector<std::vector<xla::PjRtBuffer*>> by_device = {std::move(arguments)};

  auto start = std::chrono::steady_clock::now();
  auto results = value_or_throw(state.loaded->Execute(absl::MakeSpan(by_device), options));
  for (const auto& buffer : results[0]) throw_if_error(buffer->GetReadyFuture().Await());
  uint64_t nanos = nanos_since(start);
  state.results = std::move(results[0]);
  return nanos;
}

rust::Vec<Array> outputs(const Executable& executable) {
  rust::Vec<Array> arrays;
  for (const auto& buffer : executable.state->results) {
    std::shared_ptr<xla::Literal> literal = value_or_throw(buffer->ToLiteralSync());
    Array array;
    array.dtype =
        xla::primitive_util::LowercasePrimitiveTypeName(literal->shape().element_type());
    for (int64_t dimension : literal->shape().dimensions()) array.dims.push_back(dimension);
    const auto* data = static_cast<const uint8_t*>(literal->untyped_data());
    array.bytes.reserve(literal->size_bytes());
    for (int64_t i = 0; i < literal->size_bytes(); ++i) array.bytes.push_back(data[i]);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace xla_gym
