# frozen_string_literal: true

require_relative "errors"

module Rperf
  # Files of the gem that few programs need. They are read as the gem is loaded, because later they may be gone: a
  # deploy removes them, or the program becomes a user who can't read them. They are compiled at the first use, because
  # that takes most of the time.
  class Deferred
    # As they are now: a program may put others in their place.
    COMPILE = RubyVM::InstructionSequence.method(:new)
    RUN = RubyVM::InstructionSequence.instance_method(:eval)
    private_constant :COMPILE, :RUN

    # @param directory [String] where the files are
    # @param names [Array<String>] theirs, without .rb; each needs files before it only
    # @raise [LoadError] if one can't be read
    def initialize(directory, *names)
      @files = names.map do |name|
        path = "#{directory}/#{name}.rb"
        [path, source(path)]
      end
      @lock = Thread::Mutex.new
    end

    # Runs the files, if they haven't run.
    # @raise [Rperf::Error] in a handler of a signal that has come just as they run
    def load
      Thread.handle_interrupt(Object => :never) { run_rest } unless @has_run
    end

    private

    def source(path)
      File.binread(path).force_encoding(Encoding::UTF_8)
    rescue SystemCallError
      raise LoadError, "cannot load such file -- #{path}"
    end

    # In a handler of a signal a lock can't be waited for.
    def run_rest
      until @lock.try_lock
        raise Error, "rperf is being loaded here just now" if @lock.owned?

        Thread.pass
      end
      begin
        run(@files.map { |path, source| COMPILE.call(source, path, path) })
      ensure
        @lock.unlock
      end
    end

    # What has run isn't to run again, whatever comes in between.
    def run(codes)
      codes.each do |code|
        RUN.bind_call(code)
        @files.shift
      end
      @has_run = true
    end
  end
  private_constant :Deferred
end
