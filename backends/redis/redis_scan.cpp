// The verbs that walk over the keys: sweep, list, stats.
#include <algorithm>
#include <charconv>
#include <utility>

#include "idem/list_filter.hpp"
#include "idem/redis_store.hpp"
#include "record_codec.hpp"
#include "store_impl.hpp"

namespace idem {

namespace {

constexpr std::size_t kPageOfNames = 500;
constexpr std::size_t kPageOfRecords = 64;
// What Redis itself takes for a key with an expiry, on 64 bits: entries, headers, slack.
constexpr std::uint64_t kBytesPerKey = 136;

// The prefix as a pattern: what a glob would read as more than itself is escaped.
std::string pattern_of(std::string_view prefix) {
  std::string pattern;
  for (const char c : prefix) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "*";
}

// The record without its result, as the script `head` tells it.
struct Glance {
  Time now{};
  std::uint64_t bytes = 0;
  Status status{};
  Time expires_at{};
  bool is_record = false;
};

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i > 0; --i) {
    number = number << 8 | static_cast<unsigned char>(text[at + i - 1]);
  }
  return number;
}

Glance glance_at(std::string_view text) {
  Glance glance;
  constexpr std::size_t kStoredAt = 1 + 8 + 8;
  if (text.size() < kStoredAt + redis::kResultAt || text.front() != 'S') return glance;
  const std::string_view stored = text.substr(kStoredAt);
  const auto head = redis::decode_head(stored.substr(redis::kHeadAt, redis::kHeadBytes));
  if (!stored.starts_with(redis::kRecordMark) || !head) return glance;
  glance.now = Time(Micros(static_cast<std::int64_t>(number_at(text, 1))));
  glance.bytes = number_at(text, 9);
  glance.status = static_cast<Status>(stored[redis::kTailAt]);
  glance.expires_at = head->expires_at;
  glance.is_record = true;
  return glance;
}

result<std::vector<Glance>> glances(redis::Parts& impl, std::span<const std::string> names) {
  std::vector<redis::Command> commands;
  for (const std::string& name : names) {
    commands.push_back(impl.command(name, redis::scripts().head));
  }
  impl.courier.run(commands);
  std::vector<Glance> out;
  for (const redis::Command& command : commands) {
    // A stranger's key of another type under our prefix is none of our business here.
    if (command.failed() && command.error.code != errc::corrupt) return command.error;
    out.push_back(command.failed() ? Glance{} : glance_at(command.reply.text));
  }
  return out;
}

// Removes those of `names` that are expired, at most `limit`; how many.
result<std::uint64_t> sweep_page(redis::Parts& impl, std::span<const std::string> names,
                                 std::size_t limit) {
  const auto seen = glances(impl, names);
  if (!seen) return seen.error();
  std::vector<redis::Command> commands;
  for (std::size_t i = 0; i < names.size() && commands.size() < limit; ++i) {
    const Glance& glance = (*seen)[i];
    if (!glance.is_record || glance.now < glance.expires_at) continue;
    commands.push_back(impl.command(names[i], redis::scripts().sweep));
    commands.back().arguments.push_back(impl.floor_ms());
  }
  if (commands.empty()) return 0;
  impl.courier.run(commands);
  std::uint64_t freed = 0;
  for (const redis::Command& command : commands) {
    if (command.failed()) return command.error;
    if (command.reply.text.starts_with('W')) ++freed;
  }
  return freed;
}

}  // namespace

result<std::vector<std::string>> redis::Parts::scan(const redis::ConnectionPtr& server,
                                                    std::string& cursor) {
  redis::Command command;
  command.on = server;
  for (const std::string& word :
       {std::string("SCAN"), cursor, std::string("MATCH"), pattern_of(options.prefix),
        std::string("COUNT"), std::to_string(kPageOfNames)}) {
    command.arguments.push_back(word);
  }
  courier.run({&command, 1});
  if (command.failed()) return command.error;
  if (command.reply.elements.size() != 2) {
    return idem::fail(errc::internal, "SCAN answered something else");
  }
  cursor = command.reply.elements[0].text;
  std::vector<std::string> names;
  for (const redis::Reply& key : command.reply.elements[1].elements) {
    if (auto name = storage_name_of(key.text)) names.push_back(std::move(*name));
  }
  return names;
}

