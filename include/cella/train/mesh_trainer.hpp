// The ranks of a mesh that train one model together, as the model sees them; `on_mesh` makes them.
#pragma once

#include <algorithm>
#include <array>
#include <cella/data/batch_share.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/graph.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/model_options.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/train/slots.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cella::train {

/// What ranks have to know of the model that they train. All of it outlives them.
struct model_on_mesh {
  std::function<graph(std::int64_t rows)> trace;  ///< the training step for so many samples
  std::int64_t batch{};
  dtype precision{};
  parameter_store* parameters{};
  std::function<slot_store&()> slots;
  thread_pool* threads{};  ///< of this rank, or null
};

/// A training step that is divided among ranks. Each has the model, and all call the same
/// functions in the same order.
class mesh_trainer {
 public:
  virtual ~mesh_trainer() = default;
  virtual int rank() const = 0;

  // ---- training

  /// The samples that this rank reads of a batch of so many.
  virtual data::batch_share share(std::int64_t rows) = 0;
  /// One step. `arguments` are the inputs and targets of the samples of `share`.
  virtual void step(std::int64_t rows, const data::batch_share& share,
                    std::span<const tensor_ref> arguments,
                    std::span<const named_scalar> numbers) = 0;
  /// Result `k` of the last step, of all samples.
  virtual tensor_ref result(int k) const = 0;
  /// What all ranks together gave the last step as argument `k`.
  virtual void join_argument(int k, const tensor_ref& whole) = 0;
  /// Brings parameters and the optimizer's state into the stores; the next step takes them from
  /// there. Ranks exchange something only if they have parts of them that a step has changed.
  virtual void gather() = 0;

  // ---- what is divided by samples alone

  virtual data::batch_share even_share(std::int64_t rows) const = 0;
  /// The rows of all ranks, one behind the other: `part` are those of this rank's even share.
  virtual void join(const tensor_ref& part, const tensor_ref& whole, std::int64_t rows) const = 0;
  /// The sums of all ranks' numbers.
  virtual void sum(std::span<float> numbers) const = 0;

  /// Whether it is so on some rank.
  bool any(bool here) const {
    float ranks = here;
    sum({&ranks, 1});
    return ranks > 0;
  }
  /// Calls f on the first rank, for which the others wait. What it throws all throw.
  template <class F>
  void once(F f) const {
    std::array<float, 1024> words{};  // what went wrong, letter by letter
    std::exception_ptr thrown;
    try {
      if (rank() == 0) f();
    } catch (const std::exception& e) {
      thrown = std::current_exception();
      const std::string_view what(e.what());
      for (std::size_t i = 0; i < std::min(what.size(), words.size()); ++i)
        words[i] = float(static_cast<unsigned char>(what[i]));
    }
    sum(words);
    if (thrown) std::rethrow_exception(thrown);
    std::string said;
    for (float w : words)
      if (w > 0) said += char(static_cast<unsigned char>(w));
    if (!said.empty()) throw error("the first rank of the mesh: " + said);
  }
};

}  // namespace cella::train
