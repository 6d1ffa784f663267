// The devices that a program is divided among: named axes, and what they can do.
#pragma once

#include <array>
#include <cella/graph/error.hpp>
#include <cella/graph/text.hpp>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace cella::parallel {

/// Axes that a mesh has at most.
inline constexpr int max_mesh_axes = 3;

/// The name of a mesh axis, as a value that template arguments may be.
struct axis_name {
  static constexpr std::size_t capacity = 16;
  char characters[capacity]{};

  constexpr axis_name() = default;
  template <std::size_t Size>
  requires(Size <= capacity) constexpr axis_name(const char (&s)[Size])
      : axis_name(std::string_view(s, Size - 1)) {}
  /// What does not fit is cut: `parse_mesh` refuses such names.
  explicit constexpr axis_name(std::string_view s) {
    for (std::size_t i = 0; i < s.size() && i + 1 < capacity; ++i) characters[i] = s[i];
  }
  constexpr std::string_view view() const { return characters; }
  friend constexpr bool operator==(const axis_name&, const axis_name&) = default;
};

/// What ranks along an axis of the mesh can do together.
enum class move_kind : std::uint8_t {
  own_part,
  all_gather,
  all_to_all,
  reduce_scatter,
  all_reduce
};
inline constexpr int move_kinds = 5;
constexpr std::string_view move_name(move_kind k) {
  constexpr std::array<std::string_view, move_kinds> names{"own_part", "all_gather", "all_to_all",
                                                           "reduce_scatter", "all_reduce"};
  return names[std::size_t(k)];
}

/// What messages take: one `latency` seconds, and each byte 1 / `bytes_per_second` more.
struct link_speed {
  double bytes_per_second{};
  double latency{};
};

/// One axis. Ranks that differ in their place along it alone can exchange messages.
struct mesh_axis {
  axis_name name;
  int size = 1;
  double bytes_per_second = 10e9;
  double latency = 5e-6;
  /// Sums over it are made whole, never with each rank in its part: it stands for parts of a step
  /// that follow each other (microbatches).
  bool whole_sums = false;
  /// The share of a sum that goes on by itself between its start and its end, while ranks compute.
  double overlap = 1;
  /// With which a ring would take as long as a collective operation was measured to take; no bytes
  /// per second: that was not measured, messages tell.
  std::array<link_speed, move_kinds> measured{};
  /// The same of an all_reduce in two operations, a start and an end.
  link_speed started{};

  constexpr link_speed speed(move_kind k) const {
    const link_speed& s = measured[std::size_t(k)];
    return s.bytes_per_second > 0 ? s : link_speed{bytes_per_second, latency};
  }
};

/// What one rank has. The defaults are those of a core with AVX2.
struct device {
  double flops_per_second = 50e9;
  double memory_bytes_per_second = 10e9;
  double memory_bytes = 16e9;
};

/// A mesh of equal devices. Ranks are numbered row-major: the last axis moves fastest.
struct device_mesh {
  std::array<mesh_axis, max_mesh_axes> axes{};
  int axis_count{};
  device each{};

  constexpr const mesh_axis& operator[](int a) const { return axes[std::size_t(a)]; }
  constexpr int ranks() const {
    int n = 1;
    for (int a = 0; a < axis_count; ++a) n *= axes[std::size_t(a)].size;
    return n;
  }
  /// Where a rank stands along an axis.
  constexpr int coordinate(int rank, int axis) const {
    for (int a = axis_count - 1; a > axis; --a) rank /= axes[std::size_t(a)].size;
    return rank % axes[std::size_t(axis)].size;
  }
  /// How far the numbers of neighbours along an axis are apart.
  constexpr int stride(int axis) const {
    int n = 1;
    for (int a = axis_count - 1; a > axis; --a) n *= axes[std::size_t(a)].size;
    return n;
  }
  /// The axis of this name; -1 if there is none.
  constexpr int find(std::string_view name) const {
    for (int a = 0; a < axis_count; ++a)
      if (axes[std::size_t(a)].name.view() == name) return a;
    return -1;
  }
};

