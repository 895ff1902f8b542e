// SPDX-License-Identifier: Apache-2.0
// Tensor copies give the same memory, or the same refusal, as on an H200. See
// tests/golden/ptx/hw/tma_truth.py.
#include "base/json.h"
#include "ptx/ops/tensor_map.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kShared = 32768, kTensor = 65536;

// The same as pattern() of the script.
std::vector<uint32_t> pattern(uint32_t mask) {
  std::vector<uint32_t> out(kTensor / 4);
  for (uint32_t i = 0; i < out.size(); ++i) {
    const uint32_t v = i * 4 * 0x85EBCA6Bu + 777;
    out[i] = (v ^ v >> 13) & mask;
  }
  return out;
}

uint32_t crc32(const void* data, size_t bytes) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < bytes; ++i) {
    crc ^= static_cast<const unsigned char*>(data)[i];
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

TensorMap map_of(const Json& c) {
  TensorMap m;
  m.type = TensorType(c["type"].get<int>()), m.rank = uint32_t(c["dims"].size());
  m.swizzle = c["swizzle"], m.fill_nan = c["fill"] != 0;
  for (size_t i = 0; i < m.rank; ++i) {
    m.sizes[i] = c["dims"][i], m.box[i] = c["box"][i], m.steps[i] = c["steps"][i];
    if (i > 0) m.strides[i] = c["strides"][i - 1];
  }
  return m;
}

class TensorTruth : public testing::Test {
 protected:
  TensorTruth()
      : text_(read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/hw/tma.ptx").value()),
        module_(Module::parse(text_).value()) {}
  void check(const Json& c) {
    const bool load = c["kind"] == "load", illegal = c.contains("illegal");
    const uint32_t bytes = c["bytes"];
    std::vector<uint32_t> tensor = pattern(load ? ~0u : bytes), out(kShared / 4 + 1);
    Sim sim;
    sim.options.threads = 1;
    TensorMap map = map_of(c);
    map.address =
        sim.memory.add("tensor", std::as_writable_bytes(std::span(tensor)), Access::read_write);
    const auto encoded = encode(map);
    std::vector<Bytes8> args{Bytes8(encoded.begin(), encoded.end()), sim.output("out", out)};
    for (size_t i = 0; i < 5; ++i)
      args.push_back(arg(i < map.rank ? c["coords"][i].get<int32_t>() : 0));
    args.insert(args.end(), {arg(c["at"].get<uint32_t>()), arg(bytes), arg(uint16_t{0}),
                             arg(uint16_t{0}), arg(uint16_t{0})});
    const std::string entry = c["kind"].get<std::string>() + std::to_string(map.rank);
    const auto r = sim.launch(module_, entry.c_str(), 1, 32, args, kShared + 16);
    ASSERT_TRUE(r.has_value()) << r.error().text();
    if (illegal) {
      EXPECT_EQ(r->status, LaunchStatus::finding) << r->reason;
      if (r->finding) {
        EXPECT_EQ(r->finding->kind, "bad_bulk_copy") << r->reason;
      }
      return;
    }
    if (r->status == LaunchStatus::unsupported) {
      EXPECT_NE(r->reason.find("not simulated"), std::string::npos);
      return;
    }
    ++compared_;
    EXPECT_EQ(r->status, LaunchStatus::ok) << r->reason;
    EXPECT_EQ(load ? crc32(out.data(), kShared) : crc32(tensor.data(), kTensor),
              c["crc"].get<uint32_t>());
  }
  std::string text_;
  Module module_;
  int compared_ = 0;
};

TEST_F(TensorTruth, OfAnH200) {
  const std::string name = "/tests/golden/ptx/hw/tma_h200.json";
  const std::string text = read_file(std::string(CUTEGEN_SOURCE_DIR) + name).value();
  const Json cases = parse_json(text, "tma_h200.json").value();
  for (const Json& c : cases) {
    SCOPED_TRACE(c.dump());
    check(c);
  }
  EXPECT_GE(compared_, 60);
}

}  // namespace
}  // namespace cutegen::ptx
