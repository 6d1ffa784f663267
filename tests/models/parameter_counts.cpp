#include <cella/models/bert.hpp>
#include <cella/models/mobilenet.hpp>
#include <cella/models/unet.hpp>
#include <cella/models/vit.hpp>

#include "support/harness.hpp"

using namespace cella;

namespace {

/// Of a net that is traced for inputs of these types; its results have these shapes.
template <class Net, std::size_t N>
std::int64_t parameters(const std::array<tensor_type, N>& inputs,
                        std::initializer_list<shape> results) {
  Net net;
  const graph g = trace(net, inputs);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.inputs[i].role == input_role::parameter) count += g.type(g.input(int(i))).size();
  }
  REQUIRE(g.regions[0].outputs.size() == results.size());
  std::size_t k = 0;
  for (const shape& s : results) CHECK(g.type(g.regions[0].outputs[k++]).shape == s);
  return count;
}

}  // namespace

TEST_CASE("nets have as many parameters as is published of them") {
  const std::array images{tensor_type{dtype::f32, {2, 3, 224, 224}}};
  CHECK(parameters<models::mobilenet_v2<>>(images, {{2, 1000}}) == 3'504'872);
  CHECK(parameters<models::vit<192, 3, 12>>(images, {{2, 1000}}) == 5'717'416);
  CHECK(parameters<models::vit<768, 12, 12>>(images, {{2, 1000}}) == 86'567'656);
  CHECK(parameters<models::unet<3, 2>>(std::array{tensor_type{dtype::f32, {1, 3, 64, 96}}},
                                       {{1, 2, 64, 96}}) == 31'037'698);
  CHECK(parameters<models::bert_base>(std::array{tensor_type{dtype::i32, {3, 17}}},
                                      {{3, 17, 768}, {3, 768}}) == 109'482'240);
}

static_assert(std::is_same_v<decltype(models::bert_base{}(var{})), models::bert_result>);

TEST_CASE("blocks of nets have the shapes and the parameters that they say") {
  const auto image = [](int channels, int height, int width) {
    return tensor_type{dtype::f32, {1, channels, height, width}};
  };
  const std::array places{tensor_type{dtype::f32, {2, 7, 8}}};
  CHECK(parameters<models::conv_norm_relu6<3, 8, 3, 2>>(std::array{image(3, 9, 6)},
                                                        {{1, 8, 5, 3}}) == 3 * 8 * 9 + 16);
  CHECK(parameters<models::inverted_residual<4, 6, 2, 3>>(std::array{image(4, 9, 6)},
                                                          {{1, 6, 5, 3}}) ==
        (4 * 12 + 24) + (12 * 9 + 24) + (12 * 6 + 12));
  CHECK(parameters<models::double_conv<3, 4>>(std::array{image(3, 5, 5)}, {{1, 4, 5, 5}}) ==
        (3 * 4 * 9 + 8) + (4 * 4 * 9 + 8));
  CHECK(
      parameters<models::up_block<4>>(std::array{image(8, 3, 2), image(4, 6, 4)}, {{1, 4, 6, 4}}) ==
      (8 * 4 * 4 + 4) + (8 * 4 * 9 + 8) + (4 * 4 * 9 + 8));
  CHECK(parameters<models::vit_block<8, 2>>(places, {{2, 7, 8}}) == 12 * 64 + 13 * 8);
  CHECK(parameters<models::bert_block<8, 2>>(places, {{2, 7, 8}}) == 12 * 64 + 13 * 8);
  CHECK(parameters<models::bert<10, 8, 2, 1, 5>>(std::array{tensor_type{dtype::i32, {1, 4}}},
                                                 {{1, 4, 8}, {1, 8}}) ==
        (10 + 5 + 2 + 2) * 8 + 12 * 64 + 13 * 8 + 72);
}
