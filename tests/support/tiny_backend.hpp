// A second back end, as small as one can be: scalar, with vectors of another width in its plans and
// a memory of its own, which the host cannot read. It holds the seam between programs and back
// ends, and shows what a new one has to bring (docs/adding_a_back_end.md).
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/backend/host/threads.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/product_form.hpp>
#include <cella/plan/planner.hpp>
#include <cstring>
#include <vector>

namespace cella::test::tiny {

// ---- memory: addresses that trap where the host uses them

inline std::byte* device_address(std::byte* p) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) ^
                                      (std::uintptr_t{1} << 62));
}
inline std::byte* own_address(const std::byte* p) {
  return device_address(const_cast<std::byte*>(p));
}

class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t bytes) : memory_(bytes) {}
  std::byte* data() const { return device_address(memory_.data()); }
  std::size_t size() const { return memory_.size(); }

 private:
  aligned_buffer memory_;
};

// ---- plans

struct planning : plain_planning {
  static constexpr plan_target machine{
      .vector_bytes = 8,
      .vector_registers = 4,
      .nearest_cache = 0,
      .most_reads = 6,
      .most_writes = 3,
      .kernels = {step_kind::elementwise, step_kind::reduce, step_kind::product,
                  step_kind::convolution, step_kind::convolution_input_gradient,
                  step_kind::convolution_weight_gradient}};
};

// ---- kernels

/// Step `s` of a program that is traced and planned, over `spaces` of this back end's memory. It
/// follows the plan element by element, in double precision.
class step_kernel {
 public:
  step_kernel(const graph& g, const plan_step& s, span<const buffer_ref> links,
              std::byte* const* spaces)
      : g_(g), s_(s), links_(links), spaces_(spaces) {}

  void run() {
    switch (s_.kind) {
      case step_kind::copy:
        std::memcpy(at(s_.outputs[0].at), at(s_.in[0]), std::size_t(s_.as<copy_step>().bytes));
        return;
      case step_kind::elementwise:
        return walk_loops([&] { store_outputs(place_of_result()); });
      case step_kind::reduce:
        return reduce();
      case step_kind::generic:
        return compute_results();
      default:  // the anchor by its operation's own computation, then what follows, element by
                // element
        compute_anchor();
        for (element_ = 0; element_ < g_.type(s_.anchor).size(); ++element_) {
          accumulated_ = read_element({anchor_.data(), g_.type(s_.anchor)}, element_);
          store_outputs(element_);
        }
    }
  }

 private:
  std::byte* at(buffer_ref r) const { return own_address(spaces_[r.space] + r.offset); }
  const node& node_at(node_id n) const { return g_.nodes[std::size_t(n)]; }

  // ---- fused expressions

  /// Element `i` of node `n`, in its own shape.
  double evaluate(node_id n, std::int64_t i) const {
    if (n == s_.accumulated && s_.kind != step_kind::elementwise) return accumulated_;
    const node& x = node_at(n);
    if (const int k = s_.find_read(n); k >= 0) {
      const operand_read* const r = &s_.reads[std::size_t(k)];
      return r->factor < 0 ? read(*r, i) : short_product(r[0], r[1]);
    }
    if (is<constant_op>(x)) return x.attributes.as<constant_op::options>().value;
    if (x.op->traits.alias || is<cast_op>(x)) return evaluate(g_.operand(n, 0), i);
    std::array<double, 3> v{};
    for (int k = 0; k < x.operand_count; ++k) v[std::size_t(k)] = evaluate(g_.operand(n, k), i);
    return x.op->scalar(x.attributes, v[0], v[1], v[2]);
  }
  /// A product that the loops sum up where they read it: the operands' elements of each summand.
  double short_product(const operand_read& left, const operand_read& right) const {
    auto factor = [&](const operand_read& r, int k) {
      const tensor_type from = g_.type(g_.operand(r.value, r.factor));
      return read_element({at(r.at), from}, place_in_loops(r) + k * r.along);
    };
    double sum = 0;
    for (int k = 0; k < left.depth; ++k) sum += factor(left, k) * factor(right, k);
    return sum;
  }
  std::int64_t place_in_loops(const operand_read& r) const {
    std::int64_t place = r.first;
    for (std::size_t d = 0; d < max_loops; ++d) place += r.strides[d] * index_[d];
    return place;
  }
  double read(const operand_read& r, std::int64_t i) const {
    const bool loops =
        r.how == access::moving || r.how == access::fixed || r.how == access::strided;
    const node& x = node_at(r.value);
    const bool repeats = is<broadcast_op>(x), part = is<slice_op>(x);
    const tensor_type from = g_.type(repeats || (part && loops) ? g_.operand(r.value, 0) : r.value);
    std::int64_t place = i;
    if (loops) {
      place = place_in_loops(r);
    } else if (repeats) {
      const auto axes = x.attributes.as<broadcast_op::options>().axes;
      const auto own = row_major_strides(from.shape), all = row_major_strides(x.type.shape);
      place = 0;
      for (std::size_t d = 0; d < std::size_t(from.rank()); ++d) {
        const auto axis = std::size_t(axes[d]);
        place += i / all[axis] % x.type.shape[int(axis)] * own[d];
      }
    }
    return read_element({at(r.at), from}, place);
  }
  /// All values before any is stored: one may take the place of what another is computed from.
  void store_outputs(std::int64_t element) const {
    std::array<double, 10> values{};
    for (int k = 0; k < s_.output_count; ++k)
      values[std::size_t(k)] = evaluate(s_.outputs[std::size_t(k)].value, element);
    for (int k = 0; k < s_.output_count; ++k) {
      const step_output& o = s_.outputs[std::size_t(k)];
      std::int64_t place = element;
      if (o.part) {
        place = o.first;
        for (std::size_t d = 0; d < max_loops; ++d) place += o.strides[d] * index_[d];
      }
      write_element({at(o.at), g_.type(o.value)}, place, values[std::size_t(k)]);
    }
  }