/// An axis as a type: `axis<"data", 4>`.
template <axis_name Name, int Size>
struct axis {
  static_assert(Size > 0, "cella: an axis of a mesh has one rank or more");
  static constexpr mesh_axis value{Name, Size};
};
namespace detail {
constexpr bool differ() { return true; }
constexpr bool differ(const axis_name& first, const auto&... others) {
  return !((first == others) || ...) && differ(others...);
}
}  // namespace detail
/// A mesh as a type: `mesh<axis<"data", 4>, axis<"model", 2>>`. Its value has the default topology.
template <class... Axes>
struct mesh {
  static_assert(sizeof...(Axes) >= 1 && sizeof...(Axes) <= max_mesh_axes,
                "cella: a mesh has one to three axes");
  static_assert(detail::differ(Axes::value.name...), "cella: two axes of a mesh have one name");
  static constexpr device_mesh value = [] {
    device_mesh m;
    const auto add = [&](const mesh_axis& a) {
      if (m.axis_count < max_mesh_axes) m.axes[std::size_t(m.axis_count++)] = a;
    };
    (add(Axes::value), ...);
    return m;
  }();
  constexpr operator device_mesh() const { return value; }
};

/// `data=4,model=2`
constexpr text mesh_text(const device_mesh& m) {
  text t;
  for (int a = 0; a < m.axis_count; ++a)
    t << (a ? "," : "") << m[a].name.view() << "=" << m[a].size;
  return t;
}

/// The mesh `m` with what `known` says of the axes of the same names and of devices: the sizes of
/// axes may be others. Throws `error` if it says nothing of an axis.
constexpr device_mesh with_topology(device_mesh m, const device_mesh& known) {
  for (int a = 0; a < m.axis_count; ++a) {
    const int k = known.find(m[a].name.view());
    if (k < 0 && m[a].size > 1)
      throw error(text() << "topology: nothing is known of the axis " << m[a].name.view()
                         << " of the mesh " << mesh_text(m) << ", only of " << mesh_text(known)
                         << "; measure a mesh that has it with cella-measure-mesh");
    if (k < 0) continue;
    const int size = m[a].size;
    m.axes[std::size_t(a)] = known[k];
    m.axes[std::size_t(a)].size = size;
  }
  m.each = known.each;
  return m;
}

/// A mesh as a type whose topology was measured: `measured_mesh<topology_of_machine, axis<"data",
/// 2>>`, where the header `machine.hpp` is what `cella-measure-mesh --output machine.hpp` wrote.
template <class Topology, class... Axes>
struct measured_mesh {
  static constexpr bool is_known =
      ((Axes::value.size == 1 || Topology::value.find(Axes::value.name.view()) >= 0) && ...);
  static_assert(is_known,
                "cella: nothing is known of an axis of this mesh; measure a mesh that has it with "
                "cella-measure-mesh");
  static constexpr device_mesh value =
      is_known ? with_topology(mesh<Axes...>::value, Topology::value) : mesh<Axes...>::value;
  constexpr operator device_mesh() const { return value; }
};

/// The mesh that a line such as `data=4,model=2` describes, with the default topology. Throws
/// `error`, which says what is wrong with the line.
inline device_mesh parse_mesh(std::string_view line) {
  device_mesh m;
  const auto refuse = [&](std::string_view why) {
    throw error(text() << "mesh \"" << line << "\": " << why
                       << "; write one to three axes and their sizes, such as data=4,model=2");
  };
  for (std::string_view left = line;;) {
    const std::string_view one = left.substr(0, left.find(','));
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == one.npos) refuse("an axis is NAME=SIZE");
    if (equals >= axis_name::capacity) refuse("the name of an axis has 15 characters at most");
    if (m.axis_count == max_mesh_axes) refuse("too many axes");
    if (m.find(one.substr(0, equals)) >= 0) refuse("two axes have one name");
    mesh_axis& a = m.axes[std::size_t(m.axis_count++)];
    a.name = axis_name(one.substr(0, equals));
    const char* const end = one.data() + one.size();
    const auto read = std::from_chars(one.data() + equals + 1, end, a.size);
    if (read.ec != std::errc{} || read.ptr != end || a.size < 1 || a.size > 4096)
      refuse("a size is a number from 1 to 4096");
    if (one.size() == left.size()) return m;
    left = left.substr(one.size() + 1);
  }
}

}  // namespace cella::parallel
