// Constant tensors: values that belong to a graph, beside its nodes. They are kept as words of
// eight bytes, since in constant evaluation each access counts: words are copied, hashed and
// compared as they are, whatever elements they hold.
#pragma once

#include <array>
#include <bit>
#include <cella/graph/list.hpp>
#include <cella/graph/options.hpp>
#include <cella/graph/shape.hpp>
#include <cella/graph/span.hpp>
#include <complex>
#include <cstdint>

namespace cella {

/// The options of a node whose result is a constant tensor: its place in the graph's pool, and its
/// type.
struct values_options {
  std::int32_t index{};
  cella::shape shape{};
  stored_dtype element{};
};

using word_list = list<std::uint64_t>;

namespace detail {

/// As many elements as fill whole words. Complex numbers are two parts: compilers do not convert
/// their bits in constant evaluation.
template <class T>
struct word_block {
  static constexpr std::size_t elements = sizeof(T) < 8 ? 8 / sizeof(T) : 1;
  T at[elements]{};

  constexpr void set(std::size_t k, T x) { at[k] = x; }
  constexpr T get(std::size_t k) const { return at[k]; }
};
template <class P>
struct word_block<std::complex<P>> {
  static constexpr std::size_t elements = 1;
  P re{}, im{};

  constexpr void set(std::size_t, std::complex<P> x) { re = x.real(), im = x.imag(); }
  constexpr std::complex<P> get(std::size_t) const { return {re, im}; }
};
template <class T>
using block_words = std::array<std::uint64_t, sizeof(word_block<T>) / 8>;

}  // namespace detail

/// The words that hold `count` elements in the order of memory. The last one is filled up with the
/// first element, so that equal elements make equal words.
template <class T>
constexpr word_list packed(const T* elements, std::size_t count) {
  using block = detail::word_block<T>;
  word_list words;
  words.reserve((count + block::elements - 1) / block::elements * sizeof(block) / 8);
  for (std::size_t i = 0; i < count; i += block::elements) {
    block b{};
    for (std::size_t k = 0; k < block::elements; ++k) b.set(k, elements[i + k < count ? i + k : 0]);
    for (std::uint64_t w : std::bit_cast<detail::block_words<T>>(b)) words.push_back(w);
  }
  return words;
}
/// Calls f(i, element) for each of `count` elements that these words hold.
template <class T, class F>
constexpr void for_each_element(span<const std::uint64_t> words, std::size_t count, F f) {
  using block = detail::word_block<T>;
  detail::block_words<T> own{};
  for (std::size_t i = 0, w = 0; i < count; i += block::elements) {
    for (std::uint64_t& x : own) x = words[w++];
    const auto b = std::bit_cast<block>(own);
    for (std::size_t k = 0; k < block::elements && i + k < count; ++k) f(i + k, b.get(k));
  }
}

// Elements whose type is not known to the compiler: by the bytes that one has, at most eight.

/// The bits of element `i`.
constexpr std::uint64_t element_at(span<const std::uint64_t> words, std::size_t i,
                                   std::size_t bytes) {
  if (bytes == 8) return words[i];
  const std::size_t place = i * bytes;
  return words[place / 8] >> 8 * (place % 8) & ((std::uint64_t(1) << 8 * bytes) - 1);
}
/// Makes words as `packed` does, of one element after the other.
class element_packer {
 public:
  constexpr explicit element_packer(std::size_t bytes) : bytes_(bytes) {}

  constexpr void put(std::uint64_t bits) {
    if (place_ == 0) words_.push_back(0);
    words_.back() |= bits << 8 * place_;
    place_ = (place_ + bytes_) % 8;
  }
  constexpr const word_list& words() {
    while (place_) put(element_at(words_, 0, bytes_));
    return words_;
  }

 private:
  std::size_t bytes_;
  std::size_t place_ = 0;  // in the last word
  word_list words_;
};

/// An entry of a pool.
struct pooled_tensor {
  tensor_type type{};
  std::uint64_t hash{};   ///< of its words
  std::int64_t offset{};  ///< in bytes, from the beginning of the pool's words

  constexpr std::size_t word_count() const { return std::size_t((type.bytes() + 7) / 8); }
  /// Its words among all of the pool.
  constexpr span<const std::uint64_t> in(const std::uint64_t* words) const {
    return {words + offset / 8, word_count()};
  }
};

/// The constant tensors of a graph: tensors of one type with the same bytes are one entry. Each
/// begins at a multiple of 64 bytes.
struct constant_pool {
  list<pooled_tensor> tensors;
  word_list words;

  constexpr span<const std::uint64_t> words_of(std::int32_t index) const {
    return tensors[std::size_t(index)].in(words.data());
  }
  /// The index of the tensor of this type that has these words.
  constexpr std::int32_t add(const tensor_type& t, span<const std::uint64_t> values) {
    return add(t, values, hash_of(values));
  }
  /// The same for a tensor of another pool.
  constexpr std::int32_t add(const constant_pool& from, std::int32_t index) {
    const pooled_tensor& x = from.tensors[std::size_t(index)];
    return add(x.type, from.words_of(index), x.hash);
  }

 private:
  constexpr std::int32_t add(const tensor_type& t, span<const std::uint64_t> values,
                             std::uint64_t hash) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].hash == hash && tensors[i].type == t && same(words_of(int(i)), values))
        return std::int32_t(i);
    }
    tensors.push_back({t, hash, std::int64_t(words.size() * 8)});
    words.insert(words.end(), values.begin(), values.end());
    while (words.size() % 8) words.push_back(0);
    return std::int32_t(tensors.size()) - 1;
  }
  static constexpr std::uint64_t hash_of(span<const std::uint64_t> values) {
    const std::uint64_t* const w = values.data();
    std::uint64_t h = values.size();
    for (std::size_t i = 0, n = values.size(); i < n; ++i) {
      h = (h ^ w[i]) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }
  static constexpr bool same(span<const std::uint64_t> a, span<const std::uint64_t> b) {
    const std::uint64_t *const x = a.data(), *const y = b.data();
    for (std::size_t i = 0, n = a.size(); i < n; ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  }
};

}  // namespace cella
