// Tensors that a cell owns, and how they are initialized.
#pragma once

#include <cella/graph/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cella {

/// How a parameter gets its first value. `fan` is the number of inputs that feed one output; 0
/// means "from the parameter's own shape" (all extents but the first).
struct initializer {
  /// Values of these extents, row-major, from a key of random numbers and two numbers of one's own.
  using function = void (*)(std::span<double> values, const shape& extents, std::uint64_t key,
                            double a, double b);
  enum class kind_t : std::uint8_t {
    constant,          ///< a
    uniform,           ///< in [a, b)
    normal,            ///< mean a, standard deviation b
    truncated_normal,  ///< mean a, standard deviation b, redrawn outside two deviations
    xavier_uniform,    ///< +-a sqrt(6 / (fan_in + fan_out)); Glorot and Bengio 2010
    xavier_normal,     ///< deviation a sqrt(2 / (fan_in + fan_out))
    he_uniform,        ///< +-a sqrt(6 / fan_in); He et al. 2015
    he_normal,         ///< deviation a sqrt(2 / fan_in)
    fan_in_uniform,    ///< +-a / sqrt(fan_in): what PyTorch gives dense and convolution layers
    custom             ///< what a function makes: see nn/initializers.hpp
  };
  kind_t kind{};
  double a{};
  double b{};
  std::int64_t fan{};
  function make{};

  static constexpr initializer zeros() { return {kind_t::constant, 0, 0, 0}; }
  static constexpr initializer ones() { return {kind_t::constant, 1, 0, 0}; }
  static constexpr initializer constant(double value) { return {kind_t::constant, value, 0, 0}; }
  static constexpr initializer uniform(double low, double high) {
    return {kind_t::uniform, low, high, 0};
  }
  static constexpr initializer normal(double mean = 0, double deviation = 1) {
    return {kind_t::normal, mean, deviation, 0};
  }
  static constexpr initializer truncated_normal(double mean = 0, double deviation = 1) {
    return {kind_t::truncated_normal, mean, deviation, 0};
  }
  static constexpr initializer xavier_uniform(double gain = 1) {
    return {kind_t::xavier_uniform, gain, 0, 0};
  }
  static constexpr initializer xavier_normal(double gain = 1) {
    return {kind_t::xavier_normal, gain, 0, 0};
  }
  static constexpr initializer he_uniform(double gain = 1) {
    return {kind_t::he_uniform, gain, 0, 0};
  }
  static constexpr initializer he_normal(double gain = 1) {
    return {kind_t::he_normal, gain, 0, 0};
  }
  static constexpr initializer fan_in_uniform(std::int64_t fan = 0, double gain = 1) {
    return {kind_t::fan_in_uniform, gain, 0, fan};
  }
  static constexpr initializer custom(function f, double a = 0, double b = 0) {
    return {kind_t::custom, a, b, 0, f};
  }
};

class builder;
struct var;

/// A tensor owned by a cell. While a cell is traced the object's address identifies it; in a
/// running model `data` points into the model's memory, in the model's precision.
struct parameter_base {
  shape extents{};
  initializer init{};
  bool trainable = true;
  dtype element = dtype::f32;
  std::byte* data = nullptr;
  /// The trace in which this object stands for a value; none outside of tracing.
  builder* traced_by = nullptr;

  /// The values, row-major. Precondition: the model that owns the cell is built and has element
  /// type T.
  template <class T = float>
  std::span<T> values() const {
    return {reinterpret_cast<T*>(data), data ? std::size_t(extents.size()) : 0};
  }
  /// While the cell is traced: the value, as a var of the graph. Operations take parameters as they
  /// are; this is for what holds vars: `var w = layer.weight;`.
  constexpr operator var() const;
};

/// A parameter of static extents: `parameter<120, 400> weight{initializer::he_normal()};`
template <int... Extents>
struct parameter : parameter_base {
  constexpr parameter(initializer first = initializer::fan_in_uniform(), bool is_trainable = true)
      : parameter_base{shape{Extents...}, first, is_trainable, dtype::f32, nullptr, nullptr} {}
};

/// A tensor that the cell updates itself and that is not trained: `state<6> running_mean{...};`
template <int... Extents>
struct state : parameter<Extents...> {
  constexpr state(initializer first = initializer::zeros()) : parameter<Extents...>(first, false) {}
};

}  // namespace cella
