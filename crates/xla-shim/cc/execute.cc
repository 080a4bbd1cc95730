// Running modules: compiled for the CPU through PJRT, or by XLA's interpreter.

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/hlo/evaluator/hlo_evaluator.h"
#include "xla/hlo/ir/hlo_sharding.h"
#include "xla/layout_util.h"
#include "xla/literal.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/pjrt_executable.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/primitive_util.h"
#include "xla/service/batched_gather_scatter_normalizer.h"
#include "xla/service/computation_placer.h"

namespace xla_gym {

struct Executable::State {
  // One of the two.
  std::unique_ptr<xla::PjRtLoadedExecutable> loaded;
  std::unique_ptr<xla::HloModule> interpreted;
  // The arguments are the leaves of one tuple parameter.
  bool tupled = false;
  uint64_t compile_nanos = 0;
  std::vector<xla::Literal> literals;
  // For each device. Kept on the device side so that timing does not count the transfer.
  std::vector<std::vector<std::unique_ptr<xla::PjRtBuffer>>> inputs;
  // Of the first device, which has everything: results are not sharded. One of the two.
  std::vector<std::unique_ptr<xla::PjRtBuffer>> results;
  std::vector<xla::Literal> interpreted_results;
};

namespace {

// One client for each number of devices.
xla::PjRtClient& client(int64_t devices) {
  static auto* clients = new std::map<int64_t, std::unique_ptr<xla::PjRtClient>>();
  std::unique_ptr<xla::PjRtClient>& client = (*clients)[devices];
  if (client == nullptr) {
    xla::CpuClientOptions options;
    options.asynchronous = devices > 1;
    options.cpu_device_count = devices;
    client = value_or_throw(xla::GetXlaPjrtCpuClient(options));
  }
  return *client;
}

uint64_t nanos_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start)
      .count();
}

// Inputs that take more bytes than this are used where they lie.
constexpr int64_t kCopied = int64_t{256} << 20;

std::unique_ptr<xla::PjRtBuffer> use_in_place(const Executable::State& executable,
                                              const xla::Literal& literal,
                                              xla::PjRtMemorySpace* memory) {
  return value_or_throw(executable.loaded->client()->BufferFromHostBuffer(
      literal.untyped_data(), literal.shape().element_type(), literal.shape().dimensions(),
      /*byte_strides=*/std::nullopt, xla::PjRtClient::HostBufferSemantics::kImmutableZeroCopy,
      /*on_done_with_host_buffer=*/nullptr, memory, /*device_layout=*/nullptr));
}

// Donated inputs are consumed by a run, so each run gets fresh buffers of the same literals.
void upload(Executable::State& executable) {
  executable.inputs.clear();
  int64_t bytes = 0;
  for (const xla::Literal& literal : executable.literals) bytes += literal.size_bytes();
  for (xla::PjRtDevice* device : executable.loaded->addressable_devices()) {
    xla::PjRtMemorySpace* memory = value_or_throw(device->default_memory_space());
    auto& buffers = executable.inputs.emplace_back();
    for (const xla::Literal& literal : executable.literals) {
      auto buffer =
          bytes > kCopied
              ? use_in_place(executable, literal, memory)
              : value_or_throw(executable.loaded->client()->BufferFromHostLiteral(literal, memory));
      throw_if_error(buffer->GetReadyFuture().Await());
      buffers.push_back(std::move(buffer));
    }
  }
}

// Leaves of a tuple, or the array itself.
std::vector<xla::Literal> leaves(xla::Literal literal) {
  std::vector<xla::Literal> out;
  if (!literal.shape().IsTuple()) {
    out.push_back(std::move(literal));
    return out;
  }
  for (xla::Literal& part : literal.DecomposeTuple()) {
    for (xla::Literal& leaf : leaves(std::move(part))) out.push_back(std::move(leaf));
  }
  return out;
}

