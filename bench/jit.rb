# frozen_string_literal: true

# The cost of profiling for compiled code: pairs of runs in one process, with it off and on.
#
# After a warm-up, each round has a pair in each mode, a pair of two runs without profiling,
# whose ratio is the noise, and one with no more than the signals that tick capture sends,
# which is the least it can cost; the order is random, of the pairs and in them. A ratio is
# the median of those of the pairs, which are many and short: what disturbs a machine mostly
# lasts longer than both runs of one. Of the short program, warm-up included, each run is a
# process, and there is one more variant: with rperf loaded, but without a session. How often
# such a program collects garbage depends on the objects that it starts with, which any
# library that is loaded changes. A ratio should be no larger than what stands beside it.

require_relative "jit/pairs"
require_relative "jit/processes"
require_relative "jit/report"
require_relative "support/child"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/native"
require_relative "support/options"
require_relative "support/table"

module Jit
  DIRECTORIES = [File.expand_path("jit/workloads", __dir__), File.expand_path("workloads", __dir__)].freeze
  CHILD = File.expand_path("jit/child.rb", __dir__)
  COMPILED = %w[loop loop_and_sort blocks sudoku emulator erb kramdown rouge liquid json].freeze
  # CPU-bound, and allocation-heavy.
  INTERPRETED = %w[interpreter garbage].freeze
  SHORT_PROGRAM = "short_program"
  WORKLOADS = [*COMPILED, SHORT_PROGRAM, *INTERPRETED].freeze
  GEMS = %w[kramdown rouge liquid].freeze
  # One call of the loop is a run, which is long: of these there are fewer.
  LOOP = "loop"
  LOOP_SECONDS = 0.6
  FEWER = 4
  MODES = %w[wall cpu].freeze
  SMOKE = { runs: 1, seconds: 0.02, loop_seconds: 0.05, short_seconds: 0.3, warm_up: 0.05 }.freeze

  module_function

  def options(arguments)
    defaults = { runs: 60, workloads: [], modes: MODES, frequency: 1000, seconds: 0.05, loop_seconds: LOOP_SECONDS,
                 short_seconds: 2.0, lead: 1.0, warm_up: 3.0 }
    Bench::Options.parse("jit", arguments, defaults, smoke: SMOKE) do |parser, given|
      parser.on("--workload NAME", *Bench::Options.some_of(WORKLOADS, "all, by engine")) do |it|
        given[:workloads] |= [it]
      end
      Bench::Engines.add_option(parser, given, "JITs; interpreter for #{INTERPRETED.join(", ")}")
      parser.on("--modes LIST", Array, "default #{MODES.join(",")}") do |modes|
        unknown = modes - MODES
        raise OptionParser::InvalidArgument, unknown.first unless unknown.empty?

        given[:modes] = modes
      end
      parser.on("--frequency HZ", Integer, "samples per second (default 1000)") { |it| given[:frequency] = it }
      parser.on("--seconds S", Float, "length of a run (default 0.05; the loop's is 0.6)") { |it| given[:seconds] = it }
      parser.on("--lead X", Float, "part of a run that comes first in each, untimed (default 1)") do |it|
        given[:lead] = it
      end
      parser.on("--warm-up S", Float, "seconds before anything is timed (default 3)") { |it| given[:warm_up] = it }
      parser.on("--one-cpu", "confines the programs to one CPU") { given[:one_cpu] = true }
    end
  end

  def run(options)
    abort("bin/bench jit: taskset isn't there") if options[:one_cpu] && !Bench::Child.one_cpu

    Bench::Machine.head("#{options[:runs]} pairs at #{options[:frequency]} Hz, medians; " \
                        "#{options[:one_cpu] ? "one CPU" : "all CPUs"}")
    missing = GEMS.select { |name| wanted(options).include?(name) && !there?(name) }
    puts("left out, as the gems aren't here: #{missing.join(", ")}", "") unless missing.empty?
    Bench::Engines.available(options[:engines] || Bench::Engines::NAMES).each do |engine|
      names = workloads(engine, options) - missing
      rows = names.flat_map { |name| rows(engine, name, options) }
      Bench::Table.print(Report::HEADINGS, rows) unless rows.empty?
    end
  end

  def wanted(options) = options[:workloads].empty? ? WORKLOADS : options[:workloads]

  # The chosen workloads run under every chosen engine.
  def workloads(engine, options)
    return wanted(options) if options[:engines]

    wanted(options) & (engine == "interpreter" ? INTERPRETED : WORKLOADS - INTERPRETED)
  end

  def rows(engine, workload, options)
    warn("jit: #{engine}, #{workload} ...")
    place = { engine:, cpu: (Bench::Child.one_cpu if options[:one_cpu]) }
    results = workload == SHORT_PROGRAM ? processes(place, options) : pairs(workload, place, options)
    Report.rows(engine, workload, results, Report.bound(engine, workload, one_cpu: options[:one_cpu]))
  end

  def processes(place, options)
    Processes.new(seconds: options[:short_seconds], frequency: options[:frequency], place:)
             .run([Pairs::OFF, Processes::LOADED, *signals, *options[:modes]], fewer(options[:runs]))
  end

  def pairs(workload, place, options)
    is_loop = workload == LOOP
    seconds = options[is_loop ? :loop_seconds : :seconds]
    runs = is_loop ? fewer(options[:runs]) : options[:runs]
    Bench::Child.json(CHILD, file(workload), seconds, *options.values_at(:lead, :warm_up, :frequency), runs,
                      *variants(options), **place)
  end

  def fewer(runs) = (runs / FEWER).clamp(1..)

  def variants(options) = [Pairs::OFF, *signals, *options[:modes]]

  # Not where the system has no such signals, or there is no compiler.
  def signals
    @signals ||= begin
      obstacle = RUBY_PLATFORM.include?("linux") ? Bench::Native.missing : "no Linux"
      warn("left out are the signals alone: #{obstacle}") if obstacle
      obstacle ? [] : [Pairs::SIGNALS]
    end
  end

  def file(workload) = DIRECTORIES.map { |directory| "#{directory}/#{workload}.rb" }.find { |path| File.file?(path) }

  def there?(gem)
    system(*Bench::Child.command(file(gem)), out: File::NULL, err: File::NULL)
  end
end

Jit.run(Jit.options(ARGV)) if $PROGRAM_NAME == __FILE__
