// The line of a fused group as data: instructions over blocks of elements, made when a plan is made
// at run time. `loops/lift.hpp` makes the same line a type.
#pragma once

#include <cella/backend/cpu/bytecode/chain_finder.hpp>
#include <cella/backend/cpu/bytecode/forms.hpp>
#include <cella/backend/cpu/loops/lift.hpp>
#include <cella/graph/list.hpp>
#include <cstdint>

namespace cella::cpu {

/// Which operands of node `n` are truth values.
template <class Graph>
constexpr unsigned truths_of(const Graph& g, node_id n) {
  unsigned truths = 0;
  for (int i = 0; i < g.nodes[std::size_t(n)].operand_count; ++i)
    truths |= unsigned{g.type(g.operand(n, i)).element == dtype::boolean} << i;
  return truths;
}

/// The values of a line are numbered; each is read from memory, given by the kernel, a literal, or
/// computed by an instruction. Values that a block of elements has lie in **slots**, blocks of
/// scratch that are used again when nobody reads a value any more.
template <class T>
class line_code {
 public:
  enum class source : std::uint8_t { computed, read, given, number, row_number };
  struct value {
    source from{};
    /// read: of the step, `further` elements on; row_number: which; number: itself.
    int index{};
    std::int64_t further{};
    double literal{};
    dtype stored{};  ///< read: of the elements in memory
    /// Where it lies in scratch: read, if its elements must be brought together; computed, unless
    /// it never leaves registers.
    int slot = -1;
  };
  struct instruction {
    opcode<T> run{};
    attributes options;
    std::array<int, 3> in{};
    int result{};
    /// The output that may be written at once, since nothing that is read later lies there; or -1.
    int direct = -1;
  };
  struct output {
    int value{};
    dtype stored{};  ///< of the elements in memory
  };

  /// The line that computes `results` in a step: as they are `stored`, or as operations see them.
  /// Each operation has an opcode.
  template <class Graph>
  line_code(const line_finder<Graph>& find, span<const node_id> results, bool stored) {
    line_of_nodes line;
    for (node_id n : results) find.visit(line, n);
    place_.assign(std::size_t(line.count), -1);
    for (int k = 0; k < line.count; ++k) place_[std::size_t(k)] = add(find, line, k);
    for (node_id n : results) {
      const int k = stored ? find.place_of_result(line, n) : find.place(line, n);
      outputs_.push_back({place_[std::size_t(k < 0 ? ~k : k)], find.g.type(n).element});
    }
    drop_unread();
    join_products();
    // Sweeps over rows run many short lines, for which a chain takes too long to begin.
    const bool chains = runs_chains && find.s.kind != step_kind::rows;
    join_forms(chains);
    if (stored) find_direct(find.s);
    find_chains(chains);
    allot_slots();
  }

  span<const value> values() const { return values_; }
  span<const instruction> instructions() const { return instructions_; }
  span<const output> outputs() const { return outputs_; }
  /// Instructions as they run.
  span<const line_stretch> stretches() const { return stretches_; }
  span<const planned_link> links() const { return links_; }
  int slots() const { return slots_; }
  /// The kernel's own value itself.
  bool is_given() const {
    return instructions_.empty() && outputs_.size() == 1 &&
           values_[std::size_t(outputs_[0].value)].from == source::given &&
           outputs_[0].stored == dtype_of<T>;
  }

