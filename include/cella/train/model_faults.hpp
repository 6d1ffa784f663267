// What a model refuses, and why: to be made, to be trained, or to take data or metrics. Each is a
// type, which the compiler prints where the model's user asks for it.
#pragma once

#include <cella/data/loader.hpp>
#include <cella/graph/report.hpp>
#include <cella/train/batch_columns.hpp>
#include <cella/train/callback_faults.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/input.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/model_options.hpp>
#include <cella/train/traced_net.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cella::detail {

template <class Labels>
constexpr text labels_fault() {
  if constexpr (std::is_same_v<Labels, var> || model_inputs<Labels>)
    return {};
  else
    return text(type_name<Labels>())
           << ": a model's labels are a var, or a struct of features<...> and integers<...>";
}
/// What stands in the place of a model's input, unless it is one.
template <class Net, class Input>
constexpr text input_fault() {
  if constexpr (model_inputs<Input>)
    return {};
  else if constexpr (model_inputs<Net>)
    return text() << "model<" << type_name<Net>() << ", " << type_name<Input>()
                  << ">: the net comes first, then what it takes";
  else
    return text(type_name<Input>()) << ": a model's input is features<10>, image<1, 28, 28>, "
                                       "tokens<32>, or a struct of such";
}
template <class Input>
using possible_input = std::conditional_t<model_inputs<Input>, Input, features<1>>;
/// Whether a model with parameters of type `precision` may compute in `compute`.
constexpr bool is_computed_in(dtype compute, dtype precision) {
  return compute == dtype::f32 || (is_storage_only(compute) && precision == dtype::f32);
}
/// Why the parts are no model, as far as their types say.
template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
constexpr text find_model_fault() {
  if constexpr (!input_fault<Net, Input>().empty())
    return input_fault<Net, Input>();
  else if constexpr (Options.batch < 1)
    return text() << "model_options::batch is " << Options.batch << "; give at least 1";
  else if constexpr (!is_floating(Options.precision))
    return text() << "model_options::precision is " << Options.precision
                  << "; a model's parameters are floating-point numbers, f32 or f64";
  else if constexpr (!is_computed_in(Options.compute, Options.precision))
    return text() << "model_options::compute is " << Options.compute << " beside parameters of "
                  << Options.precision << "; it is f32, or beside parameters of f32 bf16 or f16";
  else if constexpr (!cell_fault<step_of<Net, Input, Loss, Optimizer>, 2>.empty())
    return cell_fault<step_of<Net, Input, Loss, Optimizer>, 2>;
  else
    return labels_fault<typename step_of<Net, Input, Loss, Optimizer>::loss_call::labels>();
}
template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
inline constexpr text model_fault = find_model_fault<Net, Input, Loss, Optimizer, Options>();

/// The options that a refused model goes on with.
constexpr model_options possible(model_options o) {
  if (o.batch < 1) o.batch = 1;
  if (!is_floating(o.precision)) o.precision = dtype::f32;
  if (!is_computed_in(o.compute, o.precision)) o.compute = dtype::f32;
  return o;
}

/// The options of a model whose net the compiler could not run, in braces: what g++ says of that it
/// says where these close.
template <class Traced>
struct stopped_options {
  struct stop {
    consteval stop() { Traced::say_where_it_stops(); }
  };
  std::uint64_t seed = 0;
  std::optional<execution> mode{};
  std::optional<int> threads{};
  std::optional<train::mesh_option> mesh{};
  stop at;  // without an initializer, whose line it would be
};

/// Why there is no training step. To ask this makes the compiler trace one; where it cannot run
/// that, g++ says so here, in the line that stops it, and clang where it is asked for: see
/// `stopped_training`.
template <class Model>
constexpr auto find_training_fault() {
  if constexpr (Model::accepted && Model::is_compiled) {
    using training = typename Model::engine_type::training;
#if !defined(__clang__)
    if constexpr (!training::runs) {
      [[maybe_unused]] constexpr int stop = say_where_it_stops<typename training::make>();
    }
#endif
    return typename training::fault{};
  } else {
    return wrong_model<>{};
  }
}
template <class Model>
constexpr bool has_training_step() {
  if constexpr (Model::accepted && Model::is_compiled)
    return Model::engine_type::training::accepted;
  else
    return Model::accepted;
}
template <class Model>
using training_fault = decltype(find_training_fault<Model>());
/// Whether clang could not run the training step. With g++ that is an error already.
template <class Model>
constexpr bool find_stop() {
#if defined(__clang__)
  if constexpr (Model::accepted && Model::is_compiled) return !Model::engine_type::training::runs;
#endif
  return false;
}
template <class Model>
concept stops_in_training = find_stop<Model>();
inline constexpr text stop_without_place(
    "the compiler cannot run the loss or the optimizer, which throws or calls what is not "
    "constexpr; for the place hand over data that are a variable");
