# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "launch"

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
      Made.new(Native.create_session_directory, options, initiator)
    end

    # Whether this process merges the profiles.
    def mine? = false

    # Tells who merges the profiles of an event; see Native.tell.
    def report(event, number, stats = nil) = Native.tell(directory, event, number, stats)

    # See {SharedSession.create}.
    class Made < SharedSession
      LIBRARY = File.expand_path("../..", __dir__)
      private_constant :LIBRARY

      # A profile with all that other processes have left, how many processes these are with this one, and the
      # others' figures.
      Merged = Struct.new(:profile, :processes, :figures)

      def initialize(...)
        super
        @process = Process.pid
        # A session that is never stopped leaves no directory either.
        ObjectSpace.define_finalizer(self, Made.remover(directory, @process))
        return unless options.inherit == true

        @settings = Native.write_session_settings(directory, options.sampling, initiator, LIBRARY)
        add_to_environment
      rescue Error
        close
        raise
      end

      # Not a block of an object that it would keep.
      def self.remover(directory, process)
        proc { Native.remove_session_directory(directory) if Process.pid == process }
      end

      def mine? = Process.pid == @process

      # @return [Merged]
      def merge(profile)
        *merged, remarks = Native.merge_session(directory, profile)
        remarks.each { |line| Message.say(line) }
        Merged.new(*merged)
      end

      # Ends the session for children that come now.
      def close
        # The next session of this process may get a directory of the same name.
        ObjectSpace.undefine_finalizer(self)
        hide
        Native.remove_session_directory(directory)
      end

      # For the case that this process becomes another program, which is to see nothing of the session. It would leave
      # the directory to the next session.
      def hide
        Launch.new(@settings).hide(ENV) if @settings
        @hidden = true
      end

      # Undoes it.
      def show
        add_to_environment if @settings && @hidden
        @hidden = false
      end

      private

      # Programs that children of this process run see it as well: it is the only way that works however they are
      # started.
      def add_to_environment
        Launch.new(@settings).show(ENV, directory)
      end
    end
    private_constant :Made
  end
  private_constant :SharedSession
end
