// Regions, and the loops and branches in them, as code whose values live in registers.
#pragma once

#include <cella/backend/cpu/registers/register_sums.hpp>

namespace cella::cpu {

template <class P, int R>
class register_region;

/// Runs region `Body` while region `Condition` holds. `f` has the state and the constants as its
/// inputs.
template <class P, int Condition, int Body, int Carries, int MaxSteps>
[[gnu::always_inline]] inline void register_while(typename register_region<P, Body>::frame& f,
                                                  run_context& c);

/// Region R of program P. A `frame` holds its values: set the inputs, `run`, read the outputs.
/// Precondition: `runs_in_registers<P, R>`.
template <class P, int R>
class register_region {
  static constexpr auto& g = P::graph;
  static constexpr int first = g.regions[std::size_t(R)].first_node;
  static constexpr int count = g.regions[std::size_t(R)].node_count;

  template <class I>
  struct values;
  template <int... I>
  struct values<std::integer_sequence<int, I...>> : register_value<P, first + I>... {};

 public:
  static constexpr int inputs = g.regions[std::size_t(R)].input_count;
  static constexpr int outputs = g.regions[std::size_t(R)].output_count;
  using frame = values<std::make_integer_sequence<int, count>>;

  template <int K>
  [[gnu::always_inline]] static auto& input(frame& f) {
    return at<first + K>(f);
  }
  template <int K>
  [[gnu::always_inline]] static auto& output(frame& f) {
    return at<g.region_outputs(R)[std::size_t(K)]>(f);
  }
  template <int K>
  static constexpr tensor_type input_type = g.type(first + K);

  [[gnu::always_inline]] static void run(frame& f, run_context& c) { evaluate<0, count>(f, c); }

  /// The first `Carries` outputs become the first inputs.
  template <int Carries, int K = 0>
  [[gnu::always_inline]] static void advance(frame& f) {
    if constexpr (K < Carries) {
      const auto next = output<K>(f);
      advance<Carries, K + 1>(f);
      input<K>(f) = next;
    }
  }

  /// Inputs [First, Last) from memory: input k at `address(k)`.
  template <int First, int Last, class Address>
  [[gnu::always_inline]] static void load(frame& f, const Address& address) {
    if constexpr (First < Last) {
      auto& x = input<First>(f);
      load_value(x, address(First));
      load<First + 1, Last>(f, address);
    }
  }
  template <int First, int Last, class Address>
  [[gnu::always_inline]] static void store_inputs(frame& f, const Address& address) {
    if constexpr (First < Last) {
      store_value(input<First>(f), address(First));
      store_inputs<First + 1, Last>(f, address);
    }
  }
  /// The inputs become those of another region's frame.
  template <class Other, int K = 0>
  [[gnu::always_inline]] static void share_inputs(frame& f, typename Other::frame& other) {
    if constexpr (K < inputs) {
      Other::template input<K>(other) = input<K>(f);
      share_inputs<Other, K + 1>(f, other);
    }
  }
  template <int First, int Last, class Address>
  [[gnu::always_inline]] static void store_outputs(frame& f, const Address& address) {
    if constexpr (First < Last) {
      store_value(output<First>(f), address(First));
      store_outputs<First + 1, Last>(f, address);
    }
  }

 private:
  template <node_id N>
  [[gnu::always_inline]] static auto& at(frame& f) {
    return static_cast<register_value<P, N>&>(f).v;
  }
  template <node_id N, int K>
  [[gnu::always_inline]] static auto& result(frame& f) {
    return static_cast<register_result<P, N, K>&>(at<N>(f)).v;
  }

  /// Truth values have a byte each.
  template <class X>
  [[gnu::always_inline]] static void load_value(X& x, const std::byte* p) {
    load_packed(x, reinterpret_cast<const typename X::number*>(p));
  }
  template <class X>
  [[gnu::always_inline]] static void store_value(const X& x, std::byte* p) {
    store_packed(x, reinterpret_cast<typename X::number*>(p));
  }

  // ---- operations

