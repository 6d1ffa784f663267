// The inputs of a step of which each rank has its part: arguments, parameters, the optimizer's
// state.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/parallel/block_name.hpp>
#include <cella/parallel/collective.hpp>
#include <cella/parallel/redistribution.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/runtime/step_number.hpp>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cella::parallel {

namespace detail {

/// Where the part of a rank begins in the whole tensor.
inline multi_index first_elements(const shape& whole, const layout& l, const device_mesh& m,
                                  int rank) {
  multi_index first{};
  for (int d = 0; d < whole.rank; ++d)
    first[std::size_t(d)] = parallel::first_of_part(whole, l, m, rank, d);
  return first;
}

}  // namespace detail

/// This rank's part of a tensor that it has as a whole.
inline void copy_part(const tensor_ref& whole, const layout& l, const device_mesh& m, int rank,
                      const tensor_ref& part) {
  cella::detail::copy_box(whole, detail::first_elements(whole.type.shape, l, m, rank), part, {},
                          part.type.shape);
}

/// The whole of a tensor of which each rank has a part: all ranks call it, with the communicator
/// of their own.
inline void gather_parts(const tensor_ref& part, const layout& l, const device_mesh& m,
                         const communicator& c, const tensor_ref& whole) {
  const communicator_scope scope(c);
  int rank = 0;
  for (int a = 0; a < m.axis_count; ++a) rank += c.groups[std::size_t(a)].coordinate * m.stride(a);
  std::vector<aligned_buffer> kept;
  tensor_ref at = part;
  layout now = l;
  for (const layout_move& s : cheapest_chain(whole.type, l, {}, m).moves) {
    now[s.mesh_axis] = replicated;
    if (m[s.mesh_axis].size == 1) continue;
    const tensor_type t = part_of(whole.type, now, m, rank);
    const std::int32_t extent = t[s.from];
    const attributes o =
        collective_options{s.mesh_axis, m[s.mesh_axis].size, s.from, s.from, extent, extent};
    kept.emplace_back(std::size_t(t.bytes()));
    const tensor_ref next{kept.back().data(), t};
    all_gather_op::compute(o, {&at, 1}, {&next, 1});
    at = next;
  }
  if (whole.type.bytes()) std::memcpy(whole.data, at.data, std::size_t(whole.type.bytes()));
}

/// What programs of ranks have in common: their parts of the inputs, by name.
class rank_inputs {
 public:
  /// An input of the step, of which this rank has a part.
  struct input {
    int index{};
    std::string name;
    input_role role{};
    tensor_type whole{};
    layout lies;
    int stage = -1;  ///< of a pipeline, whose ranks alone have it; -1: all ranks have their parts
    /// Whether a checkpoint has it: a parameter, a state, or the optimizer's state.
    bool is_kept() const { return owned_by_cell(role) || role == input_role::slot; }
  };
  std::span<const input> inputs() const { return inputs_; }
  const device_mesh& mesh() const { return mesh_; }
  int rank() const { return rank_; }
  const communicator& ranks() const { return communicator_; }

