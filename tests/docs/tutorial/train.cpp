#include <cella/data/csv.hpp>
#include <cella/data/dataset.hpp>
#include <cella/train/callbacks.hpp>
#include <iostream>
#include <vector>

#include "house.hpp"

using namespace cella;

int main() {
  const std::vector<float> houses{3, 90, 10, 5, 160, 40, 2, 55, 80};
  const std::vector<float> prices{170, 190, 50};
  const data::tensor_dataset few(data::column<float>({3, 3}, houses),
                                 data::column<float>({3, 1}, prices));
  HouseModel first_try({.seed = 1});
  first_try.fit(few, {.epochs = 200, .learning_rate = 0.01});
  std::cout << "error on three houses: " << first_try.evaluate(few)["loss"] << "\n";

  const auto table = data::read_csv("houses.csv");
  const data::tensor_dataset all(table.values({"rooms", "area", "age"}), table.values({"price"}));
  const auto [learning, others] = all.shuffle(1, data::reshuffle::never).split(0.8);
  const auto [validation, test] = others.split(0.5);

  HouseModel m({.seed = 1});
  train::early_stop stop{.patience = 10};
  const auto history = m.fit(learning.shuffle(2), {.epochs = 200, .learning_rate = 0.003},
                             train::validation(validation), stop);
  std::cout << history.size() << " epochs, the best was number " << stop.best_epoch + 1 << "\n";

  std::cout << "error on houses never seen: " << m.evaluate(test)["loss"] << "\n";
  const std::vector<float> two{3, 90, 10, 4, 120, 70};
  for (const float price : m.predict(two)) std::cout << "price: " << price << "\n";

  m.save("houses.safetensors");
}
