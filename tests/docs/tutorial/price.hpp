#pragma once
#include <filesystem>
#include <memory>

class PriceModel {
 public:
  explicit PriceModel(const std::filesystem::path& weights);
  ~PriceModel();
  float operator()(float rooms, float area, float age);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};