  /// This rank's part of input `i`: of an argument, a parameter, a slot.
  const tensor_ref& part(int i) const { return parts_[std::size_t(i)]; }
  /// Whether a rank has a part of an input.
  bool has(int rank, const input& in) const {
    return in.stage < 0 || mesh_.coordinate(rank, stages_) == in.stage;
  }
  /// Whether it is the first of those that have the same part.
  bool is_first(int rank, const input& in) const {
    if (!has(rank, in)) return false;
    for (int a = 0; a < mesh_.axis_count; ++a)
      if (in.lies[a] < 0 && (in.stage < 0 || a != stages_) && mesh_.coordinate(rank, a) > 0)
        return false;
    return true;
  }
  /// Gives input `i` its part of a value that this rank has as a whole.
  void set(int i, const tensor_ref& whole) {
    const input& in = inputs_[std::size_t(i)];
    if (has(rank_, in)) copy_part(whole, in.lies, mesh_, rank_, part(i));
    changed();
  }
  /// To be called when somebody has written to the parts of parameters.
  void changed() { has_changed_ = true; }
  /// The whole value of input `i`; all ranks call it.
  void get(int i, const tensor_ref& whole) const {
    const input& in = inputs_[std::size_t(i)];
    if (in.stage < 0) return gather_parts(part(i), in.lies, mesh_, communicator_, whole);
    const communicator& c = communicator_;
    if (!has(rank_, in)) return c.receive(c.self, stages_, in.stage, i, whole);
    for (int s = 0; s < mesh_[stages_].size; ++s)
      if (s != in.stage) c.send(c.self, stages_, s, i, part(i));
    std::memcpy(whole.data, part(i).data, std::size_t(whole.type.bytes()));
  }
  /// The input of this name; -1 if there is none.
  int find(std::string_view name) const {
    for (const input& in : inputs_)
      if (in.name == name) return in.index;
    return -1;
  }
  /// Where a store has an input as a whole: a tensor, or a block of its rows.
  template <class Store>
  static std::optional<tensor_ref> find_in(const Store& store, const input& in) {
    const row_block block = block_of(in.name);
    const auto* const found = store.find(block.whole);
    if (!found) return {};
    return block_in(store.value(*found), block);
  }
  /// Takes this rank's parts of all parameters and states from a store that has them as a whole.
  void load(const parameter_store& from) {
    for (const input& in : inputs_)
      if (const auto whole = find_in(from, in); whole && owned_by_cell(in.role))
        set(in.index, *whole);
  }
  /// Writes all parameters and states, whole, to the store of this rank; all ranks call it.
  void save(parameter_store& to) const {
    for (const input& in : inputs_)
      if (const auto whole = find_in(to, in); whole && owned_by_cell(in.role))
        get(in.index, *whole);
    to.touch();
  }
  /// Gives a run-time number of the step a value, if the step asks for it.
  void scalar(std::string_view name, double value) {
    check_step(name, value);
    if (const int i = find(name); i >= 0) write_element(part(i), 0, value);
  }
  std::int64_t input_bytes() const {
    std::int64_t n = 0;
    for (const tensor_ref& t : parts_) n += t.type.bytes();
    return n;
  }

 protected:
  /// Throws `model_error` if the ranks are those of another mesh.
  rank_inputs(const device_mesh& m, int rank, const communicator& c, int stages = 0)
      : mesh_(m), rank_(rank), communicator_(c), stages_(stages) {
    for (int a = 0; a < m.axis_count; ++a)
      if (const int size = c.groups[std::size_t(a)].size; size != m[a].size)
        throw model_error(text() << "the plan is for the mesh " << mesh_text(m) << ", but here "
                                 << size << " ranks are along its axis " << m[a].name.view());
  }
  rank_inputs(const rank_inputs&) = delete;
  rank_inputs& operator=(const rank_inputs&) = delete;

  /// The next input of `g`, the graph of the step, with the memory of this rank's part.
  void add(const graph& g, const layout& lies, const tensor_type& part, int stage = -1) {
    const int i = int(inputs_.size());
    const input_info& in = g.inputs[std::size_t(i)];
    inputs_.push_back({i, std::string(g.view(in.name)), in.role, g.type(g.input(i)), lies, stage});
    memory_.emplace_back(std::size_t(std::max<std::int64_t>(part.bytes(), 1)));
    parts_.push_back({memory_.back().data(), part});
  }
  /// The part of input `i` lies elsewhere.
  void move(int i, std::byte* at) {
    parts_[std::size_t(i)].data = at;
    memory_[std::size_t(i)] = {};
    changed();
  }

  device_mesh mesh_;
  int rank_;
  const communicator& communicator_;
  int stages_;  ///< the axis of the mesh along which the stages of a pipeline are
  bool has_changed_ = false;
  std::vector<input> inputs_;
  std::vector<tensor_ref> parts_;

 private:
  std::vector<aligned_buffer> memory_;
};

}  // namespace cella::parallel
