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
  static constexpr int most_phases = 2;
  static constexpr int phases(auto step) { return packs_weights(step) ? 2 : 1; }
  static constexpr bool prepares(auto step) { return packs_weights(step); }
  static constexpr int units(auto step, int phase) {
    return with_stored_operands(step, [&]<class Stored>(Stored) {
      const auto p = matrices<Stored>(step);
      if (packs_weights(step) && phase == 0) return gemm_pack_units(p);
      return gemm_units(with_packed(step, nullptr, p));
    });
  }
  static constexpr std::int64_t scratch_bytes(auto step) {
    return with_stored_operands(step, [&]<class Stored>(Stored) {
      return gemm_scratch(with_packed(step, nullptr, matrices<Stored>(step)));
    });
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    with_stored_operands(step, [&]<class Stored>(Stored) {
      const auto p = matrices<Stored>(step, step.template in<const Stored>(m, 0),
                                      step.template in<const Stored>(m, 1));
      with_constant(step, packs_in<Phase>, [&](auto packs) {
        if constexpr (packs) {
          gemm_pack(p, step.template in<T>(m, 3), units);
        } else {
          const T* const packed = packs_weights(step) ? step.in(m, 3) : nullptr;
          gemm(with_packed(step, packed, p), step.plain_epilogue(m, scratch), scratch, units);
        }
      });
    });
  }

  /// What is multiplied, of operands that are stored as `Stored`.
  template <class Stored, class S>
  static constexpr auto matrices(S step, const Stored* left = nullptr,
                                 const Stored* right = nullptr) {
    const product_form f = form_of_product(step.g, step.s.anchor);
    return product_of<typename S::T>(f, left, right);
  }

 private:
  static constexpr bool packs_weights(auto step) { return step.s.in[3].valid(); }
  template <int Phase>
  static constexpr auto packs_in = [](auto step) { return Phase == 0 && packs_weights(step); };
  template <class S, class Product>
  static constexpr Product with_packed(S step, const typename S::T* packed, Product p) {
    if (packs_weights(step)) {
      p.packed_b = true;
      p.packed = packed;
    }
    return p;
  }
};

/// Attention, or its gradient: the operands are reads, with their strides.
template <step_kind Kind>
struct attention_record : record_for<Kind> {
  static constexpr attention_extents extents(auto step) {
    const auto e = step.s.template as<attention_step>();
    return {e.samples, e.heads, e.queries, e.keys, e.width, e.value_width, e.causal != 0};
  }
  static constexpr int units(auto step, int) { return attention_units(extents(step)); }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    return Kind == step_kind::attention ? attention_scratch<T>(extents(step))
                                        : attention_gradient_scratch<T>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const auto e = step.s.template as<attention_step>();
    const auto read = [&](int k) {
      const auto& strides = step.s.reads[std::size_t(k)].strides;
      return heads_view<const T>{step.first_read(m, k), strides[0], strides[1], strides[2]};
    };
    const auto write = [&](int k) {
      T* const to = step.out(m, std::min(k, step.s.output_count - 1));
      return heads_view<T>{to + e.offsets[k], e.result.sample, e.result.head, e.result.place};
    };
    const T scale = static_cast<T>(step.constant_factor(step.s.accumulated));
    if constexpr (Kind == step_kind::attention) {
      attention(units, extents(step), scale, read(0), read(1), read(2), write(0), scratch);
    } else {
      attention_gradient(units, extents(step), scale, read(0), read(1), read(2), read(3), write(0),
                         write(1), write(2), scratch);
    }
  }
};

using product_records = record_list<product_record, attention_record<step_kind::attention>,
                                    attention_record<step_kind::attention_gradient>>;

}  // namespace cella::cpu