// A run of a sharded program gets all inputs whole on every device and gives all results whole, so
// that nobody needs to cut or join them.
void run_whole(xla::HloModule& hlo) {
  auto everywhere = [](xla::HloInstruction* instruction) {
    xla::HloSharding whole = xla::HloSharding::Replicate();
    instruction->set_sharding(instruction->shape().IsTuple()
                                  ? xla::HloSharding::SingleTuple(instruction->shape(), whole)
                                  : whole);
  };
  for (xla::HloInstruction* parameter : hlo.entry_computation()->parameter_instructions()) {
    everywhere(parameter);
  }
  // The root may be an instruction whose own sharding says something: a copy of it says where the
  // result goes.
  xla::HloComputation* entry = hlo.entry_computation();
  xla::HloInstruction* root = entry->root_instruction();
  std::vector<xla::HloInstruction*> parts;
  if (root->shape().IsTuple()) {
    for (size_t i = 0; i < root->shape().tuple_shapes().size(); ++i) {
      parts.push_back(entry->AddInstruction(xla::HloInstruction::CreateGetTupleElement(
          root->shape().tuple_shapes(i), root, i)));
    }
    root = entry->AddInstruction(xla::HloInstruction::CreateTuple(parts));
  } else {
    root = entry->AddInstruction(
        xla::HloInstruction::CreateUnary(root->shape(), xla::HloOpcode::kCopy, root));
  }
  everywhere(root);
  entry->set_root_instruction(root, /*accept_different_shape=*/true);
}

void set_devices(xla::CompileOptions& options, int64_t devices) {
  if (devices <= 1) return;
  auto& build = options.executable_build_options;
  xla::DeviceAssignment assignment(/*replica_count=*/1, devices);
  for (int64_t i = 0; i < devices; ++i) assignment(0, i) = i;
  build.set_num_partitions(devices);
  build.set_use_spmd_partitioning(true);
  build.set_device_assignment(assignment);
}

