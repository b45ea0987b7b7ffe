#include "idem/policy.hpp"

#include <string>
#include <string_view>

#include "idem/store_url.hpp"

namespace idem {
namespace {

result<void> check_range(std::string_view name, Duration d) {
  if (d.micros() <= Micros(0)) {
    return fail(errc::invalid_argument, std::string(name) + " must be greater than zero");
  }
  if (d.micros() > kDurationMax) {
    return fail(errc::invalid_argument, std::string(name) + " is more than the cap of 100 years");
  }
  return {};
}

result<void> check_ranges(const Policy& policy) {
  for (const auto& [name, value] :
       {std::pair{"lease", policy.lease}, std::pair{"stuck_after", policy.stuck_after},
        std::pair{"result_ttl", policy.result_ttl}, std::pair{"failed_ttl", policy.failed_ttl}}) {
    if (auto checked = check_range(name, value); !checked) return checked;
  }
  if (policy.max_total_lease) {
    if (auto checked = check_range("max_total_lease", *policy.max_total_lease); !checked) {
      return checked;
    }
  }
  if (policy.wait.micros() != Micros(0)) {
    if (auto checked = check_range("wait", policy.wait); !checked) return checked;
  }
  if (policy.max_attempts == 0U) {
    return fail(errc::invalid_argument, "max_attempts must be at least 1");
  }
  return {};
}

}  // namespace

Policy PolicyPatch::apply_to(Policy base) const {
  const auto replace = [](auto& value, const auto& by) {
    if (by) value = *by;
  };
  replace(base.enabled, enabled);
  replace(base.lease, lease);
  replace(base.stuck_after, stuck_after);
  replace(base.result_ttl, result_ttl);
  replace(base.failed_ttl, failed_ttl);
  replace(base.on_lapsed, on_lapsed);
  replace(base.retry_failed, retry_failed);
  if (max_attempts) base.max_attempts = max_attempts;
  if (max_total_lease) base.max_total_lease = max_total_lease;
  replace(base.return_original_result, return_original_result);
  replace(base.on_duplicate, on_duplicate);
  replace(base.wait, wait);
  replace(base.max_result_bytes, max_result_bytes);
  replace(base.oversize, oversize);
  return base;
}

result<void> check_policy(const Policy& policy) {
  if (auto checked = check_ranges(policy); !checked) return checked;
  const auto at_least_lease = [&](std::string_view name, Duration value) -> result<void> {
    if (value >= policy.lease) return {};
    return fail(errc::invalid_argument, std::string(name) + " (" + format_duration(value) +
                                            ") is shorter than the lease (" +
                                            format_duration(policy.lease) + ")");
  };
  if (auto checked = at_least_lease("stuck_after", policy.stuck_after); !checked) return checked;
  return at_least_lease("result_ttl", policy.result_ttl);
}

result<Policy> policy_for_call(const Policy& base, const PolicyPatch& patch) {
  Policy policy = patch.apply_to(base);
  if (auto checked = check_ranges(policy); !checked) return checked.error();
  if (policy.stuck_after < policy.lease) {
    if (patch.stuck_after) {
      return fail(errc::invalid_argument, "stuck_after (" + format_duration(policy.stuck_after) +
                                              ") is shorter than the lease (" +
                                              format_duration(policy.lease) + ")");
    }
    policy.stuck_after = policy.lease;
  }
  return policy;
}

}  // namespace idem
