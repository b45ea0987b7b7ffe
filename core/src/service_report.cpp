// complete, complete_many, fail, renew, release: what an owner reports.
#include "service_impl.hpp"

namespace idem::detail {

// One report under way. Stays where it is: `call` points into it.
struct ServiceImpl::Report {
  std::shared_ptr<LeaseState> lease;
  Policy policy;
  Record known;
  Time known_at{};
  bool believed = false;
  std::string stored;  // a tombstone or a shortened reason, where the caller's text is not stored
  bool tombstone = false;
};

result<ServiceImpl::Report> ServiceImpl::prepare_report(Lease& lease,
                                                        const CallOptions& options) const {
  Report report;
  report.lease = lease.state_;
  const Key& key = report.lease->request.key;
  if (auto checked = check_key(key); !checked) return checked.error();
  // What the claim was called with holds for its reports, too, unless said otherwise.
  const bool adopted = report.lease->service.expired();
  auto policy =
      policy_for_call(adopted ? this->policy(key.biz_type) : report.lease->policy, options.policy);
  if (!policy) return policy.error();
  report.policy = *policy;
  const std::lock_guard guard(report.lease->mutex);
  report.known = report.lease->known;
  report.known_at = report.lease->known_at;
  report.believed = report.lease->believed;
  return report;
}

void ServiceImpl::start_call(Call& call, const Report& report, const Command& command) {
  call.key = report.lease->request.key;
  call.command = &command;
  call.load_first = !report.believed;
  if (report.believed) {
    call.known = &report.known;
    call.known_at = report.known_at;
  }
}

namespace {

void reported(LeaseState& lease) {
  const std::lock_guard guard(lease.mutex);
  lease.reported = true;
}

// At most kReasonBytesMax bytes, cut on a character boundary.
std::string_view shortened(std::string_view reason) {
  if (reason.size() <= kReasonBytesMax) return reason;
  std::size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  return reason.substr(0, end);
}

}  // namespace

// --- complete --------------------------------------------------------------------------------

result<command::Complete> ServiceImpl::prepare_complete(Report& report,
                                                        std::string_view result) const {
  command::Complete complete{report.known.token(), result, report.policy.result_ttl, false};
  const std::uint64_t store_max = store_->capabilities().result_bytes_max;
  const std::uint64_t bytes_max = std::min(report.policy.max_result_bytes, store_max);
  if (result.size() <= bytes_max) return complete;
  if (report.policy.oversize == Oversize::refuse) {
    return idem::fail(
        errc::too_large,
        "the result has " + std::to_string(result.size()) + " bytes; max_result_bytes is " +
            std::to_string(bytes_max) +
            ". The record stays processing: complete with less, or set oversize: tombstone");
  }
  report.stored = tombstone_of(result);
  complete.result = report.stored;
  complete.tombstone = true;
  return complete;
}

result<CompleteOutcome> ServiceImpl::complete(Lease& lease, std::string_view result,
                                              const CallOptions& options) {
  const IdempotencyService::CompleteItem item{&lease, result};
  return std::move(complete_many({&item, 1}, options).front());
}

std::vector<result<CompleteOutcome>> ServiceImpl::complete_many(
    std::span<const IdempotencyService::CompleteItem> items, const CallOptions& options) {
  std::vector<CompleteItem> each;
  each.reserve(items.size());
  for (const auto& item : items) each.push_back({item.lease, item.result, &options});
  complete_each(each);
  std::vector<result<CompleteOutcome>> answers;
  answers.reserve(each.size());
  for (CompleteItem& item : each) answers.push_back(std::move(item.answer));
  return answers;
}

void ServiceImpl::complete_each(std::span<CompleteItem> items) {
  std::vector<Report> reports;
  std::vector<Command> commands;
  std::vector<CompleteItem*> reporting;
  reports.reserve(items.size());
  commands.reserve(items.size());
  for (CompleteItem& item : items) {
    const Key& key = item.lease->request().key;
    auto report = prepare_report(*item.lease, *item.options);
    if (!report) {
      item.answer = broken("complete", key, report.error());
      continue;
    }
    if (report->lease->bypass) {
      reported(*report->lease);
      item.answer = CompleteOutcome(Completed{});
      continue;
    }
    reports.push_back(std::move(*report));
    auto complete = prepare_complete(reports.back(), item.text);
    if (!complete) {
      item.answer = broken("complete", key, complete.error());
      reports.pop_back();
      continue;
    }
    commands.emplace_back(*complete);
    reporting.push_back(&item);
  }
  std::vector<Call> calls(reports.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    start_call(calls[i], reports[i], commands[i]);
    calls[i].deadline = limits(*reporting[i]->options).deadline;
  }
  drive(calls, {clock_, Time::max()});
  for (std::size_t i = 0; i < reports.size(); ++i) {
    reporting[i]->answer = finish_complete(reports[i], calls[i]);
  }
}

result<CompleteOutcome> ServiceImpl::finish_complete(Report& report, Call& call) {
  const Key& key = report.lease->request.key;
  if (!call.answer) return broken("complete", key, std::move(call.answer).error());
  reported(*report.lease);
  auto outcome = narrow<CompleteOutcome>(std::move(*call.answer));
  if (!outcome) return outcome;
  if (const auto* completed = std::get_if<Completed>(&*outcome)) {
    if (call.wrote) hub_->changed(key);
    count(completed->already ? Counter::completed_already
          : completed->late  ? Counter::completed_late
                             : Counter::completed);
    if (options_.observer) options_.observer->on_completed(key, *completed);
  } else if (std::holds_alternative<Lost>(*outcome)) {
    count(Counter::lost);
    if (options_.observer) options_.observer->on_lost(key, report.known.token());
  } else if (std::holds_alternative<Conflict>(*outcome)) {
    count(Counter::conflict);
    if (options_.observer) options_.observer->on_conflict(key, report.known.token());
  } else if (std::holds_alternative<Gone>(*outcome)) {
    count(Counter::gone);
  }
  return outcome;
}

// --- fail, renew, release --------------------------------------------------------------------

result<FailOutcome> ServiceImpl::fail(Lease& lease, FailKind kind, std::string_view reason,
                                      Duration retry_after, const CallOptions& options) {
  const Key& key = lease.request().key;
  auto report = prepare_report(lease, options);
  if (!report) return broken("fail", key, report.error());
  if (kind != FailKind::retryable && kind != FailKind::final) {
    return broken("fail", key, idem::fail(errc::invalid_argument, "fail takes retryable or final"));
  }
  if (retry_after.micros() < Micros(0) || retry_after.micros() > kDurationMax) {
    return broken("fail", key,
                  idem::fail(errc::invalid_argument, "retry_after must be from 0 to 100 years"));
  }
  if (report->lease->bypass) {
    reported(*report->lease);
    return FailOutcome(FailRecorded{});
  }
  const Command command = command::Fail{report->known.token(), kind, shortened(reason),
                                        kind == FailKind::final ? Duration() : retry_after,
                                        std::max(report->policy.failed_ttl, retry_after)};
  Call call;
  start_call(call, *report, command);
  drive({&call, 1}, limits(options));
  if (!call.answer) return broken("fail", key, std::move(call.answer).error());
  reported(*report->lease);
  auto outcome = narrow<FailOutcome>(std::move(*call.answer));
  if (outcome && std::holds_alternative<FailRecorded>(*outcome)) {
    if (call.wrote) hub_->changed(key);
    count(Counter::failed);
    if (options_.observer) options_.observer->on_failed(key, kind);
  } else if (outcome && std::holds_alternative<Lost>(*outcome)) {
    count(Counter::lost);
    if (options_.observer) options_.observer->on_lost(key, report->known.token());
  }
  return outcome;
}

result<RenewOutcome> ServiceImpl::renew(Lease& lease, const CallOptions& options) {
  const Key& key = lease.request().key;
  auto report = prepare_report(lease, options);
  if (!report) return broken("renew", key, report.error());
  if (report->lease->bypass) {
    const Time now = clock_.now();
    return RenewOutcome(Renewed{false, now + report->policy.lease.micros(), 0, now});
  }
  const Command command =
      command::Renew{report->known.token(), report->policy.lease, report->policy};
  // "Never shortens" and "not over max_total_lease" need the record's times as they are now, unless
  // the new lease is no shorter than what was left at the last write.
  const bool shorter = report->policy.lease.micros() < report->known.lease_until - report->known_at;
  report->believed = report->believed && !shorter && !report->policy.max_total_lease;
  Call call;
  start_call(call, *report, command);
  drive({&call, 1}, limits(options));
  if (!call.answer) return broken("renew", key, std::move(call.answer).error());
  if (call.wrote) report->lease->learn(call.written, call.now);
  auto outcome = narrow<RenewOutcome>(std::move(*call.answer));
  if (outcome && std::holds_alternative<Renewed>(*outcome)) {
    hub_->changed(key);
    count(Counter::renewed);
  } else if (outcome && std::holds_alternative<Lost>(*outcome)) {
    reported(*report->lease);
    count(Counter::lost);
    if (options_.observer) options_.observer->on_lost(key, report->known.token());
  }
  return outcome;
}

result<ReleaseOutcome> ServiceImpl::release(Lease& lease, const CallOptions& options) {
  const Key& key = lease.request().key;
  auto report = prepare_report(lease, options);
  if (!report) return broken("release", key, report.error());
  if (report->lease->bypass) {
    reported(*report->lease);
    return ReleaseOutcome(Released{});
  }
  const Command command = command::Release{report->known.token()};
  Call call;
  start_call(call, *report, command);
  drive({&call, 1}, limits(options));
  if (!call.answer) return broken("release", key, std::move(call.answer).error());
  reported(*report->lease);
  auto outcome = narrow<ReleaseOutcome>(std::move(*call.answer));
  if (outcome && std::holds_alternative<Released>(*outcome)) {
    if (call.wrote) hub_->changed(key);
    count(Counter::released);
  } else if (outcome && std::holds_alternative<Lost>(*outcome)) {
    count(Counter::lost);
  }
  return outcome;
}

}  // namespace idem::detail
