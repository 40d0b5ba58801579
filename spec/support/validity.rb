# frozen_string_literal: true

# Every profile that a spec makes is checked, without a spec having to ask.
module Validity
  # In front of what Rperf.start, .stop and .snapshot make their Hash with.
  def from_native(profile)
    Validity.check(profile)
    super
  end

  def self.check(profile)
    violations = profile.check
    raise "the profile is not valid: #{violations.first(5).join("; ")}" unless violations.empty?

    profile
  end
end

Rperf::Profile.singleton_class.prepend(Validity)
