#include "price.hpp"

#include "house.hpp"

struct PriceModel::Inside {
  HouseModel model;
};

PriceModel::PriceModel(const std::filesystem::path& weights) : inside_(new Inside) {
  inside_->model.load(weights);
}
PriceModel::~PriceModel() = default;

float PriceModel::operator()(float rooms, float area, float age) {
  return inside_->model.predict({rooms, area, age})[0];
}
