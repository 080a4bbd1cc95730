// The pass table: every target-independent HLO pass that the library exports and that can be
// built without a device, under XLA's own name. The plain entry has the options with which XLA's
// CPU compiler runs the pass, where it runs it; other choices are variants.

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "xla-gym-xla-shim/src/lib.rs.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/pass/hlo_pass_fix.h"
#include "xla/hlo/pass/hlo_pass_interface.h"
#include "xla/hlo/transforms/collectives/all_gather_broadcast_reorder.h"
#include "xla/hlo/transforms/collectives/all_gather_combiner.h"
#include "xla/hlo/transforms/collectives/all_gather_remove_degenerate_dims.h"
#include "xla/hlo/transforms/collectives/all_reduce_combiner.h"
#include "xla/hlo/transforms/collectives/all_reduce_contiguous.h"
#include "xla/hlo/transforms/collectives/async_collective_creator.h"
#include "xla/hlo/transforms/collectives/collective_permute_combiner.h"
#include "xla/hlo/transforms/collectives/collective_quantizer.h"
#include "xla/hlo/transforms/collectives/collectives_schedule_linearizer.h"
#include "xla/hlo/transforms/collectives/while_loop_all_reduce_code_motion_setup.h"
#include "xla/hlo/transforms/expanders/bitcast_dtypes_expander.h"
#include "xla/hlo/transforms/expanders/cholesky_expander.h"
#include "xla/hlo/transforms/expanders/comparison_expander.h"
#include "xla/hlo/transforms/expanders/convolution_4d_expander.h"
#include "xla/hlo/transforms/expanders/convolution_pred_expander.h"
#include "xla/hlo/transforms/expanders/dot_decomposer.h"
#include "xla/hlo/transforms/expanders/dynamic_index_splitter.h"
#include "xla/hlo/transforms/expanders/eigh_expander.h"
#include "xla/hlo/transforms/expanders/logistic_expander.h"
#include "xla/hlo/transforms/expanders/optimization_barrier_expander.h"
#include "xla/hlo/transforms/expanders/permutation_sort_expander.h"
#include "xla/hlo/transforms/expanders/qr_expander.h"
#include "xla/hlo/transforms/expanders/ragged_dot_rewriter.h"
#include "xla/hlo/transforms/expanders/reduce_decomposer.h"
#include "xla/hlo/transforms/expanders/reshape_decomposer.h"
#include "xla/hlo/transforms/expanders/rng_bit_generator_expander.h"
#include "xla/hlo/transforms/expanders/rng_expander.h"
#include "xla/hlo/transforms/expanders/stable_sort_expander.h"
#include "xla/hlo/transforms/expanders/stochastic_convert_decomposer.h"
#include "xla/hlo/transforms/operand_upcaster.h"
#include "xla/hlo/transforms/simplifiers/algebraic_simplifier.h"
#include "xla/hlo/transforms/simplifiers/all_gather_pad_ds_simplifier.h"
#include "xla/hlo/transforms/simplifiers/all_gather_permuted_ds_simplifier.h"
#include "xla/hlo/transforms/simplifiers/all_reduce_folder.h"
#include "xla/hlo/transforms/simplifiers/batch_dot_simplification.h"
#include "xla/hlo/transforms/simplifiers/broadcast_canonicalizer.h"
#include "xla/hlo/transforms/simplifiers/conditional_canonicalizer.h"
#include "xla/hlo/transforms/simplifiers/convert_mover.h"
#include "xla/hlo/transforms/simplifiers/convolution_group_converter.h"
#include "xla/hlo/transforms/simplifiers/dot_dimension_merger.h"
#include "xla/hlo/transforms/simplifiers/dot_merger.h"
#include "xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.h"
#include "xla/hlo/transforms/simplifiers/flatten_call_graph.h"
#include "xla/hlo/transforms/simplifiers/float_normalization.h"
#include "xla/hlo/transforms/simplifiers/gather_simplifier.h"
#include "xla/hlo/transforms/simplifiers/hlo_computation_deduplicator.h"
#include "xla/hlo/transforms/simplifiers/hlo_constant_folding.h"
#include "xla/hlo/transforms/simplifiers/hlo_constant_splitter.h"
#include "xla/hlo/transforms/simplifiers/hlo_dce.h"
#include "xla/hlo/transforms/simplifiers/optimize_input_output_buffer_alias.h"
#include "xla/hlo/transforms/simplifiers/reduce_window_resizer.h"
#include "xla/hlo/transforms/simplifiers/reduce_window_rewriter.h"
#include "xla/hlo/transforms/simplifiers/reshape_mover.h"
#include "xla/hlo/transforms/simplifiers/result_caster.h"
#include "xla/hlo/transforms/simplifiers/simplify_fp_conversions.h"
#include "xla/hlo/transforms/simplifiers/slice_sinker.h"
#include "xla/hlo/transforms/simplifiers/sort_simplifier.h"
#include "xla/hlo/transforms/simplifiers/sub_byte_collective_normalization.h"
#include "xla/hlo/transforms/simplifiers/tree_reduction_rewriter.h"
#include "xla/hlo/transforms/simplifiers/tuple_simplifier.h"
#include "xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.h"
#include "xla/hlo/transforms/while_loop_trip_count_annotator.h"
#include "xla/service/all_reduce_promotion.h"
#include "xla/service/all_reduce_reassociate.h"
#include "xla/service/all_reduce_simplifier.h"
#include "xla/service/all_to_all_decomposer.h"
#include "xla/service/batched_gather_scatter_normalizer.h"
#include "xla/service/batchnorm_expander.h"
#include "xla/service/call_inliner.h"
#include "xla/service/change_op_data_type.h"
#include "xla/service/collective_permute_decomposer.h"
#include "xla/service/conditional_simplifier.h"
#include "xla/service/conditional_to_select.h"
#include "xla/service/dynamic_padder.h"
#include "xla/service/float_support.h"
#include "xla/service/gather_expander.h"
#include "xla/service/hlo_cse.h"
#include "xla/service/map_inliner.h"
#include "xla/service/reduce_scatter_combiner.h"
#include "xla/service/reduce_scatter_reassociate.h"
#include "xla/service/scan_expander.h"
#include "xla/service/scatter_determinism_expander.h"
#include "xla/service/scatter_expander.h"
#include "xla/service/scatter_simplifier.h"
#include "xla/service/select_and_scatter_expander.h"
#include "xla/service/sharding_remover.h"
#include "xla/service/spmd/collective_permute_motion.h"
#include "xla/service/spmd/schedule_aware_collective_ops_cse.h"
#include "xla/service/topk_rewriter.h"
#include "xla/service/transpose_folding.h"
#include "xla/service/triangular_solve_expander.h"
#include "xla/service/while_loop_all_reduce_code_motion.h"
#include "xla/service/while_loop_constant_sinking.h"
#include "xla/service/while_loop_invariant_code_motion.h"
#include "xla/service/while_loop_simplifier.h"
#include "xla/service/while_loop_unroller.h"