bool has_convolution(const xla::HloModule& hlo) {
  for (const xla::HloComputation* computation : hlo.computations()) {
    for (const xla::HloInstruction* instruction : computation->instructions()) {
      if (instruction->opcode() == xla::HloOpcode::kConvolution) return true;
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<Executable> compile(const Module& module, Names disable, bool interpreter,
                                    bool quick) {
  auto state = std::make_shared<Executable::State>();
  Owned copy = clone_module(module);
  replace_unknown_calls(*copy->hlo);
  const auto* entry = module.hlo->entry_computation();
  state->tupled = entry->num_parameters() == 1 && entry->parameter_instruction(0)->shape().IsTuple();
  if (interpreter) {
    auto start = std::chrono::steady_clock::now();
    // The interpreter is wrong on gathers with batch dimensions.
    value_or_throw(xla::BatchedGatherScatterNormalizer().Run(copy->hlo.get()));
    state->interpreted = std::move(clone_module(*copy)->hlo);
    state->compile_nanos = nanos_since(start);
    return std::make_unique<Executable>(Executable{std::move(state)});
  }
  xla::CompileOptions options;
  xla::DebugOptions* debug = options.executable_build_options.mutable_debug_options();
  *debug = default_debug_options();
  for (const auto& name : disable) debug->add_xla_disable_hlo_passes(std::string(name));
  if (quick) {
    // A third of the time to compile: no optimisation of machine code, and the older emitters. But
    // convolutions, which are loops here for most types, then take longer than their compilation.
    debug->set_xla_backend_optimization_level(has_convolution(*copy->hlo) ? 1 : 0);
    debug->set_xla_llvm_disable_expensive_passes(true);
    debug->set_xla_cpu_use_fusion_emitters(false);
  }
  options.parameter_is_tupled_arguments = state->tupled;
  const int64_t devices = partitions(*copy->hlo);
  set_devices(options, devices);
  if (devices > 1) run_whole(*copy->hlo);

  xla::XlaComputation computation(copy->hlo->ToProto());
  auto start = std::chrono::steady_clock::now();
  state->loaded = value_or_throw(client(devices).CompileAndLoad(computation, options));
  state->compile_nanos = nanos_since(start);
  return std::make_unique<Executable>(Executable{std::move(state)});
}

uint64_t compile_nanos(const Executable& executable) { return executable.state->compile_nanos; }

MemoryStats memory_stats(const Executable& executable) {
  if (executable.state->loaded == nullptr) throw std::runtime_error("nothing is compiled");
  auto stats = value_or_throw(executable.state->loaded->GetExecutable()->GetCompiledMemoryStats());
  MemoryStats out;
  out.peak = stats.peak_memory_in_bytes;
  out.temporaries = stats.temp_size_in_bytes;
  out.arguments = stats.argument_size_in_bytes;
  out.outputs = stats.output_size_in_bytes;
  out.code = stats.generated_code_size_in_bytes;
  return out;
}

namespace {

// What was computed before is in the way of what comes.
void forget_results(Executable::State& state) {
  state.inputs.clear();
  state.results.clear();
  state.interpreted_results.clear();
}

}  // namespace

void set_input(Executable& executable, size_t place, const Array& input) {
  std::vector<xla::Literal>& literals = executable.state->literals;
  if (place == 0) {
    forget_results(*executable.state);
    literals.clear();
  }
  xla::PrimitiveType type =
      value_or_throw(xla::primitive_util::StringToPrimitiveType(std::string(input.dtype)));
  std::vector<int64_t> dims(input.dims.begin(), input.dims.end());
  xla::Literal literal(xla::ShapeUtil::MakeShape(type, dims));
  if (literal.size_bytes() != input.bytes.size()) {
    throw std::runtime_error("an input has " + std::to_string(input.bytes.size()) +
                             " bytes where its shape needs " +
                             std::to_string(literal.size_bytes()));
  }
  if (!input.bytes.empty()) {
    std::memcpy(literal.untyped_data(), input.bytes.data(), input.bytes.size());
  }
  literals.push_back(std::move(literal));
}

namespace {

uint64_t interpret(Executable::State& state) {
  std::vector<xla::Literal> tuple;
  std::vector<const xla::Literal*> arguments;
  if (state.tupled) {
    std::vector<xla::Literal> copies;
    for (const xla::Literal& literal : state.literals) copies.push_back(literal.Clone());
    tuple.push_back(xla::Literal::MoveIntoTuple(absl::MakeSpan(copies)));
    arguments.push_back(&tuple[0]);
  } else {
    for (const xla::Literal& literal : state.literals) arguments.push_back(&literal);
  }
  auto start = std::chrono::steady_clock::now();
  xla::HloEvaluator evaluator;
  evaluator.set_use_fast_path(true);
  xla::Literal result = value_or_throw(evaluator.Evaluate(*state.interpreted, arguments));
  uint64_t nanos = nanos_since(start);
  state.interpreted_results = leaves(std::move(result));
  return nanos;
}

}  // namespace

uint64_t execute(Executable& executable) {
  Executable::State& state = *executable.state;
  forget_results(state);
  if (state.interpreted != nullptr) return interpret(state);
  upload(state);
  std::vector<std::vector<xla::PjRtBuffer*>> by_device;
  for (const auto& buffers : state.inputs) {
    auto& arguments = by_device.emplace_back();
    for (const auto& buffer : buffers) arguments.push_back(buffer.get());
  }
  xla::ExecuteOptions options;

  auto start = std::chrono::steady_clock::now();
  auto results = value_or_throw(state.loaded->Execute(absl::MakeSpan(by_device), options));
  for (const auto& device : results) {
    for (const auto& buffer : device) throw_if_error(buffer->GetReadyFuture().Await());
  }
  uint64_t nanos = nanos_since(start);
  state.inputs.clear();
  state.results = std::move(results[0]);
  return nanos;
}

rust::Vec<uint64_t> output_sizes(const Executable& executable) {
  rust::Vec<uint64_t> sizes;
  for (const auto& buffer : executable.state->results) {
    sizes.push_back(xla::ShapeUtil::ElementsIn(buffer->on_device_shape()));
  }
  for (const xla::Literal& literal : executable.state->interpreted_results) {
    sizes.push_back(xla::ShapeUtil::ElementsIn(literal.shape()));
  }
  return sizes;
}

namespace {

Array to_array(const xla::Literal& result) {
  // Elements in row-major order, whatever layout the compiler chose.
  const xla::Layout row_major = xla::LayoutUtil::GetDefaultLayoutForShape(result.shape());
  xla::Literal other;
  const xla::Literal* literal = &result;
  if (!xla::LayoutUtil::Equal(result.shape().layout(), row_major)) {
    other = result.Relayout(row_major);
    literal = &other;
  }
  Array array;
  array.dtype = xla::primitive_util::LowercasePrimitiveTypeName(literal->shape().element_type());
  for (int64_t dimension : literal->shape().dimensions()) array.dims.push_back(dimension);
  const auto* data = static_cast<const uint8_t*>(literal->untyped_data());
  array.bytes = copy_bytes({data, static_cast<size_t>(literal->size_bytes())});
  return array;
}

}  // namespace

Array output(const Executable& executable, size_t place) {
  const Executable::State& state = *executable.state;
  if (state.interpreted != nullptr) return to_array(state.interpreted_results.at(place));
  return to_array(*value_or_throw(state.results.at(place)->ToLiteralSync()));
}

}  // namespace xla_gym
