/* A net that learns prices, for programs in C: the interface of a shared library that is made of
 * it. What fails returns a null pointer or a number that is not 0; nothing throws across this line.
 */
#ifndef PRICES_H
#define PRICES_H

#ifdef __cplusplus
extern "C" {
#endif

enum { PRICES_FEATURES = 3, PRICES_BATCH = 32 };

typedef struct prices prices;

/* A net with random weights; they depend on the seed. */
prices* prices_new(unsigned seed);
void prices_delete(prices*);

/* One training step on PRICES_BATCH rows of PRICES_FEATURES numbers each, and their prices; *loss
 * is the mean squared error before it. */
int prices_learn(prices*, const float* features, const float* wanted, double learning_rate,
                 float* loss);
/* What the net makes of PRICES_BATCH rows. */
int prices_ask(prices*, const float* features, float* found);

#ifdef __cplusplus
}
#endif

#endif