namespace xla_gym {

using xla::HloInstruction;
using xla::HloOpcode;

namespace {

using Pass = std::unique_ptr<xla::HloPassInterface>;

struct Entry {
  const char* name;
  const char* variant;
  const char* kind;
  const char* description;
  std::function<Pass()> make;
  bool after_layout = false;
  bool lossy = false;
};

template <typename P, typename... Args>
std::function<Pass()> plain(Args... args) {
  return [=] { return std::make_unique<P>(args...); };
}

// A few megabytes, as XLA's own callers choose; large enough to merge what our graphs hold.
constexpr int64_t kCombineBytes = 32 << 20;
constexpr int64_t kCombineCount = 256;

xla::AlgebraicSimplifierOptions cpu_algsimp_options() {
  xla::AlgebraicSimplifierOptions options;
  options.set_enable_dot_strength_reduction(false);
  options.set_minmax_propagate_nan(false);
  options.set_supports_non_canonical_dots(false);
  options.set_executing_on_cpu(true);
  return options;
}

std::function<Pass()> algsimp(std::function<void(xla::AlgebraicSimplifierOptions&)> change) {
  return [change] {
    xla::AlgebraicSimplifierOptions options = cpu_algsimp_options();
    change(options);
    return std::make_unique<xla::AlgebraicSimplifier>(options);
  };
}

// FloatNormalization keeps a pointer to its FloatSupport; this keeps both together.
class Bf16Normalization : public xla::HloPassInterface {
 public:
  absl::string_view name() const override { return pass_.name(); }

 protected:
  absl::StatusOr<bool> RunImpl(
      xla::HloModule* module,
      const absl::flat_hash_set<absl::string_view>& execution_threads) override {
    return pass_.Run(module, execution_threads);
  }

