// What bodies of loops, branches and functions have while they are traced: states that are
// assigned, and random numbers of their own.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/once.hpp>
#include <utility>

namespace cella {

/// New value of a main-region input (a parameter or a state), written back after each call.
struct input_update {
  std::int32_t input{};
  node_id value{};
};

/// A body while it is traced, or run in eager mode: of a loop, a branch or a function. Random
/// numbers are drawn from a key of its own, so that neither steps nor levels of a recursion see
/// the same ones; its draws are counted from 0, so that other paths do not change them.
struct body_scope {
  int region = -1;        ///< its region, if that has the key and the states as inputs
  bool repeats{};         ///< it may run many times
  const char* refuses{};  ///< what it is, if no state can be assigned in it
  bool knows_states{};    ///< the region has no other states as inputs than `states`
  std::int32_t stream{};  ///< which of the draws round it stands for its key
  std::int32_t step{};    ///< eager mode: the number of runs before
  node_id key = no_node;  ///< none before it is used
  /// Inputs of the region for states, which are inputs of the main region.
  struct state_input {
    node_id of{};
    node_id input{};
  };
  list<state_input> states{};
  std::size_t first_update{};
  int outer_streams{};
};

/// The bodies that are open in the trace of a graph, innermost last; outside them all is the
/// function that is traced.
class body_states {
 public:
  constexpr explicit body_states(graph& g) : g_(g) {}

  // ---- states

  list<input_update> updates;

  /// Ends with the updates from `first` on: each input once, with its last value.
  constexpr list<input_update> take_updates(std::size_t first) {
    list<input_update> taken;
    if (first == updates.size()) return taken;
    list<int> place(g_.inputs.size(), -1);  // in `taken`, of each input
    for (std::size_t k = first; k < updates.size(); ++k) {
      int& at = place[std::size_t(updates[k].input)];
      if (at < 0) {
        at = int(taken.size());
        taken.push_back(updates[k]);
      }
      taken[std::size_t(at)].value = updates[k].value;
    }
    updates.resize(first);
    return taken;
  }

  // ---- bodies

  constexpr void enter(body_scope s) {
    s.first_update = updates.size();
    s.outer_streams = std::exchange(random_stream_, 0);
    scopes_.push_back(s);
  }
  constexpr body_scope leave() {
    const body_scope s = scopes_.back();
    scopes_.pop_back();
    random_stream_ = s.outer_streams;
    return s;
  }
  constexpr std::size_t scopes() const { return scopes_.size(); }
  constexpr body_scope& scope(std::size_t level) { return scopes_[level]; }
  /// Whether what is appended now may run many times.
  constexpr bool repeats() const {
    for (const body_scope& s : scopes_) {
      if (s.repeats) return true;
    }
    return false;
  }
  /// The innermost body in which no state can be assigned; null if they all can.
  constexpr const char* refuses_states() const {
    for (std::size_t k = scopes_.size(); k-- > 0;) {
      if (scopes_[k].refuses) return scopes_[k].refuses;
    }
    return nullptr;
  }

  /// The value that a state has here: what was assigned last, in this body or before it.
  constexpr node_id state_value(node_id state) { return state_value(state, scopes_.size()); }

  // ---- random numbers

  /// The program's random state, i64[2] (seed, step): an input that is made on first use.
  constexpr node_id random_key() {
    if (random_key_ < 0)
      random_key_ = g_.append_input({dtype::i64, {2}}, input_role::state, "random");
    return random_key_;
  }
  constexpr bool draws_random_numbers() const { return random_key_ >= 0; }

  /// Numbers the random draws of a program, so that each has a stream of its own.
  constexpr int next_random_stream() { return random_stream_++; }
  constexpr int random_streams() const { return random_stream_; }
  constexpr void random_streams(int count) { random_stream_ = count; }

 private:
  CELLA_ONCE constexpr node_id state_value(node_id state, std::size_t depth) {
    const std::size_t first = depth ? scopes_[depth - 1].first_update : 0;
    for (std::size_t k = updates.size(); k-- > first;) {
      if (g_.input(updates[k].input) == state) return updates[k].value;
    }
    if (depth == 0) return state;
    for (const auto& s : scopes_[depth - 1].states) {
      if (s.of == state) return s.input;
    }
    const int r = scopes_[depth - 1].region;
    if (r < 0 || scopes_[depth - 1].knows_states) return state_value(state, depth - 1);
    const node_id n = g_.append_declared_input(g_.type(state), r);
    scopes_[depth - 1].states.push_back({state, n});
    return n;
  }

  graph& g_;
  int random_stream_{};
  list<body_scope> scopes_;
  node_id random_key_ = no_node;
};

}  // namespace cella
