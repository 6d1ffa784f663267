// The base of data sets, which gives them their views. Include dataset.hpp to use it.
#pragma once

#include <cella/data/loader.hpp>
#include <cella/data/sample.hpp>
#include <cella/graph/random.hpp>
#include <cella/graph/words.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace cella::data {

/// When `shuffle` changes the order.
enum class reshuffle { every_epoch, never };

template <class D>
class shuffled;
template <class D, class F>
class mapped;
template <class D, class F, class... Ts>
class converted;
template <class D>
class repeated;
template <class D>
class sliced;
template <class... Ts>
class tensor_dataset;

namespace detail {
/// What `map` calls: in several threads, so that it is const.
template <class F, class... Arguments>
concept transform = std::is_invocable_v<const F&, const Arguments&..., generator&> ||
    std::is_invocable_v<const F&, const Arguments&...>;
template <class F, class Sample, std::size_t I>
concept column_transform =
    transform<F, std::remove_cvref_t<decltype(std::declval<const Sample&>().template column<I>())>>;
inline constexpr text map_form(
    "map: the function takes the sample (or, with map<I>, the column), which it changes in place, "
    "and perhaps a generator&; it is called in several threads, so its call operator is const");
using map_fault = cella::detail::sentence_of<map_form>;
}  // namespace detail

/// Base of every data set: derive `Self` from `composable<Self>` to have the views. A view holds a
/// copy of its source, so that nothing dangles; sources share their data.
template <class Self>
class composable {
 public:
  /// Another order, which depends on `seed` and, unless told otherwise, on the epoch; nothing else.
  auto shuffle(std::uint64_t seed, reshuffle when = reshuffle::every_epoch) const {
    return shuffled<Self>(self(), seed, when);
  }

  /// Changes samples in place: `f(sample)`, or `f(sample, generator&)` for random changes, which
  /// depend on `seed`, epoch, index and the place in the chain of views, never on threads.
  template <class F>
  requires detail::transform<F, typename Self::sample>
  auto map(F f, std::uint64_t seed = 0) const {
    return mapped<Self, F>(self(), std::move(f), seed);
  }
  /// The same for one column: `f(tensor_view)` or `f(tensor_view, generator&)`.
  template <std::size_t I, class F>
  requires detail::column_transform<F, typename Self::sample, I>
  auto map(F f, std::uint64_t seed = 0) const;
  /// Other functions are refused here.
  template <class F, class Why = detail::map_fault>
  requires(!detail::transform<F, typename Self::sample>)  //
      Self map(F, std::uint64_t = 0)
  const = delete;
  template <std::size_t I, class F, class Why = detail::map_fault>
  requires(!detail::column_transform<F, typename Self::sample, I>)  //
      Self map(F, std::uint64_t = 0)
  const = delete;
  /// New columns of types `Ts` and these extents: `f(from, to)` or `f(from, to, generator&)`, with
  /// two samples; `f` writes every element of `to`.
  template <class... Ts, class F>
  auto map_to(const sample_shapes<sizeof...(Ts)>& shapes, F f, std::uint64_t seed = 0) const {
    return converted<Self, F, Ts...>(self(), shapes, std::move(f), seed);
  }

  /// `times` passes as one epoch; a pass counts as an epoch of the source.
  auto repeat(std::int64_t times) const { return repeated<Self>(self(), times); }
  /// The first `count` samples, or all if there are fewer.
  auto take(std::int64_t count) const { return sliced<Self>(self(), 0, count); }
  /// All but the first `count` samples.
  auto skip(std::int64_t count) const { return sliced<Self>(self(), count, self().size()); }

  /// The first `fraction` of the samples (rounded), and the rest. Throws `error` when the order
  /// changes with the epoch, because samples would wander between the parts.
  auto split(double fraction) const {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw error("split: the fraction is " + std::to_string(fraction) + "; give 0 to 1.");
    }
    if (!has_stable_order(self())) {
      throw error(
          "split: this data set is shuffled anew in every epoch, so samples would wander between "
          "the parts; split first, or shuffle with reshuffle::never.");
    }
    const auto cut = std::llround(fraction * static_cast<double>(self().size()));
    return std::pair(take(cut), skip(cut));
  }

  /// Batches of `size` samples; the last is smaller, or dropped.
  auto batch(std::int64_t size, bool drop_remainder = false) const {
    return loader<Self>(self(), size, drop_remainder);
  }

  /// All samples of epoch `epoch`, computed now and kept.
  auto to_memory(std::int64_t epoch = 0) const;

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace cella::data
