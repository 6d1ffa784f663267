// Moves matrix products out of loops, where many small ones become one large one: a product of a
// slice and a constant of the loop is made before it for all steps; products that a loop only adds
// up (the gradients of recurrent weights) are made after it from what its steps store.
#pragma once

#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/product_form.hpp>

namespace cella {

namespace detail {

/// Rewrites the scans of one region.
class loop_product_mover {
 public:
  constexpr loop_product_mover(graph& g, int r) : g_(g), r_(r) {}

  constexpr void run() {
    const ids old = g_.regions[std::size_t(r_)].nodes;
    for (node_id n : old) {
      rename(n);
      if (g_.nodes[std::size_t(n)].op == &get_info_of && replace(n)) continue;
      if (!is<scan_op>(g_.nodes[std::size_t(n)])) {
        order_.push_back(n);
        continue;
      }
      scan_ = n;
      // A product for all steps needs memory for all steps, which a loop that computes its bodies
      // again was to save.
      const bool saves_memory = options().recompute;
      if (!saves_memory) move_before();
      transpose_before();
      order_.push_back(n);
      if (!saves_memory) move_after();
    }
    for (node_id& n : g_.regions[std::size_t(r_)].outputs) n = renamed(n);
    g_.regions[std::size_t(r_)].nodes = order_;
    g_.number_nodes(g_.regions[std::size_t(r_)]);
  }

 private:
  /// Result `from` of a rewritten scan is now its result `to`, or node `value`.
  struct moved_result {
    node_id scan;
    int from;
    int to;
    node_id value = no_node;
  };

  // ---- names

  constexpr node_id renamed(node_id n) const {
    for (const auto& [old, now] : renames_) {
      if (old == n) return now;
    }
    return n;
  }
  constexpr void rename(node_id n) {
    if (renames_.empty()) return;
    const node x = g_.nodes[std::size_t(n)];
    for (int k = 0; k < x.operand_count; ++k) {
      node_id& o = g_.operand_pool[std::size_t(x.first_operand + k)];
      o = renamed(o);
    }
  }
  /// A `get` of a rewritten scan reads another result, or vanishes.
  constexpr bool replace(node_id n) {
    const node_id from = g_.operand(n, 0);
    const int k = g_.nodes[std::size_t(n)].attributes.as<get_attributes>().result;
    for (const moved_result& m : results_) {
      if (m.scan != from || m.from != k) continue;
      if (m.value >= 0) {
        renames_.push_back({n, m.value});
        return true;
      }
      g_.nodes[std::size_t(n)].attributes = get_attributes{m.to};
      return false;
    }
    return false;
  }

  // ---- new nodes

  /// A node beside the scan, in its place in the user's source.
  constexpr node_id append(const op_info& op, span<const node_id> in, const attributes& o,
                           tensor_type type) {
    order_.push_back(g_.append_like(scan_, op, in, o, type));
    return order_.back();
  }
  constexpr ids operands() const {
    const auto in = g_.operands(scan_);
    return {in.begin(), in.end()};
  }
  constexpr scan_options options() const {
    return g_.nodes[std::size_t(scan_)].attributes.as<scan_options>();
  }

  // ---- bodies

