#include "work.hpp"

namespace idem::mysql {
namespace {

// So many deletes go out in one transaction: other writers of these rows wait for its end.
constexpr std::size_t kRowsMax = 64;

struct Places {
  std::size_t deletes = 0;
  std::size_t commit = 0;
  std::size_t clock = 0;
};

// The floor first: whoever can insert after the delete also sees the floor. Its row is the first
// lock of every such transaction, so these cannot deadlock among themselves.
Places compose(const Work& work, Exchange& exchange, std::span<Doomed* const> rows,
               bool only_expired) {
  std::uint64_t largest = 0;
  for (const Doomed* row : rows) largest = std::max(largest, row->version);
  Places places;
  Fields fields{boost::mysql::field_view(largest)};
  exchange.add(kBegin);
  exchange.add(Statement::raise_floor, 0, fields);
  places.deletes = exchange.size();
  for (const Doomed* row : rows) {
    fields.clear();
    add_key(fields, row->key);
    fields.emplace_back(row->version);
    fields.emplace_back(std::int64_t{only_expired ? 0 : 1});
    add_time(fields, work.time);
    exchange.add(Statement::remove, 0, fields);
  }
  places.commit = exchange.add(kCommit);
  fields.clear();
  add_time(fields, work.time);
  places.clock = exchange.add(Statement::clock, 0, fields);
  work.shared.raise_floor(largest);
  return places;
}

// One transaction; those undone by a deadlock stay `again`.
Fault run_once(const Work& work, std::span<Doomed* const> rows, bool only_expired, Time& now) {
  Exchange exchange(work.session, work.budget);
  const Places places = compose(work, exchange, rows, only_expired);
  if (Fault fault = exchange.run()) return fault;
  const Fault uncommitted = exchange.commit_fault(places.commit);
  if (const Fault fault = exchange.fault(places.clock, "clock"); !fault) {
    const auto clock = exchange.results(places.clock).rows();
    if (!clock.empty()) now = Time{Micros(signed_of(clock[0][0]))};
  }
  auto done = effects(work.session, exchange, places.deletes, rows.size(), "remove");
  // A delete without the floor finds nothing to delete: it is to be run again with it.
  const Fault floor = exchange.fault(places.deletes - 1, "raise the floor");
  const bool floor_lost = floor || std::any_of(done.begin(), done.end(), [](const Effect& effect) {
                            return effect.took == Took::again;
                          });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Doomed& row = *rows[i];
    row.took = done[i].took;
    row.fault = std::move(done[i].fault);
    if (row.took == Took::yes && exchange.affected(places.deletes + i) == 0)
      row.took = floor_lost ? Took::again : Took::no;
    if (uncommitted && row.took == Took::yes) {
      row.took = Took::no;
      row.fault = uncommitted;
      row.fault.error.code = errc::unknown;
    }
  }
  return {};
}

}  // namespace

Fault delete_rows(const Work& work, std::span<Doomed> rows, bool only_expired, Time& now) {
  std::vector<Doomed*> todo;
  for (Doomed& row : rows) todo.push_back(&row);
  std::sort(todo.begin(), todo.end(),
            [](const Doomed* a, const Doomed* b) { return a->key < b->key; });
  for (int run = 0; !todo.empty() && run < kUnitRuns; ++run) {
    for (std::size_t at = 0; at < todo.size(); at += kRowsMax) {
      const std::span<Doomed*> some{&todo[at], std::min(kRowsMax, todo.size() - at)};
      if (Fault fault = run_once(work, some, only_expired, now)) return fault;
    }
    std::erase_if(todo, [](const Doomed* row) { return row->took != Took::again; });
  }
  for (Doomed* row : todo) {
    row->took = Took::no;
    row->fault = {Fault::Kind::refused, false, false, fail(errc::busy, "remove: deadlocks")};
  }
  return {};
}

Fault remove(const Work& work, std::span<Remove* const> ops) {
  std::vector<Item> items;
  for (Remove* op : ops) items.push_back({op->key, &op->answer});
  // Only a version that was really there may raise the floor: a wrong one could be anything.
  if (const Fault fault = load_all(work, items)) return not_applied(fault);
  std::vector<Remove*> matching;
  std::vector<Doomed> rows;
  for (Remove* op : ops) {
    if (op->answer.state != Answer::State::stands || op->answer.held.version != op->expected)
      continue;
    matching.push_back(op);
    answer_later(op->answer);
    rows.push_back({op->key, op->expected, Took::again, {}});
  }
  if (rows.empty()) return {};
  Time now{};
  const Fault broken = delete_rows(work, rows, false, now);
  std::vector<Item> stale;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Answer& answer = matching[i]->answer;
    if (rows[i].took == Took::yes) {
      answer.state = Answer::State::written;
      answer.now = now;
      answer.held = {};
    } else if (rows[i].fault) {
      answer_failed(answer, rows[i].fault.error);
    } else if (rows[i].took == Took::no) {
      stale.push_back({matching[i]->key, &answer});
    }
  }
  if (broken) return broken;
  if (const Fault fault = load_all(work, stale)) return not_applied(fault);
  return {};
}

result<std::uint64_t> sweep(const Work& work, std::size_t limit) {
  Fields fields;
  add_time(fields, work.time);
  fields.emplace_back(std::uint64_t{limit});
  const auto found = query(work.session,
                           "SELECT tenant, biz_type, idem_key, version FROM " + work.table +
                               " WHERE expires_at <= " + std::string(statement_time()) +
                               " ORDER BY expires_at LIMIT ?",
                           fields, work.budget);
  if (!found) return found.error();
  std::vector<Doomed> rows;
  for (const auto row : found->rows()) {
    rows.push_back({{bytes_of(row[0]), bytes_of(row[1]), bytes_of(row[2])},
                    unsigned_of(row[3]),
                    Took::again,
                    {}});
  }
  if (rows.empty()) return std::uint64_t{0};
  Time now{};
  if (Fault fault = delete_rows(work, rows, true, now)) return fault.error;
  std::uint64_t deleted = 0;
  const Fault* refused = nullptr;
  for (const Doomed& row : rows) {
    if (row.took == Took::yes) ++deleted;
    if (row.fault) refused = &row.fault;
  }
  if (deleted == 0 && refused != nullptr) return refused->error;
  return deleted;
}

}  // namespace idem::mysql
