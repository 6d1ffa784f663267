// Looks for numbers that are not finite, for programs and interpreters that the environment asks to
// stop at the first.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/graph/graph.hpp>
#include <cella/ops/strided.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace cella {

/// An operation made a NaN or an infinity while `CELLA_DEBUG` is `nan`. What the step updates in
/// place is undefined afterwards: load the parameters anew.
struct number_error : error {
  using error::error;
};

/// What the environment variable CELLA_DEBUG asks for: `nan`, or nothing. Throws if it is anything
/// else.
inline bool stops_at_nan() {
  const char* const value = std::getenv("CELLA_DEBUG");
  if (!value || !*value) return false;
  if (std::string_view(value) == "nan") return true;
  throw error("CELLA_DEBUG is \"" + std::string(value) +
              "\"; set it to nan, which stops at the first operation that makes a NaN or an "
              "infinity");
}

/// Positions of the first NaN and the first infinity among numbers; -1: there is none.
struct not_finite {
  std::int64_t nan = -1;
  std::int64_t infinity = -1;

  void look_at(double value, std::int64_t position) {
    if (std::isfinite(value)) return;
    std::int64_t& first = std::isnan(value) ? nan : infinity;
    if (first < 0) first = position;
  }
};

/// Whether elements of a type may be other than finite.
constexpr bool may_be_infinite(dtype t) { return is_floating(t) || is_complex(t); }

namespace detail {
/// Element `i` of floating-point numbers of type `t`.
inline double floating_number(dtype t, const std::byte* numbers, std::int64_t i) {
  const auto as = [&]<class T>(T x) {
    std::memcpy(&x, numbers + i * std::int64_t(sizeof(T)), sizeof(T));
    return static_cast<double>(x);
  };
  switch (t) {
    case dtype::f16:
      return as(float16{});
    case dtype::bf16:
      return as(bfloat16{});
    case dtype::f32:
      return as(float{});
    default:
      return as(double{});
  }
}
}  // namespace detail

/// Element `i` of a type that may be infinite as a double, of a complex number a part that is not
/// finite, if there is one.
inline double least_finite_part(const tensor_ref& x, std::int64_t i) {
  const dtype t = x.type.element;
  if (!is_complex(t)) return detail::floating_number(t, x.data, i);
  const double real = detail::floating_number(real_of(t), x.data, 2 * i);
  return std::isfinite(real) ? detail::floating_number(real_of(t), x.data, 2 * i + 1) : real;
}

/// Looks through a dense tensor.
[[gnu::cold]] inline not_finite find_not_finite(const tensor_ref& x) {
  not_finite found;
  if (!may_be_infinite(x.type.element)) return found;
  for (std::int64_t i = 0; i < x.type.size(); ++i) found.look_at(least_finite_part(x, i), i);
  return found;
}

/// Whether a dense tensor has finite numbers only: at the speed of memory.
inline bool all_finite(const tensor_ref& x) {
  return with_element(x.type.element, [&]<class T>() {
    bool finite = true;
    if constexpr (may_be_infinite(dtype_of<T>)) {
      const T* const values = reinterpret_cast<const T*>(x.data);
      const std::int64_t n = x.type.size();
      for (std::int64_t i = 0; i < n; ++i) finite &= values[i] - values[i] == T{};
    }
    return finite;
  });
}

/// `nan, at [3,1] of f32[32,10]`
[[gnu::cold]] inline text describe(const not_finite& found, const tensor_type& t) {
  text s(found.nan >= 0 ? "nan" : "inf");
  std::int64_t rest = found.nan >= 0 ? found.nan : found.infinity;
  if (t.rank() == 0) return s << ", a " << t.element;
  shape at = t.shape;
  for (int d = t.rank(); d-- > 0;) {
    at[d] = std::int32_t(rest % t.shape[d]);
    rest /= t.shape[d];
  }
  return s << ", at " << at << " of " << t;
}

/// An operation by its place in the user's source and its cell.
struct placed_operation {
  std::string_view name;
  const char* file = "";
  std::int32_t line{};
  name_ref cell{};
  friend constexpr bool operator==(const placed_operation& a, const placed_operation& b) {
    return a.line == b.line && a.cell.first == b.cell.first && a.cell.size == b.cell.size &&
           a.name == b.name && std::string_view(a.file) == b.file;
  }
};
constexpr placed_operation place_of_operation(const node& n) {
  return {n.op->name, n.file, n.line, n.cell};
}
/// `log at net.cpp:12 in head`; cells are parts of `characters`.
[[gnu::cold]] inline text describe_operation(const placed_operation& o,
                                             span<const char> characters) {
  text t(o.name);
  const std::string_view file = o.file;
  if (o.line) t << " at " << file.substr(file.rfind('/') + 1) << ":" << o.line;
  if (o.cell.size)
    t << " in " << std::string_view(characters.data() + o.cell.first, std::size_t(o.cell.size));
  return t;
}

// The sentences of number_error.
[[gnu::cold]] inline text nan_made(std::string_view operation, const not_finite& found,
                                   const tensor_type& t) {
  return text() << operation << " made " << describe(found, t)
                << "; keep its operands in its domain (clamp, add a small number), or lower the "
                   "learning rate";
}
[[gnu::cold]] inline text nan_in_input(const not_finite& found, const tensor_type& t) {
  return text() << "an input holds " << describe(found, t)
                << "; mend the data, or load the parameters anew";
}

}  // namespace cella
