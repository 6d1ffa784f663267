// What fit, and a model, take as options elsewhere. It is declared all the same, so that the
// compiler says in that line what to write instead.
#pragma once

#define CELLA_NO_OPTION(type, remedy)                                                              \
  struct type {                                                                                    \
    constexpr type() = default;                                                                    \
    template <class... T>                                                                          \
    requires(sizeof...(T) > 0) __attribute__((unavailable(remedy))) constexpr type(const T&...) {} \
  };

namespace cella::train::detail {

CELLA_NO_OPTION(no_epochs, "write {.epochs = 3}")
CELLA_NO_OPTION(no_verbose,
                "what fit shows is a callback behind the options: m.fit(data, {.epochs = 3}, "
                "train::progress_bar{})")
CELLA_NO_OPTION(no_part,
                "loss and optimizer are part of the model's type: model<Net, Input, "
                "cross_entropy_loss{}, optim::adam{}>")
CELLA_NO_OPTION(no_mode, "write {.seed = 1, .mode = execution::eager}")
CELLA_NO_OPTION(no_device, "there are no devices to choose: programs run on the CPU; leave it out")
CELLA_NO_OPTION(no_training, "tell it to fit: m.fit(data, {.epochs = 3, .learning_rate = 0.1})")
CELLA_NO_OPTION(no_rate, "write {.epochs = 3, .learning_rate = 0.1}")
CELLA_NO_OPTION(no_batch_size,
                "the batch is part of the model's type: model<Net, Input, cross_entropy_loss{}, "
                "optim::sgd{}, model_options{.batch = 64}>")
CELLA_NO_OPTION(no_extras,
                "metrics and callbacks stand behind the options: m.fit(data, {.epochs = 3}, "
                "metrics::accuracy{}, stop)")
CELLA_NO_OPTION(no_validation,
                "split the data, and hand over train::validation(others, metrics::accuracy{}) "
                "behind the options; see train/callbacks.hpp")
CELLA_NO_OPTION(no_shuffle, "shuffle the data: m.fit(data.shuffle(1), {.epochs = 3})")

}  // namespace cella::train::detail

#undef CELLA_NO_OPTION
