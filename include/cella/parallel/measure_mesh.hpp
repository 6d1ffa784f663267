// What messages and collective operations of the ranks at hand take: their latency and bandwidth.
#pragma once

#include <algorithm>
#include <cella/backend/host/buffer.hpp>
#include <cella/parallel/communicator.hpp>
#include <cella/parallel/redistribution.hpp>
#include <chrono>
#include <span>
#include <vector>

namespace cella::parallel {

/// How long something of so many bytes took.
struct timed_move {
  double bytes{};  ///< that a rank has before
  double seconds{};
};

struct measuring {
  std::int64_t least_bytes = 1 << 10;
  std::int64_t most_bytes = 1 << 24;
  int rounds = 9;  ///< of which the median counts
};

/// The speed with which messages round a ring come closest to what was measured, relatively: least
/// squares.
constexpr link_speed fitted_speed(move_kind k, int ranks, std::span<const timed_move> all);

/// The mesh with the speeds of its axes, as this rank measures them; all ranks call it at the same
/// time. `c` reaches the others.
inline device_mesh measure_axes(device_mesh m, const communicator& c, const measuring& how = {});

/// The smallest of all ranks' values; all ranks call it.
inline double smallest_of_ranks(const device_mesh& m, const communicator& c, double value);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// seconds = count * latency + bytes / speed, for the times of some pairs of count and bytes.
constexpr link_speed least_squares(std::span<const ring_messages> of,
                                   std::span<const double> seconds) {
  double cc = 0, cb = 0, bb = 0, c1 = 0, b1 = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double c = of[i].count / seconds[i], b = of[i].bytes / seconds[i];
    cc += c * c;
    cb += c * b;
    bb += b * b;
    c1 += c;
    b1 += b;
  }
  const double d = cc * bb - cb * cb;
  const double latency = d > 0 ? std::max((c1 * bb - b1 * cb) / d, 0.0) : 0.0;
  const double per_byte = latency > 0 ? (cc * b1 - cb * c1) / d : b1 / bb;
  // Times that do not grow with the bytes say nothing of the speed, but that it is high.
  return {per_byte > 1e-13 ? 1 / per_byte : 1e13, latency};
}

class mesh_meter {
 public:
  mesh_meter(const device_mesh& m, const communicator& c, const measuring& how)
      : mesh_(m), c_(c), how_(how), in_(room()), out_(room()) {}

  link_speed messages(int axis) {
    std::vector<ring_messages> of;
    std::vector<double> seconds;
    const int place = c_.groups[std::size_t(axis)].coordinate;
    for (std::int64_t bytes : sizes()) {
      const tensor_ref x = floats(in_, {int(bytes / 4)}), y = floats(out_, {int(bytes / 4)});
      of.push_back({1, double(bytes)});
      seconds.push_back(0.5 * median_seconds(axis, bytes, [&] {
                          if (place > 1) return;
                          if (place == 0) c_.send(c_.self, axis, 1, 0, x);
                          c_.receive(c_.self, axis, 1 - place, 0, y);
                          if (place == 1) c_.send(c_.self, axis, 0, 0, x);
                        }));
    }
    return least_squares(of, seconds);
  }
  link_speed moves(int axis, move_kind kind, bool in_two = false) {
    std::vector<timed_move> all;
    const int n = mesh_[axis].size;
    for (std::int64_t bytes : sizes()) {
      const int rows = n, columns = std::max(int(bytes / 4 / n / n), 1) * n;
      const tensor_ref x = floats(in_, {rows, columns});
      tensor_ref y = floats(out_, {rows, columns});
      if (kind == move_kind::all_gather) y = floats(out_, {rows * n, columns});
      if (kind == move_kind::reduce_scatter) y = floats(out_, {1, columns});
      if (kind == move_kind::all_to_all) y = floats(out_, {rows * n, columns / n});
      const double seconds = median_seconds(axis, bytes, [&] {
        if (in_two) {
          c_.start_all_reduce(c_.self, axis, x);
          c_.finish_all_reduce(c_.self, axis, x, y);
          return;
        }
        if (kind == move_kind::all_reduce) c_.all_reduce(c_.self, axis, x, y);
        if (kind == move_kind::all_gather) c_.all_gather(c_.self, axis, 0, x, y);
        if (kind == move_kind::reduce_scatter) c_.reduce_scatter(c_.self, axis, 0, x, y);
        if (kind == move_kind::all_to_all) c_.all_to_all(c_.self, axis, 0, 1, x, y);
      });
      all.push_back({double(x.type.bytes()), seconds});
    }
    return fitted_speed(kind, n, all);
  }
  /// The share of a sum that goes on between its start and its end, while the rank computes.
  double overlap(int axis) {
    const std::int64_t bytes = how_.most_bytes;
    const tensor_ref x = floats(in_, {int(bytes / 4)}), y = floats(out_, {int(bytes / 4)});
    const auto sum = [&](double compute) {
      c_.start_all_reduce(c_.self, axis, x);
      spin(compute);
      c_.finish_all_reduce(c_.self, axis, x, y);
    };
    const double alone = median_seconds(axis, bytes, [&] { sum(0); });
    const double meanwhile = 1.5 * alone;
    const double both = median_seconds(axis, bytes, [&] { sum(meanwhile); });
    return std::clamp((alone + meanwhile - both) / alone, 0.0, 1.0);
  }

