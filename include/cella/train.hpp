// What trains nets: optimizers and schedules; the model with its metrics, callbacks and
// checkpoints, which needs nlohmann/json; a training step for a loop of one's own.
#pragma once

#include <cella/optim/accumulate.hpp>
#include <cella/optim/averaged.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/parts.hpp>
#include <cella/optim/schedules.hpp>
#include <cella/train/average_scope.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/step.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <cella/train/progress.hpp>
#endif
