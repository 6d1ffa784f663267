// The loops of a model over data: fit and evaluate. Included by model.hpp.
#pragma once

#include <cella/train/model.hpp>
#include <vector>

namespace cella {

namespace detail {

/// A loader as it is; a data set in batches.
template <class Data>
decltype(auto) as_loader(const Data& data, [[maybe_unused]] std::int64_t batch) {
  if constexpr (data::batch_loader<Data>) {
    return (data);
  } else {
    static_assert(data::dataset<Data>, "fit and evaluate take a loader or a data set");
    return data::loader<Data>(data, batch);
  }
}

/// Column `I` of a batch as elements of type T, converted into `buffer` if need be. Throws `error`
/// unless a row is a `sample` of the model.
template <class T, std::size_t I, class Batch>
const T* column_of(const Batch& b, const shape& sample, std::string_view what,
                   std::vector<T>& buffer) {
  const auto column = b.template column<I>();
  using U = typename decltype(column)::value_type;
  static_assert(std::is_floating_point_v<U> == std::is_floating_point_v<T>,
                "the data's column and the model's are not both numbers or both integers");
  shape row = column.extents();
  row.erase(0);
  if (row != sample) {
    throw error(text() << "the data's " << what << " are " << row << " per sample, but the model's "
                       << sample << "; reshape the data, or change the model's input or loss");
  }
  if constexpr (std::is_same_v<T, U>) {
    return column.data();
  } else {
    buffer.assign(column.begin(), column.end());
    return buffer.data();
  }
}

/// Calls f(metric) for the metrics among `xs`, or f(callback) for the others.
template <bool Metrics, class F, class... Xs>
void for_each_extra(F f, Xs&... xs) {
  [[maybe_unused]] auto one = [&](auto& x) {
    if constexpr (metrics::metric<decltype(x)> == Metrics) f(x);
  };
  (one(xs), ...);
}

template <class P, class T, class M>
void update_metric(M& m, data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
  static_assert(metrics::prediction_metric<M, P, T>,
                "a metric has update(prediction, target) with two data::tensor_view, or "
                "update(loss, rows)");
  m.update(prediction, target);
}

}  // namespace detail

template <class Net, sample_spec Input, auto Loss, auto Optimizer, model_options Options>
template <class Data, class... Extras>
train::history model<Net, Input, Loss, Optimizer, Options>::fit(const Data& data,
                                                                const train::fit_options& options,
                                                                Extras&&... extras) {
  static_assert(
      ((metrics::metric<Extras> || train::callback<std::remove_cvref_t<Extras>, model>)&&...),
      "fit takes metrics and callbacks: a callback has a member on_train_begin, "
      "on_epoch_begin, on_batch_end, on_epoch_end or on_train_end");
  const auto turn = own_turn();
  const auto& loader = detail::as_loader(data, batch_size);
  if (loader.batch_size() != batch_size) {
    throw error(text() << "fit: the loader makes batches of " << std::int64_t(loader.batch_size())
                       << ", but the model is made for " << batch_size << "; batch the data by "
                       << batch_size << ", or set model_options::batch");
  }
  struct freezing {
    engine_type& e;
    ~freezing() { e.thaw_all(); }
  } const guard{engine_};
  engine_.freeze(frozen_tensors(options.freeze));

  train::fit_context<model> c(*this);
  c.epochs = options.epochs;
  c.batches = loader.batches();
  c.step = steps();
  train::history past;
  std::vector<input_element> inputs;
  std::vector<target_element> targets;
  auto callbacks = [&](auto call) { detail::for_each_extra<false>(call, extras...); };
  auto measures = [&](auto call) { detail::for_each_extra<true>(call, extras...); };
  if (progress_[2] >= c.batches) progress_[2] = 0;

  callbacks([&](auto& f) {
    if constexpr (requires { f.on_train_begin(c); }) f.on_train_begin(c);
  });
  for (c.epoch = 0; c.epoch < c.epochs && !c.stop; ++c.epoch) {
    c.record = {};
    c.record.epoch = epochs();
    c.batch = progress_[2];
    callbacks([&](auto& f) {
      if constexpr (requires { f.on_epoch_begin(c); }) f.on_epoch_begin(c);
    });
    metrics::loss mean;
    measures([](auto& m) { m.reset(); });
    const auto began = std::chrono::steady_clock::now();
    for (auto& b : loader.epoch(epochs(), progress_[2])) {
      const std::int64_t rows = b.size();
      const auto* x = detail::column_of<input_element, 0>(b, Input::extents, "inputs", inputs);
      const shape target = engine_type::for_rows(engine_.target_type(), rows).shape;
      shape per_sample = target;
      if (per_sample.rank) per_sample.erase(0);
      const auto* y = detail::column_of<target_element, 1>(b, per_sample, "targets", targets);
      c.learning_rate = options.learning_rate(steps(), c.batches);
      const auto r = advance(x, y, rows, c.learning_rate);
      mean.update(r.loss, rows);
      measures([&](auto& m) {
        if constexpr (metrics::loss_metric<std::remove_cvref_t<decltype(m)>>)
          m.update(r.loss, rows);
        else
          detail::update_metric(m, r.prediction,
                                data::tensor_view<const target_element>(y, target));
      });
      c.batch = ++progress_[2];
      c.step = steps();
      c.loss = r.loss;
      c.record.samples += rows;
      c.record.set("loss", mean.value());
      callbacks([&](auto& f) {
        if constexpr (requires { f.on_batch_end(c); }) f.on_batch_end(c);
      });
      if (c.stop) break;
    }
    c.record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    measures([&](auto& m) { c.record.set(m.name(), m.value()); });
    ++progress_[1];
    progress_[2] = 0;
    callbacks([&](auto& f) {
      if constexpr (requires { f.on_epoch_end(c); }) f.on_epoch_end(c);
    });
    past.push_back(c.record);
  }
  callbacks([&](auto& f) {
    if constexpr (requires { f.on_train_end(c); }) f.on_train_end(c);
  });
  return past;
}

template <class Net, sample_spec Input, auto Loss, auto Optimizer, model_options Options>
template <class Data, class... Metrics>
train::scores model<Net, Input, Loss, Optimizer, Options>::evaluate(const Data& data,
                                                                    Metrics&&... measures) {
  static_assert((metrics::metric<Metrics> && ...), "evaluate takes metrics; see train/metrics.hpp");
  if constexpr (sizeof...(Metrics) == 0) {
    return evaluate(data, metrics::loss{});
  } else {
    const auto turn = own_turn();
    std::vector<input_element> inputs;
    std::vector<target_element> targets;
    std::vector<output_element> outputs;
    (measures.reset(), ...);
    for (auto& b : detail::as_loader(data, batch_size).epoch(0)) {
      const std::int64_t rows = b.size();
      const shape target = engine_type::for_rows(engine_.target_type(), rows).shape;
      const shape output = engine_type::for_rows(engine_.output_type(), rows).shape;
      shape per_sample = target;
      if (per_sample.rank) per_sample.erase(0);
      const auto* x = detail::column_of<input_element, 0>(b, Input::extents, "inputs", inputs);
      const auto* y = detail::column_of<target_element, 1>(b, per_sample, "targets", targets);
      outputs.resize(std::size_t(output.size()));
      predict(x, rows, outputs.data());
      auto measure = [&](auto& m) {
        if constexpr (metrics::loss_metric<std::remove_cvref_t<decltype(m)>>)
          m.update(engine_.loss(outputs.data(), y, rows), rows);
        else
          detail::update_metric(m, data::tensor_view<const output_element>(outputs.data(), output),
                                data::tensor_view<const target_element>(y, target));
      };
      (measure(measures), ...);
    }
    train::scores r;
    (r.set(measures.name(), measures.value()), ...);
    return r;
  }
}

}  // namespace cella