 private:
  template <class Graph>
  int add(const line_finder<Graph>& find, const line_of_nodes& line, int k) {
    const auto [n, is_rounded] = line.entries[std::size_t(k)];
    const node& x = find.at(n);
    if (is_rounded) return round(place_[std::size_t(line.place({n, false}))], x.type.element);
    if (find.is_row_number(n)) return push({source::row_number, find.s.find_stat(n)});
    if (find.is_anchor(n)) return push({source::given});
    const int read = find.s.find_read(n);
    if (read >= 0 && find.s.reads[std::size_t(read)].factor >= 0) return product(find.s, read);
    if (read >= 0) return push({source::read, read, 0, 0, x.type.element});
    if (is<constant_op>(x)) {
      const double literal = x.attributes.template as<constant_op::options>().value;
      return push({source::number, 0, 0, literal});
    }
    const auto operand = [&](int i) {
      const int at = find.place(line, find.g.operand(n, i));
      return place_[std::size_t(at < 0 ? ~at : at)];
    };
    if (is<cast_op>(x)) return operand(0);
    std::array<int, 3> in{};
    for (int i = 0; i < 3; ++i) in[std::size_t(i)] = operand(i < x.operand_count ? i : 0);
    return emit(find_opcode<T>(x.op, truths_of(find.g, n)), x.attributes, in);
  }
  int push(value v) {
    values_.push_back(v);
    return int(values_.size()) - 1;
  }
  int emit(opcode<T> run, const attributes& options, std::array<int, 3> in) {
    const int result = push({source::computed});
    instructions_.push_back({run, options, in, result, -1});
    return result;
  }
  int round(int from, dtype stored) {
    const opcode<T> run = with_stored<T>(stored, []<class S>(S) -> opcode<T> {
      if constexpr (std::is_same_v<S, T>)
        return nullptr;
      else
        return &round_block<T, S>;
    });
    return run ? emit(run, {}, {from, from, from}) : from;
  }
  /// A short product that is summed up element by element.
  int product(const plan_step& s, int read) {
    const operand_read &a = s.reads[std::size_t(read)], &b = s.reads[std::size_t(read + 1)];
    int sum = -1;
    for (int d = 0; d < a.depth; ++d) {
      const int x = push({source::read, read, d * a.along, 0, dtype_of<T>});
      const int y = push({source::read, read + 1, d * b.along, 0, dtype_of<T>});
      sum = sum < 0 ? emit(&multiply_block<T>, {}, {x, y, x})
                    : emit(&multiply_add_block<T>, {}, {x, y, sum});
    }
    return sum;
  }

  /// Nobody reads what is rounded for an output, which is stored from the value itself.
  void drop_unread() {
    for (std::size_t i = instructions_.size(); i-- > 0;) {
      if (readers(instructions_[i].result) == 0)
        instructions_.erase(instructions_.begin() + std::ptrdiff_t(i));
    }
  }
  /// A product that only a sum or a difference reads is computed with it, as compilers contract it.
  void join_products() {
    const opcode<T> product_code = find_opcode<T>(&info_of<mul_op>, 0);
    const opcode<T> sum_code = find_opcode<T>(&info_of<add_op>, 0);
    const opcode<T> difference_code = find_opcode<T>(&info_of<sub_op>, 0);
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      instruction& to = instructions_[i];
      if (to.run != sum_code && to.run != difference_code) continue;
      for (std::size_t side : {std::size_t{1}, std::size_t{0}}) {
        if (side == 0 && to.run == difference_code) break;
        const int product = to.in[side], other = to.in[1 - side];
        const auto made_by = std::find_if(
            instructions_.begin(), instructions_.end(),
            [&](const instruction& x) { return x.run == product_code && x.result == product; });
        if (made_by == instructions_.end() || other == product || readers(product) != 1) continue;
        to.run = to.run == sum_code ? &multiply_add_block<T> : &subtract_product_block<T>;
        to.in = {made_by->in[0], made_by->in[1], other};
        instructions_.erase(made_by);
        --i;
        break;
      }
    }
  }
  /// In a line of chains forms would part them: only a line that is one form itself is so.
  void join_forms(bool chains) {
    list<instruction> joined = instructions_;
    form_finder<T, line_code>(values_, outputs_, joined).join();
    if (!chains || joined.size() == 1) instructions_ = std::move(joined);
  }
  /// Instructions and outputs that read a value.
  int readers(int v) const {
    int n = 0;
    for (const instruction& x : instructions_)
      n += std::find(x.in.begin(), x.in.end(), v) != x.in.end();
    for (const output& o : outputs_) n += o.value == v;
    return n;
  }

