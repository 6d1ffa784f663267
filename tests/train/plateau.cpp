#include <doctest/doctest.h>

#include <cella/train/plateau.hpp>
#include <string>
#include <vector>

using namespace cella;

TEST_CASE("the rate falls when a score has not improved for longer than the patience") {
  train::reduce_on_plateau plateau{
      .first = 0.1, .factor = 0.5, .patience = 1, .minimum_change = 0.05, .least = 0.03};
  const optim::schedule rate = plateau.rate();
  std::vector<double> rates;
  train::fit_state s;
  plateau.on_train_begin(s);
  // 1 is the best at once; 0.98 is no improvement; 0.5 is one, and the waiting begins again.
  for (const double loss : {1., 0.98, 0.97, 0.5, 0.5, 0.6, 0.5, 0.5, 0.5}) {
    rates.push_back(rate(0, 10));
    s.record.set("val_loss", loss);
    plateau.on_epoch_end(s);
  }
  rates.push_back(rate(0, 10));
  CHECK(rates == std::vector<double>{0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.03, 0.03, 0.03, 0.03});
  train::reduce_on_plateau wrong{.factor = 1};
  CHECK_THROWS_WITH_AS(wrong.on_train_begin(s),
                       "reduce_on_plateau: factor is 1.000000; it must lie between 0 and 1", error);
}
