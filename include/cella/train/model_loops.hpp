// The loops of a model over data, fit and evaluate, and what it saves. Included by model.hpp.
#pragma once

#include <array>
#include <cella/train/batch_columns.hpp>
#include <cella/train/fit_extras.hpp>
#include <cella/train/model.hpp>
#include <cella/train/shared_reading.hpp>
#include <chrono>
#include <cstddef>
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

}  // namespace detail

template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
template <class Data, class... Extras>
train::history model<Net, Input, Loss, Optimizer, Options>::train_on(
    const Data& data, const train::fit_options& options, Extras&&... extras) {
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
  c.prints = rank() == 0;
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

  if (!options.freeze.empty()) {
    for (const auto& t : train::frozen_tensors(parameters(), engine_.slots(), options.freeze))
      engine_.frozen_tensors.keep(t.value, t.weight);
  }
  struct session {
    model& m;
    ~session() {
      m.engine_.frozen_tensors.clear();
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
  detail::batch_columns<engine_type> columns;
  train::mesh_trainer* const ranks = engine_.mesh();
  const detail::shared_reading reading(loader, ranks,
                                       [&](std::int64_t rows) { return ranks->share(rows); });
  if (ranks && reading.is_shared) {
    columns.join = [ranks](std::size_t k, const tensor_ref&, const tensor_ref& whole) {
      ranks->join_argument(int(k), whole);
    };
  }
  // A callback that stops one rank stops all.
  const auto agree = [&] {
    if (ranks && all.has_callbacks) c.stop = ranks->any(c.stop);
  };
  if (at.last == event::epoch_end) {
    all.send(end_epoch);
    agree();
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
    agree();
    const auto stopped = [&] { return c.stop && c.batch < c.batches; };
    if (c.batch < c.batches && !c.stop) {
      began = clock::now();
      for (auto& b : reading.epoch(epochs(), c.batch)) {
        const std::int64_t rows = reading.rows(b);
        columns.read(b, rows, engine_.target_types());
        c.learning_rate = options.learning_rate(steps(), c.batches);
        const auto r =
            advance(columns.inputs, columns.targets, rows, reading.share(b), c.learning_rate);
        c.batch = ++progress_[2];
        c.step = steps();
        c.loss = r.loss;
        all.announce(event::batch_end);
        if (options.check_finite && !std::isfinite(r.loss)) {
          throw train::divergence("the loss is not finite" + train::spoiled_data(columns.numbers()),
                                  c.step, c.loss, c.learning_rate);
        }
        if constexpr (engine_type::ignores_labels) columns.complete_targets();
        const std::int64_t counted = engine_.counted(columns.targets, rows);
        at.mean.update(r.loss, counted);
        all.metrics([&](auto& m) {
          if constexpr (metrics::loss_metric<std::remove_cvref_t<decltype(m)>>)
            m.update(r.loss, counted);
          else
            columns.update(m, r.prediction);
        });
        c.record.samples += rows;
        c.record.set("loss", at.mean.value());
        all.send(end_batch);
        agree();
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
      const std::string fault = train::find_not_finite(train::tensors_of(parameters()));
      if (!fault.empty()) throw train::divergence(fault, c.step, c.loss, c.learning_rate);
    }
    c.record = std::move(done);
    ++progress_[1];
    progress_[2] = 0;
    // A file of an older version may stand behind the last batch, and tell nothing of the epoch.
    if (c.record.samples > 0) {
      all.announce(event::epoch_end);
      all.send(end_epoch);
      agree();
      past.push_back(c.record);
    }
    at.last = event::none;
  }
  engine_.gather();
  all.callbacks([&](auto& f) {
    if constexpr (requires { f.on_train_end(c); }) f.on_train_end(c);
  });
  fit_.refresh();
  fit_.refresh = nullptr;
  fit_.goes_on = at.last != event::none;
  return past;
}

template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
void model<Net, Input, Loss, Optimizer, Options>::save(const std::string& path,
                                                       const save_options& options) {
  const auto turn = own_turn();
  if (options.optimizer) check_no_averages("save with the optimizer's state");
  auto all = train::tensors_of(parameters());
  if (options.optimizer) {
    for (auto& t : training_tensors()) all.push_back(std::move(t));
  }
  if (!options.non_finite) train::check_to_save(path, all);
  auto states = options.optimizer ? fit_.write() : train::state_map{};
  for (auto& [name, t] : states)
    all.push_back({std::string(train::state_prefix) + name, {t.bytes.data(), t.type}});
  if (train::mesh_trainer* const ranks = engine_.mesh())
    ranks->once([&] { train::write_checkpoint(path, all); });
  else
    train::write_checkpoint(path, all);
}

/// Predictions for `rows` samples, of which this rank of a mesh has `own`.
template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
void model<Net, Input, Loss, Optimizer, Options>::infer_share(
    const typename engine_type::inputs& x, std::int64_t own, std::int64_t rows,
    const typename engine_type::outputs& out) {
  if (own == rows) return engine_.infer(x, rows, out);
  const auto types = engine_type::for_rows(engine_.output_types(), rows);
  const auto own_types = engine_type::for_rows(engine_.output_types(), own);
  std::array<std::vector<std::byte>, engine_type::output_count> parts;
  typename engine_type::outputs at;
  for (std::size_t k = 0; k < at.size(); ++k) {
    parts[k].resize(std::size_t(own_types[k].bytes()));
    at[k] = parts[k].data();
  }
  engine_.infer(x, own, at);
  for (std::size_t k = 0; k < at.size(); ++k)
    engine_.mesh()->join({at[k], own_types[k]}, {out[k], types[k]}, rows);
}

template <class Net, class Input, auto Loss, auto Optimizer, model_options Options>
template <class Data, class... Metrics>
train::scores model<Net, Input, Loss, Optimizer, Options>::measure_on(const Data& data,
                                                                      Metrics&&... measures) {
  if constexpr (sizeof...(Metrics) == 0) {
    return measure_on(data, metrics::loss{});
  } else {
    const auto turn = own_turn();
    detail::batch_columns<engine_type> columns;
    std::array<std::vector<std::byte>, engine_type::output_count> outputs;
    (measures.reset(), ...);
    const auto& loader = detail::as_loader(data, batch_size);
    detail::check_batches("evaluate", loader);
    train::mesh_trainer* const ranks = engine_.mesh();
    const bool divides = engine_.divides_inference();
    const detail::shared_reading reading(
        loader, divides, [&](std::int64_t rows) { return ranks->even_share(rows); });
    for (auto& b : reading.epoch(0, 0)) {
      const std::int64_t rows = reading.rows(b);
      if (divides && reading.is_shared)
        columns.join = [ranks, rows](std::size_t, const tensor_ref& own, const tensor_ref& whole) {
          ranks->join(own, whole, rows);
        };
      columns.read(b, rows, engine_.target_types());
      columns.complete_targets();
      engine_.check_labels(columns.targets, rows);
      const auto types = engine_type::for_rows(engine_.output_types(), rows);
      typename engine_type::outputs at;
      for (std::size_t k = 0; k < at.size(); ++k) {
        outputs[k].resize(std::size_t(types[k].bytes()));
        at[k] = outputs[k].data();
      }
      infer_share(columns.inputs, b.size(), rows, at);
      auto measure = [&](auto& m) {
        if constexpr (metrics::loss_metric<std::remove_cvref_t<decltype(m)>>) {
          if constexpr (engine_type::loss_call::takes_inputs) columns.complete_inputs();
          m.update(engine_.loss(at, columns.inputs, columns.targets, rows),
                   engine_.counted(columns.targets, rows));
        } else {
          columns.update(m, detail::memory_of(at, types));
        }
      };
      (measure(measures), ...);
    }
    train::scores r;
    (r.set(measures.name(), measures.value()), ...);
    return r;
  }
}

}  // namespace cella