/// What takes the first argument of a call that wants such a step: clang names the line of the
/// call. It would blame a temporary object itself.
template <class Model>
struct stopped_training {
  template <class First>
  consteval stopped_training(const First&) {
    say_where_it_stops<typename Model::engine_type::training::make>();
  }
  template <class First, class Why = sentence_of<stop_without_place>>
  requires(!std::is_lvalue_reference_v<First>)  //
      stopped_training(First&&)
  = delete;
};

template <class Data>
struct batches_of {
  using type = typename data::loader<Data>::batch_type;
};
template <data::batch_loader Data>
struct batches_of<Data> {
  using type = typename Data::batch_type;
};
template <class Model, class Data>
constexpr text find_data_fault() {
  if constexpr (data::sample_source<Data>)
    return columns_fault<typename Model::engine_type, typename batches_of<Data>::type>;
  else
    return text(type_name<Data>())
           << ": hand over a data set (see data/sample.hpp) or a loader of one";
}
/// Says in `fault`, unless that says something, that a `T` is not `wanted`.
template <class T>
constexpr void refuse_argument(text& fault, bool accepted, std::string_view wanted) {
  if (fault.empty() && !accepted) fault << type_name<std::remove_cvref_t<T>>() << ": " << wanted;
}
/// Whether a metric is given what comes out of an engine, and what it is compared with.
template <class M, class Engine>
concept measures =
    metrics::loss_metric<M> ||
    (Engine::target_count > 0 &&
     (
         requires(M & m, const typename Engine::output_columns::views& y,
                  const typename Engine::target_columns::views& t) { m.update(y, t); } ||
         requires(M & m, const typename Engine::output_columns::views& y,
                  const typename Engine::input_columns::views& x,
                  const typename Engine::target_columns::views& t) { m.update(y, x, t); })) ||
    (Engine::target_count == 0 &&
     requires(M & m, const typename Engine::output_columns::views& y,
              const typename Engine::input_columns::views& x) { m.update(y, x); });
/// Says in `fault`, unless that says something, why a metric, or a callback, cannot be used.
template <class Model, class T>
constexpr void refuse_use(text& fault) {
  using engine = typename Model::engine_type;
  using own = std::remove_cvref_t<T>;
  if (!fault.empty()) return;
  if constexpr (std::is_const_v<std::remove_reference_t<T>> &&
                (metrics::metric<T> || !train::callback<std::remove_reference_t<T>, Model>)) {
    fault << type_name<own>() << ": it is const, but remembers what it is told; leave const out";
  } else if constexpr (metrics::metric<T>) {
    if constexpr (!measures<own, engine>) {
      fault << type_name<own>() << ": has no update for predictions "
            << type_name<typename engine::output_columns::views>();
      if constexpr (engine::target_count > 0)
        fault << " and targets " << type_name<typename engine::target_columns::views>()
              << "; metrics of classes take integers";
    }
  } else if constexpr (requires { own::template fault<Model>(); }) {
    fault = own::template fault<Model>();
  }
}
template <class Model, class Data, class... Extras>
inline constexpr text fit_arguments_fault = [] {
  text fault = find_data_fault<Model, Data>();
  (refuse_events<Model, std::remove_reference_t<Extras>>(fault), ...);
  (refuse_argument<Extras>(
       fault, metrics::metric<Extras> || train::callback<std::remove_cvref_t<Extras>, Model>,
       "fit takes metrics and callbacks; a callback has a member on_train_begin, on_epoch_begin, "
       "on_batch_end, on_epoch_end or on_train_end"),
   ...);
  (refuse_use<Model, Extras>(fault), ...);
  return fault;
}();
template <class Model, class Data, class... Metrics>
inline constexpr text evaluate_arguments_fault = [] {
  text fault = find_data_fault<Model, Data>();
  (refuse_argument<Metrics>(fault, metrics::metric<Metrics>,
                            "evaluate takes metrics; see train/metrics.hpp"),
   ...);
  (refuse_use<Model, Metrics>(fault), ...);
  return fault;
}();