 private:
  xla::FloatSupport support_{xla::BF16, xla::F32};
  xla::FloatNormalization pass_{&support_};
};

Pass make_group_converter(bool batch_groups_only) {
  return std::make_unique<xla::ConvolutionGroupConverter>(
      [](HloInstruction*) { return true; }, [](HloInstruction*) { return false; },
      batch_groups_only);
}

Pass make_async_collectives() {
  xla::AsyncCollectiveCreator::CollectiveCreatorConfig config;
  config.convert_all_reduce = xla::HloPredicateTrue;
  config.convert_all_gather = xla::HloPredicateTrue;
  config.convert_collective_permute = xla::HloPredicateTrue;
  config.convert_all_to_all = xla::HloPredicateTrue;
  config.convert_reduce_scatter = xla::HloPredicateTrue;
  return std::make_unique<xla::AsyncCollectiveCreator>(std::move(config));
}

Pass make_all_reduce_promotion() {
  const std::pair<xla::PrimitiveType, xla::PrimitiveType> types[] = {{xla::BF16, xla::F32}};
  return std::make_unique<xla::AllReducePromotion>(types);
}

Pass make_change_op_data_type() {
  return std::make_unique<xla::ChangeOpDataType>(
      xla::F16, xla::F32, [](const HloInstruction* instruction) {
        return instruction->opcode() == HloOpcode::kDot ||
               instruction->opcode() == HloOpcode::kConvolution;
      });
}

Pass make_topk_rewriter() {
  return std::make_unique<xla::TopkRewriter>([](const xla::HloSortInstruction* sort, int64_t) {
    return sort->operand(0)->shape().element_type() == xla::F32;
  });
}

Pass make_topk_decomposer() {
  return std::make_unique<xla::TopkDecomposer>([](const HloInstruction* instruction) {
    return instruction->opcode() == HloOpcode::kTopK;
  });
}

Pass make_unroller(int64_t factor, xla::UnrollConfig config) {
  return std::make_unique<xla::WhileLoopUnroller>(factor, /*wrap_in_trivial_loop=*/false, config);
}

Pass make_reshape_mover_cheap() {
  xla::ReshapeMoverOptions options;
  options.reshape_of_1d_broadcast_is_cheap = true;
  return std::make_unique<xla::ReshapeMover>(options);
}

Pass make_permute_decomposer() {
  return std::make_unique<xla::CollectivePermuteDecomposer>(
      /*threshold_in_bytes=*/0,
      xla::DebugOptions::PIPELINE_PARALLELISM_OPT_LEVEL_DISABLE);
}

const std::vector<Entry>& entries() {
  using namespace xla;  // NOLINT: a table of XLA's classes
  constexpr const char* kSimplifier = "simplifier";
  constexpr const char* kExpander = "expander";
  constexpr const char* kLoop = "loop";
  constexpr const char* kCallGraph = "call graph";
  constexpr const char* kCollective = "collective";
  constexpr const char* kNormaliser = "normaliser";
  constexpr const char* kPrecision = "precision";
  constexpr const char* kBuffers = "buffers";
  using Folding = HloConstantFolding::Level;

  static const auto* table = new std::vector<Entry>{
      // Simplifiers: the same computation with fewer or cheaper instructions.
      {"algsimp", "", kSimplifier, "Rewrites by the rules of algebra: x*1, transposes of transposes, reshapes of broadcasts and some hundred more. Divisions of narrow floats by constants stay, since the reciprocal would be rounded.", algsimp([](auto&) {})},
      {"algsimp", "dot-strength", kSimplifier, "As algsimp, and turns small dots into multiply and reduce.", algsimp([](auto& o) { o.set_enable_dot_strength_reduction(true); })},
      {"algsimp", "associative", kSimplifier, "As algsimp, and regroups dots where that costs fewer multiplications.", algsimp([](auto& o) { o.set_use_associative_reordering(true); })},
      {"algsimp", "reduce-through-dot", kSimplifier, "As algsimp, and moves slices and reductions from behind a dot to before it.", algsimp([](auto& o) { o.set_raise_slice_and_reduce_through_dot(true); })},
      {"algsimp", "reduce-of-reshape", kSimplifier, "As algsimp, and always swallows a reshape or transpose that a reduction reads.", algsimp([](auto& o) { o.set_unconditionally_simplify_reduce_of_transpose_or_reshape(true); })},
      {"algsimp", "scalar-multiply", kSimplifier, "As algsimp, and moves multiplications by a scalar to the smaller side of a dot or convolution.", algsimp([](auto& o) { o.set_enable_scalar_multiply_reduction(true); })},
      {"algsimp", "convert-folding", kSimplifier, "As algsimp, and folds conversions into the constants they read.", algsimp([](auto& o) { o.set_use_convert_constant_folding(true); })},
      {"algsimp", "keep-convolutions", kSimplifier, "As algsimp, but leaves the operands of convolutions where they are, which the back end prefers.", algsimp([](auto& o) { o.set_enable_conv_operand_swap(false); })},
      {"batch-dot-simplification", "", kSimplifier, "Removes batch dimensions of size 1 from dots.", plain<BatchDotSimplification>()},
      {"constant_folding", "", kSimplifier, "Evaluates what depends on constants only, where the result stays small.", plain<HloConstantFolding>()},
      {"constant_folding", "aggressive", kSimplifier, "Evaluates everything that depends on constants only, loops included.", plain<HloConstantFolding>(Folding::kAggressive)},
      {"convert-mover", "", kSimplifier, "Moves widening conversions towards the results and narrowing ones towards the inputs.", plain<ConvertMover>()},
      {"cse", "", kSimplifier, "Keeps one of several instructions that compute the same value.", plain<HloCSE>(/*is_layout_sensitive=*/false)},
      {"dce", "", kSimplifier, "Removes instructions and computations whose result nobody reads.", plain<HloDCE>()},
      {"dot-merger", "", kSimplifier, "Joins dots that share an operand into one larger dot, for results up to 1 MiB.", plain<DotMerger>(int64_t{1} << 20)},
      {"dot-merger", "unlimited", kSimplifier, "Joins dots that share an operand into one larger dot, whatever the size.", plain<DotMerger>(int64_t{1} << 40)},
      {"dot_dimension_merger", "", kSimplifier, "Merges neighbouring batch dimensions of dots.", plain<DotDimensionMerger>()},
      {"dynamic-dimension-simplifier", "", kSimplifier, "Simplifies slices and reshapes of dynamic dimensions.", plain<DynamicDimensionSimplifier>()},
      {"gather_simplifier", "", kSimplifier, "Brings gathers into the one simple form that the code generator takes.", plain<GatherSimplifier>()},
      {"hlo-constant-splitter", "", kSimplifier, "Gives every user of a shared constant its own copy.", plain<HloConstantSplitter>()},
      {"permutation_sort_simplifier", "", kSimplifier, "Replaces the sort that inverts a permutation by a scatter.", plain<PermutationSortExpander>()},
      {"reduce-window-resizer", "", kSimplifier, "Raises one-dimensional window reductions to the rank that back ends handle well.", plain<ReduceWindowResizer>()},
      {"reduce-window-rewriter", "", kSimplifier, "Computes long running sums in blocks of 16.", [] { return std::make_unique<HloPassFix<ReduceWindowRewriter>>(16); }},
      {"reshape-mover", "", kSimplifier, "Moves reshapes and transposes from the operands of an elementwise instruction to its result.", plain<ReshapeMover>()},
      {"reshape-mover", "cheap-broadcast", kSimplifier, "As reshape-mover, and treats the reshape of a broadcast vector as free.", make_reshape_mover_cheap},
      {"scatter_simplifier", "", kSimplifier, "Brings scatters into one simple form.", plain<ScatterSimplifier>()},
      {"simplify-conditional", "", kSimplifier, "Removes conditionals with a constant predicate, and results that no branch changes.", plain<ConditionalSimplifier>()},
      {"simplify-fp-conversions", "", kPrecision, "Drops chains of conversions between floating-point types, which keeps more precision than was asked for.", plain<SimplifyFPConversions>(), false, true},
      {"simplify-sorts", "", kSimplifier, "Drops sorted operands that nobody reads.", plain<SortSimplifier>()},
      {"slice-sinker", "", kSimplifier, "Runs an elementwise instruction once on the whole instead of on each slice.", plain<SliceSinker>()},
      {"topk-rewriter", "", kSimplifier, "Replaces sort and slice by a call of the top-k routine.", make_topk_rewriter},
      {"transpose-folding", "", kSimplifier, "Lets dots read transposed operands themselves.", [] { return std::make_unique<TransposeFolding>(TransposeFolding::IsRowColumnTransposeDotOperand, TransposeFolding::NeverFoldTranspose); }},
      {"transpose-folding", "convolutions", kSimplifier, "Lets dots and convolutions read transposed operands themselves.", [] { return std::make_unique<TransposeFolding>(); }},
      {"tree_reduction_rewriter", "", kSimplifier, "Splits a long reduction into windows of 32 and a rest, for accuracy and speed.", plain<TreeReductionRewriter>()},
      {"tuple-simplifier", "", kSimplifier, "Removes tuples that are taken apart again.", plain<TupleSimplifier>()},
      {"tuple-simplifier", "inner", kSimplifier, "As tuple-simplifier, but leaves the entry computation alone.", plain<TupleSimplifier>(/*exclude_entry_computation=*/true)},
      {"zero_sized_hlo_elimination", "", kSimplifier, "Replaces arrays without elements by constants.", plain<ZeroSizedHloElimination>()},

      // Call graph: functions, branches, repeated bodies.
      {"call-inliner", "", kCallGraph, "Puts the body of every called function in its place.", plain<CallInliner>()},
      {"call-inliner", "single-call-site", kCallGraph, "Inlines functions that are called from one place only.", plain<CallInliner>(/*single_call_site=*/true)},
      {"computation-deduplicator", "", kCallGraph, "Shares one computation among users of equal ones.", plain<HloComputationDeduplicator>()},
      {"conditional-canonicalizer", "", kCallGraph, "Makes every conditional return a tuple.", plain<ConditionalCanonicalizer>()},
      {"conditional-to-select", "", kCallGraph, "Runs both branches of a conditional inside a map and selects.", plain<ConditionalToSelect>()},
      {"flatten-call-graph", "", kCallGraph, "Gives every call site its own copy of the called computation.", plain<FlattenCallGraph>()},
      {"map-inline", "", kCallGraph, "Replaces a map by the elementwise instruction it applies.", plain<MapInliner>()},

      // Loops.
      {"scan_expander", "", kLoop, "Turns scan instructions into loops.", plain<ScanExpander>()},
      {"simplify-while-loops", "", kLoop, "Removes dead loop state and loops that run once or never.", plain<WhileLoopSimplifier>()},
      {"simplify-while-loops", "compares", kLoop, "As simplify-while-loops, and decides comparisons from the known trip count.", plain<WhileLoopSimplifier>(/*simplify_compare_instrs=*/true)},
      {"while-loop-constant-sinking", "", kLoop, "Moves constants that loops carry into their bodies.", plain<WhileLoopConstantSinking>()},
      {"while-loop-constant-sinking", "broadcasts", kLoop, "As while-loop-constant-sinking, broadcasts of constants too.", plain<WhileLoopConstantSinking>(/*sink_broadcast_of_constants=*/true)},
      {"while-loop-invariant-code-motion", "", kLoop, "Computes once, before the loop, what is the same in every turn.", plain<WhileLoopInvariantCodeMotion>()},
      {"while-loop-invariant-code-motion", "constants", kLoop, "As while-loop-invariant-code-motion, constants too.", plain<WhileLoopInvariantCodeMotion>(/*hoist_constants=*/true)},
      {"while-loop-invariant-code-motion", "reshapes", kLoop, "As while-loop-invariant-code-motion, constants and reshapes too.", plain<WhileLoopInvariantCodeMotion>(/*hoist_constants=*/true, /*hoist_reshapes=*/true)},
      {"while-loop-trip-count-annotator", "", kLoop, "Writes the number of turns on loops where it is known.", plain<WhileLoopTripCountAnnotator>()},
      {"while_loop_unroller", "", kLoop, "Unrolls short loops completely.", [] { return make_unroller(-1, UnrollConfig{}); }},
      {"while_loop_unroller", "double", kLoop, "Runs two turns of a loop in one.", [] { return make_unroller(2, UnrollConfig{}); }},
      {"while_loop_unroller", "short", kLoop, "Unrolls loops of up to 8 turns and 200 instructions completely.", [] { return make_unroller(-1, UnrollConfig{8, 200, 1000}); }},

      // Normalisers: one form of many, so that later passes see fewer cases.
      {"batched_gather_scatter_normalizer", "", kNormaliser, "Writes the batch dimensions of gathers and scatters out as indices.", plain<BatchedGatherScatterNormalizer>()},
      {"broadcast_canonicalizer", "", kNormaliser, "Sorts the dimensions of broadcasts and adds a transpose where needed.", plain<BroadcastCanonicalizer>()},
      {"convolution-group-converter", "", kNormaliser, "Rewrites grouped convolutions as plain ones.", [] { return make_group_converter(false); }},
      {"convolution-group-converter", "batch-groups", kNormaliser, "Rewrites convolutions grouped by batch as plain ones.", [] { return make_group_converter(true); }},
      {"dot_decomposer", "", kNormaliser, "Brings dots into the form batch, rows, columns by transposes and reshapes.", plain<DotDecomposer>()},
      {"dynamic_padder", "", kNormaliser, "Pads arrays of dynamic size to their bound.", [] { return std::make_unique<DynamicPadder>(); }},
      {"dynamic-index-splitter", "", kNormaliser, "Splits index vectors of dynamic slices into scalars.", plain<DynamicIndexSplitter>()},
      {"sharding-remover", "", kNormaliser, "Removes sharding annotations.", plain<ShardingRemover>()},

      // Precision: other element types.
      {"bf16-mixed-precision-removal", "", kPrecision, "Inserts conversions where bf16 and f32 meet in one instruction.", plain<BFloat16MixedPrecisionRemoval>()},
      {"change-op-data-type", "", kPrecision, "Computes f16 dots and convolutions in f32.", make_change_op_data_type},
      {"float-normalization-bf16", "", kPrecision, "Computes bf16 arithmetic in f32, with conversions around it.", [] { return std::make_unique<Bf16Normalization>(); }},
      {"operand_upcaster", "", kPrecision, "Widens the operands of dots to the type of the result.", plain<OperandUpcaster>()},
      {"result_caster", "", kPrecision, "Computes dots in the type of the operands and converts the result.", plain<ResultCaster>()},

      // Expanders: one instruction becomes several simpler ones.
      {"batchnorm_expander", "", kExpander, "Writes batch normalisation out as arithmetic.", plain<BatchNormExpander>(true, true, true)},
      {"bitcast_dtypes_expander", "", kExpander, "Writes bitcasts between types of different width out as shifts.", plain<BitcastDtypesExpander>()},
      {"cholesky_expander", "", kExpander, "Writes Cholesky decompositions out as loops.", plain<CholeskyExpander>()},
      {"comparison-expander", "", kExpander, "Writes total-order comparisons of floats out as integer comparisons.", plain<ComparisonExpander>()},
      {"convolution-pred-expander", "", kExpander, "Computes convolutions of booleans in floating point.", plain<ConvolutionPredExpander>()},
      {"convolution_4d_expander", "", kExpander, "Removes trivial dimensions of convolutions.", plain<Convolution4DExpander>()},
      {"cse_barrier_expander", "", kExpander, "Removes optimisation barriers.", plain<OptimizationBarrierExpander>()},
      {"eigh_expander", "", kExpander, "Writes symmetric eigendecompositions out as loops.", plain<EighExpander>()},
      {"gather_expander", "", kExpander, "Writes the simple gathers out as slices.", plain<GatherExpander>(GatherExpander::kEliminateSimpleGathers)},
      {"gather_expander", "all", kExpander, "Writes every gather out as a loop of slices.", plain<GatherExpander>(GatherExpander::kEliminateAllGathers)},
      {"logistic-expander", "", kExpander, "Writes the logistic function out as 1 / (1 + exp(-x)).", plain<LogisticExpander>()},
      {"qr_expander", "", kExpander, "Writes QR decompositions out as loops.", plain<QrExpander>()},
      {"ragged_dot_rewriter", "", kExpander, "Writes ragged dots out as masked dots.", plain<RaggedDotRewriter>()},
      {"reduce-decomposer", "", kExpander, "Separates the change of layout from reductions.", [] { return std::make_unique<ReduceDecomposer>(); }, true},
      {"reshape-decomposer", "", kExpander, "Splits reshapes into copies and bitcasts.", plain<ReshapeDecomposer>(), true},
      {"rng-bit-generator-expander", "", kExpander, "Writes random bit generators out as Philox arithmetic.", plain<RngBitGeneratorExpander>(RandomAlgorithm::RNG_PHILOX)},
      {"rng-expander", "", kExpander, "Writes random number instructions out as arithmetic on a global state.", plain<RngExpander>()},
      {"scatter_determinism_expander", "", kExpander, "Makes scatters deterministic by sorting their indices; wrong on scatters with batch dimensions (normalise first).", plain<ScatterDeterminismExpander>(), false, true},
      {"scatter_expander", "", kExpander, "Writes the simple scatters out as updates of slices.", plain<ScatterExpander>(ScatterExpander::kEliminateSimpleScatters)},
      {"scatter_expander", "all", kExpander, "Writes every scatter out as a loop of updates.", plain<ScatterExpander>(ScatterExpander::kEliminateAllScatters)},
      {"select_and_scatter_expander", "", kExpander, "Writes the gradient of max pooling out as select and scatter.", plain<SelectAndScatterExpander>()},
      {"stable-sort-expander", "", kExpander, "Makes sorts stable by sorting an index along.", plain<StableSortExpander>()},
      {"stochastic_convert_decomposer", "", kExpander, "Writes stochastic rounding out as arithmetic.", plain<StochasticConvertDecomposer>()},
      {"topk-decomposer", "", kExpander, "Writes top-k out as sort and slice.", make_topk_decomposer},
      {"triangular_solve_expander", "", kExpander, "Writes triangular solves out as blocks of dots.", [] { return std::make_unique<TriangularSolveExpander>(); }},

      // Collectives: communication between devices.
      {"all-gather-bcast-reorder", "", kCollective, "Broadcasts after an all-gather instead of before it.", plain<AllGatherBroadcastReorder>()},
      {"all-gather-combiner", "", kCollective, "Joins small all-gathers.", [] { return std::make_unique<AllGatherCombiner>(kCombineBytes, kCombineCount, /*combine_by_dim=*/true); }},
      {"all-gather-pad-ds-simplifier", "", kCollective, "Replaces all-gather, pad and slice by permutes and selects.", plain<AllGatherPadDsSimplifier>()},
      {"all-gather-remove-degenerate-dims", "", kCollective, "Takes dimensions of size 1 out of all-gathers.", plain<AllGatherRemoveDegenerateDims>()},
      {"all-gather-to-collective-permute-simplifier", "", kCollective, "Replaces an all-gather of which one slice is read by a permute.", plain<AllGatherDynamicSlicePermutedOffsetSimplifier>()},
      {"all-reduce-combiner", "", kCollective, "Joins small all-reduces.", [] { return std::make_unique<AllReduceCombiner>(kCombineBytes, kCombineCount); }},
      {"all-reduce-contiguous", "", kCollective, "Concatenates the operands of an all-reduce into one buffer.", plain<AllReduceContiguous>()},
      {"all-reduce-folder", "", kCollective, "Folds an all-reduce of an all-reduce into one.", plain<AllReduceFolder>()},
      {"all-reduce-promotion", "", kCollective, "Computes bf16 all-reduces in f32.", make_all_reduce_promotion},
      {"all-reduce-reassociate", "", kCollective, "Adds before the all-reduce instead of after it.", [] { return std::make_unique<AllReduceReassociate>(); }},
      {"all-reduce-simplifier", "", kCollective, "Replaces all-reduces of values that all devices share by arithmetic.", plain<AllReduceSimplifier>()},
      {"all_to_all_decomposer", "", kCollective, "Writes array all-to-alls out as tuple all-to-alls.", [] { return std::make_unique<AllToAllDecomposer>(); }},
      {"async-collective-creator", "", kCollective, "Splits collectives into start and done.", make_async_collectives},
      {"collective-permute-combiner", "", kCollective, "Joins small permutes.", [] { return std::make_unique<CollectivePermuteCombiner>(kCombineBytes, kCombineCount); }},
      {"collective-permute-decomposer", "", kCollective, "Writes permutes out as send and receive.", make_permute_decomposer},
      {"collective-permute-motion", "", kCollective, "Moves permutes out of loops.", plain<CollectivePermuteMotion>()},
      {"collective-quantizer", "", kCollective, "Communicates in the narrower type that follows or precedes a collective.", plain<CollectiveQuantizer>(), false, true},
      {"collectives-schedule-linearizer", "", kCollective, "Puts all collectives into one order by control dependencies.", [] { return std::make_unique<CollectivesScheduleLinearizer>(); }},
      {"reduce-scatter-combiner", "", kCollective, "Joins small reduce-scatters.", [] { return std::make_unique<ReduceScatterCombiner>(kCombineBytes, kCombineCount, /*combine_by_dim=*/true); }},
      {"reduce-scatter-reassociate", "", kCollective, "Adds before the reduce-scatter instead of after it.", plain<ReduceScatterReassociate>()},
      {"reorder-convert-reduce-add", "", kCollective, "Converts after the addition that follows a reduction, so that loops can accumulate.", [] { return std::make_unique<ReorderConvertReduceAdd>(); }},
      {"reorder-reduce-transpose", "", kCollective, "Transposes after a reduction in a loop instead of before it.", plain<ReorderReduceTranspose>()},
      {"schedule-aware-collective-cse", "", kCollective, "Keeps one of several equal collectives that are close to each other.", [] { return std::make_unique<ScheduleAwareCollectiveOpsCSE>(/*distance_threshold=*/100, /*for_replicas=*/false); }},
      {"sub-byte-collective-normalization", "", kCollective, "Communicates 4-bit types packed into bytes.", plain<SubByteCollectiveNormalization>()},
      {"while-loop-all-reduce-code-motion", "", kCollective, "Reduces once after a loop what every turn would reduce.", [] { return std::make_unique<WhileLoopAllReduceCodeMotion>(); }},

      // Buffers.
      {"optimize_input_output_buffer_alias", "", kBuffers, "Lets results reuse the buffers of donated inputs.", [] { return std::make_unique<OptimizeInputOutputBufferAlias>(/*registered_buffer_donor_only=*/true); }},
  };
  return *table;
}

}  // namespace

rust::Vec<PassInfo> pass_table() {
  rust::Vec<PassInfo> table;
  for (const Entry& entry : entries()) {
    // A table that names a pass differently from XLA would be a lie in every log and recipe.
    Pass pass = entry.make();
    if (pass->name() != entry.name) {
      throw std::runtime_error("the pass table says " + std::string(entry.name) +
                               " where XLA says " + std::string(pass->name()));
    }
    PassInfo info;
    info.name = entry.name;
    info.variant = entry.variant;
    info.kind = entry.kind;
    info.description = entry.description;
    info.after_layout = entry.after_layout;
    info.lossy = entry.lossy;
    table.push_back(std::move(info));
  }
  return table;
}

namespace {

bool has_batch_dimensions(const xla::HloInstruction& instruction) {
  switch (instruction.opcode()) {
    case xla::HloOpcode::kGather:
      return instruction.gather_dimension_numbers().operand_batching_dims_size() > 0;
    case xla::HloOpcode::kScatter:
      return xla::Cast<xla::HloScatterInstruction>(&instruction)
                 ->scatter_dimension_numbers()
                 .input_batching_dims_size() > 0;
    default:
      return false;
  }
}

// Writes the batch dimensions of some gathers and scatters out as indices.
class NormalizeSome : public xla::BatchedGatherScatterNormalizer {
 public:
  explicit NormalizeSome(absl::flat_hash_set<const xla::HloInstruction*> some)
      : some_(std::move(some)) {}

