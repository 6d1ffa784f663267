// Programs that a user may begin with: each has learnt what it says that it learns.
#include <doctest/doctest.h>

#include "program.hpp"

using namespace cella::test;

TEST_CASE("unet marks the discs and not the squares") {
  CHECK(figures_of("unet", CELLA_UNET)["dice"] > 0.85);
}
TEST_CASE("karate says whom the members of the club followed") {
  CHECK(figures_of("karate", CELLA_KARATE)["right"] >= 29);
}
TEST_CASE("oscillator finds the solution of its equation") {
  CHECK(figures_of("oscillator", CELLA_OSCILLATOR)["largest_error"] < 0.02);
}
TEST_CASE("brackets tells lines that fit together from others, whatever their length") {
  CHECK(figures_of("brackets", CELLA_BRACKETS)["accuracy"] > 0.97);
}
TEST_CASE("cart_pole learns to balance a pole") {
  CHECK(figures_of("cart_pole", CELLA_CART_POLE)["balanced_steps"] > 300);
}
TEST_CASE("writer writes numbers backwards, and says of a word what the whole sentence says") {
  const auto f = figures_of("writer", CELLA_WRITER);
  CHECK(f["right"] > 0.95);
  CHECK(f["difference"] < 1e-4);
}
TEST_CASE("c_interface learns prices in a program in C") {
  CHECK(figures_of("c_interface", CELLA_C_INTERFACE)["largest_error"] < 0.1);
}
