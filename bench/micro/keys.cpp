#include "micro/keys.hpp"

namespace idem::bench {
namespace {

// The finaliser of MurmurHash3: one to one, so different numbers give different texts.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33U);
}

void append_hex(std::string& into, std::uint64_t bits, int digits) {
  for (int i = digits - 1; i >= 0; --i)
    into.push_back("0123456789abcdef"[(bits >> (4 * static_cast<unsigned>(i))) & 15U]);
}

}  // namespace

KeyBlock::KeyBlock(std::uint64_t series, std::size_t count) {
  text_.reserve(count * kBytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mixed((series << 40U) + i);
    append_hex(text_, bits >> 32U, 8);
    text_ += '-';
    append_hex(text_, bits >> 16U, 4);
    text_ += '-';
    append_hex(text_, bits, 4);
    text_ += '-';
    append_hex(text_, series, 4);
    text_ += '-';
    append_hex(text_, i, 12);
  }
}

}  // namespace idem::bench
