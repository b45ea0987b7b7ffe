// sweep, get, list, and the three verbs of an administrator.
#include <algorithm>

#include "service_impl.hpp"

namespace idem::detail {

result<std::optional<Found>> ServiceImpl::get(KeyRef key) {
  if (auto checked = check_key(key); !checked) return broken("get", key, checked.error());
  constexpr Micros kReadAgainAfter{1'000};
  const DriveLimits until = limits({});
  Load load{key, {}};
  Answer& answer = load.answer;
  for (;;) {
    store_->load({&load, 1});
    const bool lost = answer.state == Answer::State::failed && answer.error.code == errc::unknown;
    if (!lost || until.clock.now() >= until.deadline) break;
    until.clock.pause(kReadAgainAfter);
  }
  if (answer.state == Answer::State::failed) return broken("get", key, std::move(answer.error));
  if (answer.state == Answer::State::absent || answer.held.expired(answer.now)) {
    return std::optional<Found>();
  }
  return std::optional<Found>(Found{std::move(answer.held), answer.now});
}

result<Page> ServiceImpl::list(const ListQuery& query) {
  auto page = store_->list(query);
  if (!page) return broken("list", {}, page.error());
  return page;
}

result<void> ServiceImpl::administer(KeyRef key, const Command& command) {
  if (auto checked = check_key(key); !checked) return broken("administer", key, checked.error());
  Call call;
  call.key = key;
  call.command = &command;
  call.load_first = true;
  drive({&call, 1}, limits({}));
  if (!call.answer) return broken("administer", key, std::move(call.answer).error());
  if (const auto* stale = std::get_if<StaleFence>(&*call.answer)) {
    return broken("administer", key,
                  idem::fail(errc::stale_fence,
                             stale->fence == 0
                                 ? std::string("there is no such record any more")
                                 : "the record's fence is now " + std::to_string(stale->fence)));
  }
  if (const auto* other = std::get_if<NotProcessing>(&*call.answer)) {
    return broken("administer", key,
                  idem::fail(errc::stale_fence, "the record is not processing any more but " +
                                                    std::string(to_string(other->status))));
  }
  hub_->changed(key);
  return {};
}

result<Swept> ServiceImpl::sweep(std::size_t limit) {
  Swept swept;
  Micros shortest = options_.policy.stuck_after;
  for (const auto& [biz_type, policy] : policies_) {
    shortest = std::min(shortest, policy.stuck_after.micros());
  }
  ListQuery query;
  query.lapsed_for = shortest;
  query.limit = std::min<std::size_t>(std::max<std::size_t>(limit, 1), 1000);
  do {
    auto page = store_->list(query);
    if (!page) return broken("sweep", {}, page.error());
    std::vector<Command> commands;
    std::vector<Call> calls;
    commands.reserve(page->items.size());
    for (const Listed& item : page->items) {
      const Policy& policy = this->policy(item.key.biz_type);
      if (policy.on_lapsed == OnLapsed::hold) continue;
      if (swept.abandoned + calls.size() >= limit) break;
      commands.emplace_back(command::Abandon{policy.stuck_after, policy.failed_ttl});
      Call& call = calls.emplace_back();
      call.key = item.key;
      call.command = &commands.back();
      call.known = &item.record;
      call.known_at = page->now;
    }
    drive(calls, limits({}));
    for (Call& call : calls) {
      if (!call.answer) return broken("sweep", call.key, std::move(call.answer).error());
      if (!call.wrote) continue;  // claimed again meanwhile, or not stuck by its own policy
      ++swept.abandoned;
      hub_->changed(call.key);
    }
    query.cursor = page->cursor;
  } while (!query.cursor.empty() && swept.abandoned < limit);
  count(Counter::swept_abandoned, swept.abandoned);
  if (swept.abandoned < limit) {
    auto expired = store_->sweep(limit - swept.abandoned);
    if (!expired) return broken("sweep", {}, expired.error());
    swept.expired = *expired;
    count(Counter::swept_expired, swept.expired);
  }
  return swept;
}

}  // namespace idem::detail
