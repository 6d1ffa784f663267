// Printing of values while a net runs, compiled or not.
#pragma once

#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cstdio>
#include <string>

namespace cella {

namespace detail {

/// Appends the part of `t` that begins at `first`, from axis `d` on; long axes show their ends.
inline void append_numbers(std::string& s, const tensor_ref& t, int d, std::int64_t first) {
  if (d == t.type.rank()) {
    with_any_number(t.type.element, [&]<class N>() {
      const N v = read_number<N>(t, first);
      char digits[64];
      if constexpr (std::is_same_v<N, double>) {
        std::snprintf(digits, sizeof digits, "%.6g", v);
        s += digits;
      } else if constexpr (is_complex_number<N>) {
        std::snprintf(digits, sizeof digits, "%.6g%+.6gi", v.real(), v.imag());
        s += digits;
      } else if (t.type.element == dtype::boolean) {
        s += v != 0 ? "true" : "false";
      } else {
        s += std::to_string(v);
      }
    });
    return;
  }
  constexpr int most = 12;
  constexpr int ends = 3;
  const int n = t.type[d];
  std::int64_t step = 1;
  for (int e = d + 1; e < t.type.rank(); ++e) step *= t.type[e];
  const bool rows = d + 1 < t.type.rank();
  s += "{";
  for (int i = 0; i < n; ++i) {
    if (i > 0) s += rows ? ",\n" + std::string(std::size_t(d) + 1, ' ') : ", ";
    if (n > most && i == ends) {
      s += "...";
      i = n - ends - 1;
      continue;
    }
    append_numbers(s, t, d + 1, first + i * step);
  }
  s += "}";
}

}  // namespace detail

/// `f32[2,2] {{1, 2},\n {3, 4}}`, with six digits; of an axis of more than 12 the first and last 3.
inline std::string to_string(const tensor_ref& t) {
  std::string s((text() << t.type << " ").view());
  detail::append_numbers(s, t, 0, 0);
  return s;
}

/// Its operand, which is printed when it is computed.
struct print_op : linear<print_op>, impure, takes_complex {
  static constexpr std::string_view name = "print";
  static constexpr std::string_view numpy = "print";
  static constexpr std::string_view torch = "print";
  static constexpr std::string_view formula = "y = x, which is printed when it is computed";
  struct options {
    std::array<char, 64> label{};
  };
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// One print for all elements.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    iteration_space s = pointwise_space(in[0].shape, 1);
    for (iteration_space::factor& f : s.factors) f.whole = true;
    return s;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return in[0];
  }
  static constexpr var transpose(node_ref, int, var dy) { return dy; }
  static constexpr attributes batch_options(node_ref n, int, unsigned) { return n.as<options>(); }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto all = o.as<options>();
    const std::string line = all.label.data() + to_string(in[0]) + "\n";
    std::fputs(line.c_str(), stdout);
    if (in[0].type.bytes()) std::memcpy(out[0].data, in[0].data, std::size_t(in[0].type.bytes()));
  }
};

/// x, which is written to the standard output each time it is computed: at once in eager mode, by
/// every run of a compiled program, in each step of a loop. What uses the result is what makes it
/// run: `h = print(h, "hidden")`. The label is cut at 60 characters. Derivatives pass through.
[[nodiscard]] constexpr var print(var x, std::string_view label = {},
                                  std::source_location at = std::source_location::current()) {
  print_op::options o;
  std::size_t n = 0;
  for (; n < label.size() && n < 60; ++n) o.label[n] = label[n];
  for (const char c : std::string_view(": ")) {
    if (n) o.label[n++] = c;
  }
  return emit<print_op>(o, at, x);
}

}  // namespace cella
