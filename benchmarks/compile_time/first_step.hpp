// One training step of a model, for what lies between an edit and the first step.
#pragma once

#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/train/model.hpp>
#include <cstdint>
#include <iostream>
#include <vector>

/// On images of one colour, of so many numbers each.
template <class Model>
int first_step(std::int64_t numbers) {
  constexpr std::int64_t batch = Model::batch_size;
  const std::vector<float> images(std::size_t(batch * numbers), 0.5f);
  const std::vector<std::int32_t> labels(std::size_t(batch), 3);
  Model model({.seed = 1});
  std::cout << model.train_step(images.data(), labels.data(), batch, 0.01) << "\n";
  return 0;
}