  void find_direct(const plan_step& s) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (outputs_[k].stored != dtype_of<T>) continue;
      for (std::size_t i = 0; i < instructions_.size(); ++i) {
        instruction& made_by = instructions_[i];
        if (made_by.result != outputs_[k].value || made_by.direct >= 0) continue;
        bool read_later = false;
        for (std::size_t j = i + 1; j < instructions_.size(); ++j) {
          for (int v : instructions_[j].in) read_later |= reads_place_of(s, v, int(k));
        }
        for (const output& o : outputs_) read_later |= reads_place_of(s, o.value, int(k));
        if (!read_later) made_by.direct = int(k);
      }
    }
  }
  bool reads_place_of(const plan_step& s, int v, int written) const {
    const value& x = values_[std::size_t(v)];
    return x.from == source::read &&
           s.reads[std::size_t(x.index)].at == s.outputs[std::size_t(written)].at;
  }

  /// Cheap instructions in a row are chains.
  void find_chains(bool chains) {
    in_memory_.assign(values_.size(), false);
    const span<const instruction> all(instructions_);
    for (std::size_t first = 0, n = 0; first < all.size(); first += n) {
      const auto is_cheap = [&](std::size_t i) {
        const link_form form = link_form_of<T>(all[i].run);
        return std::any_of(form.with.begin(), form.with.end(),
                           [](link_code c) { return c != link_code::none; });
      };
      n = 0;
      while (chains && n < std::size_t(most_chained) && first + n < all.size() &&
             is_cheap(first + n))
        ++n;
      line_stretch s{int(first), int(n), int(links_.size()), 0};
      if (n > 1) {
        const auto is_wanted = [&](int v) {
          return std::any_of(outputs_.begin(), outputs_.end(),
                             [&](const output& o) { return o.value == v; }) ||
                 std::any_of(all.begin() + std::ptrdiff_t(first + n), all.end(),
                             [&](const instruction& i) {
                               return std::find(i.in.begin(), i.in.end(), v) != i.in.end();
                             });
        };
        chain_finder<T, instruction>(span(all.data() + first, n), int(first))
            .find(links_, in_memory_, is_wanted);
        s.links = int(links_.size()) - s.first_link;
      } else {
        n = 1;
        s.count = 1;
        in_memory_[std::size_t(all[first].result)] = true;
      }
      stretches_.push_back(s);
    }
  }

  /// What is read keeps its slot; a computed value in memory has one until its last use.
  void allot_slots() {
    list<int> last(values_.size(), -1);
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      for (int v : instructions_[i].in) last[std::size_t(v)] = int(i);
    }
    for (const output& o : outputs_) last[std::size_t(o.value)] = int(instructions_.size());
    list<int> free;
    const auto take = [&] {
      if (free.empty()) return slots_++;
      const int slot = free.back();
      free.pop_back();
      return slot;
    };
    for (value& v : values_) {
      if (v.from == source::read) v.slot = slots_++;
    }
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      const instruction& x = instructions_[i];
      // An operand that ends here leaves its slot to the result.
      for (std::size_t k = 0; k < x.in.size(); ++k) {
        const auto v = std::size_t(x.in[k]);
        const bool again = std::find(x.in.begin(), x.in.begin() + std::ptrdiff_t(k), x.in[k]) !=
                           x.in.begin() + std::ptrdiff_t(k);
        if (values_[v].slot >= 0 && values_[v].from == source::computed && last[v] == int(i) &&
            !again)
          free.push_back(values_[v].slot);
      }
      if (in_memory_[std::size_t(x.result)]) values_[std::size_t(x.result)].slot = take();
    }
  }

  list<int> place_;  ///< value of each entry of the line
  list<value> values_;
  list<instruction> instructions_;
  list<output> outputs_;
  list<line_stretch> stretches_;
  list<planned_link> links_;
  list<char> in_memory_;  ///< of each value, whether a computed one is stored
  int slots_ = 0;
};

}  // namespace cella::cpu
