# frozen_string_literal: true

require "rbconfig"
require_relative "native"

module Bench
  # What is compared: no profiler, rperf, hooks that do nothing, and the other
  # profilers that are installed. Each stops with its profile written out.
  module Profilers
    # library: what to require first; floor: the name of the empty hooks to set
    # it against; start takes samples per second.
    Profiler = Data.define(:library, :floor, :start, :stop) do
      def initialize(library: nil, floor: nil, start: ->(_) {}, stop: -> {}) = super
    end

    # The calls that a trace has counted.
    Counted = Struct.new(:calls)

    # One method of the Rack application is traced.
    ONLY = Profiler.new(library: "rperf", start: ->(_) { Rperf.start(mode: :trace, only: "Shop.search") },
                        stop: -> { Counted.new(Rperf.stop.top(value: "calls").sum { |row| row[:self] }) })

    RPERF = lambda do |mode, **options|
      start = ->(hertz) { Rperf.start(mode:, frequency: hertz, output: File::NULL, format: :pprof, **options) }
      Profiler.new(library: "rperf", floor: "empty #{mode}", stop: -> { Rperf.stop }, start:)
    end

    # Each request of the Rack application has an account; no session runs.
    ACCOUNTS = Profiler.new(library: "rperf", floor: "empty wall", start: ->(_) { Rperf.start(mode: :account) },
                            stop: -> { Rperf.stop(mode: :account) })

    EMPTY_HOOKS = lambda do |mode|
      native = -> { Rperf.const_get(:Native) }
      Profiler.new(library: "rperf", start: ->(_) { native.call.add_empty_hooks(mode) },
                   stop: -> { native.call.remove_empty_hooks })
    end

    # Hooks that take this long, in ns, and do nothing else.
    TIMED_HOOKS = lambda do |nanoseconds|
      Profiler.new(floor: "empty wall", start: ->(_) { BenchNative.add_timed_hooks(nanoseconds) },
                   stop: -> { BenchNative.remove_timed_hooks }, library: Native.library)
    end

    # A timer that follows the GVL, and interrupts whoever has it.
    EMPTY_TICKS = Profiler.new(start: ->(hertz) { BenchNative.start_followed_ticks(hertz) },
                               stop: -> { BenchNative.stop_followed_ticks }, library: Native.library)

    STACKPROF = lambda do |mode|
      Profiler.new(library: "stackprof",
                   start: ->(hertz) { StackProf.start(mode:, interval: 1_000_000 / hertz, raw: false) },
                   stop: lambda do
                     StackProf.stop
                     File.binwrite(File::NULL, Marshal.dump(StackProf.results))
                   end)
    end

    PF2 = lambda do |mode|
      Profiler.new(library: "pf2", start: ->(hertz) { Pf2.start(interval_ms: [1000 / hertz, 1].max, time_mode: mode) },
                   stop: -> { Pf2.stop })
    end

    VERNIER = Profiler.new(library: "vernier", stop: -> { Vernier.stop_profile },
                           start: lambda do |hertz|
                             Vernier.start_profile(mode: :wall, interval: 1_000_000 / hertz, out: File::NULL)
                           end)

    ALL = {
      "none" => Profiler.new,
      "rperf cpu" => RPERF[:cpu],
      "rperf wall" => RPERF[:wall],
      "empty cpu" => EMPTY_HOOKS[:cpu],
      "empty wall" => EMPTY_HOOKS[:wall],
      "stackprof cpu" => STACKPROF[:cpu],
      "stackprof wall" => STACKPROF[:wall],
      "vernier wall" => VERNIER,
      "pf2 cpu" => PF2[:cpu],
      "pf2 wall" => PF2[:wall]
    }.freeze

    # rperf with other options than the default ones; run if asked for.
    VARIANTS = %i[cpu wall].flat_map do |mode|
      { "rperf #{mode} no lines" => RPERF[mode, lines: false],
        "rperf #{mode} safepoint" => RPERF[mode, capture: :safepoint] }.to_a
    end.to_h.merge("rperf wall blame" => RPERF[:wall, measure: :blame], "rperf only" => ONLY,
                   "rperf wall requests" => RPERF[:wall, measure: %i[requests blame]],
                   "rperf wall all" => RPERF[:wall, measure: %i[requests blame ops]],
                   "rperf accounts" => ACCOUNTS).freeze

    # What limits profilers that follow the GVL; run if asked for.
    LIMITS = [50, 100, 200, 400].to_h { |nanoseconds| ["hooks of #{nanoseconds} ns", TIMED_HOOKS[nanoseconds]] }
                                .merge("empty ticks" => EMPTY_TICKS).freeze

    # @return [Array<String>] those whose library can be loaded
    def self.available
      found = Hash.new { |cache, library| cache[library] = loads?(library) }
      ALL.select { |_, profiler| profiler.library.nil? || found[profiler.library] }.keys
    end

    def self.names = ALL.keys + VARIANTS.keys + LIMITS.keys

    def self.fetch(name) = { **ALL, **VARIANTS, **LIMITS }.fetch(name)

    def self.loads?(library)
      system(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", "require ARGV[0]", library,
             out: File::NULL, err: File::NULL)
    end
    private_class_method :loads?
  end
end