 private:
  static void spin(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {}
  }
  std::size_t room() const {
    int n = 1;
    for (int a = 0; a < mesh_.axis_count; ++a) n = std::max(n, mesh_[a].size);
    return std::size_t(how_.most_bytes) * std::size_t(n);
  }
  static tensor_ref floats(aligned_buffer& b, const shape& s) {
    return {b.data(), {dtype::f32, s}};
  }
  std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> all;
    for (std::int64_t b = how_.least_bytes; b <= how_.most_bytes; b *= 4) all.push_back(b);
    return all;
  }
  /// What a rank does between two calls: in a step ranks come from computing, never quite at the
  /// same time.
  void work() {
    for (int turn = 0; turn < 16; ++turn)
      for (float& v : own_) v = v * 0.999f + 0.001f;
  }
  /// Of one call, between stretches of work: each round has some without calls, and some with them.
  template <class F>
  double median_seconds(int axis, std::int64_t bytes, F once) {
    const int calls = int(std::clamp<std::int64_t>((1 << 23) / bytes, 4, 100));
    std::vector<double> rounds;
    for (int r = 0; r < how_.rounds + 1; ++r) {
      const double without = seconds_of(axis, calls, [&] { work(); });
      const double with = seconds_of(axis, calls, [&] {
        work();
        once();
      });
      if (r > 0) rounds.push_back(with - without);
    }
    std::nth_element(rounds.begin(), rounds.begin() + how_.rounds / 2, rounds.end());
    return std::max(rounds[std::size_t(how_.rounds / 2)], 1e-8);
  }
  template <class F>
  double seconds_of(int axis, int calls, F once) {
    const tensor_ref x = floats(in_, {1}), y = floats(out_, {1});
    c_.all_reduce(c_.self, axis, x, y);  // they begin together
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) once();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
  }

  const device_mesh& mesh_;
  const communicator& c_;
  const measuring how_;
  aligned_buffer in_, out_;
  std::array<float, 1 << 13> own_{};
};

}  // namespace detail

constexpr link_speed fitted_speed(move_kind k, int ranks, std::span<const timed_move> all) {
  list<ring_messages> of;
  list<double> seconds;
  for (const timed_move& t : all) {
    of.push_back(messages_of(k, t.bytes, ranks));
    seconds.push_back(t.seconds);
  }
  return detail::least_squares({of.begin(), of.size()}, {seconds.begin(), seconds.size()});
}

inline device_mesh measure_axes(device_mesh m, const communicator& c, const measuring& how) {
  detail::mesh_meter meter(m, c, how);
  for (int a = 0; a < m.axis_count; ++a) {
    mesh_axis& axis = m.axes[std::size_t(a)];
    if (axis.size == 1) continue;
    const link_speed messages = meter.messages(a);
    axis.bytes_per_second = messages.bytes_per_second;
    axis.latency = messages.latency;
    for (int k = int(move_kind::all_gather); k < move_kinds; ++k)
      axis.measured[std::size_t(k)] = meter.moves(a, move_kind(k));
    axis.started = meter.moves(a, move_kind::all_reduce, true);
    axis.overlap = meter.overlap(a);
  }
  return m;
}

inline double smallest_of_ranks(const device_mesh& m, const communicator& c, double value) {
  for (int a = 0; a < m.axis_count; ++a) {
    if (m[a].size == 1) continue;
    std::vector<double> all(std::size_t(m[a].size));
    c.all_gather(c.self, a, 0, {reinterpret_cast<std::byte*>(&value), {dtype::f64, {1}}},
                 {reinterpret_cast<std::byte*>(all.data()), {dtype::f64, {m[a].size}}});
    value = *std::min_element(all.begin(), all.end());
  }
  return value;
}

}  // namespace cella::parallel
