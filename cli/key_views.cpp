// idem key get, list: what the store holds, for a person who has to decide.
#include <fmt/core.h>

#include "commands.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  std::string status;
  std::optional<Duration> lapsed_for;
  bool stuck = false;
  std::optional<std::uint64_t> limit;
  std::string cursor;
};

std::string shown_result(const Record& record) {
  if (record.status == Status::processing) return "-";
  if (record.tombstone) {
    const Replay kept = replay_of_tombstone(record.result);
    return fmt::format("not kept: {} bytes, sha256 {}", kept.size, kept.digest.hex());
  }
  constexpr std::size_t kShown = 60;
  Json probe;
  put_bytes(probe, "r", record.result);
  std::string text = probe.contains("r") ? printable(record.result) : to_hex(record.result);
  const bool cut = text.size() > kShown;
  while (text.size() > kShown || (cut && !text.empty() && (text.back() & '\x80') != 0))
    text.pop_back();
  return fmt::format("{}{}   ({} bytes)", text, cut ? "..." : "", record.result.size());
}

// The next claimer's policy decides; most likely it is that of the one before.
std::string when_lapsed(const Record& record) {
  return claimed_under_hold(record)
             ? "claims under policy hold, as this one was, get in doubt until someone decides "
               "(idem "
               "key resolve); one under takeover takes it over"
             : "the next claim takes it over (one under policy hold gets in doubt)";
}

std::string next_event(const Record& record, Time now) {
  switch (logical_state(&record, now)) {
    case LogicalState::absent:
      return "the next claim starts afresh";
    case LogicalState::processing_live:
      return fmt::format("others get in progress; if it falls silent, in {} {}",
                         human(record.lease_until - now), when_lapsed(record));
    case LogicalState::processing_lapsed:
      return when_lapsed(record);
    case LogicalState::success:
      return "claims get the result for another " + human(record.expires_at - now);
    case LogicalState::failed_retryable:
      return "the next claim tries again";
    case LogicalState::failed_backoff:
      return "claims are told to wait another " + human(record.retry_at - now);
    case LogicalState::failed_final:
      return "claims get the reason for another " + human(record.expires_at - now);
  }
  return {};
}

std::string lease_line(const Record& record, Time now) {
  if (record.status != Status::processing) return "ended";
  const Micros left = record.lease_until - now;
  return left > Micros(0) ? human(left) + " left" : "OVER since " + human(-left);
}

std::string view(const KeyOptions& key, const Record& record, Time now) {
  std::string state{to_string(record.status)};
  if (record.status == Status::failed) state += fmt::format(" ({})", to_string(record.fail_kind));
  std::string text = fmt::format("key      {}\n", key.key);
  if (!key.biz.empty()) text += fmt::format("biz      {}\n", key.biz);
  if (!key.tenant.empty()) text += fmt::format("tenant   {}\n", key.tenant);
  text += fmt::format("state    {}, {}{} ago\n", state,
                      record.status == Status::processing ? "last claimed or renewed " : "",
                      human(now - record.update_time));
  text += fmt::format("lease    {}\n", lease_line(record, now));
  text += fmt::format("attempt  {}, fence {}, owner {}\n", record.attempt, record.fence,
                      record.owner.hex());
  text += fmt::format("request  sha256 {}\n", record.request_hash.hex());
  text += fmt::format("result   {}\n", shown_result(record));
  text += fmt::format("age      {}, expires in {}\n", human(now - record.create_time),
                      human(record.expires_at - now));
  return text + fmt::format("next     {}\n", next_event(record, now));
}

ExitCode get(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  IdempotencyService service(open_existing_store(choice));
  const auto found = must(service.get(options.key.value()), choice.from);
  if (!found) {
    print_answer(context, Json{{"outcome", "absent"}}, options.key.key);
    return ExitCode::not_found;
  }
  if (context.json) {
    Json document{{"key", options.key.key}, {"biz", options.key.biz}};
    document["tenant"] = options.key.tenant;
    document.update(record_to_json(found->record, found->now));
    document["next"] = next_event(found->record, found->now);
    print_document(document);
  } else {
    print_text(view(options.key, found->record, found->now));
  }
  return ExitCode::done;
}

