// Lines along an axis whose results need each other: running sums and recurrences, the order of
// elements; Fourier transforms.
#pragma once

#include <cella/backend/cpu/lower/rows.hpp>
#include <cella/backend/cpu/plan/default_kernel.hpp>
#include <cella/backend/cpu/rows/fourier.hpp>
#include <cella/backend/cpu/rows/order.hpp>
#include <cella/backend/cpu/rows/running_best.hpp>

namespace cella::cpu {

struct running_record : record_for<step_kind::running> {
  static constexpr running_extents extents(auto step) {
    return with_operation(step, running_operations{}, [&]<class Op>() -> running_extents {
      const auto o = options_of<Op>(step);
      return {lines_along(step, o.axis), o.reverse != 0};
    });
  }
  static constexpr int units(auto step, int) { return running_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const auto e = extents(step);
    with_numbers(step, [&]<class N>() {
      const N* const x = step.template in<const N>(m, 0);
      with_constant(step, anchor_is<running_argmax_op>, [&](auto finds) {
        if constexpr (finds) {
          with_constant(step, finds_least, [&](auto least) {
            running_best<!least>(units, e, x, step.template out<std::int64_t>(m, 0));
          });
        } else {
          with_constant(step, anchor_is<cumsum_op>, [&](auto sums) {
            if constexpr (sums)
              running_sums(units, e, options_of<cumsum_op>(step).exclusive != 0, x,
                           step.template out<N>(m, 0));
            else
              running_recurrences(units, e, x, step.template in<const N>(m, 1),
                                  step.template out<N>(m, 0));
          });
        }
      });
    });
  }

 private:
  static constexpr auto finds_least = [](auto step) {
    return options_of<running_argmax_op>(step).least != 0;
  };
};

struct order_record : record_for<step_kind::order> {
  static constexpr order_extents extents(auto step) {
    const auto o = options_of<argsort_op>(step);
    const search_extents e = lines_along(step, o.axis);
    return {e, o.wanted(e.extent), o.descending != 0};
  }
  static constexpr int units(auto step, int) { return order_units(extents(step)); }
  static constexpr std::int64_t scratch_bytes(auto step) {
    return size_of(step.operand(0).element) == 4 ? order_scratch<float>(extents(step))
                                                 : order_scratch<double>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    with_numbers(step, [&]<class N>() {
      const N* const x = step.template in<const N>(m, 0);
      with_constant(step, gives_elements, [&](auto elements) {
        if constexpr (elements)
          sort_lines(units, extents(step), x, step.template out<N>(m, 0), scratch);
        else
          order_lines(units, extents(step), x, step.template out<std::int64_t>(m, 0), scratch);
      });
    });
  }

 private:
  static constexpr auto gives_elements = [](auto step) {
    return step.s.outputs[0].value != step.s.anchor;
  };
};

struct fourier_record : record_for<step_kind::fourier> {
  static constexpr search_extents extents(auto step) {
    return lines_along(step, options_of<fft_op>(step).axis);
  }
  template <class S>
  static constexpr int units(S step, int) {
    return fourier_units<typename S::T>(extents(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return fourier_scratch<typename S::T>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const search_extents e = extents(step);
    const auto o = options_of<fft_op>(step);
    fourier_lines(units, e, o.inverse ? 1 : -1, T(o.scale(e.extent)),
                  step.template in<const std::complex<T>>(m, 0),
                  step.template out<std::complex<T>>(m, 0), scratch);
  }
};

/// Between real numbers and the first half of their transforms.
template <step_kind Kind, class Op>
struct real_fourier_record : record_for<Kind> {
  /// Of the real numbers.
  static constexpr search_extents extents(auto step) {
    const auto o = options_of<Op>(step);
    search_extents e = lines_along(step, o.axis);
    if constexpr (std::is_same_v<Op, irfft_op>) e.extent = o.count;
    return e;
  }
  template <class S>
  static constexpr int units(S step, int) {
    return fourier_units<typename S::T>(extents(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return real_fourier_scratch<typename S::T>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const search_extents e = extents(step);
    const auto o = options_of<Op>(step);
    const T times = o.twice ? 2 : 1, scale = T(o.scale(e.extent));
    if constexpr (std::is_same_v<Op, rfft_op>)
      lines_to_spectra(units, e, times, scale, step.template in<const T>(m, 0),
                       step.template out<std::complex<T>>(m, 0), scratch);
    else
      spectra_to_lines(units, e, times, scale, step.template in<const std::complex<T>>(m, 0),
                       step.template out<T>(m, 0), scratch);
  }
};
using fourier_of_real_record = real_fourier_record<step_kind::fourier_of_real, rfft_op>;
using fourier_to_real_record = real_fourier_record<step_kind::fourier_to_real, irfft_op>;

using line_records = record_list<running_record, order_record, fourier_record,
                                 fourier_of_real_record, fourier_to_real_record>;

}  // namespace cella::cpu
