// What parameter_users.hpp declares.
#pragma once

#include <algorithm>
#include <cella/train/parameter_users.hpp>
#include <vector>

namespace cella {

CELLA_BODY std::shared_ptr<parameter_users::reader> parameter_users::add_reader() {
  std::erase_if(readers_, [](const auto& r) { return r.use_count() == 1; });  // predictor is gone
  return readers_.emplace_back(std::make_shared<reader>());
}

CELLA_BODY parameter_users::change::change(parameter_users& users) : users_(users) {
  users_.changing_.store(true);
  if (std::ranges::none_of(users_.readers_, [](const auto& r) { return r->caller.busy(); })) return;
  users_.changing_.store(false);
  single_caller::refuse(
      "a predictor of this model is in use by another thread; train or load before or after "
      "that");
}

}  // namespace cella
