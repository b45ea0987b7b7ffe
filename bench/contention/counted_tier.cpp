// A tier whose two layers count their calls: to whoever asks the tier, one call would look like
// one.
#include "contention/contender.hpp"
#include "contention/counting_store.hpp"
#include "idem/open.hpp"
#include "idem/tiered_store.hpp"

namespace idem::bench {

result<Fixture> counted_tier(const std::string& front, const std::string& back, Clock& clock) {
  OpenOptions options;
  options.clock = &clock;
  auto parts = std::make_shared<std::pair<Fixture, Fixture>>();
  for (const auto& [name, part] : {std::pair{front, &parts->first}, {back, &parts->second}}) {
    auto made = make_fixture(name, "", options);
    if (!made) return made.error();
    *part = std::move(*made);
  }
  auto tier = make_tiered_store({std::make_shared<CountingStore>(parts->first.store),
                                 std::make_shared<CountingStore>(parts->second.store), &clock});
  if (!tier) return tier.error();
  return Fixture{"", std::move(parts), std::move(*tier)};
}

}  // namespace idem::bench
