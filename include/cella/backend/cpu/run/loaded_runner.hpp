// Runs graphs that exist at run time only on the kernels of compiled programs: planned when they
// are loaded, fused lines as data.
#pragma once

#include <cella/backend/cpu/run/loaded_calls.hpp>
#include <cella/backend/host/finite.hpp>

namespace cella::cpu {

/// A planned graph of element type T on the CPU. Calls allocate nothing.
template <class T>
class loaded_runner {
 public:
  static constexpr dtype element = dtype_of<T>;
  static constexpr int vector_lanes = lanes<T>;

  /// Why this tier cannot run `g`; empty if it can.
  static text refusal(const graph& g) {
    list<int> regions(1, 0);  // those that run
    for (std::size_t i = 0; i < regions.size(); ++i) {
      for (node_id n : g.regions[std::size_t(regions[i])].nodes) {
        const node& x = g.nodes[std::size_t(n)];
        if (x.op->pointwise && !find_opcode<T>(x.op, truths_of(g, n)))
          return text() << "there is no kernel for " << x.op->name << " on these types";
        for (int r : x.regions) {
          if (r >= 0 && std::find(regions.begin(), regions.end(), r) == regions.end())
            regions.push_back(r);
        }
      }
    }
    return {};
  }

  /// `g` has been through the passes, and `refusal` has nothing to say of it.
  explicit loaded_runner(graph g, thread_pool* threads = nullptr)
      : graph_(loaded_planning::prepared(std::move(g), dtype_of<T>)),
        watched_(stops_at_nan()),
        calls_(graph_, graph_, {.element = dtype_of<T>, .inputs_apart = true}, bodies_, watched_) {
    bodies_.plan(graph_, watched_);
    context_.threads = threads;
    if (watched_) context_.watch = &watch_;
    const int most_threads = threads ? threads->capacity() : 1;
    arena_ = aligned_buffer(std::size_t(plan().arena_bytes));
    scratch_ = aligned_buffer(std::size_t(calls_.scratch_bytes() * most_threads));
    // So that the first run finds the memory of its loops.
    if (const std::int64_t bytes = frame_bytes(calls_, most_threads)) {
      context_.frames.take(bytes);
      context_.frames.release({});
    }
    spaces_.assign(std::size_t(first_argument) + graph_.inputs.size(), nullptr);
    spaces_[arena_space] = arena_.data();
    spaces_[constant_space] = reinterpret_cast<std::byte*>(graph_.constants.words.data());
    memory_ = {spaces_.data(), &context_};
  }
  loaded_runner(const loaded_runner&) = delete;
  loaded_runner& operator=(const loaded_runner&) = delete;

  const graph& source() const { return graph_; }
  const growing_plan& plan() const { return calls_.plan(); }

  /// Where the main region's input `i` lies from now on, row-major.
  void bind(std::size_t i, std::byte* at) {
    std::byte*& space = spaces_[std::size_t(first_argument) + i];
    if (space != at && owned_by_cell(graph_.inputs[i].role)) prepared_ = false;
    space = at;
  }
  /// Parameters have other values than in the last call.
  void prepare_again() { prepared_ = false; }
  /// Runs the graph. Inputs that it updates have their new values then.
  void run() {
    begin();
    calls_.run_all(memory_, scratch_.data());
  }
  /// Before the calls of a run: makes what is the same in all runs, unless that is done.
  void begin() {
    context_.records.release({});
    if (prepared_) return;
    calls_.prepare(memory_, scratch_.data());
    prepared_ = true;
  }
  /// The calls of a run behind its preparation, one by one, and the step that each belongs to.
  std::size_t call_count() const { return calls_.count(); }
  void run_call(std::size_t k) { calls_.run(k, memory_, scratch_.data()); }
  int step_of(std::size_t k) const { return calls_.step_of(k); }
  int thread_count() const { return context_.threads ? context_.threads->size() : 1; }
  /// Result `k` of the last run, valid until the next.
  tensor_ref result(int k) const {
    const plan_value& r = plan().results[std::size_t(k)];
    return {memory_.at<std::byte>(r.at), graph_.type(r.value)};
  }

 private:
  graph graph_;
  bool watched_;
  loaded_bodies<T> bodies_;
  loaded_calls<T> calls_;
  bool prepared_ = false;
  aligned_buffer arena_, scratch_;
  list<std::byte*> spaces_;
  run_context context_;
  number_watch watch_;
  memory memory_;
};

}  // namespace cella::cpu
