// What inputs are called that are blocks of a parameter's rows.
#pragma once

#include <cella/graph/op_info.hpp>
#include <cella/graph/text.hpp>
#include <string_view>

namespace cella::parallel {

/// A block of rows of a tensor: number `index` of `count` equal ones.
struct row_block {
  std::string_view whole;  ///< the name of the tensor
  int index = 0, count = 1;
};

/// `qkv.weight#1/3`
constexpr text block_name(std::string_view whole, int index, int count) {
  return text() << whole << "#" << index << "/" << count;
}
/// The block that a name means; what is no name of a block is the only one.
constexpr row_block block_of(std::string_view name) {
  const std::size_t at = name.rfind('#');
  if (at == name.npos) return {name};
  int numbers[2]{}, k = 0;
  for (char c : name.substr(at + 1)) {
    if (c == '/' && k == 0)
      ++k;
    else if (c >= '0' && c <= '9' && numbers[k] < 1000)
      numbers[k] = 10 * numbers[k] + (c - '0');
    else
      return {name};
  }
  if (k == 0 || numbers[0] >= numbers[1]) return {name};
  return {name.substr(0, at), numbers[0], numbers[1]};
}

/// The type of the tensor that has blocks of this type.
constexpr tensor_type with_all_blocks(tensor_type t, const row_block& b) {
  if (b.count > 1) t.shape[0] *= b.count;
  return t;
}
/// Where a block lies in the tensor's memory.
inline tensor_ref block_in(tensor_ref whole, const row_block& b) {
  if (b.count == 1) return whole;
  whole.data += whole.type.bytes() / b.count * b.index;
  whole.type.shape[0] /= b.count;
  return whole;
}

}  // namespace cella::parallel
