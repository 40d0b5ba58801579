# frozen_string_literal: true

module Rperf
  # A session of several processes. Each leaves its profile in the session's directory;
  # the rperf command, or the process that has made the session, merges them.
  class SharedSession
    attr_reader :directory, :options, :initiator

    # @param options [Options] with which processes are profiled
    # @param initiator [String] what had them profiled, for messages
    def initialize(directory, options, initiator)
      @directory = directory
      @options = options
      @initiator = initiator
    end

    # A session that this process makes, and merges.
    # @raise [Rperf::Error] if there is no place for its directory
    def self.create(options, initiator)
      Made.new(NativeMadeSession.make(options.sampling, initiator, LIBRARY), options, initiator)
    end

    # @return [SharedSession, nil] this one, if another process has made it
    def joined = self

    # Tells who merges the profiles that this process has forked a child.
    def report_fork(process) = Native.tell_fork(directory, process)

    # Tells them that this process, a forked child, can't be profiled.
    def report_refusal = Native.tell_refusal(directory)

    # See {SharedSession.create}.
    class Made < SharedSession
      # @return [NativeMadeSession]
      attr_reader :made

      def initialize(made, options, initiator)
        @made = made
        super(made.directory, options, initiator)
      end

      def joined = (self unless @made.mine?)

      # Adds the profile with all that other processes have left to `profiles`.
      def merge_into(profiles, profile) = @made.merge_into(profiles, profile)

      # Ends the session for children that come now.
      def close = @made.close
    end

    LIBRARY = File.expand_path("../..", __dir__)
    private_constant :Made, :LIBRARY
  end
  private_constant :SharedSession
end
