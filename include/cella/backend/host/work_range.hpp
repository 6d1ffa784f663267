// How kernels share out their work.
#pragma once

namespace cella {

/// The units [first, last) of a kernel's work: units are independent (no two write the same
/// output), so a result does not depend on how they are shared out.
struct work_range {
  int first{}, last{};

  constexpr int size() const { return last - first; }
  constexpr bool empty() const { return first >= last; }
  friend constexpr bool operator==(work_range, work_range) = default;
};

/// Part `index` of `units` cut into `parts` contiguous ranges whose sizes differ by at most one.
constexpr work_range part_of(int units, int parts, int index) {
  const int share = units / parts, rest = units % parts;
  const int first = index * share + (index < rest ? index : rest);
  return {first, first + share + (index < rest ? 1 : 0)};
}

/// How many parts of `b` cover `a`.
constexpr int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace cella
