# frozen_string_literal: true

# Whether methods and lines get their true time, in both modes, with and without load.
#
# Each run is a process of its own, in which clocks around every call say what it
# really took. bench/accuracy/ has a file for each kind of scenario, which says what
# its figure is.

require_relative "accuracy/load"
require_relative "accuracy/scenarios"
require_relative "support/child"
require_relative "support/engines"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/native"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Accuracy
  CHILD = File.expand_path("accuracy/child.rb", __dir__)
  MODES = %w[cpu wall].freeze
  # Whether other processes keep all CPUs busy, and the CPUs that the program may use.
  CONDITIONS = [[false, :all], [false, :one], [true, :all], [true, :one]].freeze
  SEED = 42

  module_function

  def options(arguments)
    defaults = { runs: 3, only: [], modes: MODES, conditions: CONDITIONS, seconds: 2.5, for_child: [] }
    smoke = { runs: 1, modes: %w[cpu], seconds: 0.1, frequencies: [1000], conditions: [[false, :all]] }
    options = Bench::Options.parse("accuracy", arguments, defaults, smoke:) do |parser, given|
      parser.on("--only NAME", *described(SCENARIOS.keys)) { |name| given[:only] |= beginning_with(name) }
      parser.on("--modes LIST", Array, "default cpu,wall") { |modes| given[:modes] = some_of(MODES, modes) }
      Bench::Engines.add_option(parser, given, "by scenario: interpreter, or all")
      parser.on("--frequencies LIST", Array, "in Hz (default, by scenario: 1000,100, or 1000)") do |list|
        given[:frequencies] = list.map { |hertz| frequency(hertz) }
      end
      parser.on("--seconds S", Float, "length of a run (default 2.5)") { |seconds| given[:seconds] = seconds }
      child_options(parser, given)
      parser.on("--quick", "1000 Hz, no load, all CPUs only; all of it takes 80 minutes") do
        given.merge!(frequencies: [1000], conditions: [[false, :all]])
      end
    end
    options[:only] = SCENARIOS.keys if options[:only].empty?
    options
  end

  def child_options(parser, given)
    parser.on("--capture WHERE", %w[tick safepoint], "tick or safepoint, as Rperf.start takes it",
              "(default: not given)") { |where| given[:for_child] += [where] }
    parser.on("--details", "print each run's methods or lines, where there are several") do
      given[:for_child] += ["details"]
    end
  end

  def described(names)
    ["a scenario, or the beginning of several names; may be repeated",
     "(default: all):", *names.each_slice(5).map { |some| some.join(", ") }]
  end

  def beginning_with(name)
    names = SCENARIOS.keys.select { |it| it.start_with?(name) }
    names.empty? ? raise(OptionParser::InvalidArgument, name) : names
  end

  def frequency(text)
    Integer(text, exception: false) || raise(OptionParser::InvalidArgument, text)
  end

  def some_of(known, given)
    unknown = given - known
    unknown.empty? ? given : raise(OptionParser::InvalidArgument, unknown.first)
  end

  def run(options)
    Bench::Machine.head("#{options[:runs]} runs of #{options[:seconds]} s each, medians")
    conditions = options[:conditions].select { |_, cpus| cpus == :all || Bench::Child.one_cpu }
    puts("not measured on one CPU: taskset isn't there", "") if conditions != options[:conditions]
    cases = cases(usable(options[:only]), options)
    figures = conditions.group_by(&:first).reduce({}) do |all, (loaded, group)|
      all.merge(measure(cases, group, options, loaded))
    end
    headings = ["scenario", "by", "mode", "Hz", "unit", *conditions.map { |condition| describe(*condition) },
                "should be", ""]
    Bench::Table.print(headings, cases.flat_map { |it| rows(it, conditions, figures) })
  end

  def usable(names)
    return names if names.none? { |name| SCENARIOS[name].native? }
    return names unless (obstacle = Bench::Native.missing)

    puts "#{obstacle}; left out is what needs it", ""
    names.reject { |name| SCENARIOS[name].native? }
  end

  # @return [Array<Array>] name, engine, mode and Hz of all that is to be measured
  def cases(names, options)
    cases = names.flat_map do |name|
      scenario = SCENARIOS[name]
      [name].product(options[:engines] || scenario.engines, options[:modes],
                     options[:frequencies] || scenario.frequencies)
    end
    engines = Bench::Engines.available(cases.map { |_, engine| engine }.uniq)
    cases.select { |_, engine| engines.include?(engine) }
  end

  # @return [Hash{Array => Array<Hash>}] the runs' figures, by case and condition
  def measure(cases, conditions, options, loaded)
    warn("accuracy: #{loaded ? "with" : "no"} load ...")
    round = 0
    under(loaded) do
      Bench::Interleave.call(cases.product(conditions), runs: options[:runs], warm_up: false) do |it, (_, cpus)|
        round += 1
        name, engine, mode, hertz = it
        warn("#{it.join(" ")}:") if options[:for_child].include?("details")
        Bench::Child.json(CHILD, name, mode, hertz, options[:seconds], SEED + round, *options[:for_child],
                          cpu: cpus == :one ? Bench::Child.one_cpu : nil, engine:)
      end
    end
  end

  def under(loaded, &) = loaded ? Load.during(&) : yield

  def describe(loaded, cpus)
    "#{loaded ? "load" : "no load"}, #{cpus == :all ? "all CPUs" : "one CPU"}"
  end

  # One for each of the case's figures.
  def rows(measured_case, conditions, figures)
    runs = conditions.map { |condition| figures.fetch([measured_case, condition]) }
    runs.first.first.keys.map do |unit|
      medians = runs.map do |some|
        values = some.filter_map { |run| run[unit] }
        Bench::Statistics.median(values) unless values.empty?
      end
      [*measured_case.map(&:to_s), unit.to_s, *medians.map { |it| it ? format("%.2f", it) : "-" },
       *verdict(SCENARIOS[measured_case.first].bounds[unit.to_s], medians.compact)]
    end
  end

  # @param bound [Range, nil]
  def verdict(bound, medians)
    return ["-", ""] unless bound

    [bound.begin ? "#{bound.begin} or more" : "#{bound.end} or less",
     medians.all? { |it| bound.cover?(it.round(2)) } ? "within" : "beyond"]
  end
end

Accuracy.run(Accuracy.options(ARGV)) if $PROGRAM_NAME == __FILE__
