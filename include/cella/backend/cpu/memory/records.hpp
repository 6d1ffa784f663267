// Records in memory: what the steps of a loop of unknown length, or the calls of a recursive
// function, keep for their backward pass.
#pragma once

#include <cella/backend/cpu/memory/run_context.hpp>
#include <cella/graph/span.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/strided.hpp>
#include <cstring>

namespace cella::cpu {

/// An element of type `record` in memory: the address of its content, null for zeros.
struct stored_record;
using record = stored_record*;

/// The content: fields one behind the other, each aligned to 8 bytes.
struct stored_record {
  span<const tensor_type> fields;

  static constexpr std::int64_t room(std::int64_t bytes) { return align_up(bytes, 8); }
  static constexpr std::int64_t bytes(const tensor_type& t) { return room(stored(t).bytes()); }
  /// Of a whole record.
  static constexpr std::int64_t size(span<const tensor_type> fields) {
    auto size = std::int64_t(sizeof(stored_record));
    for (const tensor_type& t : fields) size += bytes(t);
    return size;
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }

  /// `fields` outlives the record.
  static record make(frame_stack& memory, span<const tensor_type> fields) {
    return make(memory, fields, size(fields));
  }
  static record make(frame_stack& memory, span<const tensor_type> fields, std::int64_t size) {
    return ::new (memory.take(size)) stored_record{fields};
  }
};

/// The sum of two records of the same fields, field by field.
inline record add(frame_stack& memory, record x, record y) {
  if (!x || !y) return x ? x : y;
  const record sum = stored_record::make(memory, x->fields);
  std::byte* a = x->data();
  std::byte* b = y->data();
  std::byte* c = sum->data();
  for (const tensor_type& t : x->fields) {
    const std::int64_t size = t.size();
    if (t.element == dtype::record) {
      for (std::int64_t i = 0; i < size; ++i) {
        reinterpret_cast<record*>(c)[i] =
            add(memory, reinterpret_cast<record*>(a)[i], reinterpret_cast<record*>(b)[i]);
      }
    } else {
      with_element(t.element, [&]<class T>() {
        for (std::int64_t i = 0; i < size; ++i) {
          if constexpr ((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) ||
                        is_complex_number<T>)
            reinterpret_cast<T*>(c)[i] =
                cella::detail::wrapping_sum(reinterpret_cast<T*>(a)[i], reinterpret_cast<T*>(b)[i]);
          else
            reinterpret_cast<T*>(c)[i] = reinterpret_cast<T*>(a)[i];
        }
      });
    }
    for (std::byte** p : {&a, &b, &c}) *p += stored_record::bytes(t);
  }
  return sum;
}

/// Elementwise sum of two tensors of records.
inline void add_records(frame_stack& memory, const tensor_ref& x, const tensor_ref& y,
                        const tensor_ref& out) {
  for (std::int64_t i = 0; i < out.type.size(); ++i) {
    reinterpret_cast<record*>(out.data)[i] =
        add(memory, reinterpret_cast<record*>(x.data)[i], reinterpret_cast<record*>(y.data)[i]);
  }
}
/// Sum of a tensor of records over the axes of a bit set.
inline void sum_records(frame_stack& memory, unsigned axes, const tensor_ref& x,
                        const tensor_ref& out) {
  const auto steps = row_major_strides(out.type.shape);
  const auto sums = reinterpret_cast<record*>(out.data);
  std::fill_n(sums, out.type.size(), nullptr);
  for_each_index(x.type.shape, [&](std::int64_t k, const multi_index& i) {
    std::int64_t to = 0;
    for (int d = 0, e = 0; d < x.type.rank(); ++d) {
      if (!(axes >> d & 1)) to += steps[std::size_t(e++)] * i[std::size_t(d)];
    }
    sums[to] = add(memory, sums[to], reinterpret_cast<record*>(x.data)[k]);
  });
}

}  // namespace cella::cpu
