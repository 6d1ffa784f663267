// Predictions of one model in several threads at the same time.
#pragma once

#include <cella/backend/host/single_caller.hpp>
#include <cella/train/engine.hpp>
#include <cella/train/model_faults.hpp>
#include <cella/train/parameter_users.hpp>
#include <cella/train/predictions.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>

namespace cella {

/// Asks a model in a thread of its own: it shares the model's parameters, has its own arena and
/// starts no threads. Any number of predictors answer at the same time, each as the model would,
/// bit for bit, in the mode that the model had when the predictor was made; training steps between
/// two predictions count. The model outlives its predictors. What happens at once and cannot be
/// right throws `concurrency_error`: two threads with one predictor, and training or loading the
/// model during a prediction. (Parameters that are written by hand are not seen by this.)
template <class Model>
class predictor {
 public:
  using engine_type = typename Model::engine_type;
  using input_pointers = typename Model::input_pointers;
  using output_places = typename Model::output_places;
  using answer = typename Model::answer;

  /// Many threads may make theirs at once, but not while the model is in use. Throws `error` if the
  /// net changes its own states when it predicts; of a net that is not compiled the first
  /// prediction says so.
  explicit predictor(Model& m) : engine_(&m.engine_), users_(&m.users_) {
    const std::lock_guard one_after_the_other(users_->making());
    const auto turn = m.own_turn();
    mode_ = m.mode();
    if constexpr (engine_type::inference_changes_states()) refuse_shared_state();
    net_ = std::make_unique<net_cell>(engine_->cell());
    self_ = users_->add_reader();
  }

  /// As those of the model.
  template <array_like... A, class Why = detail::samples_fault<engine_type, A...>>
  requires(!has_words<Why>)  //
      answer predict(const A&... samples) {
    const auto [first, rows] = engine_type::samples_of(samples...);
    return predict(first, rows);
  }
  template <class... A, class Why = detail::samples_fault<engine_type, A...>>
  requires has_words<Why>  //
      answer predict(const A&...)
  = delete;
  answer predict(std::initializer_list<typename Model::input_element> sample) requires(
      engine_type::input_count == 1) {
    return predict(std::span(sample.begin(), sample.size()));
  }
  answer predict(const input_pointers& samples, std::int64_t rows) {
    detail::check_rows(rows);
    return engine_->make_answer(
        rows, [&](const output_places& outputs) { predict(samples, rows, outputs); });
  }
  void predict(const input_pointers& samples, std::int64_t rows, const output_places& outputs) {
    detail::check_rows(rows);
    const single_caller::turn turn(self_->caller,
                                   "this predictor is in use by another thread; make one for each "
                                   "thread");
    users_->check_unchanged();
    if (rows > 0) detail::check_addresses("predict", detail::addresses_of(samples));
    inference_.run({mode_, *net_, engine_->parameters(), engine_->output_types(), nullptr, true},
                   detail::addresses_of(samples), rows, detail::addresses_of(outputs));
  }

 private:
  using net_cell = typename engine_type::net_cell;

  engine_type* engine_;
  parameter_users* users_;
  execution mode_{};
  std::unique_ptr<net_cell> net_;  // eager mode notes in it where it is
  std::shared_ptr<parameter_users::reader> self_;
  typename engine_type::inference_path inference_;
};

}  // namespace cella
