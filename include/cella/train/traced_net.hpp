// What a model knows of its net, its loss and its data before it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/freeze.hpp>
#include <cella/graph/report.hpp>
#include <cella/ops/constant.hpp>
#include <cella/train/call_forms.hpp>
#include <cella/train/input.hpp>
#include <cella/train/step.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cella::detail {

/// The training step of a model.
template <class Net, class Input, auto Loss, auto Optimizer, dtype Compute = dtype::f32>
using step_of = training_step<net_cell<Net, traced_inputs<Input>>, fixed<Loss>, fixed<Optimizer>,
                              traced_inputs<Input>, Compute>;

/// Takes the place of a refused net in programs, so that the net's fault remains the only error.
template <class Outputs = var>
struct refused_net {
  constexpr Outputs operator()(var x, std::same_as<var> auto...) const {
    Outputs none{};
    visit_vars(none, [&](var& v) { v = constant(*x.b, 0, {x.b->precision, {x.extent(0), 2}}); });
    return none;
  }
};
/// What the compiler finds when it traces a net for inference on samples `Specs`.
template <class Net, dtype Precision, int Rows, class Specs, bool Compiled>
struct traced_net {
  using make = typename Specs::template graph<Net, false, Precision, Rows>;
  using result = net_result<Net, Specs::size>;
  static constexpr bool accepted = is_made<make>;
  using fault = graph_fault_of<make>;
  static consteval int say_where_it_stops() { return detail::say_where_it_stops<make>(); }
  using accepted_net = std::conditional_t<accepted, Net, refused_net<result>>;
  static constexpr auto outputs() {
    std::array<tensor_type, std::size_t(var_count<result>())> all{};
    for (tensor_type& t : all) t = {Precision, {Rows, 2}};
    if constexpr (accepted) {
      for (std::size_t k = 0; k < all.size(); ++k)
        all[k] = frozen<make>.type(frozen<make>.region_outputs(0)[k]);
    }
    return all;
  }
};
/// Without programs only the element type of the outputs counts: the rest is known at run time.
template <class Net, dtype Precision, int Rows, class Specs>
struct traced_net<Net, Precision, Rows, Specs, false> {
  using result = net_result<Net, Specs::size>;
  static constexpr bool accepted = true;
  using fault = wrong_model<>;
  using accepted_net = Net;
  static constexpr auto outputs() {
    std::array<tensor_type, std::size_t(var_count<result>())> all{};
    for (tensor_type& t : all) t = {Precision, {Rows, 1}};
    return all;
  }
};
/// The program of a training step, which takes targets `Labels`, or one `Target`, or none.
template <class Step, dtype Precision, int Rows, class Specs, class Labels, tensor_type Target,
          std::size_t Count>
struct make_training {
  using type = typename specs_of<Labels>::template append_to<Specs, Step, true, Precision, Rows>;
};
template <class Step, dtype Precision, int Rows, class Specs, tensor_type Target>
struct make_training<Step, Precision, Rows, Specs, var, Target, 1> {
  using type = typename Specs::template program<Step, true, Precision, Rows,
                                                typename tensor_of<Target>::type>;
};
template <class Step, dtype Precision, int Rows, class Specs, tensor_type Target>
struct make_training<Step, Precision, Rows, Specs, var, Target, 0> {
  using type = typename Specs::template program<Step, true, Precision, Rows>;
};
template <class Step, dtype Precision, int Rows, class Specs, class Labels, tensor_type Target,
          std::size_t Count>
using training_program =
    typename make_training<Step, Precision, Rows, Specs, Labels, Target, Count>::type;

template <auto Loss>
constexpr tensor_type target_of(const tensor_type& prediction) {
  if constexpr (requires { Loss.target(prediction); })
    return Loss.target(prediction);
  else
    return prediction;
}
/// What a model's loss compares a batch of outputs with: the members of a struct of labels, or one
/// tensor, whose type follows from the first output's.
template <auto Loss, class Labels, dtype Precision, int Rows>
constexpr auto targets_of(const tensor_type& prediction) {
  if constexpr (std::is_same_v<Labels, var>)
    return std::array{target_of<Loss>(prediction)};
  else
    return specs_of<Labels>::template types<Precision, Rows>;
}
/// The loss of predictions that were made: its outputs and, if it takes them, inputs and targets.
template <class Loss, class Outputs, class Inputs>
struct loss_cell {
  constexpr var operator()(std::same_as<var> auto... columns) const {
    using call = loss_call<Loss, Outputs, Inputs>;
    const std::array all{columns...};
    Inputs inputs{};
    if constexpr (call::takes_inputs) inputs = of_vars<Inputs>(all.data() + var_count<Outputs>());
    return call::call(Loss{}, of_vars<Outputs>(all.data()), inputs,
                      all.data() + (all.size() - call::targets));
  }
};
/// Where the samples behind the first `rows` of a batch of so many begin in each column.
template <std::size_t N>
std::array<std::byte*, N> behind(std::array<std::byte*, N> all,
                                 const std::array<tensor_type, N>& types, std::int64_t batch,
                                 std::int64_t rows) {
  for (std::size_t k = 0; k < N; ++k) all[k] += types[k].bytes() / batch * rows;
  return all;
}
/// `type`, which is for `batch` samples, for another number of them.
constexpr tensor_type for_rows(tensor_type type, std::int64_t batch, std::int64_t rows) {
  if (type.rank()) type.shape[0] = int(type.shape[0] / batch * rows);
  return type;
}
template <std::size_t N>
constexpr std::array<tensor_type, N> for_rows(std::array<tensor_type, N> types, std::int64_t batch,
                                              std::int64_t rows) {
  for (tensor_type& t : types) t = for_rows(t, batch, rows);
  return types;
}

}  // namespace cella::detail