  /// Makes the scan's body a region that nobody else runs.
  constexpr void own_body() {
    if (owned_ == scan_) return;
    owned_ = scan_;
    const int old = g_.nodes[std::size_t(scan_)].regions[0];
    const int made = int(g_.regions.size());
    region body = g_.regions[std::size_t(old)];
    ids copies(body.nodes.size(), no_node);
    auto copy_of = [&](node_id n) {
      return copies[std::size_t(g_.nodes[std::size_t(n)].position)];
    };
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      node n = g_.nodes[std::size_t(body.nodes[i])];
      const auto first = std::size_t(n.first_operand);
      n.first_operand = std::int32_t(g_.operand_pool.size());
      for (std::size_t k = 0; k < std::size_t(n.operand_count); ++k)
        g_.operand_pool.push_back(copy_of(g_.operand_pool[first + k]));
      n.region = made;
      copies[i] = g_.append(n);
    }
    for (node_id& n : body.inputs) n = copy_of(n);
    for (node_id& n : body.outputs) n = copy_of(n);
    body.nodes = copies;
    g_.nodes[std::size_t(scan_)].regions[0] = made;
    g_.regions.push_back(body);
  }
  constexpr region& body() {
    return g_.regions[std::size_t(g_.nodes[std::size_t(scan_)].regions[0])];
  }
  /// Which input of the body a node is; -1: none.
  constexpr int input_index(node_id n) {
    const ids& in = body().inputs;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (in[k] == n) return int(k);
    }
    return -1;
  }
  constexpr int uses(node_id n) {
    int count = 0;
    for (node_id m : body().nodes) {
      for (node_id o : g_.operands(m)) count += o == n;
    }
    for (node_id m : body().outputs) count += m == n;
    return count;
  }

  // ---- before the loop

  constexpr bool is_slice(int k) const {
    const scan_options o = options();
    return k >= o.carries && k < o.carries + o.xs;
  }
  constexpr bool is_loop_constant(int k) const { return k >= options().carries + options().xs; }