 protected:
  bool InstructionMatchesPattern(xla::HloInstruction* instruction) override {
    return some_.contains(instruction) &&
           xla::BatchedGatherScatterNormalizer::InstructionMatchesPattern(instruction);
  }

 private:
  absl::flat_hash_set<const xla::HloInstruction*> some_;
};

// Folding constants asks XLA's interpreter, which is wrong on gathers and scatters with batch
// dimensions: what it folds there is another program, that nobody should be paid for. So those that
// could be folded, because they hang on no input, are brought into the form that it gets right.
bool make_foldable(const Entry& entry, xla::HloModule& hlo) {
  if (std::string_view(entry.name) != "constant_folding") return false;
  absl::flat_hash_set<const xla::HloInstruction*> wrong;
  for (const xla::HloComputation* computation : hlo.computations()) {
    bool any = false;
    for (const xla::HloInstruction* instruction : computation->instructions()) {
      any |= has_batch_dimensions(*instruction);
    }
    if (!any) continue;
    absl::flat_hash_set<const xla::HloInstruction*> open;
    for (const xla::HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
      bool hangs = instruction->opcode() == xla::HloOpcode::kParameter;
      for (const xla::HloInstruction* operand : instruction->operands()) {
        hangs |= open.contains(operand);
      }
      if (hangs) {
        open.insert(instruction);
      } else if (has_batch_dimensions(*instruction)) {
        wrong.insert(instruction);
      }
    }
  }
  return !wrong.empty() && value_or_throw(NormalizeSome(std::move(wrong)).Run(&hlo));
}

// The simplifier turns x / c into x * (1 / c). Where the type is narrow, 1 / c is rounded to it, and all
// results are off by the same part in some hundred. XLA's own compiler never does that: it has widened
// such divisions before. So while the simplifier runs, it does not see what narrow types are divided by,
// unless the reciprocal is exact.
class HiddenDivisors {
 public:
  HiddenDivisors(const Entry& entry, xla::HloModule& hlo) : hlo_(hlo) {
    if (std::string_view(entry.name) != "algsimp") return;
    for (xla::HloComputation* computation : hlo.computations()) {
      std::vector<xla::HloInstruction*> divisions;
      for (xla::HloInstruction* instruction : computation->instructions()) {
        if (is_inexact(*instruction)) divisions.push_back(instruction);
      }
      for (xla::HloInstruction* division : divisions) {
        xla::HloInstruction* divisor = division->mutable_operand(1);
        throw_if_error(division->ReplaceOperandWith(
            1, computation->AddInstruction(xla::HloInstruction::CreateCustomCall(
                   divisor->shape(), {divisor}, kTarget))));
      }
    }
  }

