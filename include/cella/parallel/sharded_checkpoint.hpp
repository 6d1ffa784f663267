// Checkpoints that ranks write and read together: each its own parts, in a safetensors file of its
// own, and an index that says which part lies where. Needs nlohmann/json.
#pragma once

#include <cella/interop/safetensors.hpp>
#include <cella/interop/temporary_file.hpp>
#include <cella/parallel/rank_inputs.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cella::parallel {

/// Writes parameters, states and optimizer state of a step, as they are, to `run.json` (the index)
/// and `run-1-of-4.safetensors`, ... beside it. All ranks call it, with paths of one folder that
/// all of them see; when it returns, all parts are written. A part that several ranks have is
/// written by the first of them. Throws `file_error`.
inline void save_shards(const rank_inputs& program, const std::filesystem::path& index);

/// Reads what `save_shards` wrote, on a mesh of any shape, which may be one device: each rank reads
/// the files that have something of its parts, and has the same numbers, bit for bit. Throws
/// `file_error` if a tensor is missing, of another type or incomplete, or a file belongs to another
/// save; then inputs may have been replaced in part.
inline void load_shards(rank_inputs& program, const std::filesystem::path& index);
/// The same for the parameters and states of a model on one device.
inline void load_shards(parameter_store& store, const std::filesystem::path& index);

// ------------------------------------------------------------------------------------------------

namespace detail {

using shard_json = nlohmann::ordered_json;
inline constexpr std::string_view shard_format = "cella sharded checkpoint 1";

inline std::filesystem::path shard_path(const std::filesystem::path& index, int rank, int ranks) {
  return index.parent_path() / (index.stem().string() + "-" + std::to_string(rank + 1) + "-of-" +
                                std::to_string(ranks) + ".safetensors");
}
/// The sum of all ranks' numbers, for which all ranks wait.
inline double sum_over_ranks(const communicator& c, const device_mesh& m, double x) {
  for (int a = 0; a < m.axis_count; ++a) {
    if (m[a].size == 1) continue;
    double sum = 0;
    const tensor_type number{dtype::f64, {}};
    c.all_reduce(c.self, a, {reinterpret_cast<std::byte*>(&x), number},
                 {reinterpret_cast<std::byte*>(&sum), number});
    x = sum;
  }
  return x;
}

/// An index with the files that were asked for so far.
class shard_reader {
 public:
  explicit shard_reader(const std::filesystem::path& index) : index_(index) {
    const std::vector<std::byte> bytes = interop::read_file(index, 1 << 30);
    try {
      json_ = shard_json::parse(reinterpret_cast<const char*>(bytes.data()),
                                reinterpret_cast<const char*>(bytes.data()) + bytes.size());
      if (json_.at("format").get<std::string>() != shard_format) refuse("has another format");
      save_ = json_.at("save").get<std::string>();
    } catch (const nlohmann::json::exception& e) { refuse(e.what()); }
  }
  /// Fills a part of a tensor of type `whole`, which begins at `first`.
  void read(const std::string& name, const tensor_type& whole, const multi_index& first,
            const tensor_ref& part) {
    try {
      const auto found = json_.at("tensors").find(name);
      if (found == json_.at("tensors").end())
        refuse("has no tensor " + name + "; load the checkpoint that belongs to this net");
      const tensor_type type = type_of(*found);
      if (type != whole)
        refuse(std::string(
            (text() << "has " << name << " " << type << ", but the net has " << whole).view()));
      std::int64_t left = part.type.size();
      for (const shard_json& s : found->at("parts")) left -= copy(name, s, first, part);
      if (left != 0) refuse("lacks parts of " + name);
    } catch (const nlohmann::json::exception& e) { refuse(e.what()); }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw file_error("the index " + interop::in_quotes(index_.string()) +
                     " of a sharded checkpoint " + why);
  }
  shape shape_of(const shard_json& j) const {
    shape s;
    if (j.size() > max_rank)
      refuse("has a tensor of more than " + std::to_string(max_rank) + " axes");
    for (const shard_json& extent : j) {
      const int n = extent.get<int>();
      if (n < 0) refuse("has a negative extent");
      s.extents[std::size_t(s.rank++)] = n;
    }
    return s;
  }
  tensor_type type_of(const shard_json& j) const {
    const auto element = j.at("dtype").get<std::string>();
    return {interop::detail::safetensors_type(element), shape_of(j.at("shape"))};
  }
  /// Copies what a stored part and a wanted one have in common; so many elements.
  std::int64_t copy(const std::string& name, const shard_json& j, const multi_index& first,
                    const tensor_ref& part) {
    const shape begin = shape_of(j.at("first")), extents = shape_of(j.at("shape"));
    if (begin.rank != part.type.rank() || extents.rank != begin.rank) refuse("has wrong parts");
    shape common = extents;
    multi_index from{}, to{};
    for (int d = 0; d < begin.rank; ++d) {
      const auto k = std::size_t(d);
      const std::int64_t low = std::max<std::int64_t>(begin[d], first[k]);
      const std::int64_t high =
          std::min(std::int64_t{begin[d]} + extents[d], std::int64_t{first[k]} + part.type[d]);
      if (high <= low) return 0;
      common[d] = int(high - low);
      from[k] = std::int32_t(low - begin[d]);
      to[k] = std::int32_t(low - first[k]);
    }
    const interop::named_tensor stored =
        file(j.at("file").get<std::string>()).at(j.value("name", name));
    if (stored.type != tensor_type{part.type.element, extents})
      refuse("says another extent of " + name + " than its file has");
    cella::detail::copy_box({const_cast<std::byte*>(stored.bytes.data()), stored.type}, from, part,
                            to, common);
    return common.size();
  }
  const interop::safetensors_file& file(const std::string& name) {
    const auto known = files_.find(name);
    if (known != files_.end()) return known->second;
    if (std::filesystem::path(name).has_parent_path()) refuse("names a file of another folder");
    auto opened = interop::safetensors_file::open(index_.parent_path() / name);
    const auto save = opened.metadata().find("save");
    if (save == opened.metadata().end() || save->second != save_)
      refuse("and its file " + name + " were not written together");
    return files_.emplace(name, std::move(opened)).first->second;
  }

