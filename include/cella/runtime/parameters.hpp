// The memory of a model's parameters and states: one block, laid out in the order of reflection,
// shared by all programs of the model.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/host/buffer.hpp>
#include <cella/backend/random.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/graph/random.hpp>
#include <cella/graph/reflection.hpp>
#include <cella/ops/numbers.hpp>
#include <cella/plan/memory.hpp>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cella {

/// A number by which programs and stores tell whether their parameters are the same: a hash
/// (FNV-1a) of names and types in order.
struct parameter_signature {
  std::uint64_t value = 0xcbf29ce484222325u;
  constexpr void add(std::uint64_t byte) { value = (value ^ byte) * 0x100000001b3u; }
  constexpr void add(std::string_view name, const tensor_type& t) {
    for (char c : name) add(std::uint64_t(static_cast<unsigned char>(c)));
    add(0x100 + std::uint64_t(t.element));
    for (std::int32_t e : t.shape) add(std::uint64_t(e));
  }
};

/// A parameter or state by its path.
struct named_parameter {
  std::string name;
  tensor_type type;
  bool trainable{};
  std::int64_t offset{};
};

/// Owns the values. Binding a cell makes its members' `data` point here.
class parameter_store {
 public:
  /// Lays out the parameters of `cell` and initializes them: the values depend on the seed and the
  /// parameter's path only.
  template <class Cell>
  parameter_store(Cell& cell, std::uint64_t seed, dtype element = dtype::f32) : element_(element) {
    std::vector<parameter_base*> members;
    for_each_parameter(cell, [&](std::string_view path, parameter_base& p) {
      entries_.push_back({std::string(path), {element, p.extents}, p.trainable, size_});
      size_ += align_up(entries_.back().type.bytes());
      members.push_back(&p);
    });
    random_offset_ = size_;
    size_ += align_up(16);
    memory_ = aligned_buffer(std::size_t(size_));
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i]->element = element;
      members[i]->data = memory_.data() + entries_[i].offset;
      fill(*members[i], entries_[i], seed);
    }
    random_state()[0] = std::int64_t(seed);
  }

  std::byte* data() const { return memory_.data(); }
  dtype element() const { return element_; }
  const std::vector<named_parameter>& entries() const { return entries_; }
  tensor_ref value(const named_parameter& p) const { return {memory_.data() + p.offset, p.type}; }
  const named_parameter* find(std::string_view name) const {
    for (const auto& e : entries_) {
      if (e.name == name) return &e;
    }
    return nullptr;
  }
  /// The elements of a parameter or state, row-major. Throws `error` unless there is one of this
  /// name and of the element type `T`.
  template <class T>
  std::span<const T> values(std::string_view name) const {
    const named_parameter& p = known(name, dtype_of<T>);
    return {reinterpret_cast<const T*>(memory_.data() + p.offset), std::size_t(p.type.size())};
  }
  /// The same to write to. Programs see what is written before their next call: ask again after it.
  template <class T>
  std::span<T> mutable_values(std::string_view name) {
    const std::span<const T> v = std::as_const(*this).template values<T>(name);
    touch();
    return {const_cast<T*>(v.data()), v.size()};
  }
  /// Takes over all values of a store with the same names and types; the random state stays. Throws
  /// `error`, and changes nothing, if the stores differ.
  void copy_from(const parameter_store& other);
  /// w + t (other's w - w) for all parameters and states, 0 <= t <= 1: a target net follows its net
  /// with `target.lerp(net, 0.005)`. Throws like copy_from.
  void lerp(const parameter_store& other, double t);

  /// Number of trainable elements.
  std::int64_t trainable_count() const {
    std::int64_t n = 0;
    for (const auto& e : entries_) n += e.trainable ? e.type.size() : 0;
    return n;
  }
  /// (seed, step): what random operations draw from.
  std::int64_t* random_state() const {
    return reinterpret_cast<std::int64_t*>(memory_.data() + random_offset_);
  }

  /// Changes whenever values change, so that what was derived from them is made again.
  std::uint64_t version() const { return version_; }
  void touch() { ++version_; }

  /// Throws unless a program's parameters are these.
  void check(std::uint64_t signature, dtype element) const {
    parameter_signature own;
    for (const auto& e : entries_) own.add(e.name, e.type);
    if (own.value != signature || element != element_) {
      throw error(
          "this program was compiled for another model or another element type than these "
          "parameters");
    }
  }

 private:
  void fill(const parameter_base& p, const named_parameter& e, std::uint64_t seed);
  const named_parameter& known(std::string_view name, dtype element) const;
  void check_alike(const char* who, const parameter_store& other) const;

  dtype element_;
  std::vector<named_parameter> entries_;
  std::int64_t size_{};
  std::int64_t random_offset_{};
  aligned_buffer memory_;
  std::uint64_t version_{};
};

namespace detail {

/// How many characters two names share at their ends: what is misspelt mostly begins and ends like
/// what was meant.
inline std::size_t alikeness(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front + back;
}

}  // namespace detail

