// A tier whose layers count their calls: to whoever asks the tier, one call would look like one.
#include "contention/contender.hpp"
#include "contention/counting_store.hpp"
#include "idem/open.hpp"
#include "idem/tiered_store.hpp"

namespace idem::bench {

result<Place> counted_tier(std::string name, std::span<const std::string> layers, Clock& clock) {
  OpenOptions options;
  options.clock = &clock;
  auto owners = std::make_shared<std::vector<Fixture>>();
  StorePtr behind;
  for (std::size_t i = layers.size(); i-- > 0;) {
    auto made = make_fixture(layers[i], "", options);
    if (!made) return made.error();
    const StorePtr counted = std::make_shared<CountingStore>(made->store);
    owners->push_back(std::move(*made));
    if (behind == nullptr) {
      behind = counted;
      continue;
    }
    auto tier = make_tiered_store({counted, behind, &clock});
    if (!tier) return tier.error();
    behind = std::move(*tier);
  }
  Place place{std::move(name), Fixture{"", owners, std::move(behind)}};
  place.counts_itself = true;
  place.authority = owners->front().url;
  return place;
}

}  // namespace idem::bench