  std::filesystem::path index_;
  shard_json json_;
  std::string save_;
  std::map<std::string, interop::safetensors_file> files_;
};

}  // namespace detail

inline void save_shards(const rank_inputs& program, const std::filesystem::path& index) {
  const device_mesh& m = program.mesh();
  const communicator& c = program.ranks();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double stamp = detail::sum_over_ranks(
      c, m, program.rank() ? 0.0 : std::chrono::duration<double, std::micro>(now).count());
  const std::string save = std::to_string(std::int64_t(stamp));
  std::vector<interop::named_tensor> own;
  detail::shard_json tensors = detail::shard_json::object();
  for (const rank_inputs::input& in : program.inputs()) {
    if (!in.is_kept()) continue;
    const row_block block = block_of(in.name);
    const tensor_type all = with_all_blocks(in.whole, block);
    const tensor_ref part = program.part(in.index);
    if (program.is_first(program.rank(), in))
      own.push_back({in.name, part.type, {part.data, std::size_t(part.type.bytes())}});
    detail::shard_json parts = detail::shard_json::array();
    for (int r = 0; r < m.ranks(); ++r) {
      if (!program.is_first(r, in)) continue;
      const shape extents = part_of(in.whole.shape, in.lies, m, r);
      std::vector<int> first, size(extents.begin(), extents.end());
      for (int d = 0; d < extents.rank; ++d)
        first.push_back(first_of_part(in.whole.shape, in.lies, m, r, d));
      if (block.index > 0) first[0] += block.index * in.whole[0];
      parts.push_back({{"file", detail::shard_path(index, r, m.ranks()).filename().string()},
                       {"first", first},
                       {"shape", size}});
      if (block.count > 1) parts.back()["name"] = in.name;
    }
    detail::shard_json& tensor = tensors[std::string(block.whole)];
    if (block.index > 0) {
      for (auto& one : parts) tensor["parts"].push_back(one);
      continue;
    }
    const std::vector<int> whole(all.shape.begin(), all.shape.end());
    tensor = {{"dtype", facts_of(all.element).safetensors}, {"shape", whole}, {"parts", parts}};
  }
  interop::write_safetensors(detail::shard_path(index, program.rank(), m.ranks()), own,
                             {{"save", save}});
  detail::sum_over_ranks(c, m, 0);
  if (program.rank() == 0) {
    const detail::shard_json j{
        {"format", detail::shard_format}, {"save", save}, {"tensors", tensors}};
    const std::string all = j.dump(1) + "\n";
    interop::write_atomically(
        index, [&](interop::output_file& file) { file.write(std::as_bytes(std::span(all))); });
  }
  detail::sum_over_ranks(c, m, 0);
}

inline void load_shards(rank_inputs& program, const std::filesystem::path& index) {
  detail::shard_reader reader(index);
  for (const rank_inputs::input& in : program.inputs()) {
    if (!in.is_kept() || !program.has(program.rank(), in)) continue;
    const row_block block = block_of(in.name);
    multi_index first =
        detail::first_elements(in.whole.shape, in.lies, program.mesh(), program.rank());
    if (block.index > 0) first[0] += block.index * in.whole[0];
    reader.read(std::string(block.whole), with_all_blocks(in.whole, block), first,
                program.part(in.index));
  }
  program.changed();
}
inline void load_shards(parameter_store& store, const std::filesystem::path& index) {
  detail::shard_reader reader(index);
  for (const named_parameter& p : store.entries()) reader.read(p.name, p.type, {}, store.value(p));
  store.touch();
}

}  // namespace cella::parallel
