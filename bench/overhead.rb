# frozen_string_literal: true

# The cost of profiling: the same programs with and without it, in turn.
#
# Only the program's own work is timed, by a clock read around it. A ratio is the
# median of the ratios to the unprofiled run of the same round; its quartiles tell
# how far to trust it. "Empty" hooks are what rperf registers, with callbacks that
# do nothing: what no profiler of this kind gets below.

require_relative "overhead/hand_overs"
require_relative "overhead/idle"
require_relative "overhead/label"
require_relative "overhead/middleware"
require_relative "overhead/programs"
require_relative "overhead/report"
require_relative "overhead/op"
require_relative "overhead/tests"
require_relative "overhead/web"
require_relative "support/child"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/profilers"
require_relative "support/table"

module Overhead
  WORKLOADS = [*Programs::NAMES, "rack", "middleware", "label", "op", "tests", "idle"].freeze

  def self.options(arguments)
    defaults = { runs: 15, workloads: [], profilers: [], frequency: 1000, scale: 1.0, warm_up: 0.25,
                 idle_seconds: 3 }
    smoke = { runs: 1, scale: 0.03, idle_seconds: 0.2 }
    options = Bench::Options.parse("overhead", arguments, defaults, smoke:) do |parser, given|
      parser.on("--workload NAME", *Bench::Options.some_of(WORKLOADS, "all")) { |it| given[:workloads] |= [it] }
      parser.on("--profiler NAME", *Bench::Options.some_of(Bench::Profilers.names, "all there are by default")) do |it|
        given[:profilers] |= ["none", it]
      end
      parser.on("--hand-overs", "programs that hand the GVL over all the time, #{HandOvers::WORKLOADS.join(", ")}:",
                "their CPU time, on all CPUs and on one, above hooks that do nothing") { given[:hand_overs] = true }
      parser.on("--frequency HZ", Integer, "samples per second (default 1000)") { |it| given[:frequency] = it }
      parser.on("--scale X", Float, "size of the workloads (default 1.0)") { |it| given[:scale] = it }
      parser.on("--warm-up X", Float, "part of a workload that is run first in every session, untimed (default",
                "0.25; with 0 the figures have the cost of meeting all stacks for the first time)") do |it|
        given[:warm_up] = it
      end
      parser.on("--[no-]in-process", "all profilers take turns in one process (default for",
                "#{Programs::IN_ONE_PROCESS.join(", ")}), or each run has its own") { |it| given[:in_process] = it }
      parser.on("--[no-]one-cpu", "confines the programs to one CPU (default for #{Programs::ON_ONE_CPU.join(", ")}),",
                "or lets them use all") { |it| given[:one_cpu] = it }
    end
    with_defaults(options)
  end

  def self.with_defaults(options)
    options[:workloads] = WORKLOADS if options[:workloads].empty?
    return options unless options[:profilers].empty?

    options.merge(profilers: options[:hand_overs] ? HandOvers::PROFILERS : Bench::Profilers.available)
  end

  def self.run(options)
    Bench::Machine.head("#{options[:runs]} rounds at #{options[:frequency]} Hz, medians. Runs have a process each, " \
                        "or alternate in one.",
                        "Each session begins with a warm-up of #{options[:warm_up]} of the workload.")
    return print_hand_overs(options) if options[:hand_overs]

    programs = options[:workloads] & Programs::NAMES
    print_programs(programs, options) unless programs.empty?
    print_web(options) if options[:workloads].include?("rack")
    print_middleware(options) if options[:workloads].include?("middleware")
    print_label(options) if options[:workloads].include?("label")
    print_op(options) if options[:workloads].include?("op")
    print_tests(options) if options[:workloads].include?("tests")
    print_idle(options) if options[:workloads].include?("idle")
  end

  def self.print_programs(names, options)
    rows = names.flat_map do |workload|
      warn("overhead: #{workload} ...")
      results, how = Programs.new(options).run(workload)
      Report.rows(workload, how, results)
    end
    Bench::Table.print(Report::HEADINGS, rows)
  end

  def self.print_hand_overs(options)
    HandOvers.new(options).each_table { |rows| Bench::Table.print(HandOvers::HEADINGS, rows) }
  end

  def self.print_web(options)
    return puts("rack is left out: #{Site.missing}", "") if Site.missing

    warn("overhead: rack ...")
    results, how = Web.new(options).run
    Bench::Table.print(Report::HEADINGS, Report.rows("rack", how, results))
    Bench::Table.print(Report::WEB_HEADINGS, Report.web_rows(results))
  end

  def self.print_middleware(options)
    warn("overhead: middleware ...")
    puts "What the Rack middleware costs a request, by the session that runs:"
    Bench::Table.print(PerCall::HEADINGS, Middleware.new(options).rows)
  end

  def self.print_label(options)
    warn("overhead: label ...")
    puts "What a block of Rperf.label costs, by the session that runs:"
    Bench::Table.print(PerCall::HEADINGS, Label.new(options).rows)
  end

  def self.print_op(options)
    warn("overhead: op ...")
    puts "What a block of Rperf.op costs, by the session that runs:"
    Bench::Table.print(PerCall::HEADINGS, Op.new(options).rows)
  end

  def self.print_tests(options)
    warn("overhead: tests ...")
    puts "What a test costs that has a name and an account in the profile, by the session that runs:"
    Bench::Table.print(PerCall::HEADINGS, Tests.new(options).rows)
  end

  def self.print_idle(options)
    warn("overhead: idle ...")
    puts "A process that sleeps, from one second after the start of the profiler:"
    Bench::Table.print(Report::IDLE_HEADINGS, Report.idle_rows(Idle.new(options).run))
  end
end

Overhead.run(Overhead.options(ARGV)) if $PROGRAM_NAME == __FILE__
