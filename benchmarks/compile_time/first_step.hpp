// One training step of a model, for what lies between an edit and the first step.
#pragma once

#include <cella/train/model.hpp>
#include <cstdint>
#include <iostream>
#include <vector>

/// On samples of so many numbers, all alike, with so many labels each.
template <class Model>
int first_step(std::int64_t numbers, std::int64_t labels = 1) {
  constexpr std::int64_t batch = Model::batch_size;
  using number = typename Model::input_element;
  const std::vector<number> x(std::size_t(batch * numbers), number(1));
  const std::vector<std::int32_t> y(std::size_t(batch * labels), 3);
  Model model({.seed = 1});
  std::cout << model.train_step(x.data(), y.data(), batch, 0.01) << "\n";
  return 0;
}
