// The lines of normalizations, which are so common that each row is written in one pass.
#pragma once

#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/bytecode/forms.hpp>
#include <cstdint>

namespace cella::cpu::detail {

/// y = (x - center) factor weight + bias: center and factor are numbers of the row, weight and bias
/// of the column, or of the stretch. All but the factor may lack; `x` is null for all other lines.
template <class T>
struct scaled_line {
  const T* x{};
  int center = -1, factor = -1;
  const T *weight{}, *bias{};
  T* y{};
  bool by_stretch = false;
};
/// That of a line whose only output is each element of a row.
template <class T>
scaled_line<T> scaled_line_of(const line_code<T>& line, const plan_step& s,
                              const step_addresses<T>& a) {
  using code = line_code<T>;
  const auto all = line.instructions();
  if (line.outputs().size() != 1 || all.empty() || all.size() > 2) return {};
  const auto& y = s.outputs[0];
  const auto& stored = line.outputs()[0];
  if (stored.stored != dtype_of<T> || stored.value != all.back().result || y.summed ||
      s.find_stat(y.value) >= 0)
    return {};
  const auto number = [&](int v) {
    const auto& x = line.values()[std::size_t(v)];
    return x.from == code::source::row_number ? x.index : -1;
  };
  const auto read = [&](int v, access how) -> const T* {
    const auto& x = line.values()[std::size_t(v)];
    const bool fits = x.from == code::source::read && !is_storage_only(x.stored) &&
                      s.reads[std::size_t(x.index)].how == how;
    return fits ? a.in[std::size_t(x.index)] + x.further : nullptr;
  };
  // Weight and bias are read in one way.
  access how = access::column;
  for (int k = 0; k < s.read_count; ++k) {
    if (s.reads[std::size_t(k)].how == access::stretch) how = access::stretch;
  }
  const opcode<T> product = find_opcode<T>(&info_of<mul_op>, 0);
  scaled_line<T> found;
  const auto& first = all[0];
  found.y = a.out[0];
  if (first.run == &run_form<T, scaled_difference_form>) {
    found.center = number(first.in[1]);
    found.factor = number(first.in[2]);
    if (found.center < 0) return {};
  } else if (first.run == &run_form<T, two_factors_form>) {
    found.factor = number(first.in[1]);
    found.weight = read(first.in[2], how);
    if (!found.weight) return {};
  } else if (first.run == product) {
    found.factor = number(first.in[1]);
  } else {
    return {};
  }
  if (all.size() == 2) {
    const auto& second = all[1];
    const bool adds = second.run == &multiply_add_block<T>;
    if ((!adds && second.run != product) || found.weight || second.in[0] != first.result) return {};
    found.weight = read(second.in[1], how);
    if (adds) found.bias = read(second.in[2], how);
    if (!found.weight || (adds && !found.bias)) return {};
  }
  if (found.factor < 0) return {};
  found.x = read(first.in[0], access::same);
  found.by_stretch = found.weight && how == access::stretch;
  return found;
}

/// Writes `n` elements from `at` on: get(vector at p, or its first ones) gives what is read there,
/// and of(get) the result.
template <class T, class F>
[[gnu::always_inline]] inline void write_scaled(T* y, std::int64_t n, F of) {
  constexpr int L = lanes<T>;
  const std::int64_t whole = n / L * L;
  for (std::int64_t i = 0; i < whole; i += L)
    store_unaligned(y + i, of([&](const T* p) { return load_unaligned(p + i); }));
  if (const int rest = int(n - whole))
    store_first(y + whole, rest, of([&](const T* p) { return load_first(p + whole, rest); }));
}

/// Writes the row that begins at element `at`.
template <class T>
void scale_row(const scaled_line<T>& line, std::int64_t at, std::int64_t width, vec<T> center,
               vec<T> factor) {
  const T* const x = line.x + at;
  T* const y = line.y + at;
  const auto scaled = [&](auto get) __attribute__((always_inline)) {
    return (get(x) - center) * factor;
  };
  if (line.bias) {
    write_scaled(
        y, width, [&](auto get) __attribute__((always_inline)) {
          return multiply_add(scaled(get), get(line.weight), get(line.bias));
        });
  } else if (line.weight) {
    write_scaled(
        y, width, [&](auto get) __attribute__((always_inline)) {
          return scaled(get) * get(line.weight);
        });
  } else {
    write_scaled(y, width, scaled);
  }
}

/// The same for a stretch whose weight and bias have this number.
template <class T>
void scale_stretch(const scaled_line<T>& line, std::int64_t at, std::int64_t n, vec<T> center,
                   vec<T> factor, std::int64_t number) {
  const T* const x = line.x + at;
  T* const y = line.y + at;
  const vec<T> weight(line.weight[number]), bias(line.bias ? line.bias[number] : T(0));
  const auto scaled = [&](auto get) __attribute__((always_inline)) {
    return (get(x) - center) * factor;
  };
  if (line.bias) {
    write_scaled(
        y, n, [&](auto get) __attribute__((always_inline)) {
          return multiply_add(scaled(get), weight, bias);
        });
  } else {
    write_scaled(
        y, n, [&](auto get) __attribute__((always_inline)) { return scaled(get) * weight; });
  }
}

}  // namespace cella::cpu::detail