template <class Model, class Data, class... Extras>
constexpr auto find_fit_fault() {
  if constexpr (!Model::accepted)
    return wrong_model<>{};
  else if constexpr (!fit_arguments_fault<Model, Data, Extras...>.empty())
    return fault_of<fit_arguments_fault<Model, Data, Extras...>>{};
  else
    return training_fault<Model>{};
}
template <class Model, class Data, class... Metrics>
constexpr auto find_evaluate_fault() {
  if constexpr (!Model::accepted)
    return wrong_model<>{};
  else
    return fault_of<evaluate_arguments_fault<Model, Data, Metrics...>>{};
}
/// Whether these are the arguments of `predict` that tell addresses.
template <class Engine, class... A>
inline constexpr bool takes_addresses = false;
template <class Engine, class X, class Rows, class... Places>
requires(sizeof...(Places) < 2)  //
    inline constexpr bool takes_addresses<Engine, X, Rows, Places...> =
        std::is_convertible_v<const X&, typename Engine::input_pointers> &&
        std::is_convertible_v<const Rows&, std::int64_t> &&
        (std::is_convertible_v<const Places&, typename Engine::output_places> && ...);
/// Why `predict` does not take these arrays.
template <class Engine, class... A>
constexpr text find_samples_fault() {
  constexpr std::size_t needed = Engine::input_count;
  text fault;
  if constexpr (sizeof...(A) == 1 && (data::sample_source<A> && ...) && !(array_like<A> && ...)) {
    fault << "predict takes arrays; of a data set predict batch by batch: for (auto& b : "
             "data.batch(32).epoch(0)) m.predict(b.column<0>())";
  } else if constexpr (sizeof...(A) == 1 && !(array_like<A> && ...)) {
    (fault << ... << type_name<A>())
        << ": predict takes an array of samples, such as a std::vector or a std::span";
  } else if constexpr (!(array_like<A> && ...)) {
    if constexpr (!takes_addresses<Engine, A...>) {
      (refuse_argument<A>(fault, array_like<A>,
                          "predict takes an array of samples for each input, such as a "
                          "std::vector, or addresses of samples and the number of rows"),
       ...);
    }
  } else if constexpr (sizeof...(A) != needed) {
    fault << "predict: hand over one array for each input, " << needed << " instead of "
          << sizeof...(A);
  } else {
    const auto check = [&]<class Array, class Element>(std::string_view name) {
      using own = std::remove_const_t<element_of_array<const Array>>;
      if (fault.empty() && !std::is_same_v<own, Element>)
        fault << "predict: the elements of " << name << " are " << type_name<own>()
              << ", but the model takes " << type_name<Element>() << "; convert them";
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (check.template operator()<A, typename Engine::input_columns::template at<I>>(
           name_of_input<typename Engine::input_type, I>()),
       ...);
    }
    (std::make_index_sequence<needed>{});
  }
  return fault;
}
template <class Engine, class... A>
inline constexpr text samples_text = find_samples_fault<Engine, A...>();
template <class Engine, class... A>
using samples_fault = fault_of<samples_text<Engine, A...>>;

/// Why fit does not take data alone.
template <class Data>
inline constexpr text no_options_text(
    "fit is told how long to train: m.fit(data, {.epochs = 10, .learning_rate = 0.01})");
template <class Data>
using no_options_fault = fault_of<no_options_text<Data>>;
/// Why fit does not take options, and then data.
template <class Data>
inline constexpr text options_first_text(
    "the data come first, then the options: m.fit(data, {.epochs = 10})");
template <class Data>
using options_first_fault = fault_of<options_first_text<Data>>;
/// Why a model is not made of a T.
template <class T>
inline constexpr text made_of_text = text(type_name<T>())
                                     << ": a model is told in braces how it runs: {.seed = 1}";
template <class T>
using made_of_fault = fault_of<made_of_text<T>>;
/// Why a T stands in no place of the options of `fit`, behind a Data.
template <class Data, class T>
constexpr text find_fit_options_fault() {
  text fault(type_name<T>());
  if constexpr (data::sample_source<Data>)
    return fault
           << ": behind the data fit takes options in braces, m.fit(data, {.epochs = 10}), and "
              "behind those metrics and callbacks, such as train::validation(data)";
  else
    return fault << ": fit takes samples and labels as one data set, "
                    "data::tensor_dataset(data::column<float>({n, 10}, x), data::column(y))";
}
template <class Data, class T>
inline constexpr text fit_options_text = find_fit_options_fault<Data, T>();
template <class Data, class T>
using fit_options_fault = fault_of<fit_options_text<Data, T>>;

/// Why `fit` and `evaluate` do not take these; `wrong_model<>` if they do, or if the compiler has
/// said something already.
template <class Model, class Data, class... Extras>
using fit_fault = decltype(find_fit_fault<Model, Data, Extras...>());
template <class Model, class Data, class... Metrics>
using evaluate_fault = decltype(find_evaluate_fault<Model, Data, Metrics...>());

}  // namespace cella::detail
