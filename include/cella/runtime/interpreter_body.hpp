// What interpreter.hpp declares: a graph is computed node by node.
#pragma once

#include <cella/ops/constant.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cstring>
#include <span>
#include <utility>

namespace cella {

namespace detail {

CELLA_BODY std::int64_t record_pool::add(held_list fields) {
  records_.push_back(std::move(fields));
  return std::int64_t(records_.size());
}
CELLA_BODY const held_tensor& constant_memory::of(const graph& g, node_id n) {
  const std::span<const std::uint64_t> words = g.values_of(n);
  const tensor_type t = g.type(n);
  held_tensor& x = tensors_[g.nodes[std::size_t(n)].attributes.as<values_options>().index];
  if (!x.owner) {
    x.owner = std::make_shared<aligned_buffer>(words.size_bytes());
    x.value = {x.owner->data(), t};
    std::memcpy(x.value.data, words.data(), words.size_bytes());
  }
  return x;
}

/// Computes nodes from the values of their operands, regions included.
class node_interpreter {
 public:
  node_interpreter(const graph& g, compute_function run, record_pool& records,
                   constant_memory& constants, bool stop_at_nan)
      : g_(g), run_(run), records_(records), constants_(constants), stop_at_nan_(stop_at_nan) {}

  held_list apply(node_id id, const held_list& in) {
    held_list out = compute_value(id, in);
    const node& n = g_.nodes[std::size_t(id)];
    const bool given = is<constant_op>(n) || is<values_op>(n);  // as the user wrote it
    if (stop_at_nan_ && !given) look_at(id, in, out);
    return out;
  }

 private:
  held_list compute_value(node_id id, const held_list& in) {
    const node& n = g_.nodes[std::size_t(id)];
    if (is<values_op>(n)) return {constants_.of(g_, id)};
    switch (n.op->form) {
      case control_form::branch:
        return run_region(n.regions[is_true(in[0]) ? 0 : 1], {in.begin() + 1, in.end()});
      case control_form::call:
      case control_form::custom:
        return run_region(n.regions[0], in);
      case control_form::loop:
        return repeat(n, in);
      case control_form::scan:
        return scan(id, in);
      case control_form::pack:
        return {pack(n, in)};
      case control_form::unpack:
        return unpack(id, in[0]);
      case control_form::none:
        break;
    }
    if (n.type.element == dtype::record && is<add_op>(n)) return {add(in[0], in[1])};
    if (n.type.element == dtype::record && is<sum_op>(n)) return {sum(n, in[0])};
    return compute_node(id, in);
  }
  /// For CELLA_DEBUG=nan: what the operands already had is not this operation's fault, unless it is
  /// a NaN of the input.
  void look_at(node_id id, const held_list& in, const held_list& out) const {
    auto worst = [](const held_list& values) {
      std::pair<not_finite, tensor_type> found;
      for (const held_tensor& x : values) {
        const not_finite f = find_not_finite(x.value);
        if (f.nan >= 0 || (f.infinity >= 0 && found.first.infinity < 0)) found = {f, x.value.type};
        if (f.nan >= 0) break;
      }
      return found;
    };
    const auto made = worst(out);
    if (made.first.nan < 0 && made.first.infinity < 0) return;
    const auto had = worst(in);
    if (had.first.nan >= 0) throw number_error(nan_in_input(had.first, had.second));
    if (made.first.nan < 0 && had.first.infinity >= 0) return;
    const node& n = g_.nodes[std::size_t(id)];
    throw number_error(nan_made(describe_operation(place_of_operation(n), g_.characters).view(),
                                made.first, made.second));
  }

  static std::int64_t bytes(const tensor_type& t) { return stored(t).bytes(); }
  static held_tensor allocate(const tensor_type& t) {
    const std::int64_t size = bytes(t);
    auto owner = std::make_shared<aligned_buffer>(std::size_t(size ? size : 1));
    std::byte* const data = owner->data();
    return {std::move(owner), {data, t}};
  }
  static bool is_true(const held_tensor& x) { return read_element(x.value, 0) != 0; }
  static std::int64_t* numbers(const held_tensor& x) {
    return reinterpret_cast<std::int64_t*>(x.value.data);
  }
  /// Part `i` of a tensor whose leading axes, of `whole` elements in all, `part` lacks.
  static held_tensor part(const held_tensor& whole, const tensor_type& part, std::int64_t i) {
    return {whole.owner, {whole.value.data + i * bytes(part), part}};
  }
  static tensor_type without_axes(tensor_type t, int leading) {
    for (int i = 0; i < leading; ++i) t.shape.erase(0);
    return t;
  }
  list<tensor_type> result_types(node_id id) const {
    const node& n = g_.nodes[std::size_t(id)];
    if (n.result_count == 0) return {n.type};
    list<tensor_type> types;
    for (int k = 0; k < n.result_count; ++k) types.push_back(g_.result_type(id, k));
    return types;
  }

