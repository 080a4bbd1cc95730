// What XLA's own CPU compiler does with a module, without code generation.

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_schedule.h"
#include "xla/service/buffer_assignment.h"
#include "xla/service/compiler.h"
#include "xla/service/hlo.pb.h"

// `cpu_compiler.h` needs LLVM headers that the wheel lacks. The class adds no data to
// `LLVMCompiler`, so its exported constructor can build it inside a buffer that is large enough.
extern "C" void _ZN3xla3cpu11CpuCompilerC1Ev(void*);

// The same class, with the two of its functions that are called by name.
namespace xla::cpu {

class CpuCompiler {
 public:
  absl::StatusOr<HloSchedule> CreateHloSchedule(const HloModule& module) const;
  absl::StatusOr<std::unique_ptr<BufferAssignment>> CreateBufferAssignment(
      const HloModule& module) const;
};

}  // namespace xla::cpu

namespace xla_gym {

namespace {

namespace fs = std::filesystem;

void* cpu_compiler_object() {
  alignas(64) static char storage[16384];
  static void* compiler = [] {
    std::memset(storage, 0, sizeof(storage));
    _ZN3xla3cpu11CpuCompilerC1Ev(storage);
    return static_cast<void*>(storage);
  }();
  return compiler;
}

xla::Compiler& cpu_compiler() { return *static_cast<xla::Compiler*>(cpu_compiler_object()); }

// What the compiler's own schedule and buffer assignment say of a module on which all of its passes
// have run. The module is left as it was.
void assign_buffers(PipelineRun& run) {
  const auto& compiler = *static_cast<const xla::cpu::CpuCompiler*>(cpu_compiler_object());
  const bool scheduled = run.end->has_schedule();
  if (!scheduled) {
    auto schedule = compiler.CreateHloSchedule(*run.end);
    if (!schedule.ok() || !run.end->set_schedule(*std::move(schedule)).ok()) return;
  }
  if (auto assignment = compiler.CreateBufferAssignment(*run.end); assignment.ok()) {
    const xla::BufferAssignment::Stats& stats = (*assignment)->GetStats();
    run.temporaries = stats.preallocated_temp_allocation_bytes;
    run.constants = stats.constant_allocation_bytes;
  }
  if (!scheduled) run.end->clear_schedule();
}

// XLA runs layout assignment last among what matters here; its dump just before that pass is
// the end of the target-independent part.
std::unique_ptr<xla::HloModule> read_dump_before_layout(const fs::path& dir,
                                                        const xla::DebugOptions& options) {
  for (const auto& file : fs::directory_iterator(dir)) {
    const std::string name = file.path().filename().string();
    if (!absl::StrContains(name, ".before_layout-assignment") ||
        !absl::EndsWith(name, ".hlo.pb")) {
      continue;
    }
    std::ifstream stream(file.path(), std::ios::binary);
    xla::HloProto proto;
    if (!proto.ParseFromIstream(&stream)) {
      throw std::runtime_error("XLA's dump cannot be read: " + file.path().string());
    }
    xla::HloModuleConfig own = value_or_throw(
        xla::HloModule::CreateModuleConfigFromProto(proto.hlo_module(), options));
    return value_or_throw(xla::HloModule::CreateFromProto(
        proto.hlo_module(), own, /*prohibit_empty_literal=*/true, /*comp_envs=*/nullptr,
        /*preserve_instruction_ids=*/false));
  }
  throw std::runtime_error("XLA left no dump from just before layout assignment");
}

}  // namespace

// For how many devices a program is meant. A framework says so beside the program, not in it, but
// the shardings in it name the devices.
int64_t partitions(const xla::HloModule& hlo) {
  int64_t most = hlo.config().num_partitions();
  for (const xla::HloComputation* computation : hlo.computations()) {
    for (const xla::HloInstruction* instruction : computation->instructions()) {
      if (!instruction->has_sharding() || instruction->sharding().IsTuple()) continue;
      const xla::HloSharding& sharding = instruction->sharding();
      if (sharding.IsTiled()) most = std::max(most, sharding.num_devices());
    }
  }
  return most;
}

std::unique_ptr<PipelineRun> run_pipeline(const Module& module, Names disable,
                                          rust::Str dump_dir, bool until_middle,
                                          int32_t intra_op_threads) {
  auto run = std::make_unique<PipelineRun>();
  std::unique_ptr<xla::HloModule> hlo = std::move(clone_module(module)->hlo);

  xla::DebugOptions options = default_debug_options();
  for (const auto& name : disable) options.add_xla_disable_hlo_passes(std::string(name));
  const fs::path dir{std::string(dump_dir)};
  if (!dump_dir.empty()) {
    options.set_xla_dump_to(dir.string());
    options.set_xla_dump_hlo_pass_re("layout-assignment");
    options.set_xla_dump_hlo_as_proto(true);
    options.set_xla_dump_hlo_as_text(false);
  }
  hlo->mutable_config().set_debug_options(options);
  // The outlining of parallel tasks depends on the number of cores; a fixed number makes the
  // counts the same on every machine.
  hlo->mutable_config().set_intra_op_parallelism_threads(intra_op_threads);

  if (int64_t count = partitions(*hlo); count > 1) {
    hlo->mutable_config().set_num_partitions(count);
    hlo->mutable_config().set_use_spmd_partitioning(true);
  }

  auto start = std::chrono::steady_clock::now();
  auto end = cpu_compiler().RunHloPasses(std::move(hlo), nullptr, xla::Compiler::CompileOptions{});
  if (end.ok()) {
    run->end = *std::move(end);
  } else if (!until_middle) {
    throw_if_error(end.status());
  }
  run->nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now() - start)
                   .count();

  if (!dump_dir.empty()) run->middle = read_dump_before_layout(dir, options);
  if (run->end == nullptr) return run;
  assign_buffers(*run);
  for (const auto& metadata : run->end->metadata()->proto().pass_metadata()) {
    run->passes.push_back(
        {metadata.pipeline_name(), metadata.pass_name(), metadata.module_changed()});
  }
  return run;
}

rust::Vec<PipelinePass> pipeline_passes(const PipelineRun& run) {
  rust::Vec<PipelinePass> passes;
  for (const PipelineRun::Pass& pass : run.passes) {
    passes.push_back(PipelinePass{pass.pipeline, pass.name, pass.changed});
  }
  return passes;
}

uint64_t pipeline_nanos(const PipelineRun& run) { return run.nanos; }
int64_t pipeline_temporaries(const PipelineRun& run) { return run.temporaries; }
int64_t pipeline_constants(const PipelineRun& run) { return run.constants; }

Owned take_middle(PipelineRun& run) {
  auto module = std::make_unique<Module>();
  module->hlo = std::move(run.middle);
  return module;
}

Owned take_end(PipelineRun& run) {
  if (run.end == nullptr) return nullptr;
  auto module = std::make_unique<Module>();
  module->hlo = std::move(run.end);
  return module;
}

}  // namespace xla_gym
