# frozen_string_literal: true

require_relative "../support/interleave"
require_relative "figure"
require_relative "program"

module Live
  # What a port costs to which nobody is attached.
  class Unattended
    ENGINES = %w[interpreter yjit].freeze
    THREAD = "rperf-port"

    def initialize(options)
      @options = options
    end

    def figures
      [*ratios, *idle, *memory, *times]
    end

    private

    # In one process, which has a port in every other run: processes differ by more than a port costs.
    def ratios
      Bench::Engines.available(ENGINES).map do |engine|
        cpu = Program.open({}, listens: false, engine:) do |program|
          program.command("with_port_and_without", "interpreter", @options[:scale] / 20, @options[:pairs] * 4)
        end
        Figure.ratio("nobody attached: CPU time, #{engine}", Bench::Statistics.ratios(cpu[:with], cpu[:without]), 1.003)
      end
    end

    def idle
      Program.open do |program|
        sleep 0.3
        before = switches(program)
        sleep @options[:seconds]
        woken = switches(program) - before
        [Figure.new("nobody attached: wake-ups of the port's thread", woken / @options[:seconds], "1/s", bar: 0)]
      end
    end

    def switches(program)
      Dir.glob("/proc/#{program.pid}/task/*").sum do |directory|
        next 0 unless File.read("#{directory}/comm").chomp == THREAD

        File.read("#{directory}/status").scan(/ctxt_switches:\s*(\d+)/).sum { |number,| number.to_i }
      end
    end

    def memory
      kb = Bench::Interleave.call([false, true], runs: @options[:runs] * 3, warm_up: false) do |listens|
        Program.open({}, listens:) { |it| it.command("state").values_at(:own_kb, :rss_kb) }
      end
      own, all = kb[true].zip(kb[false]).map { |with, without| with.zip(without).map { |it| it.inject(:-) } }.transpose
      [Figure.median("nobody attached: memory of the process' own", own, "kB", 64),
       Figure.median("nobody attached: the same with pages of files, which processes share", all, "kB")]
    end

    def times
      opened = Array.new(@options[:runs] * 3) do
        Program.open({}, listens: false) { |it| it.command("listen")[:ns] / 1e6 }
      end
      forks = Bench::Interleave.call([false, true], runs: @options[:runs], warm_up: false) do |listens|
        Program.open({}, listens:) do |it|
          it.command("forks", @options[:forks])[:took].transpose.map { |took| Bench::Statistics.median(took) / 1e6 }
        end
      end
      more = forks[true].zip(forks[false]).map { |with, without| with.zip(without).map { |it| it.inject(:-) } }
      calls, children = more.transpose
      [Figure.median("Rperf.listen", opened, "ms", 0.3),
       Figure.median("a call of fork takes longer by", calls, "ms", 0.2),
       Figure.median("a fork whose child does nothing takes longer by", children, "ms", 0.2)]
    end
  end
end