  template <int From, int Count>
  [[gnu::always_inline]] static void evaluate(frame& f, run_context& c) {
    if constexpr (Count == 1) {
      node_value<first + From>(f, c);
    } else if constexpr (Count > 1) {
      evaluate<From, Count / 2>(f, c);
      evaluate<From + Count / 2, Count - Count / 2>(f, c);
    }
  }

  template <node_id N>
  [[gnu::always_inline]] static void node_value(frame& f, [[maybe_unused]] run_context& c) {
    constexpr const node& n = g.nodes[std::size_t(N)];
    if constexpr (n.op == &input_info_of) {
      return;
    } else if constexpr (n.op == &get_info_of) {
      at<N>(f) = result<g.operand(N, 0), n.attributes.template as<get_attributes>().result>(f);
    } else if constexpr (is<constant_op>(n)) {
      fill_constant<N>(at<N>(f));
    } else if constexpr (is<values_op>(n) || is<iota_op>(n)) {
      load_packed(at<N>(f), known_elements<P, N>.data());
    } else if constexpr (is<cond_op>(n)) {
      branch<N>(f, c);
    } else if constexpr (is<scan_op>(n)) {
      scan<N>(f, c);
    } else if constexpr (is<while_op>(n)) {
      repeat<N>(f, c);
    } else if constexpr (is<call_op>(n)) {
      call<N, 0, 0>(f, c);
    } else if constexpr (is<pack_op>(n)) {
      pack<N>(f, c);
    } else if constexpr (is<unpack_op>(n)) {
      unpack<N>(f);
    } else {
      compute<N>(f, std::make_index_sequence<std::size_t(n.operand_count)>{});
    }
  }
  template <node_id N, std::size_t... K>
  [[gnu::always_inline]] static void compute(frame& f, std::index_sequence<K...>) {
    constexpr const node& n = g.nodes[std::size_t(N)];
    auto& y = at<N>(f);
    if constexpr (register_rule(g, P::element_type).repeated_truth(N))
      y.u[0] = (at<g.operand(N, int(K))>(f), ...).u[0];
    else if constexpr (n.op->traits.alias)
      y = (at<g.operand(N, int(K))>(f), ...);
    else if constexpr (moves_elements(n))
      rearrange<movement_table<P, N>>(y, at<g.operand(N, int(K))>(f)...);
    else if constexpr (is<sum_op>(n) || is<matmul_op>(n))
      register_contraction<P, N>::run(y, at<g.operand(N, int(K))>(f)...);
    else if constexpr (is<max_op>(n) || is<min_op>(n))
      register_contraction<P, N>::template extremes<is<max_op>(n)>(
          y, at<g.operand(N, int(K))>(f)...,
          std::make_integer_sequence<int, int(g.type(N).size())>{});
    else if constexpr (is<cast_op>(n))
      cast(y, at<g.operand(N, int(K))>(f)...);
    else if constexpr (is<add_op>(n))
      add<g.operand(N, 0), g.operand(N, 1)>(y, at<g.operand(N, int(K))>(f)...);
    else
      register_operation<P, N>::run(y, at<g.operand(N, int(K))>(f)...);
  }

  /// Whether register U of node N holds zeros only: gradients of parts are embedded in zeros.
  template <node_id N, int U, int Width>
  static constexpr bool zeros = [] {
    if constexpr (is<scatter_slice_op>(g.nodes[std::size_t(N)])) {
      constexpr auto& map = movement_table<P, N>::value;
      for (std::size_t e = U * Width; e < map.size() && e < (U + 1) * Width; ++e) {
        if (map[e].operand >= 0) return false;
      }
      return true;
    } else {
      return false;
    }
  }();
  template <node_id A, node_id B, int U = 0, class Y, class X>
  [[gnu::always_inline]] static void add(Y& y, const X& a, const X& b) {
    if constexpr (U < Y::units) {
      if constexpr (zeros<B, U, Y::width>)
        y.u[U] = a.u[U];
      else if constexpr (zeros<A, U, Y::width>)
        y.u[U] = b.u[U];
      else
        y.u[U] = static_cast<typename Y::unit>(add_op::apply(a.u[U], b.u[U]));
      add<A, B, U + 1>(y, a, b);
    }
  }