  // ---- loops

  /// Calls f() for each element of the loop nest; `index_` says which.
  template <class F>
  void walk_loops(F f) {
    index_ = {};
    for (;;) {
      f();
      int d = s_.loops;
      while (d-- > 0) {
        if (++index_[std::size_t(d)] < s_.loop[std::size_t(d)]) break;
        index_[std::size_t(d)] = 0;
      }
      if (d < 0) return;
    }
  }
  /// The element of a result that the loops are at: the loops that are summed over leave it.
  std::int64_t place_of_result() const {
    std::int64_t place = 0;
    for (int d = 0; d < s_.loops; ++d) {
      if (!(s_.folded >> d & 1)) place = place * s_.loop[std::size_t(d)] + index_[std::size_t(d)];
    }
    return place;
  }
  void reduce() {
    const bool largest = is<max_op>(node_at(s_.anchor)), least = is<min_op>(node_at(s_.anchor));
    std::vector<double> sums(std::size_t(g_.type(s_.anchor).size()));
    std::vector<bool> begun(sums.size());
    const node_id term = g_.operand(s_.anchor, 0);
    walk_loops([&] {
      const auto i = std::size_t(place_of_result());
      const double v = evaluate(term, 0);
      const bool first = !begun[i];
      begun[i] = true;
      if (largest || least)
        sums[i] = first || (largest ? v > sums[i] : v < sums[i]) ? v : sums[i];
      else
        sums[i] += v;
    });
    for (element_ = 0; element_ < std::int64_t(sums.size()); ++element_) {
      accumulated_ = sums[std::size_t(element_)];
      store_outputs(element_);
    }
  }

  // ---- operations by their own computation

  buffer_ref operand(int k) const {
    return s_.link_count ? links_[std::size_t(s_.first_link + k)] : s_.in[std::size_t(k)];
  }
  std::vector<tensor_ref> operands() const {
    std::vector<tensor_ref> in;
    for (int k = 0; k < node_at(s_.anchor).operand_count; ++k)
      in.push_back({at(operand(k)), g_.type(g_.operand(s_.anchor, k))});
    return in;
  }
  void compute_results() const {
    const node& x = node_at(s_.anchor);
    std::vector<tensor_ref> out;
    for (int k = 0; k < s_.output_count; ++k) {
      out.push_back({at(s_.outputs[std::size_t(k)].at),
                     x.result_count ? g_.result_type(s_.anchor, k) : x.type});
    }
    compute(*x.op, x.attributes, operands(), out);
  }
  void compute_anchor() {
    const node& x = node_at(s_.anchor);
    anchor_ = aligned_buffer(std::size_t(x.type.bytes()));
    const tensor_ref out{anchor_.data(), x.type};
    compute(*x.op, x.attributes, operands(), {&out, 1});
  }

  const graph& g_;
  const plan_step& s_;
  span<const buffer_ref> links_;
  std::byte* const* spaces_;
  std::array<std::int64_t, max_loops> index_{};
  std::int64_t element_{};
  double accumulated_{};
  aligned_buffer anchor_;
};

/// Runs a program's steps one after the other.
template <class P>
class runner {
 public:
  runner(std::byte* const* spaces, thread_pool*) : graph_(P::planned()), spaces_(spaces) {}

  static constexpr std::size_t calls = P::plan.steps.size();
  static constexpr int step_of(std::size_t k) { return int(k); }

  void begin() {}
  void prepare() { run_steps(true); }
  void run(std::size_t k) { step_kernel(graph_, P::plan.steps[k], P::plan.links, spaces_).run(); }
  void run_all() { run_steps(false); }
  static double peak() { return 1e9; }

 private:
  void run_steps(bool constant) {
    for (std::size_t k = 0; k < calls; ++k) {
      if (P::plan.steps[k].constant == constant) run(k);
    }
  }

  graph graph_;
  std::byte* const* spaces_;
};

struct backend {
  static constexpr std::string_view name = "tiny";
  using planning = tiny::planning;
  static constexpr bool host_memory = false;
  using buffer = tiny::buffer;
  template <class P>
  using runner = tiny::runner<P>;
  struct arithmetic {
    arithmetic() {}  // nothing to set
  };

  static void upload(std::byte* to, const void* from, std::size_t bytes) {
    if (bytes) std::memcpy(own_address(to), from, bytes);
  }
  static void download(void* to, const std::byte* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, own_address(from), bytes);
  }
};

}  // namespace cella::test::tiny
