# frozen_string_literal: true

# Whether methods get their true time, in both modes, with and without load.
#
# Each run is a process of its own, in which clocks around every call say what it
# really took. bench/accuracy/ has a file for each kind of scenario, which says what
# its figure is.

require_relative "accuracy/load"
require_relative "accuracy/native"
require_relative "accuracy/scenarios"
require_relative "support/child"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Accuracy
  CHILD = File.expand_path("accuracy/child.rb", __dir__)
  MODES = %w[cpu wall].freeze
  FREQUENCIES = [1000, 100].freeze
  # Whether other processes keep all CPUs busy, and the CPUs that the program may use.
  CONDITIONS = [[false, :all], [false, :one], [true, :all], [true, :one]].freeze
  SEED = 42

  module_function

  def options(arguments)
    defaults = { runs: 3, only: [], modes: MODES, frequencies: FREQUENCIES, conditions: CONDITIONS, seconds: 2.5 }
    smoke = { runs: 1, seconds: 0.1, frequencies: [1000], conditions: [[false, :all]] }
    options = Bench::Options.parse("accuracy", arguments, defaults, smoke:) do |parser, given|
      parser.on("--only NAME", *Bench::Options.some_of(SCENARIOS.keys, "all")) { |name| given[:only] |= [name] }
      parser.on("--modes LIST", Array, "default cpu,wall") { |modes| given[:modes] = modes & MODES }
      parser.on("--frequencies LIST", Array, "default #{FREQUENCIES.join(",")} (Hz)") do |list|
        given[:frequencies] = list.map { |hertz| Integer(hertz) }
      end
      parser.on("--seconds S", Float, "length of a run (default 2.5)") { |seconds| given[:seconds] = seconds }
      parser.on("--quick", "1000 Hz, no load, all CPUs only; all of it takes 25 minutes") do
        given.merge!(frequencies: [1000], conditions: [[false, :all]])
      end
    end
    options[:only] = SCENARIOS.keys if options[:only].empty?
    options
  end

  def run(options)
    Bench::Machine.head("#{options[:runs]} runs of #{options[:seconds]} s each, medians")
    conditions = options[:conditions].select { |_, cpus| cpus == :all || Bench::Child.one_cpu }
    puts("not measured on one CPU: taskset isn't there", "") if conditions != options[:conditions]
    cases = usable(options[:only]).product(options[:modes], options[:frequencies])
    figures = conditions.group_by(&:first).reduce({}) do |all, (loaded, group)|
      all.merge(measure(cases, group, options, loaded))
    end
    headings = ["scenario", "mode", "Hz", "unit", *conditions.map { |condition| describe(*condition) }]
    Bench::Table.print(headings, cases.map { |it| row(it, conditions, figures) })
  end

  def usable(names)
    return names if names.none? { |name| SCENARIOS[name].native? }
    return names unless (obstacle = Native.missing)

    puts "#{obstacle}; left out is what needs it", ""
    names.reject { |name| SCENARIOS[name].native? }
  end

  # @return [Hash{Array => Array<Float>}] figures of the runs, by case and condition
  def measure(cases, conditions, options, loaded)
    warn("accuracy: #{loaded ? "with" : "no"} load ...")
    round = 0
    under(loaded) do
      Bench::Interleave.call(cases.product(conditions), runs: options[:runs], warm_up: false) do |it, (_, cpus)|
        round += 1
        Bench::Child.json(CHILD, *it, options[:seconds], SEED + round, cpu: cpus == :one ? Bench::Child.one_cpu : nil)
      end
    end
  end

  def under(loaded, &) = loaded ? Load.during(&) : yield

  def describe(loaded, cpus)
    "#{loaded ? "load" : "no load"}, #{cpus == :all ? "all CPUs" : "one CPU"}"
  end

  def row((name, mode, hertz), conditions, figures)
    cells = conditions.map do |condition|
      format("%.2f", Bench::Statistics.median(figures.fetch([[name, mode, hertz], condition])))
    end
    [name, mode, hertz.to_s, SCENARIOS[name].unit, *cells]
  end
end

Accuracy.run(Accuracy.options(ARGV)) if $PROGRAM_NAME == __FILE__
