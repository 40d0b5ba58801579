# frozen_string_literal: true

require_relative "../argument"
require_relative "../session/session"
require_relative "profile"

# The profile so far.
module Rperf
  class << self
    # The profile up to now; profiling goes on. Threads that are blocked just now are
    # in it with their time so far.
    #
    # @param clear [Boolean] begins anew afterwards: the next profile, and that of
    #   {Rperf.stop}, is of the time since then. Nothing is lost or counted twice.
    # @return [Profile, nil] the profile as {Rperf.stop} gives it; nil if profiling is off
    # @raise [Rperf::Error] in a session with `aggregate: false`, whose samples are kept to its end
    # @example
    #   loop do
    #     sleep 10
    #     data = Rperf.snapshot(clear: true)
    #     Rperf.save("profile-#{Time.now.to_i}.pb.gz", data) if data
    #   end
    def snapshot(clear: false)
      Argument.one_of(:clear, clear, [true, false])
      profile = Session.running&.snapshot(clear)
      profile && Profile.from_native(profile)
    end
  end
end
