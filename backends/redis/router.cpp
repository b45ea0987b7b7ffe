#include "router.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace idem::redis {
namespace {

// CRC-16/XMODEM, the one of the cluster specification.
constexpr std::array<std::uint16_t, 256> make_crc_table() {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

std::uint16_t crc16(std::string_view text) {
  static constexpr auto kTable = make_crc_table();
  unsigned crc = 0;
  for (const char c : text) {
    crc = (crc << 8) ^ kTable[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xFFU];
    crc &= 0xFFFFU;
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace

std::uint16_t slot_of(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return static_cast<std::uint16_t>(crc16(key) % kSlots);
}

Router::Router(Loop& loop, boost::asio::ssl::context* tls, const RedisOptions& options)
    : loop_(loop),
      tls_(tls),
      options_(options),
      first_(std::make_shared<Connection>(loop, tls, options)) {
  nodes_.emplace(first_->name(), first_);
}

ConnectionPtr Router::route(std::string_view key) {
  if (!options_.cluster) return first_;
  const std::lock_guard guard(mutex_);
  if (slots_.empty()) return first_;
  const ConnectionPtr& holder = slots_[slot_of(key)];
  return holder ? holder : first_;
}

ConnectionPtr Router::at(std::string_view endpoint, std::string_view told_by) {
  const std::lock_guard guard(mutex_);
  return at_locked(endpoint, told_by);
}

ConnectionPtr Router::at_locked(std::string_view endpoint, std::string_view told_by) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) return nullptr;
  std::string host(endpoint.substr(0, colon));
  if (host.empty() || host == "?") host = told_by.substr(0, told_by.rfind(':'));
  std::uint16_t port = 0;
  const char* const end = endpoint.data() + endpoint.size();
  if (std::from_chars(endpoint.data() + colon + 1, end, port).ptr != end || port == 0) {
    return nullptr;
  }
  RedisOptions options = options_;
  options.host = host;
  options.port = port;
  ConnectionPtr& node = nodes_[host + ":" + std::to_string(port)];
  if (!node) node = std::make_shared<Connection>(loop_, tls_, std::move(options));
  return node;
}

std::vector<ConnectionPtr> Router::holders() {
  const std::lock_guard guard(mutex_);
  std::set<ConnectionPtr> holders;
  for (const ConnectionPtr& holder : slots_) {
    if (holder) holders.insert(holder);
  }
  if (holders.empty()) holders.insert(first_);
  return {holders.begin(), holders.end()};
}

std::vector<ConnectionPtr> Router::all() {
  const std::lock_guard guard(mutex_);
  std::vector<ConnectionPtr> all;
  for (const auto& [name, node] : nodes_) all.push_back(node);
  return all;
}

void Router::move_slot(std::uint16_t slot, const ConnectionPtr& holder) {
  const std::lock_guard guard(mutex_);
  if (slot < slots_.size()) slots_[slot] = holder;
}

// [[first, last, [host, port, id, ...], replica ...], ...]
bool Router::learn(const Reply& slots, std::string_view told_by) {
  const std::lock_guard guard(mutex_);
  std::vector<ConnectionPtr> learned(kSlots);
  bool any = false;
  for (const Reply& range : slots.elements) {
    if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) continue;
    const Reply& holder = range.elements[2];
    const ConnectionPtr node = at_locked(
        holder.elements[0].text + ":" + std::to_string(holder.elements[1].integer), told_by);
    const std::int64_t first = range.elements[0].integer;
    const std::int64_t last = range.elements[1].integer;
    if (!node || first < 0 || last < first || last >= static_cast<std::int64_t>(kSlots)) continue;
    std::fill(learned.begin() + first, learned.begin() + last + 1, node);
    any = true;
  }
  if (any) slots_ = std::move(learned);
  return any;
}

}  // namespace idem::redis
