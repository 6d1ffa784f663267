// Lazy views over data sets, made by the members of `composable`.
#pragma once

#include <algorithm>
#include <cella/data/composable.hpp>
#include <cella/data/sample.hpp>
#include <cella/graph/random.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::data {

namespace detail {

/// Place of a view in its chain, counted from the source.
template <class D>
constexpr std::size_t stage_of() {
  if constexpr (requires { D::stage; }) {
    return D::stage;
  } else {
    return 0;
  }
}

/// What views that keep their source's samples have in common.
template <class Self, class D>
class view : public composable<Self> {
 public:
  using sample = typename D::sample;
  static constexpr std::size_t stage = stage_of<D>() + 1;

  explicit view(D source) : source_(std::move(source)) {}
  std::int64_t size() const { return source_.size(); }
  auto shapes() const { return source_.shapes(); }
  bool stable_order() const { return has_stable_order(source_); }

 protected:
  D source_;
};

inline generator sample_generator(std::uint64_t seed, std::size_t stage, position at) {
  return generator(fold_in(seed, stage), static_cast<std::uint64_t>(at.index),
                   static_cast<std::uint32_t>(at.epoch));
}

template <class F, class... Args>
void invoke_transform(const F& f, generator random, const Args&... args) {
  if constexpr (std::is_invocable_v<const F&, const Args&..., generator&>) {
    f(args..., random);
  } else {
    f(args...);
  }
}

template <std::size_t I, class F>
struct on_column {
  F f;
  template <class Sample>
  void operator()(const Sample& s, generator& random) const {
    // A copy, because the generator is passed on only to functions that take one.
    invoke_transform(f, random, s.template column<I>());
  }
};

}  // namespace detail

/// What `shuffle` makes.
template <class D>
class shuffled : public detail::view<shuffled<D>, D> {
 public:
  shuffled(D source, std::uint64_t seed, reshuffle when)
      : detail::view<shuffled, D>(std::move(source)),
        key_(fold_in(seed, order_domain)),
        when_(when) {}

  bool stable_order() const { return when_ == reshuffle::never && has_stable_order(this->source_); }
  void read(position at, const typename D::sample& out, scratch& work) const {
    const auto order = when_ == reshuffle::never ? 0 : static_cast<std::uint64_t>(at.epoch);
    const auto index = permuted(at.index, this->size(), fold_in(key_, order));
    read_sample(this->source_, {index, at.epoch}, out, work);
  }

 private:
  // Keeps the order independent of a transform with the same seed, whose domain is its stage.
  static constexpr std::uint64_t order_domain = 0x73687566666c65;

  std::uint64_t key_;
  reshuffle when_;
};

/// What `map` makes.
template <class D, class F>
class mapped : public detail::view<mapped<D, F>, D> {
 public:
  mapped(D source, F f, std::uint64_t seed)
      : detail::view<mapped, D>(std::move(source)), f_(std::move(f)), seed_(seed) {}

  void read(position at, const typename D::sample& out, scratch& work) const {
    read_sample(this->source_, at, out, work);
    detail::invoke_transform(f_, detail::sample_generator(seed_, this->stage, at), out);
  }

 private:
  F f_;
  std::uint64_t seed_;
};

/// What `map_to` makes.
template <class D, class F, class... Ts>
class converted : public composable<converted<D, F, Ts...>> {
 public:
  using sample = data::sample<Ts...>;
  static constexpr std::size_t stage = detail::stage_of<D>() + 1;

  converted(D source, const sample_shapes<sizeof...(Ts)>& shapes, F f, std::uint64_t seed)
      : source_(std::move(source)), shapes_(shapes), f_(std::move(f)), seed_(seed) {}

  std::int64_t size() const { return source_.size(); }
  sample_shapes<sizeof...(Ts)> shapes() const { return shapes_; }
  bool stable_order() const { return has_stable_order(source_); }

  void read(position at, const sample& out, scratch& work) const {
    const auto from = intermediate(static_cast<typename D::sample*>(nullptr), work);
    read_sample(source_, at, from, work);
    detail::invoke_transform(f_, detail::sample_generator(seed_, stage, at), from, out);
  }

 private:
  template <class... Us>
  data::sample<Us...> intermediate(data::sample<Us...>*, scratch& work) const {
    const auto shapes = source_.shapes();
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return data::sample<Us...>(hana::tuple<tensor_view<Us>...>(tensor_view<Us>(
          work.block<Us>(stage, I, static_cast<std::size_t>(shapes[I].size())), shapes[I])...));
    }
    (std::index_sequence_for<Us...>{});
  }

  D source_;
  sample_shapes<sizeof...(Ts)> shapes_;
  F f_;
  std::uint64_t seed_;
};

/// What `repeat` makes.
template <class D>
class repeated : public detail::view<repeated<D>, D> {
 public:
  repeated(D source, std::int64_t times)
      : detail::view<repeated, D>(std::move(source)), times_(times) {
    if (times < 1 || times > 0x7fffffff) {
      throw error(text("repeat: the number of passes is ") << times << "; give at least 1.");
    }
    constexpr std::int64_t most = std::int64_t{1} << 60;
    if (this->source_.size() > most / times) {
      throw error(text("repeat: ") << this->source_.size() << " samples, " << times
                                   << " times, are more than can be counted; repeat less often.");
    }
  }

  std::int64_t size() const { return this->source_.size() * times_; }
  bool stable_order() const { return has_stable_order(this->source_); }
  void read(position at, const typename D::sample& out, scratch& work) const {
    const std::int64_t n = this->source_.size();
    read_sample(this->source_, {at.index % n, at.epoch * times_ + at.index / n}, out, work);
  }

 private:
  std::int64_t times_;
};

/// What `take`, `skip` and `split` make.
template <class D>
class sliced : public detail::view<sliced<D>, D> {
 public:
  sliced(D source, std::int64_t first, std::int64_t count)
      : detail::view<sliced, D>(std::move(source)) {
    if (first < 0 || count < 0) {
      throw error(text("take or skip: the number of samples is ")
                  << std::min(first, count) << "; give 0 or more.");
    }
    first_ = std::min(first, this->source_.size());
    count_ = std::min(count, this->source_.size() - first_);
  }

  std::int64_t size() const { return count_; }
  void read(position at, const typename D::sample& out, scratch& work) const {
    read_sample(this->source_, {first_ + at.index, at.epoch}, out, work);
  }

 private:
  std::int64_t first_;
  std::int64_t count_;
};

template <class Self>
template <std::size_t I, class F>
requires dataset<Self> && detail::column_transform<F, typename Self::sample, I>
auto composable<Self>::map(F f, std::uint64_t seed) const {
  return map(detail::on_column<I, F>{std::move(f)}, seed);
}

}  // namespace cella::data
