// Models that are trained by the ranks of a mesh together.
//
//   thread_ranks ranks(parse_mesh("data=2"));  // or mpi_ranks
//   ranks.run([&](int, const communicator& c) {
//     classifier m({.seed = 1, .mesh = train::on_mesh(ranks.mesh(), c, {.mode = mode::zero1})});
//     m.fit(samples.shuffle(1), {.epochs = 2}, train::progress_bar{});
//     m.save("digits.safetensors");
//   });
#pragma once

#include <cella/parallel/divide.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/recently_used.hpp>
#include <cella/train/mesh_trainer.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace cella::train {

/// What `run_options::mesh` takes: this rank is one of those of a mesh, which it reaches by `c`,
/// and a strategy says how steps are divided. The model is that of one device, and every rank has
/// one, made with the same seed: `fit` and `train_step` divide each batch, `evaluate` its samples;
/// their results, and what `save` writes, are those of one device, but for the order of sums.
/// Steps are planned at run time: link `cella::kernels`. Throws `model_error` in the first step if
/// the strategy is impossible.
inline mesh_option on_mesh(const parallel::device_mesh& m, const communicator& c,
                           const parallel::strategy& s = {.mode = parallel::mode::data});

// ------------------------------------------------------------------------------------------------

namespace detail {

/// A strategy for batches of another size, with the names that it mentions: what is kept lies as in
/// the plan for a whole batch, and arguments of less than a sample for each rank are not divided.
inline parallel::strategy strategy_for_rest(parallel::strategy s, const graph& rest,
                                            const parallel::parallel_plan& whole) {
  const parallel::device_mesh& m = whole.mesh;
  for (std::size_t i = 0; i < rest.inputs.size(); ++i) {
    const parallel::layout& l = whole.rank.inputs[i];
    const bool divided = parallel::can_lie(rest.type(rest.input(int(i))).shape, l, m);
    const input_role role = rest.inputs[i].role;
    if (role == input_role::scalar) continue;
    if (role == input_role::argument ? divided : s.mode != parallel::mode::automatic) continue;
    for (int a = 0; a < m.axis_count; ++a)
      s.tensors.push_back({rest.view(rest.inputs[i].name), m[a].name.view(),
                           role == input_role::argument ? parallel::stays_whole : int(l[a])});
  }
  return s;
}

class divided_trainer final : public mesh_trainer {
 public:
  divided_trainer(const parallel::device_mesh& m, const communicator& c,
                  const parallel::strategy& s, model_on_mesh model)
      : mesh_(m), ranks_(c), strategy_(s), model_(std::move(model)) {
    for (int a = 0; a < m.axis_count; ++a) {
      rank_ += c.groups[std::size_t(a)].coordinate * m.stride(a);
      by_samples_[a] = 0;
    }
  }

  int rank() const override { return rank_; }

  data::batch_share share(std::int64_t rows) override {
    divided_step& s = step_for(rows);
    std::int64_t first = rows, end = 0;
    for (const auto& [input, argument, is_read] : s.arguments) {
      const auto& in = s.run.inputs()[std::size_t(input)];
      if (in.whole.rank() == 0) continue;
      const std::int64_t each = in.whole[0] / rows;
      const std::int64_t from = parallel::first_of_part(in.whole.shape, in.lies, mesh_, rank_, 0);
      first = std::min(first, from / each);
      end = std::max(end, (from + s.run.part(input).type[0] + each - 1) / each);
    }
    return {first, std::max<std::int64_t>(end - first, 0)};
  }
  void step(std::int64_t rows, const data::batch_share& share,
            std::span<const tensor_ref> arguments, std::span<const named_scalar> numbers) override {
    divided_step& s = step_for(rows);
    take_parts();
    for (const auto& [input, argument, is_read] : s.arguments) {
      const auto& in = s.run.inputs()[std::size_t(input)];
      multi_index from = parallel::detail::first_elements(in.whole.shape, in.lies, mesh_, rank_);
      if (in.whole.rank() > 0) from[0] -= std::int32_t(in.whole[0] / rows * share.first);
      const tensor_ref& part = s.run.part(input);
      if (!arguments[std::size_t(argument)].data && part.type.bytes() > 0) {
        if (is_read) refuse_null_column(in.name);
        continue;
      }
      cella::detail::copy_box(arguments[std::size_t(argument)], from, part, {}, part.type.shape);
    }
    for (const named_scalar& n : numbers) s.run.scalar(n.name, n.value);
    s.run();
    last_ = &s;
    is_ahead_ = !cut_.empty();
    model_.parameters->touch();
    seen_ = model_.parameters->version();
  }
  tensor_ref result(int k) const override { return last_->run.result(k); }
  void join_argument(int k, const tensor_ref& whole) override {
    for (const auto& [input, argument, is_read] : last_->arguments)
      if (argument == k) last_->run.get(input, whole);
  }
  void gather() override {
    if (is_ahead_) {
      for (const auto& [input, at] : cut_) whole_->run.get(input, at);
      model_.parameters->touch();
    }
    is_ahead_ = false;
    has_parts_ = false;
  }

