// The metrics and callbacks of a call of fit: who was told of an event, and what they remember.
#pragma once

#include <algorithm>
#include <array>
#include <cella/train/fit.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/position.hpp>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella::train {

template <class... Extras>
class fit_extras {
 public:
  static constexpr bool has_callbacks = (!cella::metrics::metric<Extras> || ...);

  /// Begins with the event that `memory` says was sent last, and with those whom it did not reach.
  explicit fit_extras(fit_memory& memory, Extras&... extras)
      : memory_(memory), extras_(extras...), names_(state_names(extras...)) {
    for (std::size_t i = 0; i < due_.size(); ++i)
      due_[i] = std::ranges::find(memory.epoch.due, names_[i]) != memory.epoch.due.end();
  }

  /// Calls f(metric) for each metric.
  template <class F>
  void metrics(F f) {
    for_each<true>([&](auto& m, std::size_t) { f(m); });
  }
  /// Calls f(callback) for each callback.
  template <class F>
  void callbacks(F f) {
    for_each<false>([&](auto& c, std::size_t) { f(c); });
  }
  /// The same for those who were not told yet of the last event. Each is told from its call on, so
  /// that what it saves, or throws, does not tell it again.
  template <class F>
  void send(F f) {
    for_each<false>([&](auto& c, std::size_t i) {
      if (std::exchange(due_[i], false)) f(c);
    });
  }
  /// There is a new event that nobody was told of.
  void announce(event e) {
    memory_.epoch.last = e;
    due_.fill(true);
  }
  /// Goes on in the middle of an epoch. Its beginning is sent again to those who remember nothing.
  template <class Begin, class End>
  void go_on(Begin epoch_begin, End batch_end) {
    const bool begins = memory_.epoch.last == event::epoch_begin;
    for_each<false>([&]<class C>(C& c, std::size_t i) {
      if ((begins && std::exchange(due_[i], false)) || !stateful<C>) epoch_begin(c);
    });
    if (!begins) send(batch_end);
  }

  /// Gives back what was remembered; metrics begin anew between two epochs.
  void hand_back() {
    metrics([](auto& m) { m.reset(); });
    if (!memory_.goes_on) return;
    for_each<false>([&](auto& c, std::size_t i) { visit(c, i, true); });
    if (in_epoch()) for_each<true>([&](auto& m, std::size_t i) { visit(m, i, true); });
  }
  /// Writes down what there is to remember.
  void remember() {
    memory_.epoch.due.clear();
    for (std::size_t i = 0; i < due_.size(); ++i) {
      if (due_[i]) memory_.epoch.due.push_back(names_[i]);
    }
    memory_.states.clear();
    for_each<false>([&](auto& c, std::size_t i) { visit(c, i, false); });
    if (in_epoch()) for_each<true>([&](auto& m, std::size_t i) { visit(m, i, false); });
  }
  bool in_epoch() const {
    return memory_.epoch.last == event::epoch_begin || memory_.epoch.last == event::batch_end;
  }

 private:
  template <bool Metrics, class F>
  void for_each(F f) {
    std::apply(
        [&](auto&... xs) {
          [[maybe_unused]] std::size_t i = 0;
          [[maybe_unused]] const auto one = [&](auto& x, std::size_t k) {
            if constexpr (cella::metrics::metric<decltype(x)> == Metrics) f(x, k);
          };
          (one(xs, i++), ...);
        },
        extras_);
  }
  template <class X>
  void visit([[maybe_unused]] X& x, [[maybe_unused]] std::size_t i, [[maybe_unused]] bool reads) {
    if constexpr (stateful<X>) {
      state_visitor v(memory_.states, names_[i], reads);
      x.state(v);
    }
  }

  fit_memory& memory_;
  std::tuple<Extras&...> extras_;
  std::array<std::string, sizeof...(Extras)> names_;
  std::array<bool, sizeof...(Extras)> due_{};
};

}  // namespace cella::train
