// A graph net on real data: the friendships in a karate club that split in two (Zachary 1977). It
// is told which way the two leaders went, and says of the 32 others whom each followed.  Kipf and
// Welling 2017
#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/segments.hpp>
#include <cella/train/model.hpp>
#include <string_view>
#include <vector>

#include "report.hpp"

using namespace cella;

constexpr int people = 34;
constexpr int edges = 2 * 78 + people;  // friendships both ways, and everybody's with himself

struct club {
  features<people, people> who;  // the unit matrix: nothing is known but who is who
  integers<edges> from, to;
};
struct choice {
  integers<people> side;  // 0 or 1; -1: not told
};

/// Values of people [people, In] -> the mean of what their friends make of theirs [people, Out].
template <int In, int Out>
struct graph_layer {
  nn::dense<In, Out> change;

  constexpr var operator()(var x, var from, var to) const {
    return segment_mean(gather(change(x), from), to, people);
  }
};

struct GraphNet {
  graph_layer<people, 16> first;
  graph_layer<16, 2> second;

  constexpr var operator()(const club& c) const {
    const var from = reshape(c.from, {edges}), to = reshape(c.to, {edges});
    var x = reshape(c.who, {people, people});
    x = second(relu(first(x, from, to)), from, to);
    return reshape(x, {1, people, 2});
  }
};

inline constexpr auto of_the_told = [](var logits, const choice& c) {
  return softmax_cross_entropy(reshape(logits, {people, 2}), reshape(c.side, {people}),
                               {.ignored_label = -1});
};

// A sample is a whole graph.
using reader = model<GraphNet, club, of_the_told, optim::adam{}, model_options{.batch = 1}>;

/// Each member, and his friends with a higher number.
const std::vector<std::vector<int>> friends{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31},
    {1, 2, 3, 7, 13, 17, 19, 21, 30},
    {2, 3, 7, 8, 9, 13, 27, 28, 32},
    {3, 7, 12, 13},
    {4, 6, 10},
    {5, 6, 10, 16},
    {6, 16},
    {8, 30, 32, 33},
    {9, 33},
    {13, 33},
    {14, 32, 33},
    {15, 32, 33},
    {18, 32, 33},
    {19, 33},
    {20, 32, 33},
    {22, 32, 33},
    {23, 25, 27, 29, 32, 33},
    {24, 25, 27, 31},
    {25, 31},
    {26, 29, 33},
    {27, 33},
    {28, 31, 33},
    {29, 32, 33},
    {30, 32, 33},
    {31, 32, 33},
    {32, 33}};
/// Whom each followed: the instructor (member 0), or the president (member 33).
constexpr std::string_view followed = "0000000001000011001010111111111111";

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    std::vector<float> who(people * people);
    std::vector<std::int32_t> from, to, told(people, -1);
    for (int i = 0; i < people; ++i) {
      who[std::size_t(i * people + i)] = 1;
      from.push_back(i);
      to.push_back(i);
    }
    for (const auto& row : friends) {
      for (std::size_t k = 1; k < row.size(); ++k) {
        from.insert(from.end(), {row[0], row[k]});
        to.insert(to.end(), {row[k], row[0]});
      }
    }
    told[0] = 0;
    told[33] = 1;

    reader m({.seed = 1});
    for (int step = 0; step < 200; ++step)
      m.train_step({who.data(), from.data(), to.data()}, told.data(), 1, 0.01);

    const auto scores = m.predict(who, from, to);
    int right = 0;
    for (std::size_t i = 1; i + 1 < people; ++i)
      right += (scores[2 * i + 1] > scores[2 * i]) == (followed[i] == '1');
    return nlohmann::ordered_json{{"asked", people - 2}, {"right", right}};
  });
}
