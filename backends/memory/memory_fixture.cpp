#include <bit>
#include <string>

#include "idem/backend.hpp"
#include "idem/memory_store.hpp"

namespace idem {
namespace {

result<StorePtr> open_memory(const StoreUrl& given, const OpenOptions& options) {
  StoreUrl url = given;
  if (url.has_authority() || !url.path().empty())
    return fail(errc::invalid_argument, "a memory store has no name or host: write memory:");
  const auto shards = url.count("shards");
  const auto max_entries = url.count("max_entries");
  const auto max_bytes = url.count("max_bytes");
  for (const auto* count : {&shards, &max_entries, &max_bytes})
    if (!*count) return count->error();
  if (const auto known = url.check_all_known(); !known) return known.error();
  MemoryOptions memory;
  memory.clock = options.clock;
  memory.shards = shards->value_or(memory.shards);
  if (memory.shards < 1 || memory.shards > 4096 || !std::has_single_bit(memory.shards))
    return fail(errc::invalid_argument, "shards is a power of two from 1 to 4096");
  memory.max_entries = max_entries->value_or(0);
  memory.max_bytes = max_bytes->value_or(0);
  return make_memory_store(memory);
}

result<Fixture> memory_fixture(std::string_view variant, const OpenOptions& options) {
  MemoryOptions memory;
  memory.clock = options.clock;
  if (variant == "one-shard")
    memory.shards = 1;
  else if (!variant.empty())
    return fail(errc::invalid_argument,
                "the memory store has no variant '" + std::string(variant) + "'");
  return Fixture{"memory:", nullptr, make_memory_store(memory)};
}

// Every memory store is one of its own.
result<Fixture> memory_beside(const StoreUrl& url, const OpenOptions& options) {
  auto store = open_memory(url, options);
  if (!store) return store.error();
  return Fixture{"", nullptr, std::move(*store)};
}

}  // namespace

Backend memory_backend() {
  Backend backend;
  backend.name = "memory";
  backend.schemes = {"memory"};
  backend.url_forms = {"memory:?shards=64&max_entries=1M&max_bytes=1GiB"};
  backend.summary = "in this process's memory, lock-free; gone when the process ends";
  backend.open = open_memory;
  backend.variants = {"", "one-shard"};
  backend.fixture = memory_fixture;
  backend.beside = memory_beside;
  return backend;
}

}  // namespace idem
