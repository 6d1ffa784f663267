// The base of data sets, which gives them their views. Include dataset.hpp to use it.
#pragma once

#include <cella/data/loader.hpp>
#include <cella/data/sample.hpp>
#include <cella/graph/cell_check.hpp>
#include <cella/graph/random.hpp>
#include <cella/graph/words.hpp>
#include <cmath>
#include <concepts>
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
    I < Sample::width&& transform<
            F, std::remove_cvref_t<decltype(std::declval<const Sample&>().template column<I>())>>;
inline constexpr text map_form(
    "map: the function takes the sample (or, with map<I>, column I, counted from 0), which it "
    "changes in place, and perhaps a generator&; it is called in several threads, so its call "
    "operator is const");
using map_fault = cella::detail::sentence_of<map_form>;
inline constexpr text map_to_form(
    "map_to: the function takes a sample and the new one, f(from, to), of which it writes all "
    "columns, and perhaps a generator&; it is called in several threads, so its call operator is "
    "const");
using map_to_fault = cella::detail::sentence_of<map_to_form>;

/// What a class lacks to be a data set.
template <class D>
constexpr text find_dataset_fault() {
  text fault = text() << cella::detail::type_name<D>() << " is no data set yet: ";
  if constexpr (!requires { typename D::sample; })
    fault << "name the types of its columns, using sample = data::sample<float, std::int32_t>";
  else if constexpr (!requires(const D& d) {
                       { d.size() } -> std::convertible_to<std::int64_t>;
                     })
    fault << "it needs std::int64_t size() const";
  else if constexpr (!requires(const D& d) {
                       { d.shapes() } -> std::convertible_to<sample_shapes<D::sample::width>>;
                     })
    fault << "it needs data::sample_shapes<" << int(D::sample::width)
          << "> shapes() const, the extents of each column of a sample";
  else if constexpr (!std::copy_constructible<D>)
    fault << "views hold copies of it, so it needs a copy constructor; share what is large";
  else
    fault << "it needs void read(data::position at, const sample& out) const, which may be called "
             "by several threads";
  return fault;
}
template <class D>
inline constexpr text dataset_text = find_dataset_fault<D>();
template <class D>
using dataset_fault = cella::detail::sentence_of<dataset_text<D>>;

/// A loader, when D turns out to be no data set.
template <class D>
using any_loader = loader<std::conditional_t<dataset<D>, D, tensor_dataset<float>>>;

inline constexpr text seed_form("shuffle takes the seed of its order, a number: shuffle(1)");
using seed_fault = cella::detail::sentence_of<seed_form>;
}  // namespace detail

// A view of a class that is no data set yet is refused where it is asked for; of others nothing is
// looked at. What stands for the view is a data set, or a loader of one, so that nothing follows.
#define CELLA_NO_VIEW(name, stand_in)                                                  \
  template <class... Arguments, class D = Self, class = std::enable_if_t<!dataset<D>>, \
            class Why = detail::dataset_fault<D>>                                      \
  stand_in name(const Arguments&...) const = delete

/// Base of every data set: derive `Self` from `composable<Self>` to have the views. A view holds a
/// copy of its source, so that nothing dangles; sources share their data.
template <class Self>
class composable {
 public:
  /// Another order, which depends on `seed` and, unless told otherwise, on the epoch; nothing else.
  auto shuffle(std::uint64_t seed,
               reshuffle when = reshuffle::every_epoch) const requires dataset<Self> {
    return shuffled<Self>(self(), seed, when);
  }
  template <std::same_as<bool> Seed, class Why = detail::seed_fault>
  requires dataset<Self> shuffled<Self> shuffle(Seed, reshuffle = {})
  const = delete;

  /// Changes samples in place: `f(sample)`, or `f(sample, generator&)` for random changes, which
  /// depend on `seed`, epoch, index and the place in the chain of views, never on threads.
  template <class F>
  requires dataset<Self> && detail::transform<F, typename Self::sample>
  auto map(F f, std::uint64_t seed = 0) const {
    return mapped<Self, F>(self(), std::move(f), seed);
  }
  /// The same for one column: `f(tensor_view)` or `f(tensor_view, generator&)`.
  template <std::size_t I, class F>
  requires dataset<Self> && detail::column_transform<F, typename Self::sample, I>
  auto map(F f, std::uint64_t seed = 0) const;
  /// Other functions are refused here.
  template <class F, class Why = detail::map_fault>
  requires(dataset<Self> && !detail::transform<F, typename Self::sample>)  //
      Self map(F, std::uint64_t = 0)
  const = delete;
  template <std::size_t I, class F, class Why = detail::map_fault>
  requires(dataset<Self> && !detail::column_transform<F, typename Self::sample, I>)  //
      Self map(F, std::uint64_t = 0)
  const = delete;
  /// New columns of types `Ts` and these extents: `f(from, to)` or `f(from, to, generator&)`, with
  /// two samples; `f` writes every element of `to`.
  template <class... Ts, class F>
  requires dataset<Self> && detail::transform<F, typename Self::sample, data::sample<Ts...>>
  auto map_to(const sample_shapes<sizeof...(Ts)>& shapes, F f, std::uint64_t seed = 0) const {
    return converted<Self, F, Ts...>(self(), shapes, std::move(f), seed);
  }
  template <class... Ts, class F, class Why = detail::map_to_fault>
  requires(dataset<Self> && !detail::transform<F, typename Self::sample, data::sample<Ts...>>)  //
      tensor_dataset<Ts...> map_to(const sample_shapes<sizeof...(Ts)>&, F, std::uint64_t = 0)
  const = delete;

  /// `times` passes as one epoch; a pass counts as an epoch of the source.
  auto repeat(std::int64_t times) const requires dataset<Self> {
    return repeated<Self>(self(), times);
  }
  /// The first `count` samples, or all if there are fewer.
  auto take(std::int64_t count) const requires dataset<Self> {
    return sliced<Self>(self(), 0, count);
  }
  /// All but the first `count` samples.
  auto skip(std::int64_t count) const requires dataset<Self> {
    return sliced<Self>(self(), count, self().size());
  }

  /// The first `fraction` of the samples (rounded), and the rest. Throws `error` when the order
  /// changes with the epoch, because samples would wander between the parts.
  auto split(double fraction) const requires dataset<Self> {
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
  auto batch(std::int64_t size, bool drop_remainder = false) const requires dataset<Self> {
    return loader<Self>(self(), size, drop_remainder);
  }

  /// All samples of epoch `epoch`, computed now and kept.
  auto to_memory(std::int64_t epoch = 0) const requires dataset<Self>;

  CELLA_NO_VIEW(shuffle, tensor_dataset<float>);
  CELLA_NO_VIEW(map, tensor_dataset<float>);
  CELLA_NO_VIEW(map_to, tensor_dataset<float>);
  CELLA_NO_VIEW(repeat, tensor_dataset<float>);
  CELLA_NO_VIEW(take, tensor_dataset<float>);
  CELLA_NO_VIEW(skip, tensor_dataset<float>);
  CELLA_NO_VIEW(split, tensor_dataset<float>);
  CELLA_NO_VIEW(batch, detail::any_loader<D>);
  CELLA_NO_VIEW(to_memory, tensor_dataset<float>);

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

#undef CELLA_NO_VIEW

}  // namespace cella::data
