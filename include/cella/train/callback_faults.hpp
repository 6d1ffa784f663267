// Events of a callback that fit would not tell it of, or whose answer would be lost.
#pragma once

#include <cella/graph/cell_check.hpp>
#include <cella/train/fit.hpp>
#include <string_view>
#include <type_traits>

namespace cella::detail {

/// What a member function takes that is no template.
template <class Owner, class R, class State>
std::type_identity<State> taken_by(R (Owner::*)(State));
template <class Owner, class R, class State>
std::type_identity<State> taken_by(R (Owner::*)(State) const);
template <class R, class State>
std::type_identity<State> taken_by(R (*)(State));
/// Whether that is a copy of the state of fit.
template <class Taken>
inline constexpr bool is_copied_state = std::is_base_of_v<train::fit_state, typename Taken::type>;

/// Says in `fault`, unless that says something, which event of a callback C does not reach it, or
/// reaches it with a copy of the state. Of overloaded functions only the call itself is known.
template <class Model, class C>
constexpr void refuse_events(text& fault) {
  using context = train::fit_context<Model>;
  [[maybe_unused]] const auto refuse = [&](std::string_view event, bool reaches, bool copies) {
    if (!fault.empty() || (reaches && !copies)) return;
    fault << type_name<std::remove_const_t<C>>() << ": ";
    if (reaches) {
      fault << event
            << " takes a copy of train::fit_state, so that what it sets there, such as stop, is "
               "lost; let it take train::fit_state&";
    } else if (std::is_const_v<C>) {
      fault << "it is const, but remembers what it is told; leave const out";
    } else {
      fault << event
            << " cannot be called with what fit tells it; let it take train::fit_state&, or auto& "
               "to reach the model";
    }
  };
#define CELLA_EVENT(event)                                                \
  if constexpr (requires { taken_by(&C::event); })                        \
    refuse(                                                               \
        #event, requires(C & c, context & x) { c.event(x); },             \
        is_copied_state<decltype(taken_by(&C::event))>);                  \
  else if constexpr (requires { taken_by(&C::template event<context>); }) \
    refuse(                                                               \
        #event, requires(C & c, context & x) { c.event(x); },             \
        is_copied_state<decltype(taken_by(&C::template event<context>))>);
  CELLA_EVENT(on_train_begin)
  CELLA_EVENT(on_epoch_begin)
  CELLA_EVENT(on_batch_end)
  CELLA_EVENT(on_epoch_end)
  CELLA_EVENT(on_train_end)
#undef CELLA_EVENT

  // What other frameworks call events: beside right ones these would wait for ever.
  [[maybe_unused]] constexpr std::string_view events =
      "on_train_begin, on_epoch_begin, on_batch_end, on_epoch_end and on_train_end";
#define CELLA_NO_EVENT(event)                                               \
  if constexpr (                                                            \
      requires { &C::event; } || requires { &C::template event<context>; }) \
    if (fault.empty())                                                      \
      fault << type_name<std::remove_const_t<C>>()                          \
            << ": fit has no event " #event "; it tells of " << events;
  CELLA_NO_EVENT(on_fit_start)
  CELLA_NO_EVENT(on_fit_end)
  CELLA_NO_EVENT(on_train_start)
  CELLA_NO_EVENT(on_epoch_start)
  CELLA_NO_EVENT(on_train_epoch_start)
  CELLA_NO_EVENT(on_train_epoch_end)
  CELLA_NO_EVENT(on_batch_begin)
  CELLA_NO_EVENT(on_batch_start)
  CELLA_NO_EVENT(on_train_batch_begin)
  CELLA_NO_EVENT(on_train_batch_start)
  CELLA_NO_EVENT(on_train_batch_end)
#undef CELLA_NO_EVENT
}

}  // namespace cella::detail