  template <node_id N, int U = 0, class Y>
  [[gnu::always_inline]] static void fill_constant(Y& y) {
    if constexpr (U < Y::units) {
      using unit = typename Y::unit;
      constexpr double value =
          g.nodes[std::size_t(N)].attributes.template as<constant_op::options>().value;
      if constexpr (std::is_pointer_v<unit>)
        y.u[U] = nullptr;
      else
        y.u[U] = unit(from_double<typename Y::number>(value));
      fill_constant<N, U + 1>(y);
    }
  }
  template <int U = 0, class Y, class X>
  [[gnu::always_inline]] static void cast(Y& y, const X& x) {
    using to = typename Y::number;
    using from = typename X::unit;
    if constexpr (U < Y::units) {
      if constexpr (Y::width > 1)
        y.u[U] = xsimd::select(x.u[U], typename Y::unit(to(1)), typename Y::unit(to(0)));
      else if constexpr (std::is_floating_point_v<from> && !std::is_floating_point_v<to>)
        y.u[U] = from_double<to>(static_cast<double>(x.u[U]));
      else
        y.u[U] = static_cast<to>(x.u[U]);
      cast<U + 1>(y, x);
    }
  }

  // ---- regions inside

  /// Operands from `First` on become inputs from `To` on.
  template <class Inner, node_id N, int First, int Last, int To>
  [[gnu::always_inline]] static void hand_over(frame& f, typename Inner::frame& inner) {
    if constexpr (First < Last) {
      Inner::template input<To>(inner) = at<g.operand(N, First)>(f);
      hand_over<Inner, N, First + 1, Last, To + 1>(f, inner);
    }
  }
  template <class Inner, node_id N, int K, int Last>
  [[gnu::always_inline]] static void hand_back(frame& f, typename Inner::frame& inner) {
    if constexpr (K < Last) {
      result<N, K>(f) = Inner::template output<K>(inner);
      hand_back<Inner, N, K + 1, Last>(f, inner);
    }
  }
  /// The same for what a loop carries, which lies in its inputs.
  template <class Inner, node_id N, int K, int Last>
  [[gnu::always_inline]] static void hand_back_carries(frame& f, typename Inner::frame& inner) {
    if constexpr (K < Last) {
      result<N, K>(f) = Inner::template input<K>(inner);
      hand_back_carries<Inner, N, K + 1, Last>(f, inner);
    }
  }
  template <node_id N, int Which, int First>
  [[gnu::always_inline]] static void call(frame& f, run_context& c) {
    constexpr const node& n = g.nodes[std::size_t(N)];
    using inner = register_region<P, n.regions[Which]>;
    typename inner::frame own;
    hand_over<inner, N, First, n.operand_count, 0>(f, own);
    inner::run(own, c);
    hand_back<inner, N, 0, n.result_count>(f, own);
  }
  template <node_id N>
  [[gnu::always_inline]] static void branch(frame& f, run_context& c) {
    if (at<g.operand(N, 0)>(f).u[0])
      call<N, 0, 1>(f, c);
    else
      call<N, 1, 1>(f, c);
  }

  template <node_id N>
  [[gnu::always_inline]] static void repeat(frame& f, run_context& c) {
    constexpr const node& n = g.nodes[std::size_t(N)];
    constexpr auto o = n.attributes.template as<while_options>();
    using body = register_region<P, n.regions[1]>;
    typename body::frame own;
    hand_over<body, N, 0, n.operand_count, 0>(f, own);
    register_while<P, n.regions[0], n.regions[1], o.carries, o.max_steps>(own, c);
    hand_back_carries<body, N, 0, o.carries>(f, own);
  }

