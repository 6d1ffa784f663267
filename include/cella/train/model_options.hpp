// How a model runs, what its type is made for, and what its files hold.
#pragma once

#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <cella/train/no_fit_option.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cella {

namespace train {
class mesh_trainer;
struct model_on_mesh;
/// What `on_mesh` returns.
using mesh_option = std::function<std::unique_ptr<mesh_trainer>(const model_on_mesh&)>;
}  // namespace train

/// How a model runs.
enum class execution : std::uint8_t {
  graph,   ///< by programs that are compiled with it
  eager,   ///< node by node, with values that can be read
  runtime  ///< traced and planned when it is first used, on the kernels of cella::kernels
};

/// What a model's type is made for.
struct model_options {
  int batch = 32;                ///< samples per training step
  dtype precision = dtype::f32;  ///< of parameters, inputs and outputs
  /// bf16 or f16: what training computes in 16 bits, as far as that pays; see docs/training.md. f32
  /// stands for `precision`.
  dtype compute = dtype::f32;
  /// False: no programs are compiled, which takes most of the compiler's time, and the model runs
  /// in the other two modes: eagerly, where cells may branch on values, or planned at run time.
  bool compiled = !in_development;
};

/// How one model object runs.
struct run_options {
  std::uint64_t seed = 0;  ///< of first parameters and of random operations
  /// Unset: what the environment variable CELLA_EXECUTION says ("graph", "eager" or "runtime");
  /// else graph, or of a model without programs runtime if there are kernels for it, or eager.
  /// On a mesh runtime.
  std::optional<execution> mode{};
  /// For compiled programs; 0: one for each core. Unset: what the environment variable
  /// CELLA_THREADS says, or 1.
  std::optional<int> threads{};
  /// `train::on_mesh(mesh, communicator, strategy)` of train/on_mesh.hpp: the model is trained by
  /// the ranks of a mesh together, each of which has it. It runs in `execution::runtime` then.
  std::optional<train::mesh_option> mesh{};  // alone it is no literal type: see class model

  // No options of a model's object: see no_fit_option.hpp.
  [[no_unique_address]] train::detail::no_mode eager{};
  [[no_unique_address]] train::detail::no_device device{};
  [[no_unique_address]] train::detail::no_training epochs{}, learning_rate{}, lr{};
  [[no_unique_address]] train::detail::no_batch_size batch{}, batch_size{};
  [[no_unique_address]] train::detail::no_part optimizer{}, loss{};

  bool on_mesh() const { return mesh && *mesh; }
};

namespace detail {
/// Of a model with or without programs: see `run_options::mode`.
execution mode_of_environment(bool compiled, bool on_mesh);
/// Throws unless a model, which is compiled or not, on a mesh or not, can run so.
void check_mode(execution mode, bool compiled, bool on_mesh);
}  // namespace detail

/// Of `model::save` and `model::load`.
struct save_options {
  /// Also the optimizer's state, the step and epoch counters, the random state, and what callbacks
  /// and metrics of fit remember, so that training goes on bit for bit.
  bool optimizer = false;
  /// NaN and infinities as well; else they are refused by a `file_error` that names one.
  bool non_finite = false;
};
/// Of `model::load_partial`.
struct partial_options {
  bool non_finite = false;  ///< NaN and infinities as well
  /// What the file calls otherwise, as pairs of a pattern for names of this model and one for the
  /// file's with as many `*`, each of which takes what its counterpart stands for:
  /// `{{"*.base.*", "*.*"}}`. The first pair that matches counts.
  std::vector<std::pair<std::string, std::string>> names{};
};

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/train/model_options_body.hpp>
#endif
