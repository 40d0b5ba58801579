# frozen_string_literal: true

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
      Options.one_of(:clear, clear, [true, false])
      profile = native_snapshot(clear)
      profile && Result.from_profile(profile)
    end

    private

    # @return [NativeProfile, nil]
    def native_snapshot(clear)
      return unless Native.running?

      obstacle = snapshot_obstacle(clear)
      raise Error, obstacle if obstacle

      Native.snapshot(clear)
    end

    # @return [String, nil] why the session that runs gives no snapshot
    def snapshot_obstacle(clear)
      initiator = whole_program_initiator
      return "#{initiator} profiles this program as a whole: clear: can't be true" if clear && initiator

      options = initiator ? Autostart.options : @options
      "there are no snapshots of a session with aggregate: false" unless options.nil? || options.aggregate?
    end

    # @return [String, nil] what has this program profiled as a whole, in a session that isn't the program's to cut
    def whole_program_initiator = (Autostart.initiator if @options.nil? && defined?(Autostart))
  end
end
