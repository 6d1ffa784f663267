#include <iostream>

#include "price.hpp"

int main() {
  PriceModel price("houses.safetensors");
  std::cout << "3 rooms, 90 square metres, 10 years: " << price(3, 90, 10) << "\n";
}
