# frozen_string_literal: true

require "rbconfig"
require_relative "figure"
require_relative "program"

module Live
  # What is left of clients that have gone, and whether their sums are right.
  class Lasting
    COMMAND = File.expand_path("../../exe/rperf", __dir__)
    # Clients that come before memory is looked at.
    FIRST = 100

    def initialize(options)
      @options = options
    end

    def figures = [*attaches, *sums]

    private

    def attaches
      Program.open({ busy: 1, blocked: "4:10" }) do |program|
        count = @options[:visits]
        first = [FIRST, count / 10].min
        first.times { visit(program) }
        before = state(program)
        (count - first).times { visit(program) }
        after = state(program)
        left = %i[threads descriptors].sum { |name| (after[name] - before[name]).abs }
        what = "#{count} attaches and detaches"
        [*memory("#{what}: memory after the first #{first}", before, after),
         Figure.new("#{what}: threads and descriptors left", left, "", bar: 0)]
      end
    end

    def memory(what, before, after)
      resident = Figure.new(what, after[:rss_kb] - before[:rss_kb], "kB", bar: 0)
      return [resident] unless before[:allocated_kb]

      [resident, Figure.new("#{what}: allocated", after[:allocated_kb] - before[:allocated_kb], "kB")]
    end

    def visit(program)
      program.ask { |port| port.get("/v1/session?mode=wall&frequency=1000", "POST") }
    end

    # When nothing of the last client's is there.
    def state(program)
      program.ask { |port| sleep 0.02 while JSON.parse(port.get("/v1/hello"))["session"] }
      sleep 0.3
      program.command("state")
    end

    # Each thread's wall time against that of the profile.
    def sums
      Dir.mktmpdir("rperf-bench") do |directory|
        path = File.join(directory, "p.pb.gz")
        Program.open({ busy: 2, blocked: "5:10" }) do |program|
          arguments = ["attach", program.pid.to_s, "--duration", (@options[:seconds] * 2).to_s, "-o", path]
          system(RbConfig.ruby, "-I", Bench::Child::LIBRARY, COMMAND, *arguments, err: File::NULL, exception: true)
        end
        [Figure.worst("rperf attach: a thread's wall time against its life", deviations(path), "%", 0.1)]
      end
    end

    def deviations(path)
      require "rperf"
      profile = Rperf.load(path)
      life = profile[:duration_ns]
      profile.top(by: :thread, value: "wall", limit: 100).map { |row| (row[:self] - life).abs * 100.0 / life }
    end
  end
end