inline const named_parameter& parameter_store::known(std::string_view name, dtype asked) const {
  if (const named_parameter* p = find(name)) {
    if (p->type.element == asked) return *p;
    throw error(text() << "parameter_store: \"" << name << "\" is " << p->type
                       << ", but was asked for as " << cella::name(asked));
  }
  std::array<const named_parameter*, 3> nearest{};
  std::array<std::size_t, 3> alike{};
  for (const named_parameter& e : entries_) {
    const named_parameter* candidate = &e;
    std::size_t score = detail::alikeness(e.name, name);
    for (std::size_t k = 0; k < nearest.size() && candidate; ++k) {
      if (nearest[k] && alike[k] >= score) continue;
      std::swap(nearest[k], candidate);
      std::swap(alike[k], score);
    }
  }
  text sentence;
  sentence << "parameter_store: there is no \"" << name << "\"";
  for (std::size_t k = 0; k < nearest.size() && nearest[k]; ++k)
    sentence << (k ? ", \"" : "; near names: \"") << nearest[k]->name << "\"";
  throw error(sentence);
}

inline void parameter_store::check_alike(const char* who, const parameter_store& other) const {
  const std::size_t shared = std::min(entries_.size(), other.entries_.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const named_parameter &own = entries_[i], &its = other.entries_[i];
    if (own.name == its.name && own.type == its.type) continue;
    throw error(text() << who << ": the stores differ: \"" << own.name << "\" " << own.type
                       << " here, \"" << its.name << "\" " << its.type << " there");
  }
  if (entries_.size() == other.entries_.size()) return;
  const bool here = entries_.size() > shared;
  throw error(text() << who << ": the stores differ: only the " << (here ? "first" : "second")
                     << " has \"" << (here ? entries_ : other.entries_)[shared].name << "\"");
}

inline void parameter_store::copy_from(const parameter_store& other) {
  check_alike("copy_from", other);
  if (random_offset_) std::memmove(data(), other.data(), std::size_t(random_offset_));
  touch();
}

inline void parameter_store::lerp(const parameter_store& other, double t) {
  check_alike("lerp", other);
  if (!(t >= 0 && t <= 1))
    throw error(text() << "lerp: t is " << t << "; it must lie between 0 and 1");
  for (const auto& e : entries_) {
    with_element(e.type.element, [&]<class T>() {
      T* const y = reinterpret_cast<T*>(data() + e.offset);
      const T* const x = reinterpret_cast<const T*>(other.data() + e.offset);
      for (std::int64_t i = 0; i < e.type.size(); ++i) {
        if constexpr (is_floating(dtype_of<T>))
          y[i] = from_double<T>(std::lerp(double(y[i]), double(x[i]), t));
        else
          y[i] = x[i];
      }
    });
  }
  touch();
}

inline void parameter_store::fill(const parameter_base& p, const named_parameter& e,
                                  std::uint64_t seed) {
  using kind = initializer::kind_t;
  std::uint64_t key = seed;
  for (char c : e.name) key = fold_in(key, std::uint64_t(static_cast<unsigned char>(c)));
  const initializer& init = p.init;
  const std::int64_t size = p.extents.size();
  const std::int64_t outputs = p.extents.rank ? p.extents[0] : 1;
  const double receptive = p.extents.rank > 2 ? double(p.extents.size(2, p.extents.rank)) : 1;
  const double fan_in =
      init.fan ? double(init.fan)
               : std::max(1.0, double(size) / double(std::max<std::int64_t>(outputs, 1)));
  const double fan_out = std::max(1.0, double(outputs) * receptive);
  double low = 0;
  double spread = 0;  // of a uniform distribution, or the deviation of a normal one
  bool normal_numbers = false;
  switch (init.kind) {
    case kind::constant:
      low = init.a;
      break;
    case kind::uniform:
      low = init.a;
      spread = init.b - init.a;
      break;
    case kind::normal:
    case kind::truncated_normal:
      low = init.a;
      spread = init.b;
      normal_numbers = true;
      break;
    case kind::xavier_normal:
      spread = init.a * std::sqrt(2 / (fan_in + fan_out));
      normal_numbers = true;
      break;
    case kind::he_normal:
      spread = init.a * std::sqrt(2 / fan_in);
      normal_numbers = true;
      break;
    case kind::xavier_uniform:
      spread = 2 * init.a * std::sqrt(6 / (fan_in + fan_out));
      low = -spread / 2;
      break;
    case kind::he_uniform:
      spread = 2 * init.a * std::sqrt(6 / fan_in);
      low = -spread / 2;
      break;
    case kind::fan_in_uniform:
      spread = 2 * init.a / std::sqrt(fan_in);
      low = -spread / 2;
      break;
    case kind::custom:
      spread = 1;
      break;
  }
  // One loop for each element type, whatever the distribution: programs compile all of them.
  const tensor_ref to = value(e);
  const auto put = [&](std::int64_t first, std::span<const double> numbers) {
    with_element(element_, [&]<class T>() {
      if constexpr (is_floating(dtype_of<T>)) {
        T* const y = reinterpret_cast<T*>(to.data) + first;
        for (std::size_t k = 0; k < numbers.size(); ++k)
          y[k] = from_double<T>(low + spread * numbers[k]);
      }
    });
  };
  if (init.kind == kind::custom) {
    std::vector<double> values(static_cast<std::size_t>(size));
    init.make(values, p.extents, key, init.a, init.b);
    return put(0, values);
  }
  if (normal_numbers && init.kind != kind::truncated_normal) return for_normal(key, size, put);
  if (spread != 0 && !normal_numbers) return for_uniform(key, size, put);
  generator numbers(key);
  for (std::int64_t i = 0; i < size; ++i) {
    double z = spread == 0 ? 0 : numbers.normal<double>();
    while (std::abs(z) > 2) z = numbers.normal<double>();
    put(i, {&z, 1});
  }
}

}  // namespace cella
