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
// What a listing reads in one trip must fit its deadline: records up to this size come many at a
// time, larger ones alone. A page ends behind so many bytes of results.
constexpr std::size_t kBytesTogether = std::size_t{64} << 10;
constexpr std::size_t kBytesPerPage = std::size_t{8} << 20;
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

// What the script `peek` says of a name.
struct Glance {
  Time now{};
  std::uint64_t bytes = 0;  // of the record
  std::string_view stored;  // it, or its first kResultAt bytes; in the command's reply
  [[nodiscard]] bool whole() const { return stored.size() == bytes; }
};

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i > 0; --i) {
    number = number << 8 | static_cast<unsigned char>(text[at + i - 1]);
  }
  return number;
}

// nullopt: there is no record.
std::optional<Glance> glance_at(const redis::Command& peek) {
  constexpr std::size_t kStoredAt = 1 + 8 + 8;
  const std::string_view text = peek.reply.text;
  if (text.size() < kStoredAt || text.front() != 'S') return std::nullopt;
  return Glance{Time(Micros(static_cast<std::int64_t>(number_at(text, 1)))), number_at(text, 9),
                text.substr(kStoredAt)};
}

// Those of up to `bytes` come whole, of the others the header.
std::vector<redis::Command> peek(redis::Parts& impl, std::span<const std::string> names,
                                 std::size_t bytes) {
  std::vector<redis::Command> commands;
  commands.reserve(names.size());
  for (const std::string& name : names) {
    commands.push_back(impl.command(name, redis::scripts().peek));
    commands.back().arguments.push_back(std::to_string(bytes));
  }
  impl.courier.run(commands);
  return commands;
}

// A record without its result, and what it takes as a whole.
struct Header {
  Record record;
  Time now{};
  std::uint64_t bytes = 0;
};

// nullopt: no record, or a damaged one, or a stranger's key of another type under our prefix, which
// is none of our business here.
result<std::vector<std::optional<Header>>> headers(redis::Parts& impl,
                                                   std::span<const std::string> names) {
  std::vector<std::optional<Header>> out;
  out.reserve(names.size());
  for (const redis::Command& command : peek(impl, names, redis::kResultAt)) {
    if (command.failed() && command.error.code != errc::corrupt) return command.error;
    std::optional<Header>& header = out.emplace_back();
    const auto glance = command.failed() ? std::nullopt : glance_at(command);
    if (!glance) continue;
    if (auto record = redis::decode_header(glance->stored)) {
      header = Header{std::move(*record), glance->now, glance->bytes};
    }
  }
  return out;
}

// Removes those of `names` that are expired, at most `limit`; how many.
result<std::uint64_t> sweep_page(redis::Parts& impl, std::span<const std::string> names,
                                 std::size_t limit) {
  const auto seen = headers(impl, names);
  if (!seen) return seen.error();
  std::vector<redis::Command> commands;
  for (std::size_t i = 0; i < names.size() && commands.size() < limit; ++i) {
    const std::optional<Header>& header = (*seen)[i];
    if (!header || !header->record.expired(header->now)) continue;
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

// Fills a page with what the query selects.
class Listing {
 public:
  Listing(RedisStore& store, redis::Parts& impl, const ListQuery& query, Page& page)
      : store_(store), impl_(impl), query_(query), page_(page) {}

  // True: the page is full, and goes on behind last(). A record that cannot be read is an error: a
  // listing without it would be a copy without it. Only of a large one that the query leaves out,
  // nothing but the header is read.
  result<bool> add(std::span<const std::string> names) {
    const std::vector<redis::Command> seen = peek(impl_, names, kBytesTogether);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto full = add(names[i], seen[i]);
      if (full && !*full) continue;
      if (full) return true;
      Error error = full.error();
      error.message = "key '" + parse_storage_name(names[i])->key + "': " + error.message;
      return error;
    }
    return false;
  }

  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  result<bool> add(const std::string& name, const redis::Command& seen) {
    if (seen.failed()) return seen.error;
    const auto glance = glance_at(seen);
    if (!glance) return false;
    page_.now = std::max(page_.now, glance->now);
    auto record = glance->whole() ? redis::decode_record(name, glance->stored)
                                  : redis::decode_header(glance->stored);
    if (!record) return record.error();
    Key key = *parse_storage_name(name);
    if (!selects(query_, key, *record, glance->now)) return false;
    if (page_.items.size() == query_.limit || bytes_ >= kBytesPerPage) return true;
    if (!glance->whole()) {
      Load load{key, {}};
      store_.load({&load, 1});
      if (load.answer.state == Answer::State::failed) return load.answer.error;
      page_.now = std::max(page_.now, load.answer.now);
      if (load.answer.state != Answer::State::stands ||
          !selects(query_, key, load.answer.held, load.answer.now)) {
        return false;
      }
      record = std::move(load.answer.held);
    }
    bytes_ += record->result.size();
    last_ = name;
    page_.items.push_back({std::move(key), std::move(*record)});
    return false;
  }

  RedisStore& store_;
  redis::Parts& impl_;
  const ListQuery& query_;
  Page& page_;
  std::size_t bytes_ = 0;  // of the page's results
  std::string last_;       // the name of its last item
};

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
  Listing listing(*this, *impl_, query, page);
  while (at < names.size()) {
    const std::size_t count = std::min(kPageOfRecords, names.size() - at);
    const auto full = listing.add({names.data() + at, count});
    if (!full) return full.error();
    if (*full) {
      if (!listing.last().empty()) page.cursor = impl_->snapshot_id + ":" + listing.last();
      return page;
    }
    at += count;
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
    const auto seen = headers(*impl_, page);
    if (!seen) return seen.error();
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<Header>& header = (*seen)[i];
      if (!header) continue;
      const Status status = header->record.status;
      if (status == Status::processing) ++stats.processing;
      if (status == Status::success) ++stats.success;
      if (status == Status::failed) ++stats.failed;
      if (header->record.expired(header->now)) ++stats.expired;
      stats.bytes += header->bytes + page[i].size() + impl_->options.prefix.size() + kBytesPerKey;
    }
  }
  return stats;
}

}  // namespace idem
