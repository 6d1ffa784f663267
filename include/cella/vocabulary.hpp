// The operations, layers, losses, rules, schedules, first values, metrics and distributions that
// nn.hpp and train.hpp leave out, so that programs without them compile as fast as before.
#pragma once

#include <cella/distributions/composed.hpp>
#include <cella/models/switch_gpt.hpp>
#include <cella/nn/activations.hpp>
#include <cella/nn/classification_losses.hpp>
#include <cella/nn/convolutions.hpp>
#include <cella/nn/ctc_loss.hpp>
#include <cella/nn/embedding_bag.hpp>
#include <cella/nn/embedding_losses.hpp>
#include <cella/nn/grouped_attention.hpp>
#include <cella/nn/initializers.hpp>
#include <cella/nn/masks.hpp>
#include <cella/nn/mixture_of_experts.hpp>
#include <cella/nn/norms.hpp>
#include <cella/nn/pooling.hpp>
#include <cella/nn/positions.hpp>
#include <cella/nn/recurrent_net.hpp>
#include <cella/nn/regression_losses.hpp>
#include <cella/nn/transformer.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/color.hpp>
#include <cella/ops/convolution_nd.hpp>
#include <cella/ops/einsum.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/pooling_nd.hpp>
#include <cella/ops/resampling.hpp>
#include <cella/ops/sampling.hpp>
#include <cella/ops/signal.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/optim/cycles.hpp>
#include <cella/optim/decays.hpp>
#include <cella/optim/layerwise.hpp>
#include <cella/optim/lazy.hpp>
#include <cella/optim/lbfgs.hpp>
#include <cella/optim/lion.hpp>
#include <cella/optim/muon.hpp>
#include <cella/optim/proximal.hpp>
#include <cella/train/class_metrics.hpp>
#include <cella/train/mask_metrics.hpp>
#include <cella/train/regression_metrics.hpp>
#include <cella/train/text_metrics.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <cella/train/plateau.hpp>
#endif