  void reveal() {
    for (xla::HloComputation* computation : hlo_.computations()) {
      for (xla::HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
        if (!instruction->IsCustomCall(kTarget)) continue;
        throw_if_error(instruction->ReplaceAllUsesWith(instruction->mutable_operand(0)));
        throw_if_error(computation->RemoveInstruction(instruction));
      }
    }
  }

 private:
  static constexpr char kTarget[] = "xla_gym.hidden_divisor";

  static bool is_inexact(const xla::HloInstruction& instruction) {
    if (instruction.opcode() != xla::HloOpcode::kDivide) return false;
    const xla::PrimitiveType type = instruction.shape().element_type();
    if (!xla::primitive_util::IsFloatingPointType(type) ||
        xla::primitive_util::BitWidth(type) > 16) {
      return false;
    }
    const xla::HloInstruction* divisor = instruction.operand(1);
    while (divisor->opcode() == xla::HloOpcode::kBroadcast ||
           divisor->opcode() == xla::HloOpcode::kReshape) {
      divisor = divisor->operand(0);
    }
    if (!divisor->IsConstant()) return false;
    if (!xla::ShapeUtil::IsScalar(divisor->shape())) return true;
    const std::optional<double> value = divisor->literal().GetAsDouble({});
    int exponent = 0;
    return !value.has_value() || std::abs(std::frexp(*value, &exponent)) != 0.5;
  }

  xla::HloModule& hlo_;
};

}  // namespace

bool run_pass(Module& module, uint32_t pass) {
  const Entry& entry = entries().at(pass);
  bool changed = make_foldable(entry, *module.hlo);
  HiddenDivisors hidden(entry, *module.hlo);
  changed |= value_or_throw(entry.make()->Run(module.hlo.get()));
  hidden.reveal();
  return changed;
}

}  // namespace xla_gym
