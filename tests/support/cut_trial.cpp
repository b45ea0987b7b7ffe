#include "idem/testing/cut_trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "idem/clock.hpp"

namespace idem::testing {
namespace {

constexpr int kTries = 100;

const char* name_of(Cut::Kind kind) {
  switch (kind) {
    case Cut::Kind::fin:
      return "fin";
    case Cut::Kind::rst:
      return "rst";
    case Cut::Kind::stall:
      return "stall";
    case Cut::Kind::late:
      return "late";
  }
  return "?";
}

template <class T, class Result>
bool is(const Result& outcome) {
  return outcome.has_value() && std::holds_alternative<T>(*outcome);
}

}  // namespace

const char* to_string(CutVerb verb) {
  switch (verb) {
    case CutVerb::claim:
      return "claim";
    case CutVerb::complete:
      return "complete";
    case CutVerb::renew:
      return "renew";
    case CutVerb::fail:
      return "fail";
    case CutVerb::release:
      return "release";
  }
  return "?";
}

std::uint64_t cut_stride(std::uint64_t sample, std::uint64_t nightly) {
  const char* const wanted = std::getenv("IDEM_CUT_STRIDE");
  if (wanted != nullptr) return std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
  return std::getenv("IDEM_NIGHTLY") != nullptr ? nightly : sample;
}

// Until the answer is definite; as an application would, with the same token. What was cut may have
// left a transaction open at the server, whose row nobody gets before the network lets go.
template <class Call>
auto CutTrial::resolved(Call call) {
  CallOptions options;
  options.timeout = call_limit_;
  auto outcome = call(options);
  for (int i = 0; !outcome && i < kTries; ++i) {
    ++resent_;
    if (i == 1) let_go();
    outcome = call(options);
  }
  return outcome;
}

// What was held back arrives, what stood still ends.
void CutTrial::let_go() {
  proxy_.deliver_late();
  proxy_.release();
}

Lease CutTrial::claim_whole(const Request& request) {
  auto outcome = whole_.claim(request);
  if (!is<Claimed>(outcome)) throw std::runtime_error("not claimed: " + request.key.key);
  return std::move(std::get<Claimed>(*outcome).lease);
}

CutTrial::End CutTrial::claim(const Request& request) {
  const Owner owner = Owner::random();
  const auto outcome = resolved([&](CallOptions options) {
    options.owner = owner;
    return cut_.claim(request, options);
  });
  if (!outcome) return End::unresolved;
  if (!is<Claimed>(outcome)) return End::wrong;
  let_go();
  const auto other = whole_.claim(request);
  if (is<Claimed>(other)) return End::second_owner;
  const auto found = whole_.get(request.key).value();
  if (!found || found->record.owner != owner || found->record.attempt != 1) {
    return End::second_owner;
  }
  return is<InProgress>(other) && found->record.status == Status::processing &&
                 found->record.fence == std::get<Claimed>(*outcome).lease.fence()
             ? End::right
             : End::wrong;
}

CutTrial::End CutTrial::complete(const Request& request) {
  const std::string& result = request.key.key;
  Lease lease = claim_whole(request);
  const auto outcome =
      resolved([&](const CallOptions& options) { return cut_.complete(lease, result, options); });
  if (!outcome) return End::unresolved;
  let_go();
  const auto replay = whole_.claim(request);
  if (is<Claimed>(replay)) return End::second_owner;
  return is<Completed>(outcome) && is<Replay>(replay) && std::get<Replay>(*replay).result == result
             ? End::right
             : End::wrong;
}

CutTrial::End CutTrial::renew(const Request& request) {
  Lease lease = claim_whole(request);
  const auto outcome = resolved([&](CallOptions options) {
    options.policy.lease = std::chrono::seconds(300);
    return cut_.renew(lease, options);
  });
  if (!outcome) return End::unresolved;
  let_go();
  const auto found = whole_.get(request.key).value();
  if (!found || found->record.token() != lease.token() || found->record.attempt != 1) {
    return End::second_owner;
  }
  const Micros left = found->record.lease_until - found->now;
  return is<Renewed>(outcome) && left > std::chrono::seconds(200) &&
                 is<Completed>(whole_.complete(lease, "r"))
             ? End::right
             : End::wrong;
}

CutTrial::End CutTrial::fail(const Request& request) {
  const std::string& reason = request.key.key;
  Lease lease = claim_whole(request);
  const auto outcome = resolved([&](const CallOptions& options) {
    return cut_.fail(lease, FailKind::final, reason, Micros(0), options);
  });
  if (!outcome) return End::unresolved;
  let_go();
  const auto again = whole_.claim(request);
  if (is<Claimed>(again)) return End::second_owner;
  return is<FailRecorded>(outcome) && is<Failed>(again) && std::get<Failed>(*again).reason == reason
             ? End::right
             : End::wrong;
}

// What arrives late must leave the next owner alone.
CutTrial::End CutTrial::release(const Request& request) {
  Lease lease = claim_whole(request);
  const auto outcome =
      resolved([&](const CallOptions& options) { return cut_.release(lease, options); });
  if (!outcome) return End::unresolved;
  Lease next = claim_whole(request);
  let_go();
  const auto found = whole_.get(request.key).value();
  if (!found || found->record.token() != next.token()) return End::second_owner;
  return is<Released>(outcome) && next.fence() > lease.fence() && found->record.attempt == 1
             ? End::right
             : End::wrong;
}

CutTrial::End CutTrial::perform(CutVerb verb) {
  const Request request{Key("", "pay", "key-" + std::to_string(100'000 + number_++)),
                        Fingerprint::of_bytes("r")};
  switch (verb) {
    case CutVerb::claim:
      return claim(request);
    case CutVerb::complete:
      return complete(request);
    case CutVerb::renew:
      return renew(request);
    case CutVerb::fail:
      return fail(request);
    case CutVerb::release:
      return release(request);
  }
  return End::wrong;
}

// On a connection that is whole and warm: what is cut is the verb alone. False: the verb was over
// before the cut came.
bool CutTrial::cut_at(CutVerb verb, const Cut& cut) {
  EXPECT_EQ(perform(verb), End::right) << "without a cut";
  proxy_.arm(cut);
  const End end = perform(verb);
  const bool fired = proxy_.fired();
  proxy_.disarm();
  let_go();
  if (!fired) return false;
  ++cuts_;
  ++ends_[static_cast<std::size_t>(end)];
  EXPECT_EQ(end, End::right) << to_string(verb) << " cut after byte " << cut.after << " of the "
                             << (cut.side == Cut::Side::request ? "request" : "reply") << ", "
                             << name_of(cut.kind);
  return true;
}

void CutTrial::cut_all(CutVerb verb, std::uint64_t stride, const std::string& name) {
  const Time begin = system_clock().now();
  for (const auto kind : {Cut::Kind::fin, Cut::Kind::rst, Cut::Kind::stall, Cut::Kind::late}) {
    for (const auto side : {Cut::Side::request, Cut::Side::reply}) {
      if (kind == Cut::Kind::late && side == Cut::Side::reply) continue;
      for (std::uint64_t byte = 0; cut_at(verb, {side, byte, kind}); byte += stride) {
      }
    }
  }
  std::printf(
      "%s %s: %d cut points, %d sent again by the caller, %d double owners, %d wrong, "
      "%d unresolved, %.0f s\n",
      name.c_str(), to_string(verb), cuts_, resent_, ended(End::second_owner), ended(End::wrong),
      ended(End::unresolved), static_cast<double>((system_clock().now() - begin).count()) * 1e-6);
  EXPECT_EQ(ended(End::right), cuts_);
}

}  // namespace idem::testing