  data::batch_share even_share(std::int64_t rows) const override {
    const shape all{std::int32_t(rows)};
    if (!parallel::can_lie(all, by_samples_, mesh_)) return {0, rows};
    return {parallel::first_of_part(all, by_samples_, mesh_, rank_, 0),
            parallel::part_of(all, by_samples_, mesh_, rank_)[0]};
  }
  void join(const tensor_ref& part, const tensor_ref& whole, std::int64_t rows) const override {
    const tensor_type bytes{dtype::u8,
                            {std::int32_t(rows), std::int32_t(whole.type.bytes() / rows)}};
    const bool divided = parallel::can_lie(bytes.shape, by_samples_, mesh_);
    const parallel::layout l = divided ? by_samples_ : parallel::layout{};
    parallel::gather_parts({part.data, parallel::part_of(bytes, l, mesh_, rank_)}, l, mesh_, ranks_,
                           {whole.data, bytes});
  }
  void sum(std::span<float> numbers) const override {
    const tensor_type type{dtype::f32, {std::int32_t(numbers.size())}};
    std::vector<float> own;
    for (int a = 0; a < mesh_.axis_count; ++a) {
      if (mesh_[a].size == 1) continue;
      own.assign(numbers.begin(), numbers.end());
      ranks_.all_reduce(ranks_.self, a, {reinterpret_cast<std::byte*>(own.data()), type},
                        {reinterpret_cast<std::byte*>(numbers.data()), type});
    }
  }

 private:
  struct divided_step {
    divided_step(const graph& g, const parallel::parallel_plan& p, int rank, const communicator& c,
                 const model_on_mesh& m)
        : run(g, p, rank, c, m.precision, m.threads) {
      for (std::size_t i = 0; i < g.inputs.size(); ++i)
        if (g.inputs[i].role == input_role::argument)
          arguments.push_back({int(i), int(g.inputs[i].index), reads_input(g, int(i))});
    }
    struct argument {
      int input{}, argument{};
      bool is_read{};
    };
    parallel::rank_program run;
    std::vector<argument> arguments;
  };
  struct cut_input {
    int input{};
    tensor_ref at;  ///< in a store, whole
  };

  graph traced(std::int64_t rows) const { return compiled_once::optimize(model_.trace(rows)); }
  divided_step& step_for(std::int64_t rows) {
    if (!whole_) {
      plan_ = parallel::divide(traced(model_.batch), mesh_, strategy_);
      whole_ = std::make_unique<divided_step>(plan_.graph, plan_.plan, rank_, ranks_, model_);
      for (const auto& in : whole_->run.inputs()) {
        if (!is_kept(in)) continue;
        const tensor_ref at = in_store(in);
        if (in.lies == parallel::layout{})
          whole_->run.bind(in.index, at.data);
        else
          cut_.push_back({in.index, at});
      }
    }
    if (rows == model_.batch) return *whole_;
    return *rests_.get(rows, [&] {
      const graph g = parallel::divisible(traced(rows), strategy_, plan_.form);
      const auto p = parallel::plan_for(g, mesh_, strategy_for_rest(strategy_, g, plan_.plan));
      auto rest = std::make_unique<divided_step>(g, p, rank_, ranks_, model_);
      for (const auto& in : whole_->run.inputs()) {
        if (!is_kept(in)) continue;
        if (rest->run.inputs()[std::size_t(in.index)].lies != in.lies)
          throw error("on_mesh: " + in.name +
                      " lies otherwise in the step of a smaller batch; drop the remainder");
        rest->run.bind(in.index, whole_->run.part(in.index).data);
      }
      return rest;
    });
  }
  static bool is_kept(const parallel::rank_inputs::input& in) {
    return in.role != input_role::argument && in.role != input_role::scalar;
  }
  tensor_ref in_store(const parallel::rank_inputs::input& in) const {
    const auto found = in.role == input_role::slot
                           ? parallel::rank_inputs::find_in(model_.slots(), in)
                           : parallel::rank_inputs::find_in(*model_.parameters, in);
    if (found) return *found;
    return {reinterpret_cast<std::byte*>(model_.parameters->random_state()), in.whole};
  }
  /// Somebody may have written to the stores: this rank takes its parts from there.
  void take_parts() {
    if (has_parts_ && seen_ == model_.parameters->version()) return;
    for (const auto& [input, at] : cut_) whole_->run.set(input, at);
    has_parts_ = true;
  }

  parallel::device_mesh mesh_;
  const communicator& ranks_;
  parallel::strategy strategy_;
  model_on_mesh model_;
  int rank_ = 0;
  parallel::layout by_samples_;
  parallel::divided_graph plan_;         ///< of a whole batch
  std::unique_ptr<divided_step> whole_;  ///< the step of a whole batch
  recently_used<std::int64_t, std::unique_ptr<divided_step>> rests_{4};
  std::vector<cut_input> cut_;  ///< what is kept in parts, of which the stores have the whole
  divided_step* last_{};
  bool is_ahead_ = false;   ///< parts are newer than the stores
  bool has_parts_ = false;  ///< parts are not older than the stores
  std::uint64_t seen_{};    ///< the version of the parameters behind the last step
};

}  // namespace detail

inline mesh_option on_mesh(const parallel::device_mesh& m, const communicator& c,
                           const parallel::strategy& s) {
  return [m, &c, s](const model_on_mesh& model) {
    return std::make_unique<detail::divided_trainer>(m, c, s, model);
  };
}

}  // namespace cella::train
