// The lines of normalizations, which are so common that each row is written in one pass.
#pragma once

#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/bytecode/forms.hpp>
#include <cstdint>

namespace cella::cpu::detail {

/// y = (x - center) factor weight + bias: center and factor are numbers of the row, weight and bias
/// of the column. All but the factor may lack; `x` is null for all other lines.
template <class T>
struct scaled_line {
  const T* x{};
  int center = -1, factor = -1;
  const T *weight{}, *bias{};
  T* y{};
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
    found.weight = read(first.in[2], access::column);
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
    found.weight = read(second.in[1], access::column);
    if (adds) found.bias = read(second.in[2], access::column);
    if (!found.weight || (adds && !found.bias)) return {};
  }
  if (found.factor < 0) return {};
  found.x = read(first.in[0], access::same);
  return found;
}

/// Writes the row that begins at element `at`.
template <class T>
void scale_row(const scaled_line<T>& line, std::int64_t at, std::int64_t width, vec<T> center,
               vec<T> factor) {
  constexpr int L = lanes<T>;
  const T* const x = line.x + at;
  T* const y = line.y + at;
  const std::int64_t whole = width / L * L;
  const auto run = [&](auto of) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < whole; i += L)
      store_unaligned(y + i, of([&](const T* p) { return load_unaligned(p + i); }));
    if (const int rest = int(width - whole))
      store_first(y + whole, rest, of([&](const T* p) { return load_first(p + whole, rest); }));
  };
  const auto scaled = [&](auto get) __attribute__((always_inline)) {
    return (get(x) - center) * factor;
  };
  if (line.bias) {
    run([&](auto get) __attribute__((always_inline)) {
      return multiply_add(scaled(get), get(line.weight), get(line.bias));
    });
  } else if (line.weight) {
    run([&](auto get) __attribute__((always_inline)) { return scaled(get) * get(line.weight); });
  } else {
    run(scaled);
  }
}

}  // namespace cella::cpu::detail
