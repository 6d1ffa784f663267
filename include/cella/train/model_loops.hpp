// The loops of a model over data: fit and evaluate. Included by model.hpp.
#pragma once

#include <cella/train/fit_extras.hpp>
#include <cella/train/model.hpp>
#include <chrono>
#include <optional>
#include <vector>

namespace cella {

namespace detail {

/// A loader as it is; a data set in batches.
template <data::sample_source Data>
decltype(auto) as_loader(const Data& data, [[maybe_unused]] std::int64_t batch) {
  if constexpr (data::batch_loader<Data>) {
    return (data);
  } else {
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

/// Throws `error` if an epoch of the loader has no batch.
template <class Loader>
void check_batches(const char* who, const Loader& loader) {
  if (loader.batches() > 0) return;
  text what(who);
  what << ": the data have no batch";
  if constexpr (requires { std::int64_t(loader.source().size()); }) {
    what << ": they have " << std::int64_t(loader.source().size()) << " samples, a batch has "
         << std::int64_t(loader.batch_size()) << ", and what is less than a batch may be dropped";
  }
  throw error(what << "; hand over a batch at least, or keep the remainder");
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
train::history model<Net, Input, Loss, Optimizer, Options>::train_on(
    const Data& data, const train::fit_options& options, Extras&&... extras) {
  static_assert(
      ((metrics::metric<Extras> || train::callback<std::remove_cvref_t<Extras>, model>)&&...),
      "fit takes metrics and callbacks: a callback has a member on_train_begin, "
      "on_epoch_begin, on_batch_end, on_epoch_end or on_train_end");
  using train::event;
  using clock = std::chrono::steady_clock;
  const auto turn = own_turn();
  check_idle("fit");
  const auto& loader = detail::as_loader(data, batch_size);
  if (loader.batch_size() != batch_size) {
    throw error(text() << "fit: the loader makes batches of " << std::int64_t(loader.batch_size())
                       << ", but the model is made for " << batch_size << "; batch the data by "
                       << batch_size << ", or set model_options::batch");
  }
  detail::check_batches("fit", loader);
  if (options.epochs < 0 || options.epochs > train::most_counted) {
    throw error(text() << "fit: fit_options::epochs is " << options.epochs
                       << "; give 0 or more, and at most 2^53");
  }
  train::epoch_progress& at = fit_.epoch;
  if (at.last == event::none) {
    at = {};
    at.now.record.epoch = epochs();
  }
  train::fit_context<model> c(*this);
  static_cast<train::fit_state&>(c) = at.now;
  c.epochs = options.epochs;
  c.batches = loader.batches();
  c.batch = at.last == event::epoch_end ? c.batches : progress_[2];
  c.step = steps();
  c.stop = c.unfinished = false;
  const std::int64_t expected = at.now.batches ? at.now.batches : c.batches;
  if (at.last == event::batch_end && (c.batches != expected || c.batch > expected)) {
    throw error(text() << "fit: training stopped after batch " << c.batch << " of an epoch of "
                       << std::max(expected, c.batch) << ", but these data have " << c.batches
                       << "; hand over the same data, or call leave_epoch first");
  }

  train::fit_extras<std::remove_reference_t<Extras>...> all(fit_, extras...);
  const auto begin_epoch = [&](auto& f) {
    if constexpr (requires { f.on_epoch_begin(c); }) f.on_epoch_begin(c);
  };
  const auto end_batch = [&](auto& f) {
    if constexpr (requires { f.on_batch_end(c); }) f.on_batch_end(c);
  };
  const auto end_epoch = [&](auto& f) {
    if constexpr (requires { f.on_epoch_end(c); }) f.on_epoch_end(c);
  };
  std::optional<clock::time_point> began;
  const auto seconds = [&] {
    return began ? std::chrono::duration<double>(clock::now() - *began).count() : 0.0;
  };

  engine_.freeze(frozen_tensors(options.freeze));
  struct session {
    model& m;
    ~session() {
      m.engine_.thaw_all();
      if (m.fit_.refresh) {  // an exception is on its way: the next call goes on where it happened
        try {
          m.fit_.refresh();
        } catch (...) { m.fit_.states.clear(); }
      }
      m.fit_.refresh = nullptr;
    }
  } const guard{*this};
  all.callbacks([&](auto& f) {
    if constexpr (requires { f.on_train_begin(c); }) f.on_train_begin(c);
  });
  all.hand_back();
  fit_.goes_on = true;
  fit_.refresh = [&] {
    at.now = c;
    at.now.record.seconds += seconds();
    all.remember();
  };

  train::history past;
  std::vector<input_element> inputs;
  std::vector<target_element> targets;
  if (at.last == event::epoch_end) {
    all.send(end_epoch);
    at.last = event::none;
  }
  for (c.epoch = 0; c.epoch < c.epochs && !c.stop; ++c.epoch) {
    if (at.last == event::none) {
      at.mean.reset();
      c.record = {};
      c.record.epoch = epochs();
      c.batch = 0;
      all.metrics([](auto& m) { m.reset(); });
      all.announce(event::epoch_begin);
      all.send(begin_epoch);
    } else {
      all.go_on(begin_epoch, end_batch);
    }
    const auto stopped = [&] { return c.stop && c.batch < c.batches; };
    if (c.batch < c.batches && !c.stop) {
      began = clock::now();
      for (auto& b : loader.epoch(epochs(), c.batch)) {
        const std::int64_t rows = b.size();
        const auto* x = detail::column_of<input_element, 0>(b, Input::extents, "inputs", inputs);
        const shape target = engine_type::for_rows(engine_.target_type(), rows).shape;
        shape per_sample = target;
        if (per_sample.rank) per_sample.erase(0);
        const auto* y = detail::column_of<target_element, 1>(b, per_sample, "targets", targets);
        c.learning_rate = options.learning_rate(steps(), c.batches);
        const auto r = advance(x, y, rows, c.learning_rate);
        c.batch = ++progress_[2];
        c.step = steps();
        c.loss = r.loss;
        all.announce(event::batch_end);
        if (options.check_finite && !std::isfinite(r.loss))
          throw train::divergence("the loss is not finite", c.step, c.loss, c.learning_rate);
        at.mean.update(r.loss, rows);
        all.metrics([&](auto& m) {
          if constexpr (metrics::loss_metric<std::remove_cvref_t<decltype(m)>>)
            m.update(r.loss, rows);
          else
            detail::update_metric(m, r.prediction,
                                  data::tensor_view<const target_element>(y, target));
        });
        c.record.samples += rows;
        c.record.set("loss", at.mean.value());
        all.send(end_batch);
        if (c.stop) break;
      }
      c.record.seconds += seconds();
      began.reset();
    }
    train::epoch_record done = c.record;
    all.metrics([&](auto& m) { done.set(m.name(), m.value()); });
    if (stopped()) {
      c.unfinished = true;
      if (done.samples > 0) past.push_back(done);
      break;
    }
    if (options.check_finite) {
      const std::string fault = train::find_not_finite(parameter_tensors());
      if (!fault.empty()) throw train::divergence(fault, c.step, c.loss, c.learning_rate);
    }
    c.record = std::move(done);
    ++progress_[1];
    progress_[2] = 0;
    // A file of an older version may stand behind the last batch, and tell nothing of the epoch.
    if (c.record.samples > 0) {
      all.announce(event::epoch_end);
      all.send(end_epoch);
      past.push_back(c.record);
    }
    at.last = event::none;
  }
  all.callbacks([&](auto& f) {
    if constexpr (requires { f.on_train_end(c); }) f.on_train_end(c);
  });
  fit_.refresh();
  fit_.refresh = nullptr;
  fit_.goes_on = at.last != event::none;
  return past;
}

template <class Net, sample_spec Input, auto Loss, auto Optimizer, model_options Options>
template <class Data, class... Metrics>
train::scores model<Net, Input, Loss, Optimizer, Options>::measure_on(const Data& data,
                                                                      Metrics&&... measures) {
  static_assert((metrics::metric<Metrics> && ...), "evaluate takes metrics; see train/metrics.hpp");
  if constexpr (sizeof...(Metrics) == 0) {
    return measure_on(data, metrics::loss{});
  } else {
    const auto turn = own_turn();
    std::vector<input_element> inputs;
    std::vector<target_element> targets;
    std::vector<output_element> outputs;
    (measures.reset(), ...);
    const auto& loader = detail::as_loader(data, batch_size);
    detail::check_batches("evaluate", loader);
    for (auto& b : loader.epoch(0)) {
      const std::int64_t rows = b.size();
      const shape target = engine_type::for_rows(engine_.target_type(), rows).shape;
      const shape output = engine_type::for_rows(engine_.output_type(), rows).shape;
      shape per_sample = target;
      if (per_sample.rank) per_sample.erase(0);
      const auto* x = detail::column_of<input_element, 0>(b, Input::extents, "inputs", inputs);
      const auto* y = detail::column_of<target_element, 1>(b, per_sample, "targets", targets);
      engine_.check_labels(y, rows);
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
