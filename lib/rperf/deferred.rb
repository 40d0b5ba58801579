# frozen_string_literal: true

require_relative "errors"

module Rperf
  # Files of the gem that few programs need. They are read as the gem is loaded, because later they may be gone: a
  # deploy removes them, or the program becomes a user who can't read them. They are compiled at the first use, because
  # that takes most of the time.
  class Deferred
    COMPILE = RubyVM::InstructionSequence.method(:new)
    private_constant :COMPILE

    # @param directory [String] where the files are
    # @param names [Array<String>] theirs, without .rb; each needs files before it only
    def initialize(directory, *names)
      @files = names.map do |name|
        path = "#{directory}/#{name}.rb"
        [path, File.binread(path).force_encoding(Encoding::UTF_8)]
      end
      @lock = Thread::Mutex.new
    end

    # Runs the files, if they haven't run.
    # @raise [Rperf::Error] in a handler of a signal that has come just as they run
    def load
      Thread.handle_interrupt(Object => :never) { run_rest } unless @files.empty?
    end

    private

    # In a handler of a signal a lock can't be waited for.
    def run_rest
      until @lock.try_lock
        raise Error, "rperf is being loaded here just now" if @lock.owned?

        Thread.pass
      end
      begin
        while (path, source = @files.first)
          COMPILE.call(source, path, path).eval
          @files.shift
        end
      ensure
        @lock.unlock
      end
    end
  end
  private_constant :Deferred
end
