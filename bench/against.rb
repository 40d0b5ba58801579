# frozen_string_literal: true

# What a change costs: programs with this checkout's rperf and with that of another checkout, in turn.
#
# `bin/bench against DIRECTORY` needs a checkout in DIRECTORY whose extension is built (`bin/env true` there). Each run
# has a process of its own. Only the program's own work is timed, by the CPU time of its process and by the clock. A
# ratio is the median of the ratios to the run of the other checkout in the same round; its interval has the median
# with 95 %. "not loaded" runs the program twice without rperf: the noise. Programs whose threads wait for each other
# all the time have one CPU.

require_relative "overhead/programs"
require_relative "support/child"
require_relative "support/engines"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module Against
  CHILD = File.expand_path("against/child.rb", __dir__)
  WAYS = ["not loaded", "loaded", "cpu", "wall", "trace"].freeze
  DEFAULTS = { runs: 9, workloads: %w[interpreter garbage rdoc tokens pipe_ring thread_per_task],
               ways: WAYS, engines: ["interpreter"], scale: 0.5, frequency: 1000 }.freeze
  HEADINGS = ["workload", "engine", "rperf", "CPU ms", "ratio", "interval", "clock ms", "ratio", "interval"].freeze

  module_function

  def options(arguments)
    given = { workloads: [], ways: [] }
    options = Bench::Options.parse("against DIRECTORY", arguments.drop(1), DEFAULTS.merge(given),
                                   smoke: { runs: 1, scale: 0.02 }) do |parser, it|
      workloads = Bench::Options.some_of(Overhead::Programs::NAMES, DEFAULTS[:workloads].join(", "))
      parser.on("--workload NAME", *workloads) { |name| it[:workloads] |= [name] }
      parser.on("--rperf WAY", *Bench::Options.some_of(WAYS, "all")) { |way| it[:ways] |= [way] }
      parser.on("--frequency HZ", Integer, "samples per second (default 1000)") { |hertz| it[:frequency] = hertz }
      parser.on("--scale X", Float, "size of the workloads (default 0.5)") { |scale| it[:scale] = scale }
      parser.on("--measure LIST", "what this checkout's sessions in wall mode measure beside times, such as",
                "blame,requests; those of the other one measure times alone") { |list| it[:measure] = list }
      Bench::Engines.add_option(parser, it, "interpreter")
    end
    options.to_h { |name, value| [name, value == [] ? DEFAULTS.fetch(name) : value] }
  end

  # The directories with the Ruby code and the extension of both.
  def libraries(other)
    abort("usage: bin/bench against DIRECTORY [options]") if other.nil? || other.start_with?("-")
    library = File.join(File.expand_path(other), "lib")
    loads = system(RbConfig.ruby, "-I", library, "-e", 'require "rperf"', out: File::NULL, err: File::NULL)
    abort("bin/bench against: #{other} has no rperf that can be loaded; run `bin/env true` there") unless loads

    { this: Bench::Child::LIBRARY, other: library }
  end

  def run(arguments)
    return options(["."] + arguments) if arguments.first == "--help"

    libraries = libraries(arguments.first)
    options = options(arguments)
    Bench::Machine.head("#{options[:runs]} rounds at #{options[:frequency]} Hz, medians; ratios to " \
                        "#{arguments.first}")
    engines = Bench::Engines.available(options[:engines])
    options[:workloads].product(engines).each do |workload, engine|
      rows = options[:ways].map do |way|
        warn("against: #{workload}, #{engine}, #{way} ...")
        [workload, engine, way, *figures(results(libraries, workload, engine, way, options))]
      end
      Bench::Table.print(HEADINGS, rows)
      $stdout.flush
    end
  end

  def results(libraries, workload, engine, way, options)
    cpu = Bench::Child.one_cpu if Overhead::Programs::ON_ONE_CPU.include?(workload)
    Bench::Interleave.call(libraries.keys, runs: options[:runs], warm_up: !options[:smoke]) do |checkout|
      measure = [options[:measure]].compact if checkout == :this && way == "wall"
      Bench::Child.json(CHILD, libraries.fetch(checkout), workload, way, options[:frequency], options[:scale],
                        *measure, engine:, cpu:)
    end
  end

  def figures(results)
    %i[cpu_ns wall_ns].flat_map do |clock|
      this, other = %i[this other].map { |checkout| results.fetch(checkout).map { |run| run.fetch(clock) } }
      ratios = Bench::Statistics.ratios(this, other)
      interval = Bench::Statistics.median_interval(ratios).map { |it| format("%.3f", it) }.join(" to ")
      [format("%.1f", Bench::Statistics.median(this) / 1e6), format("%.3f", Bench::Statistics.median(ratios)), interval]
    end
  end
end

Against.run(ARGV) if $PROGRAM_NAME == __FILE__
