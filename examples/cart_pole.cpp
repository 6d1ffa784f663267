// Double deep Q-learning balances a pole on a cart: one net learns, another that follows it slowly
// says what its choices are worth.  van Hasselt, Guez and Silver 2016; the cart is that of Barto,
// Sutton and Anderson 1983.
#include <algorithm>
#include <array>
#include <cella/models/mlp.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <vector>

#include "report.hpp"

using namespace cella;

using cart = std::array<float, 4>;  // place and speed of the cart, angle and speed of the pole

/// A cart of 1 kg is pushed with 10 N to the left (0) or to the right (1); the pole has 0.1 kg and
/// 1 m.
cart push(cart s, int action) {
  const auto [x, v, a, r] = s;
  const float sine = std::sin(a), cosine = std::cos(a);
  const float force = ((action == 1 ? 10.f : -10.f) + 0.05f * r * r * sine) / 1.1f;
  const float turn =
      (9.8f * sine - cosine * force) / (0.5f * (4.f / 3 - 0.1f * cosine * cosine / 1.1f));
  const float gain = force - 0.05f * turn * cosine / 1.1f;
  constexpr float dt = 0.02f;
  return {x + dt * v, v + dt * gain, a + dt * r, r + dt * turn};
}
bool has_fallen(const cart& s) { return std::abs(s[0]) > 2.4f || std::abs(s[2]) > 0.2095f; }
cart beginning(generator& random) {
  cart s;
  for (float& v : s) v = random.uniform(-0.05f, 0.05f);
  return s;
}

/// What is learnt of a cart: what the action that was taken is worth.
struct outcome {
  integers<> action;
  features<1> value;
};
inline constexpr auto of_the_action = [](var worth, const outcome& o) {
  return huber_loss(gather_elements(worth, reshape(o.action, {-1, 1}), 1), o.value);
};

constexpr int batch = 64;
using critic = model<models::mlp<4, 64, 64, 2>, features<4>, of_the_action, optim::adam{},
                     model_options{.batch = batch}>;

/// For how many steps, at most 500, a net keeps the pole up; the mean over `episodes`.
double balance(critic& q, int episodes) {
  generator random(7);
  int steps = 0;
  for (int e = 0; e < episodes; ++e) {
    cart s = beginning(random);
    for (int t = 0; t < 500 && !has_fallen(s); ++t, ++steps) {
      s = push(s, q.predict(s.data(), 1).classes()[0]);
    }
  }
  return double(steps) / episodes;
}

struct experience {
  cart before, after;
  int action;
  bool fell;
};

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    critic q({.seed = 1}), target({.seed = 1});
    generator random(1);
    std::vector<experience> memory;
    std::array<cart, batch> before, after;
    std::array<std::int32_t, batch> action;
    std::array<float, batch> value;

    double balanced = 0;
    int episode = 0;
    for (; episode < 600 && balanced < 475; ++episode) {
      const double curiosity = std::max(0.02, 1 - episode / 50.0);
      cart s = beginning(random);
      for (int t = 0; t < 500 && !has_fallen(s); ++t) {
        const int a = random.uniform() < curiosity ? int(random.uniform() * 2)
                                                   : q.predict(s.data(), 1).classes()[0];
        const cart next = push(s, a);
        memory.push_back({s, next, a, has_fallen(next)});
        s = next;
        if (memory.size() < 500) continue;

        std::array<const experience*, batch> drawn;
        for (std::size_t k = 0; k < batch; ++k) {
          drawn[k] = &memory[std::size_t(random.uniform() * double(memory.size()))];
          before[k] = drawn[k]->before;
          after[k] = drawn[k]->after;
          action[k] = drawn[k]->action;
        }
        // The net chooses what to do next, the target net says what that is worth.
        const auto chosen = q.predict(after[0].data(), batch).classes();
        const auto worth = target.predict(after[0].data(), batch);
        for (std::size_t k = 0; k < batch; ++k) {
          value[k] = drawn[k]->fell ? 0 : 1 + 0.99f * worth[2 * k + std::size_t(chosen[k])];
        }
        q.train_step(before[0].data(), {action.data(), value.data()}, batch, 0.001);
        target.parameters().lerp(q.parameters(), 0.01);
      }
      if (episode % 10 == 9) balanced = balance(q, 10);
    }
    return nlohmann::ordered_json{{"episodes", episode}, {"balanced_steps", balance(q, 20)}};
  });
}
