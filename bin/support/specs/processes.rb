# frozen_string_literal: true

module Specs
  # The processes of RSpec that run, each the leader of a process group.
  module Processes
    # How long one may take to end by itself, with what it has started.
    GRACE = 10

    @running = {}
    @lock = Mutex.new
    @closed = false

    module_function

    # Runs a command to its end, or for so many seconds. Once all are ended it doesn't return.
    # @return [Array] its Process::Status, and whether it was ended because its time was over
    def run(*command, limit:, **options)
      pid, waiting = @lock.synchronize { start(command, options) unless @closed }
      is_late = waiting && !waiting.join(limit)
      stop([pid]) if is_late
      status = waiting&.value
      sleep if @closed
      @lock.synchronize { @running.delete(pid) }
      [status, is_late]
    end

    # Ends all that run. No further one starts.
    def end_all
      pids = @lock.synchronize do
        @closed = true
        @running.keys
      end
      stop(pids)
    end

    def start(command, options)
      pid = Process.spawn(*command, pgroup: true, **options)
      [pid, @running[pid] = Process.detach(pid)]
    end
    private_class_method :start

    # RSpec ends after the example that runs, at the first SIGINT. What doesn't is killed, with the programs that it has
    # started: these have groups of their own.
    def stop(pids)
      pids.each { |pid| signal(:INT, -pid) }
      deadline = now + GRACE
      late = pids.reject { |pid| @running[pid]&.join([deadline - now, 0].max) }
      started = descendants(late)
      late.each { |pid| signal(:KILL, -pid) }
      started.each { |pid| signal(:KILL, pid) }
    end
    private_class_method :stop

    # @return [Array<Integer>] of what these have started, as far as the system tells
    def descendants(pids)
      parents = Dir["/proc/[0-9]*/stat"].filter_map { |path| parent(path) }
      found = []
      while (pids = parents.filter_map { |pid, parent| pid if pids.include?(parent) } - found).any?
        found += pids
      end
      found
    end
    private_class_method :descendants

    # The name, in parentheses, may have any character.
    def parent(path)
      [path[/\d+/].to_i, File.binread(path)[/.*\) \S (\d+)/m, 1].to_i]
    rescue SystemCallError
      nil # It has ended.
    end
    private_class_method :parent

    def signal(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil # It has ended.
    end
    private_class_method :signal

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    private_class_method :now
  end
end
