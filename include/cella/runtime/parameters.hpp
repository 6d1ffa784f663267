// The memory of a model's parameters and states: one block, laid out in the order of reflection,
// shared by all programs of the model.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/graph/reflection.hpp>
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
    collector found(*this);
    walk_cell(cell, found);
    initialize(found.members, seed);
  }

  std::byte* data() const { return memory_.data(); }
  dtype element() const { return element_; }
  /// In the order of reflection; `for (const named_parameter& p : store)` goes over them, too.
  const std::vector<named_parameter>& entries() const { return entries_; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  tensor_ref value(const named_parameter& p) const { return {memory_.data() + p.offset, p.type}; }
  const named_parameter* find(std::string_view name) const;
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
  /// The same of a net that is part of another one: what is called `to.name` here takes over what
  /// is called `from.name` there. An empty part is the whole store.
  ///
  ///   drawing.copy_part(trained, "generator");  // `drawing` is a net of the type of that member
  void copy_part(const parameter_store& other, std::string_view from, std::string_view to = {});
  /// w + t (other's w - w) for all parameters and states, 0 <= t <= 1: a target net follows its net
  /// with `target.lerp(net, 0.005)`. Throws like copy_from.
  void lerp(const parameter_store& other, double t);

  /// Number of trainable elements.
  std::int64_t trainable_count() const;
  /// (seed, step): what random operations draw from.
  std::int64_t* random_state() const {
    return reinterpret_cast<std::int64_t*>(memory_.data() + random_offset_);
  }

  /// Changes whenever values change, so that what was derived from them is made again.
  std::uint64_t version() const { return version_; }
  void touch() { ++version_; }

  /// Throws unless a program's parameters are these.
  void check(std::uint64_t signature, dtype element) const;

 private:
  /// Gives each parameter of a cell a place.
  struct collector final : cell_visitor<parameter_base> {
    parameter_store& store;
    std::vector<parameter_base*> members;
    explicit collector(parameter_store& s) : store(s) {}
    void on_parameter(std::string_view path, parameter_base& p) override;
  };
  void add(std::string_view path, const parameter_base& p);
  void initialize(const std::vector<parameter_base*>& members, std::uint64_t seed);
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

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/runtime/parameters_body.hpp>
#endif