  /// Slices are read from, and results written to, memory: their place depends on the step.
  template <node_id N>
  [[gnu::always_inline]] static void scan(frame& f, run_context& c) {
    constexpr const node& n = g.nodes[std::size_t(N)];
    constexpr auto o = n.attributes.template as<scan_options>();
    using body = register_region<P, n.regions[0]>;
    constexpr int last = o.carries + o.xs;
    alignas(64) std::byte xs[o.xs ? o.xs : 1][register_bytes];
    alignas(64)
        std::byte ys[n.result_count - o.carries ? n.result_count - o.carries : 1][register_bytes];
    typename body::frame own;
    hand_over<body, N, 0, o.carries, 0>(f, own);
    hand_over<body, N, last, n.operand_count, last>(f, own);
    put_slices<N, o.carries, last>(f, [&](int k) { return xs[k - o.carries]; });
    for (int step = 0; step < o.length; ++step) {
      const int t = o.place(step);
      body::template load<o.carries, last>(own, [&](int k) {
        return xs[k - o.carries] + t * g.type(first_input<n.regions[0]> + k).bytes();
      });
      body::run(own, c);
      body::template store_outputs<o.carries, n.result_count>(own, [&](int k) {
        return ys[k - o.carries] + t * (g.result_type(N, k).bytes() / o.length);
      });
      body::template advance<o.carries>(own);
    }
    hand_back_carries<body, N, 0, o.carries>(f, own);
    get_stacked<N, o.carries, n.result_count>(f, [&](int k) { return ys[k - o.carries]; });
  }
  static constexpr std::size_t register_bytes = 64 * 8;
  template <int Region>
  static constexpr node_id first_input = g.regions[std::size_t(Region)].first_node;
  template <node_id N, int K, int Last, class Address>
  [[gnu::always_inline]] static void put_slices(frame& f, const Address& address) {
    if constexpr (K < Last) {
      store_value(at<g.operand(N, K)>(f), address(K));
      put_slices<N, K + 1, Last>(f, address);
    }
  }
  template <node_id N, int K, int Last, class Address>
  [[gnu::always_inline]] static void get_stacked(frame& f, const Address& address) {
    if constexpr (K < Last) {
      load_value(result<N, K>(f), address(K));
      get_stacked<N, K + 1, Last>(f, address);
    }
  }

  // ---- records

  template <node_id N>
  static constexpr auto fields = operand_types<P, N>();
  /// Fields lie one behind the other; `to` is where field K begins.
  template <node_id N, int K = 0>
  [[gnu::always_inline]] static void store_fields(frame& f, std::byte* to) {
    if constexpr (K < g.nodes[std::size_t(N)].operand_count) {
      store_value(at<g.operand(N, K)>(f), to);
      store_fields<N, K + 1>(f, to + stored_record::bytes(fields<N>[K]));
    }
  }
  template <node_id N>
  [[gnu::always_inline]] static void pack(frame& f, run_context& c) {
    static constexpr std::int64_t size = stored_record::size(fields<N>);
    const record r = stored_record::make(c.records, fields<N>, size);
    store_fields<N>(f, r->data());
    at<N>(f).u[0] = r;
  }
  template <node_id N, int K = 0>
  [[gnu::always_inline]] static void load_fields(frame& f, const std::byte* from) {
    if constexpr (K < g.nodes[std::size_t(N)].result_count) {
      load_value(result<N, K>(f), from);
      load_fields<N, K + 1>(f, from + stored_record::bytes(g.result_type(N, K)));
    }
  }
  /// A record of zeros has no content: it reads from a block of zeros.
  template <node_id N>
  [[gnu::always_inline]] static void unpack(frame& f) {
    static constexpr std::int64_t size = [] {
      std::int64_t bytes = 0;
      for (int k = 0; k < g.nodes[std::size_t(N)].result_count; ++k)
        bytes += stored_record::bytes(g.result_type(N, k));
      return bytes;
    }();
    alignas(8) static constexpr std::array<std::byte, std::size_t(size ? size : 1)> zeros{};
    const record r = at<g.operand(N, 0)>(f).u[0];
    load_fields<N>(f, r ? r->data() : zeros.data());
  }
};

template <class P, int Condition, int Body, int Carries, int MaxSteps>
[[gnu::always_inline]] inline void register_while(typename register_region<P, Body>::frame& f,
                                                  run_context& c) {
  using condition = register_region<P, Condition>;
  using body = register_region<P, Body>;
  typename condition::frame test;
  for (int step = 0; MaxSteps == 0 || step < MaxSteps; ++step) {
    body::template share_inputs<condition>(f, test);
    condition::run(test, c);
    if (!condition::template output<0>(test).u[0]) break;
    body::run(f, c);
    body::template advance<Carries>(f);
  }
}

}  // namespace cella::cpu