  held_list compute_node(node_id id, const held_list& in) const {
    const node& n = g_.nodes[std::size_t(id)];
    list<tensor_ref> from;
    list<tensor_ref> to;
    for (const held_tensor& x : in) from.push_back({x.value.data, stored(x.value.type)});
    held_list out;
    for (const tensor_type& t : result_types(id)) {
      out.push_back(allocate(t));
      to.push_back({out.back().value.data, stored(t)});
    }
    run_(*n.op, n.attributes, from, to);
    return out;
  }

  // ---- regions

  held_list run_region(int index, const held_list& arguments) {
    const region& r = g_.regions[std::size_t(index)];
    const flags live = live_in(index);
    list<held_list> values(r.nodes.size());
    auto at = [&](node_id n) -> held_list& {
      return values[std::size_t(g_.nodes[std::size_t(n)].position)];
    };
    for (std::size_t k = 0; k < r.inputs.size(); ++k) at(r.inputs[k]).assign(1, arguments[k]);
    for (std::size_t i = 0; i < r.nodes.size(); ++i) {
      const node& n = g_.nodes[std::size_t(r.nodes[i])];
      if (!live[i] || n.op == &input_info_of) continue;
      held_list in;
      if (n.op == &get_info_of) {
        const int k = n.attributes.as<get_attributes>().result;
        in.push_back(at(g_.operand(r.nodes[i], 0))[std::size_t(k)]);
        values[i] = std::move(in);
        continue;
      }
      for (node_id o : g_.operands(r.nodes[i])) in.push_back(at(o)[0]);
      values[i] = apply(r.nodes[i], in);
    }
    held_list out;
    for (node_id n : r.outputs) out.push_back(at(n)[0]);
    return out;
  }
  /// Which nodes of a region its outputs need. A body runs often, so this is remembered.
  const flags& live_in(int index) {
    if (live_.empty()) live_.resize(g_.regions.size());
    flags& live = live_[std::size_t(index)];
    const region& r = g_.regions[std::size_t(index)];
    if (!live.empty() || r.nodes.empty()) return live;
    live.assign(r.nodes.size(), 0);
    auto mark = [&](node_id n) { live[std::size_t(g_.nodes[std::size_t(n)].position)] = 1; };
    for (node_id n : r.outputs) mark(n);
    for (std::size_t i = r.nodes.size(); i-- > 0;) {
      if (!live[i]) continue;
      for (node_id o : g_.operands(r.nodes[i])) mark(o);
    }
    return live;
  }

  held_list repeat(const node& n, held_list values) {
    const auto o = n.attributes.as<while_options>();
    for (int step = 0; o.max_steps == 0 || step < o.max_steps; ++step) {
      if (!is_true(run_region(n.regions[0], values)[0])) break;
      held_list next = run_region(n.regions[1], values);
      std::move(next.begin(), next.end(), values.begin());
    }
    values.resize(std::size_t(o.carries));
    return values;
  }

  held_list scan(node_id id, held_list values) {
    const node& n = g_.nodes[std::size_t(id)];
    const auto o = n.attributes.as<scan_options>();
    const auto first_x = std::size_t(o.carries);
    const auto last_x = first_x + std::size_t(o.xs);
    held_list xs(values.begin() + o.carries, values.begin() + o.carries + o.xs);
    held_list ys;
    for (int k = o.carries; k < n.result_count; ++k) ys.push_back(allocate(g_.result_type(id, k)));
    for (int step = 0; step < o.length; ++step) {
      const int t = o.place(step);
      for (std::size_t k = first_x; k < last_x; ++k)
        values[k] = part(xs[k - first_x], without_leading(xs[k - first_x].value.type), t);
      held_list out = run_region(n.regions[0], values);
      for (std::size_t k = 0; k < out.size(); ++k) {
        if (k < first_x) {
          values[k] = out[k];
        } else {
          const std::int64_t size = bytes(out[k].value.type);
          std::memcpy(ys[k - first_x].value.data + t * size, out[k].value.data, std::size_t(size));
        }
      }
    }
    values.resize(first_x);
    values.insert(values.end(), ys.begin(), ys.end());
    return values;
  }

  // ---- records