ListQuery query_of(const Options& options) {
  ListQuery query;
  if (options.status == "processing") query.status = Status::processing;
  if (options.status == "success") query.status = Status::success;
  if (options.status == "failed") query.status = Status::failed;
  if (options.stuck) query.lapsed_for = Micros(0);
  if (options.lapsed_for) query.lapsed_for = *options.lapsed_for;
  if (!options.key.biz.empty()) query.biz_type = options.key.biz;
  if (!options.key.tenant.empty()) query.tenant = options.key.tenant;
  query.limit = static_cast<std::size_t>(options.limit.value_or(100));
  query.cursor = options.cursor;
  return query;
}

std::string table(const Page& page) {
  std::string text =
      fmt::format("{:<11} {:>7} {:>10} {:>14}  {}\n", "STATE", "ATTEMPT", "AGE", "LEASE", "KEY");
  for (const Listed& item : page.items) {
    std::string name = item.key.key;
    if (!item.key.biz_type.empty()) name += "  biz " + item.key.biz_type;
    if (!item.key.tenant.empty()) name += "  tenant " + item.key.tenant;
    const Micros left = item.record.lease_until - page.now;
    const std::string lease = item.record.status != Status::processing ? "-"
                              : left > Micros(0)                       ? human(left)
                                                                       : "over " + human(-left);
    text +=
        fmt::format("{:<11} {:>7} {:>10} {:>14}  {}\n", to_string(item.record.status),
                    item.record.attempt, human(page.now - item.record.create_time), lease, name);
  }
  if (!page.cursor.empty()) text += fmt::format("more: --cursor '{}'\n", page.cursor);
  return text;
}

ExitCode list(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  IdempotencyService service(open_existing_store(choice));
  const Page page = must(service.list(query_of(options)), choice.from);
  if (!context.json) {
    print_text(table(page));
    return ExitCode::done;
  }
  Json document{{"items", Json::array()}};
  for (const Listed& item : page.items) {
    Json row{{"key", item.key.key}, {"biz", item.key.biz_type}, {"tenant", item.key.tenant}};
    row.update(record_to_json(item.record, page.now));
    row.erase("outcome");
    document["items"].push_back(std::move(row));
  }
  document["cursor"] = page.cursor.empty() ? Json() : Json(page.cursor);
  print_document(document);
  return ExitCode::done;
}

}  // namespace

void add_key_views(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "get", "Show one record, and what will happen to it next",
               {"idem key get pay-42 --store sqlite:orders.db"}, kNamedStoreOrRuns);
  add_key(leaf, options->key);
  on_run(leaf, context, options, get);

  options = std::make_shared<Options>();
  leaf = add_leaf(family, context, "list", "List records",
                  {"idem key list --store sqlite:orders.db",
                   "idem key list --store sqlite:orders.db --lapsed-for 10m"},
                  kNamedStoreOrRuns);
  add_scope(leaf, options->key);
  leaf->add_option("--status", options->status, "processing, success or failed")
      ->type_name("WORD")
      ->default_str("any")
      ->check(CLI::IsMember({"processing", "success", "failed"}));
  add_duration(leaf, "--lapsed-for", options->lapsed_for,
               "only attempts whose lease is over and that have been silent this long", "any");
  leaf->add_flag("--stuck", options->stuck, "only attempts whose lease is over");
  add_positive(leaf, "--limit", options->limit, "records to a page", "100");
  add_text(leaf, "--cursor", options->cursor, "go on where the page before ended", "the start");
  on_run(leaf, context, options, list);
}

}  // namespace idem::cli