result<std::vector<std::string>> redis::Parts::names() {
  std::vector<std::string> all;
  for (const redis::ConnectionPtr& server : router.holders()) {
    std::string cursor = "0";
    do {
      auto page = scan(server, cursor);
      if (!page) return page.error();
      std::move(page->begin(), page->end(), std::back_inserter(all));
    } while (cursor != "0");
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

result<std::uint64_t> RedisStore::sweep(std::size_t limit) {
  if (!impl_->in_own_process()) return idem::fail(errc::wrong_process, "opened before the fork");
  const std::lock_guard guard(impl_->sweep_mutex);
  std::uint64_t freed = 0;
  for (const redis::ConnectionPtr& server : impl_->router.holders()) {
    std::string& cursor = impl_->sweep_cursors.try_emplace(server->name(), "0").first->second;
    // Where the last call stopped to the end, then once all the way: "nothing" means nothing.
    int walks = cursor == "0" ? 1 : 2;
    while (walks > 0) {
      if (freed >= limit) return freed;
      std::string next = cursor;
      auto names = impl_->scan(server, next);
      if (!names) return names.error();
      const std::size_t room = limit - static_cast<std::size_t>(freed);
      auto swept = sweep_page(*impl_, *names, room);
      if (!swept) return swept.error();
      freed += *swept;
      if (*swept == room) return freed;  // this page may hold more: it is looked at again
      cursor = std::move(next);
      if (cursor == "0") --walks;
    }
  }
  return freed;
}

// A cursor is "<snapshot>:<name of the last item>". Another store, or one that has meanwhile begun
// another listing, goes on after that name with the names it finds now.
result<Page> RedisStore::list(const ListQuery& query) {
  if (!impl_->in_own_process()) return idem::fail(errc::wrong_process, "opened before the fork");
  const std::lock_guard guard(impl_->list_mutex);
  const std::size_t colon = query.cursor.find(':');
  if (!query.cursor.empty() && colon == std::string::npos) {
    return idem::fail(errc::invalid_argument, "not a cursor of this store");
  }
  const std::string id = query.cursor.substr(0, query.cursor.empty() ? 0 : colon);
  const std::string after = query.cursor.empty() ? "" : query.cursor.substr(colon + 1);
  if (id.empty() || id != impl_->snapshot_id) {
    auto names = impl_->names();
    if (!names) return names.error();
    impl_->snapshot = std::move(*names);
    impl_->snapshot_id = Owner::random().hex();
  }
  const std::vector<std::string>& names = impl_->snapshot;
  std::size_t at = query.cursor.empty()
                       ? 0
                       : static_cast<std::size_t>(
                             std::upper_bound(names.begin(), names.end(), after) - names.begin());

  Page page;
  std::string last;
  while (at < names.size()) {
    std::vector<Key> keys;
    for (; at < names.size() && keys.size() < kPageOfRecords; ++at) {
      auto key = parse_storage_name(names[at]);
      if (key) keys.push_back(std::move(*key));
    }
    std::vector<Load> loads(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) loads[i].key = keys[i];
    load(loads);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Answer& answer = loads[i].answer;
      if (answer.state == Answer::State::failed) {
        // A listing without it would be a copy without it.
        answer.error.message = "key '" + keys[i].key + "': " + answer.error.message;
        return answer.error;
      }
      page.now = answer.now;
      if (answer.state != Answer::State::stands ||
          !selects(query, keys[i], answer.held, answer.now)) {
        continue;
      }
      if (page.items.size() == query.limit) {
        if (!last.empty()) page.cursor = impl_->snapshot_id + ":" + last;
        return page;
      }
      last = storage_name(keys[i]);
      page.items.push_back({std::move(keys[i]), std::move(answer.held)});
    }
  }
  impl_->snapshot_id.clear();
  std::vector<std::string>().swap(impl_->snapshot);
  if (page.now == Time{}) {  // nothing was read: only the time is wanted
    Load probe{KeyRef{{}, {}, "~"}, {}};
    load({&probe, 1});
    if (probe.answer.state == Answer::State::failed) return probe.answer.error;
    page.now = probe.answer.now;
  }
  return page;
}

result<StoreStats> RedisStore::stats() {
  if (!impl_->in_own_process()) return idem::fail(errc::wrong_process, "opened before the fork");
  const auto names = impl_->names();
  if (!names) return names.error();
  StoreStats stats;
  for (std::size_t at = 0; at < names->size(); at += kPageOfNames) {
    const std::size_t count = std::min(kPageOfNames, names->size() - at);
    const std::span<const std::string> page(names->data() + at, count);
    const auto seen = glances(*impl_, page);
    if (!seen) return seen.error();
    for (std::size_t i = 0; i < count; ++i) {
      const Glance& glance = (*seen)[i];
      if (!glance.is_record) continue;
      if (glance.status == Status::processing) ++stats.processing;
      if (glance.status == Status::success) ++stats.success;
      if (glance.status == Status::failed) ++stats.failed;
      if (glance.now >= glance.expires_at) ++stats.expired;
      stats.bytes += glance.bytes + page[i].size() + impl_->options.prefix.size() + kBytesPerKey;
    }
  }
  return stats;
}

}  // namespace idem
