// Matrix products of plain matrices, and attention.
#pragma once

#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/cpu/gemm/product_of.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/attention.hpp>
#include <cella/ops/product_form.hpp>

namespace cella::cpu {

/// Weights that keep their value are packed once, into `in[3]`.
struct product_record : record_in<step_kind::product, layout::plain> {
  template <class S>
  static constexpr int phases(S) {
    return packs_weights<S> ? 2 : 1;
  }
  template <class S>
  static constexpr bool prepares(S) {
    return packs_weights<S>;
  }
  template <class S>
  static constexpr int units(S step, int phase) {
    if (packs_weights<S> && phase == 0) return gemm_pack_units(matrices(step));
    return gemm_units(with_packed(step, nullptr, matrices(step)));
  }
  static constexpr std::int64_t scratch_bytes(auto step) {
    return gemm_scratch(with_packed(step, nullptr, matrices(step)));
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const auto p = matrices(step, S::template in<const stored<S>>(m, 0),
                            S::template in<const stored<S>>(m, 1));
    if constexpr (packs_weights<S> && Phase == 0) {
      gemm_pack(p, S::template in<T>(m, 3), units);
    } else {
      const T* const packed = packs_weights<S> ? S::in(m, 3) : nullptr;
      gemm(with_packed(step, packed, p), S::plain_epilogue(m), scratch, units);
    }
  }

  /// The type that the operands are stored in.
  template <class S>
  using stored = element<S::operand(0).element>;
  /// What is multiplied.
  template <class S>
  static constexpr auto matrices(S, const stored<S>* left = nullptr,
                                 const stored<S>* right = nullptr) {
    constexpr product_form f = form_of_product(S::g, S::s.anchor);
    return product_of<typename S::T>(f, left, right);
  }

 private:
  template <class S>
  static constexpr bool packs_weights = S::s.in[3].valid();
  template <class S, class Product>
  static constexpr Product with_packed(S, const typename S::T* packed, Product p) {
    if (packs_weights<S>) {
      p.packed_b = true;
      p.packed = packed;
    }
    return p;
  }
};

/// Attention, or its gradient: the operands are reads, with their strides.
struct attention_record : kernel_record {
  static constexpr bool matches(const plan_step& s) {
    return s.kind == step_kind::attention || s.kind == step_kind::attention_gradient;
  }
  template <class S>
  static constexpr attention_extents extents(S) {
    const auto e = S::s.template as<attention_step>();
    return {e.samples, e.heads, e.queries, e.keys, e.width, e.value_width, e.causal != 0};
  }
  static constexpr int units(auto step, int) { return attention_units(extents(step)); }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    return S::s.kind == step_kind::attention ? attention_scratch<T>(extents(step))
                                             : attention_gradient_scratch<T>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    constexpr auto e = S::s.template as<attention_step>();
    const auto read = [&](int k) {
      const auto& strides = S::s.reads[std::size_t(k)].strides;
      return heads_view<const T>{S::first_read(m, k), strides[0], strides[1], strides[2]};
    };
    const auto write = [&](int k) {
      T* const to = S::out(m, std::min(k, S::s.output_count - 1));
      return heads_view<T>{to + e.offsets[k], e.result.sample, e.result.head, e.result.place};
    };
    constexpr T scale = static_cast<T>(S::constant_factor(S::s.accumulated));
    if constexpr (S::s.kind == step_kind::attention) {
      attention(units, extents(step), scale, read(0), read(1), read(2), write(0), scratch);
    } else {
      attention_gradient(units, extents(step), scale, read(0), read(1), read(2), read(3), write(0),
                         write(1), write(2), scratch);
    }
  }
};

using product_records = record_list<product_record, attention_record>;

}  // namespace cella::cpu
