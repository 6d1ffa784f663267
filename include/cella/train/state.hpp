// What callbacks and metrics remember from one call of fit to the next, and in checkpoints.
//
// One that remembers something shows it to a visitor, which writes it down or reads it back:
//
//   struct patience {
//     static constexpr std::string_view state_name = "patience";  // optional: its name in files
//     void state(train::state_visitor& v) { v("waited", waited); v("best", best); }
//     ...
//   };
#pragma once

#include <array>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/shape.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella::train {

/// A value that was written down: i64 and f64 numbers, or bytes.
struct state_tensor {
  tensor_type type;
  std::vector<std::byte> bytes;
};
/// By `owner.name`. Checkpoints hold them as tensors `cella.fit.owner.name`.
using state_map = std::map<std::string, state_tensor, std::less<>>;

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
/// A std::string or a std::filesystem::path. The header of the latter, which takes a tenth of the
/// time that a program does, is left to those who use paths.
template <class T>
concept textual = std::is_same_v<T, std::string> || requires(const T& t) {
  { t.lexically_normal() } -> std::same_as<T>;
  { t.native() } -> std::same_as<const std::string&>;
};
}  // namespace detail

/// Writes an owner's values to a map, or reads them from it.
class state_visitor {
 public:
  state_visitor(state_map& values, std::string owner, bool reads)
      : values_(&values), owner_(std::move(owner)), reads_(reads) {}

  /// A number, a boolean, a text (std::string, std::filesystem::path), a std::optional of numbers,
  /// or a container of numbers, of std::byte or of texts without NUL. A value that was not written
  /// stays as it is. Throws `file_error` if it was written as something else.
  template <class T>
  void operator()(std::string_view name, T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      std::array<T, 1> one{value};
      numbers(name, one);
      value = one[0];
    } else if constexpr (detail::is_optional<T>) {
      std::vector<typename T::value_type> some;
      if (value) some.push_back(*value);
      numbers(name, some);
      if (!reads_) return;
      value.reset();
      if (!some.empty()) value = some[0];
    } else if constexpr (detail::textual<T>) {
      std::string s = value;
      numbers(name, s);
      value = s;
    } else if constexpr (detail::textual<typename T::value_type>) {
      texts(name, value);
    } else {
      numbers(name, value);
    }
  }

 private:
  /// What a number is written as.
  template <class T>
  using stored =
      std::conditional_t<std::is_floating_point_v<T>, double,
                         std::conditional_t<std::is_same_v<T, std::byte> || std::is_same_v<T, char>,
                                            std::uint8_t, std::int64_t>>;

  template <class Range>
  void numbers(std::string_view name, Range& range) {
    using T = typename Range::value_type;
    using S = stored<T>;
    if (!reads_) {
      std::vector<S> all;
      for (const auto x : range) all.push_back(static_cast<S>(x));
      return write(name, dtype_of<S>, all.data(), all.size());
    }
    constexpr bool grows = requires { range.clear(); };
    const state_tensor* const found = find(name, dtype_of<S>, grows ? -1 : int(std::size(range)));
    if (!found) return;
    std::vector<S> all(found->bytes.size() / sizeof(S));
    if (!all.empty()) std::memcpy(all.data(), found->bytes.data(), found->bytes.size());
    if constexpr (grows) {
      range.clear();
      for (const S x : all) range.push_back(static_cast<T>(x));
    } else {
      for (std::size_t i = 0; i < all.size(); ++i) range[i] = static_cast<T>(all[i]);
    }
  }
  void write(std::string_view name, dtype element, const void* numbers, std::size_t count);
  /// Null if nothing was written; refuses what is of another type, or not of so many elements where
  /// `count` is not -1.
  const state_tensor* find(std::string_view name, dtype element, int count) const;

  /// Each text with a NUL behind it.
  template <class Range>
  void texts(std::string_view name, Range& range) {
    std::string joined;
    for (const auto& s : range) joined += std::string(s) + '\0';
    numbers(name, joined);
    if (!reads_) return;
    range.clear();
    for (std::size_t at = 0, end; (end = joined.find('\0', at)) != joined.npos; at = end + 1)
      range.push_back(joined.substr(at, end - at));
  }

  state_map* values_;
  std::string owner_;
  bool reads_;
};

/// Has something to remember.
template <class X>
concept stateful = requires(X& x, state_visitor& v) {
  x.state(v);
};

/// The names of owners in the map: `state_name`, `metric.accuracy`, or "callback". The second of a
/// name gets "#2" behind it, and so on, so that a list of the same callbacks has the same names.
template <class... Xs>
std::array<std::string, sizeof...(Xs)> state_names([[maybe_unused]] const Xs&... xs) {
  std::map<std::string, int> count{{"epoch", 1}};  // fit's own
  [[maybe_unused]] auto named = [&](const auto& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    std::string name = "callback";
    if constexpr (requires { std::string_view(X::state_name); })
      name = std::string(std::string_view(X::state_name));
    else if constexpr (requires { std::string(x.name()); })
      name = "metric." + std::string(x.name());
    const int n = ++count[name];
    return n == 1 ? name : name + "#" + std::to_string(n);
  };
  return {named(xs)...};
}

}  // namespace cella::train

#if CELLA_HAS_BODIES
#include <cella/train/state_body.hpp>
#endif