  held_tensor pack(const node& n, const held_list& in) {
    const held_tensor out = allocate(n.type);
    for (std::int64_t i = 0; i < n.type.size(); ++i) {
      held_list fields;
      for (const held_tensor& x : in) {
        const tensor_type t = without_axes(x.value.type, n.type.rank());
        held_tensor field = part(x, t, i);
        if (!field.owner) {  // the caller's memory may change
          field = allocate(t);
          std::memcpy(field.value.data, part(x, t, i).value.data, std::size_t(bytes(t)));
        }
        fields.push_back(std::move(field));
      }
      numbers(out)[i] = records_.add(std::move(fields));
    }
    return out;
  }
  held_list unpack(node_id id, const held_tensor& x) {
    held_list out;
    for (const tensor_type& t : result_types(id)) {
      const tensor_type field = without_axes(t, x.value.type.rank());
      held_tensor y = allocate(t);
      for (std::int64_t i = 0; i < x.value.type.size(); ++i) {
        if (numbers(x)[i] == 0) continue;
        const held_tensor& from = records_[numbers(x)[i]][out.size()];
        std::memcpy(part(y, field, i).value.data, from.value.data, std::size_t(bytes(field)));
      }
      out.push_back(std::move(y));
    }
    return out;
  }
  std::int64_t add(std::int64_t x, std::int64_t y) {
    if (x == 0 || y == 0) return x + y;
    held_list fields;
    for (std::size_t k = 0; k < records_[x].size(); ++k) {
      const held_tensor a = records_[x][k];
      const held_tensor b = records_[y][k];
      if (a.value.type.element == dtype::record) {
        fields.push_back(add(a, b));
        continue;
      }
      const held_tensor c = allocate(a.value.type);
      const std::array in{a.value, b.value};
      run_(info_of<add_op>, {}, in, {&c.value, 1});
      fields.push_back(c);
    }
    return records_.add(std::move(fields));
  }
  held_tensor add(const held_tensor& x, const held_tensor& y) {
    const held_tensor out = allocate(x.value.type);
    for (std::int64_t i = 0; i < x.value.type.size(); ++i)
      numbers(out)[i] = add(numbers(x)[i], numbers(y)[i]);
    return out;
  }
  held_tensor sum(const node& n, const held_tensor& x) {
    const held_tensor out = allocate(n.type);
    const unsigned axes = n.attributes.as<axes_options>().axes;
    const auto steps = row_major_strides(n.type.shape);
    for_each_index(x.value.type.shape, [&](std::int64_t k, const multi_index& i) {
      std::int64_t to = 0;
      for (int d = 0, e = 0; d < x.value.type.rank(); ++d) {
        if (!(axes >> d & 1)) to += steps[std::size_t(e++)] * i[std::size_t(d)];
      }
      numbers(out)[to] = add(numbers(out)[to], numbers(x)[k]);
    });
    return out;
  }

  const graph& g_;
  compute_function run_;
  record_pool& records_;
  constant_memory& constants_;
  bool stop_at_nan_;
  list<flags> live_;
};

}  // namespace detail

CELLA_BODY value_store::value_store() = default;
CELLA_BODY value_store::value_store(value_store&&) noexcept = default;
CELLA_BODY value_store& value_store::operator=(value_store&&) noexcept = default;
CELLA_BODY value_store::~value_store() = default;

CELLA_BODY void value_store::bind(node_id n, tensor_ref value) {
  at(n).assign(1, {nullptr, value});
}
CELLA_BODY detail::held_list& value_store::at(node_id n) {
  if (values_.size() <= std::size_t(n)) values_.resize(std::size_t(n) + 1);
  return values_[std::size_t(n)];
}
CELLA_BODY void value_store::evaluate(const graph& g, node_id n, compute_function run) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op == &input_info_of) return;
  if (x.op == &get_info_of) {
    const auto k = std::size_t(x.attributes.as<get_attributes>().result);
    detail::held_tensor v = values_[std::size_t(g.operand(n, 0))][k];
    at(n).assign(1, v);
    return;
  }
  detail::held_list in;
  for (node_id o : g.operands(n)) in.push_back(values_[std::size_t(o)][0]);
  at(n) = detail::node_interpreter(g, run, records_, constants_, stop_at_nan_).apply(n, in);
}

CELLA_BODY eager_evaluator::~eager_evaluator() = default;
CELLA_BODY void eager_evaluator::evaluate(const graph& g, node_id n) {
  values.evaluate(g, n, run_);
}
CELLA_BODY double eager_evaluator::read(node_id n, std::int64_t i) const {
  return read_element(values.value(n), i);
}

CELLA_BODY void interpret(const graph& g, value_store& values, compute_function run) {
  for (node_id n : g.regions[0].nodes) values.evaluate(g, n, run);
}

}  // namespace cella
