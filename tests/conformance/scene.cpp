#include "scene.hpp"

#include <stdexcept>

#include "idem/testing/describe.hpp"

namespace idem::conformance {

std::optional<Record> raw(IdempotencyStore& store, std::string_view key) {
  const Key whole{std::string(key)};
  Load op{whole, {}};
  do store.load({&op, 1});
  while (op.answer.state == Answer::State::failed && op.answer.error.code == errc::unknown);
  switch (op.answer.state) {
    case Answer::State::stands:
      return std::move(op.answer.held);
    case Answer::State::absent:
      return std::nullopt;
    default:
      throw std::runtime_error("load: " + testing::describe(op.answer));
  }
}

std::string state_of(const std::optional<Record>& held, Time now) {
  if (!held) return "N";
  if (held->expired(now)) return "X";
  switch (held->status) {
    case Status::processing:
      return now < held->lease_until ? "PL" : "PX";
    case Status::success:
      return "S";
    case Status::failed:
      break;
  }
  switch (held->fail_kind) {
    case FailKind::final:
      return "FF";
    case FailKind::abandoned:
      return "AB";
    default:
      return now < held->retry_at ? "FB" : "FR";
  }
}

}  // namespace idem::conformance
