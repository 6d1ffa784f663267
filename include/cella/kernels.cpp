// What graphs need that exist at run time only, compiled once: the target cella::kernels.
// Whoever builds without CMake adds this file to the program and defines CELLA_KERNELS.
#define CELLA_COMPILES_KERNELS
#include <cella/backend/cpu/gemm/tile.hpp>
#include <cella/backend/cpu/run/loaded_runner.hpp>
#include <cella/backend/cpu/run/peak.hpp>
#include <cella/backend/default_kernels.hpp>
#include <cella/backend/host/thread_count_body.hpp>
#include <cella/backend/host/threads_body.hpp>
#include <cella/graph/onnx_attributes_body.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/attention.hpp>
#include <cella/ops/list.hpp>
#include <cella/ops/strided_body.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/interpreter_body.hpp>
#include <cella/runtime/parameters_body.hpp>
#include <cella/runtime/profile.hpp>
#include <cella/train/average_scope_body.hpp>
#include <cella/train/checkpoint_body.hpp>
#include <cella/train/fit_body.hpp>
#include <cella/train/kept_tensors_body.hpp>
#include <cella/train/model_options_body.hpp>
#include <cella/train/parameter_users_body.hpp>
#include <cella/train/position_body.hpp>
#include <cella/train/runtime_path_body.hpp>
#include <cella/train/slots_body.hpp>
#include <cella/train/state_body.hpp>
#include <cella/train/traced_steps_body.hpp>
#include <tuple>
#include <variant>

namespace cella {

#define CELLA_DESCRIBE(Op) template const op_info info_of<Op>;
CELLA_OPERATIONS(CELLA_DESCRIBE)
#undef CELLA_DESCRIBE
template class cell_visitor<parameter_base>;
template class cell_visitor<const parameter_base>;

namespace {

/// The register tiles of products, which programs are linked with.
template <class T>
constexpr std::tuple register_tiles{
    &cpu::tile_kernels<T, cpu::tile_form::strided, cpu::no_side_work, 1, 1>,
    &cpu::tile_kernels<T, cpu::tile_form::indirect, cpu::no_side_work, 1, 1>,
    &cpu::large_tile_kernels<T, cpu::tile_form::strided, cpu::side_pair>,
    &cpu::large_tile_kernels<T, cpu::tile_form::packed, cpu::side_pair>,
    &cpu::large_tile_kernels<T, cpu::tile_form::by_columns, cpu::side_ahead>};
[[gnu::used]] constexpr auto tiles_of_f32 = register_tiles<float>;
[[gnu::used]] constexpr auto tiles_of_f64 = register_tiles<double>;
[[gnu::used]] constexpr auto tiles_of_bf16 = [] {
  if constexpr (multiplies_pairs && !cpu::on_unit<bfloat16>)
    return &cpu::large_tile_kernels<float, cpu::tile_form::pairs, cpu::side_pair>;
  else
    return nullptr;
}();

/// A plan and its profile, if the environment wants one.
template <class T>
struct profiled_runner {
  default_backend::loaded_runner<T> runner;
  std::unique_ptr<call_profile> profile;

  profiled_runner(const graph& g, thread_pool* threads) : runner(g, threads) {
    profile = call_profile::if_wanted([this] { return labels_of_calls(runner); },
                                      &cpu::measured_peak<float>, runner.thread_count());
  }
  void run() {
    if (!profile) [[likely]]
      return runner.run();
    runner.begin();
    profile->time_all(runner.call_count(), [this](std::size_t k) { runner.run_call(k); });
  }
};

}  // namespace

struct loaded_program::state {
  std::variant<profiled_runner<float>, profiled_runner<double>> run;

  template <class T>
  state(std::in_place_type_t<T>, const graph& g, thread_pool* threads)
      : run(std::in_place_type<profiled_runner<T>>, g, threads) {}
};

text loaded_program::refusal(const graph& g, dtype element) {
  if (element != dtype::f32 && element != dtype::f64)
    return text() << "programs compute in f32 or f64, not in " << name(element);
  return element == dtype::f32 ? default_backend::loaded_runner<float>::refusal(g)
                               : default_backend::loaded_runner<double>::refusal(g);
}
loaded_program::loaded_program(const graph& g, dtype element, thread_pool* threads) {
  if (const text why = refusal(g, element); !why.empty())
    throw error(text() << "this graph cannot be planned at run time: " << why);
  state_ = element == dtype::f32 ? std::make_unique<state>(std::in_place_type<float>, g, threads)
                                 : std::make_unique<state>(std::in_place_type<double>, g, threads);
}
loaded_program::loaded_program(loaded_program&&) noexcept = default;
loaded_program& loaded_program::operator=(loaded_program&&) noexcept = default;
loaded_program::~loaded_program() = default;

void loaded_program::bind(int i, std::byte* at) {
  std::visit([&](auto& r) { r.runner.bind(std::size_t(i), at); }, state_->run);
}
void loaded_program::prepare_again() {
  std::visit([](auto& r) { r.runner.prepare_again(); }, state_->run);
}
void loaded_program::operator()() {
  const default_backend::arithmetic guard;
  std::visit([](auto& r) { r.run(); }, state_->run);
}
tensor_ref loaded_program::result(int k) const {
  return std::visit([&](const auto& r) { return r.runner.result(k); }, state_->run);
}
void loaded_program::explain(std::ostream& out, std::size_t width) const {
  std::visit([&](const auto& r) { detail::explain_plan(out, r.runner, {.width = width}); },
             state_->run);
}

graph compiled_once::optimize(graph g) { return cella::optimize(std::move(g)); }
void compiled_once::compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
                            span<const tensor_ref> out) {
  default_backend::compute<float, double>(op, options, in, out);
}

}  // namespace cella
