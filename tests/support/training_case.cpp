#include "support/training_case.hpp"

#include <cella/passes/pass.hpp>
#include <cella/train/runtime_path.hpp>
#include <optional>
#include <utility>

#include "support/harness.hpp"

namespace cella::test {

golden_training::golden_training(const golden& file, const setting& s) : file_(file), setting_(s) {
  // The file has all batches along a leading axis.
  const auto cut = [&](const char* name, const tensor_type& t,
                       std::vector<std::vector<std::byte>>& out) {
    const golden_tensor all = file_.tensor(s.model + name);
    const auto size = std::size_t(t.size());
    for (std::size_t first = 0; first < all.values.size(); first += size) {
      out.emplace_back(std::size_t(t.bytes()));
      for (std::size_t i = 0; i < size; ++i)
        write_element({out.back().data(), t}, std::int64_t(i), all.values[first + i]);
    }
  };
  cut(".x", s.x, x_);
  cut(".y", s.y, y_);
  losses_ = file_.tensor(s.model + ".losses").values;
}

training_error golden_training::run(parameter_store& store,
                                    const std::function<void(builder&)>& trace_step, dtype element,
                                    at_run_time how) const {
  load(store);
  builder traced;
  trace_step(traced);
  const slot_store slots(traced.g);
  std::optional<loaded_program> planned;
  const graph optimized = optimize(traced.g);
  if (how == at_run_time::planned) planned.emplace(optimized, element);
  training_error e;
  for (int i = 0; i < int(losses_.size()); ++i) {
    const auto at = [](const std::vector<std::byte>& bytes) {
      return const_cast<std::byte*>(bytes.data());
    };
    const std::array arguments{tensor_ref{at(x_[batch(i)]), setting_.x},
                               tensor_ref{at(y_[batch(i)]), setting_.y}};
    const std::array<named_scalar, 2> scalars{
        {{"learning_rate", setting_.rate}, {"step", double(i + 1)}}};
    runtime_path path({&store, &slots, arguments, scalars}, &compute_on_cpu);
    if (how == at_run_time::eagerly)
      path.run_eagerly(trace_step);
    else if (how == at_run_time::traced)
      path.run(traced.g);
    else
      path.run(optimized, *planned);
    compare_loss(i, read_element(path.result(0), 0), e);
  }
  compare_weights(store, e);
  return e;
}

void golden_training::load(parameter_store& store) const {
  for (const auto& entry : store.entries()) {
    const auto w = file_.tensor(setting_.model + ".initial." + setting_.rename(entry.name));
    REQUIRE(std::int64_t(w.values.size()) == entry.type.size());
    for (std::size_t i = 0; i < w.values.size(); ++i)
      write_element(store.value(entry), std::int64_t(i), w.values[i]);
  }
  store.touch();
}
void golden_training::compare_loss(int step, double loss, training_error& e) const {
  const double expected = losses_[std::size_t(step)];
  e.loss = std::max(e.loss, std::isfinite(loss) ? std::abs(loss - expected) / expected : 1e9);
}
void golden_training::compare_weights(const parameter_store& store, training_error& e) const {
  for (const auto& entry : store.entries()) {
    const auto w = file_.tensor(setting_.model + ".final." + setting_.rename(entry.name));
    double most = 1e-3;
    double error = 0;
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      const double d = std::abs(read_element(store.value(entry), std::int64_t(i)) - w.values[i]);
      most = std::max(most, std::abs(w.values[i]));
      error = d <= error ? error : d;  // NaN counts
    }
    e.weights = error / most <= e.weights ? e.weights : error / most;
  }
}

}  // namespace cella::test
