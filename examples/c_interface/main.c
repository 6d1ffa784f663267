/* A program in C that trains a net of Cella, which it has from a shared library, and asks it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "prices.h"

static float random_number(void) {
  static unsigned long long state = 1;
  state = state * 16807 % 2147483647;
  return (float)state / 2147483647;
}
/* Houses of 20 to 140 square metres, 0 to 100 years old, 0 to 10 km from the centre, as numbers
 * around 1; and what they cost, in 100,000. */
static void make_houses(float* features, float* cost) {
  for (int i = 0; i < PRICES_BATCH; ++i, features += PRICES_FEATURES) {
    for (int k = 0; k < PRICES_FEATURES; ++k) features[k] = 2 * random_number();
    cost[i] = (0.5f + features[0]) * expf(-0.5f * features[1]) * (1.2f - 0.3f * features[2]);
  }
}

int main(int argc, char** argv) {
  float features[PRICES_BATCH * PRICES_FEATURES], cost[PRICES_BATCH], found[PRICES_BATCH], loss = 0;
  prices* const net = prices_new(1);
  if (!net) return 2;
  for (int step = 0; step < 4000; ++step) {
    make_houses(features, cost);
    if (prices_learn(net, features, cost, 0.01 / (1 + 0.002 * step), &loss)) return 2;
  }
  make_houses(features, cost);
  if (prices_ask(net, features, found)) return 2;
  float worst = 0;
  for (int i = 0; i < PRICES_BATCH; ++i) worst = fmaxf(worst, fabsf(found[i] - cost[i]));
  prices_delete(net);

  printf("largest_error: %g\n", worst);
  if (argc == 3 && strcmp(argv[1], "--json") == 0) {
    FILE* const out = fopen(argv[2], "w");
    if (!out) return 2;
    fprintf(out, "{\"largest_error\": %g}\n", worst);
    fclose(out);
  }
  return 0;
}