  /// slice * constant, in either order.
  constexpr bool ready_before(node_id n) {
    if (!is<matmul_op>(g_.nodes[std::size_t(n)])) return false;
    const int a = input_index(g_.operand(n, 0));
    const int b = input_index(g_.operand(n, 1));
    if (!(is_slice(a) && is_loop_constant(b)) && !(is_slice(b) && is_loop_constant(a)))
      return false;
    const int length = options().length;
    const std::array types{
        is_slice(a) ? with_leading(length, g_.type(g_.operand(n, 0))) : g_.type(g_.operand(n, 0)),
        is_slice(b) ? with_leading(length, g_.type(g_.operand(n, 1))) : g_.type(g_.operand(n, 1)),
        with_leading(length, g_.type(n))};
    const auto all = matmul_op::with_leading_factor(product(n), is_slice(a), is_slice(b), true);
    return types[2].bytes() <= most_bytes && form_of_product(all, types).fits;
  }
  /// All steps' values stay in a cache; otherwise a loop over blocks is left as it was written.
  static constexpr std::int64_t most_bytes = std::int64_t{4} << 20;
  constexpr matmul_op::options product(node_id n) const {
    return g_.nodes[std::size_t(n)].attributes.as<matmul_op::options>();
  }
  constexpr void move_before() {
    list<std::size_t> places;
    const ids nodes = body().nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (ready_before(nodes[i])) places.push_back(i);
    }
    if (places.empty()) return;
    own_body();
    for (std::size_t place : places) {
      const node_id n = body().nodes[place];
      const ids outer = operands();
      scan_options o = options();
      std::array<node_id, 2> in{};
      std::array<bool, 2> sliced{};
      for (std::size_t i = 0; i < 2; ++i) {
        const int k = input_index(g_.operand(n, int(i)));
        in[i] = outer[std::size_t(k)];
        sliced[i] = is_slice(k);
      }
      const auto all = matmul_op::with_leading_factor(product(n), sliced[0], sliced[1], true);
      const tensor_type type = g_.type(n);
      const node_id made = append(bound<matmul_op>(), in, all, with_leading(o.length, type));
      ids now = outer;
      const auto at = std::ptrdiff_t(o.carries + o.xs);
      now.insert(now.begin() + at, made);
      g_.set_operands(scan_, now);
      ++o.xs;
      g_.nodes[std::size_t(scan_)].attributes = o;
      node& x = g_.nodes[std::size_t(n)];  // the product's place is an input now
      x.op = &input_info_of;
      x.operand_count = 0;
      x.attributes = {};
      region& r = body();
      r.inputs.insert(r.inputs.begin() + at, n);
      ++r.declared;
    }
  }

  /// Which operand of a product is a constant matrix of the loop that the kernel wants with its
  /// columns side by side, and has with its rows, and that is not packed before the loop; -1: none.
  constexpr int lies_across(node_id n) {
    if (!is<matmul_op>(g_.nodes[std::size_t(n)])) return -1;
    const product_form f = form_of_product(g_, n);
    const int i = f.exchanged ? 0 : 1;  // the kernel's right matrix
    const node_id right = g_.operand(n, i);
    const bool wide = f.columns > 1 && f.depth > 1 && f.rows > 1;
    const bool packed = worth_packing(f, std::int64_t(size_of(g_.type(right).element)));
    const bool across = f.fits && wide && !packed && f.b_column != 1 && g_.type(right).rank() == 2;
    return across && is_loop_constant(input_index(right)) ? i : -1;
  }
  constexpr void transpose_before() {
    bool any = false;
    for (node_id n : body().nodes) any |= lies_across(n) >= 0;
    if (!any) return;
    own_body();
    const ids products = body().nodes;
    for (node_id n : products) {
      const int i = lies_across(n);
      if (i < 0) continue;
      ids in = operands();
      const std::array from{in[std::size_t(input_index(g_.operand(n, i)))]};
      tensor_type type = g_.type(from[0]);
      std::swap(type.shape[0], type.shape[1]);
      in.push_back(append(bound<transpose_op>(), from, transpose_op::options{{1, 0}}, type));
      g_.set_operands(scan_, in);
      auto o = product(n);
      auto& axes = i == 0 ? o.a : o.b;
      std::swap(axes[0], axes[1]);
      g_.nodes[std::size_t(n)].attributes = o;
      g_.operand_pool[std::size_t(g_.nodes[std::size_t(n)].first_operand + i)] = add_constant(type);
    }
  }
  /// One more input of the body, behind all others.
  constexpr node_id add_constant(const tensor_type& type) {
    region& r = body();
    node x{};
    x.op = &input_info_of;
    x.type = type;
    x.region = g_.nodes[std::size_t(scan_)].regions[0];
    const node_id id = g_.append(x);
    r.nodes.insert(r.nodes.begin(), id);
    g_.number_nodes(r);
    r.inputs.push_back(id);
    r.captured.push_back(operands().back());
    return id;
  }

  // ---- after the loop

  /// carry' = carry + a b, where nothing else reads the carry, the sum or the product.
  struct accumulation {
    int carry;
    node_id product;
    node_id init;
  };
  constexpr node_id accumulated_product(int k) {
    const node_id out = body().outputs[std::size_t(k)];
    const node_id in = body().inputs[std::size_t(k)];
    if (!is<add_op>(g_.nodes[std::size_t(out)]) || uses(out) != 1 || uses(in) != 1) return no_node;
    const int i = g_.operand(out, 0) == in ? 1 : g_.operand(out, 1) == in ? 0 : -1;
    if (i < 0) return no_node;
    const node_id m = g_.operand(out, i);
    if (!is<matmul_op>(g_.nodes[std::size_t(m)]) || uses(m) != 1) return no_node;
    std::array<tensor_type, 3> types{};
    std::int64_t stored = 0;
    for (int q = 0; q < 2; ++q) {
      const node_id o = g_.operand(m, q);
      const int at = input_index(o);
      if (at >= 0 ? is_loop_constant(at) : is<values_op>(g_.nodes[std::size_t(o)])) return no_node;
      types[std::size_t(q)] = with_leading(options().length, g_.type(o));
      if (at < 0 || !is_slice(at)) stored += types[std::size_t(q)].bytes();
    }
    types[2] = g_.type(m);
    const auto all = matmul_op::with_leading_factor(product(m), true, true, false);
    return stored <= most_bytes && form_of_product(all, types).fits ? m : no_node;
  }
  /// All steps' values of body node `n`, as an operand of the scan or one of its results.
  constexpr node_id stacked(node_id n) {
    const int k = input_index(n);
    if (k >= 0 && is_slice(k)) return operands()[std::size_t(k)];
    region& r = body();
    const int carries = options().carries;
    for (std::size_t q = std::size_t(carries); q < r.outputs.size(); ++q) {
      if (r.outputs[q] == n) return get(int(q));
    }
    r.outputs.push_back(n);
    list<tensor_type> types = result_types();
    types.push_back(with_leading(options().length, g_.type(n)));
    g_.set_results(scan_, types);
    return get(int(types.size()) - 1);
  }
  constexpr list<tensor_type> result_types() const {
    list<tensor_type> types;
    for (int q = 0; q < g_.nodes[std::size_t(scan_)].result_count; ++q)
      types.push_back(g_.result_type(scan_, q));
    return types;
  }
  constexpr node_id get(int k) {
    const std::array in{scan_};
    return append(get_info_of, in, get_attributes{k}, g_.result_type(scan_, k));
  }

  constexpr void move_after() {
    bool any = false;
    for (int k = 0; k < options().carries; ++k) any |= accumulated_product(k) >= 0;
    if (!any) return;
    own_body();
    list<accumulation> moved;
    int kept = 0;
    const int results = g_.nodes[std::size_t(scan_)].result_count;
    for (int k = 0; k < results; ++k) {
      // Index among the carries that are left.
      const bool carry = kept < options().carries && int(moved.size()) + kept == k;
      const node_id m = carry ? accumulated_product(kept) : no_node;
      if (m < 0) {
        results_.push_back({scan_, k, kept++, no_node});
        continue;
      }
      moved.push_back({k, m, operands()[std::size_t(kept)]});
      remove_carry(kept);
    }
    for (const accumulation& c : moved) results_.push_back({scan_, c.carry, -1, sum_of_steps(c)});
  }
  constexpr node_id sum_of_steps(const accumulation& c) {
    const std::array in{g_.operand(c.product, 0), g_.operand(c.product, 1)};
    const auto o = matmul_op::with_leading_factor(product(c.product), true, true, false);
    const tensor_type type = g_.type(c.product);
    const node_id a = stacked(in[0]);
    const node_id b = stacked(in[1]);
    const std::array steps{a, b};
    const node_id sum = append(bound<matmul_op>(), steps, o, type);
    const node& start = g_.nodes[std::size_t(c.init)];
    if (is<constant_op>(start) && start.attributes.as<constant_op::options>().value == 0)
      return sum;
    const std::array terms{c.init, sum};
    return append(bound<add_op>(), terms, {}, type);
  }
  constexpr void remove_carry(std::ptrdiff_t k) {
    region& r = body();
    const node_id gone = r.inputs[std::size_t(k)];
    const node_id sum = r.outputs[std::size_t(k)];
    r.inputs.erase(r.inputs.begin() + k);
    r.outputs.erase(r.outputs.begin() + k);
    --r.declared;
    erase_if(r.nodes, [&](node_id n) { return n == gone || n == sum; });
    g_.number_nodes(r);
    ids in = operands();
    in.erase(in.begin() + k);
    g_.set_operands(scan_, in);
    list<tensor_type> types = result_types();
    types.erase(types.begin() + k);
    g_.set_results(scan_, types);
    scan_options o = options();
    --o.carries;
    g_.nodes[std::size_t(scan_)].attributes = o;
  }
  graph& g_;
  int r_;
  node_id scan_ = no_node;
  node_id owned_ = no_node;  ///< the scan whose body was copied
  ids order_;
  list<std::pair<node_id, node_id>> renames_;
  list<moved_result> results_;
};

}  // namespace detail

/// Products of scans before or after them, where that saves work. To be run after differentiation
/// and `fold`; reassociates the sums over steps.
constexpr graph move_loop_products(graph g) {
  // Regions that are added meanwhile hold no new scans.
  const std::size_t regions = g.regions.size();
  for (std::size_t r = 0; r < regions; ++r) {
    bool any = false;
    for (node_id n : g.regions[r].nodes) any |= is<scan_op>(g.nodes[std::size_t(n)]);
    if (any) detail::loop_product_mover(g, int(r)).run();
  }
  return g;
}

}  // namespace cella
