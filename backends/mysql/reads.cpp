#include <bit>

#include "work.hpp"

namespace idem::mysql {
namespace {

void sort_by_key(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.key < b.key; });
}

// Answers every item a row of the exchange is about.
void take_rows(Exchange& exchange, std::size_t place, std::span<const Item> items) {
  for (const auto row : exchange.results(place).rows()) {
    const RowHead head = read_head(row);
    for (const Item& item : items_of(items, head.key)) {
      Answer& answer = *item.answer;
      if (auto read = read_record(row, answer.held); !read) {
        answer_failed(answer, read.error());
        continue;
      }
      answer.state = Answer::State::stands;
      answer.now = head.now;
    }
  }
}

Fault read_clock(const Work& work, Time& now) {
  Exchange exchange(work.session, work.budget);
  Fields fields;
  add_time(fields, work.time);
  exchange.add(Statement::clock, 1, fields);
  if (Fault fault = exchange.run()) return fault;
  if (Fault fault = exchange.fault(0, "clock")) return fault;
  const auto rows = exchange.results(0).rows();
  if (rows.empty()) return no_meta_row();
  now = Time{Micros(signed_of(rows[0][0]))};
  return {};
}

}  // namespace

std::span<const Item> items_of(std::span<const Item> items, KeyRef key) {
  const auto [from, to] =
      std::equal_range(items.begin(), items.end(), Item{key, nullptr},
                       [](const Item& a, const Item& b) { return a.key < b.key; });
  return {from, to};
}

std::size_t add_keys(Fields& fields, std::span<const Item> items) {
  const std::size_t keys = std::bit_ceil(items.size());
  fields.reserve(fields.size() + keys * kKeyParameters);
  for (std::size_t i = 0; i < keys; ++i) add_key(fields, items[std::min(i, items.size() - 1)].key);
  return keys;
}

std::size_t add_reads(const Work& work, Exchange& exchange, std::span<const Item> items,
                      Statement statement) {
  const std::size_t first = exchange.size();
  for (std::size_t at = 0; at < items.size(); at += kPlacesPerRead) {
    const auto some = items.subspan(at, std::min(kPlacesPerRead, items.size() - at));
    Fields fields;
    add_time(fields, work.time);
    const std::size_t keys = add_keys(fields, some);
    exchange.add(statement, keys, fields);
  }
  return first;
}

Fault load_standing(const Work& work, std::span<const Item> items, std::vector<Item>& absent) {
  if (items.empty()) return {};
  std::vector<Item> sorted(items.begin(), items.end());
  sort_by_key(sorted);
  for (Item& item : sorted) item.answer->state = Answer::State::absent;
  Exchange exchange(work.session, work.budget);
  const std::size_t first = add_reads(work, exchange, sorted, Statement::load);
  if (Fault fault = exchange.run()) {
    for (Item& item : sorted) item.answer->state = Answer::State::failed;
    return fault;
  }
  Fault refused;
  for (std::size_t i = 0; i < read_count(sorted.size()); ++i) {
    if (Fault fault = exchange.fault(first + i, "load")) {
      refused = std::move(fault);
      continue;
    }
    take_rows(exchange, first + i, sorted);
  }
  for (const Item& item : items) {
    if (item.answer->state != Answer::State::absent) continue;
    if (refused) {
      answer_failed(*item.answer, refused.error);
    } else {
      absent.push_back(item);
    }
  }
  return {};
}

Fault load_all(const Work& work, std::span<const Item> items) {
  std::vector<Item> absent;
  if (Fault fault = load_standing(work, items, absent)) return fault;
  if (absent.empty()) return {};
  Time now{};
  if (Fault fault = read_clock(work, now)) {
    for (const Item& item : absent) item.answer->state = Answer::State::failed;
    return fault;
  }
  for (const Item& item : absent) item.answer->now = now;
  return {};
}

Fault load(const Work& work, std::span<Load* const> ops) {
  std::vector<Item> items;
  items.reserve(ops.size());
  for (Load* op : ops) items.push_back({op->key, &op->answer});
  return load_all(work, items);
}

}  // namespace idem::mysql
