// What fit.hpp declares.
#pragma once

#include <cella/train/fit.hpp>
#include <cstdio>
#include <string>

namespace cella::train {

CELLA_BODY void scores::set(std::string_view name, double value) {
  for (auto& [key, old] : values_) {
    if (key == name) return void(old = value);
  }
  values_.emplace_back(name, value);
}

CELLA_BODY bool scores::contains(std::string_view name) const {
  for (const auto& v : values_) {
    if (v.first == name) return true;
  }
  return false;
}

CELLA_BODY double scores::operator[](std::string_view name) const {
  std::string known;
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
    known += (known.empty() ? "" : ", ") + key;
  }
  throw error("there is no score \"" + std::string(name) + "\" among [" + known +
              (name.starts_with("val_") ? "]; put train::validation(data, metrics...) before "
                                          "what reads it, or name one of these"
                                        : "]; hand the metric over, or name one of these"));
}

CELLA_BODY diverged divergence(const std::string& what, std::int64_t step, double loss,
                               double rate) {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "loss %.6g, learning rate %.6g", loss, rate);
  return {"training diverges: " + what + " in step " + std::to_string(step) + " (" + numbers +
              "); load weights from before, then lower the learning rate, mend data that are not "
              "finite, or let it run with fit_options::check_finite = false",
          step, loss, rate};
}

}  // namespace cella::train
