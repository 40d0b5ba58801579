# frozen_string_literal: true

# The cost of profiling in servers, where work comes in short pieces: Puma, a server of sockets and threads alone, and
# Sidekiq with a Redis. Each request, or job, computes for 200 us. "pages" is Puma with a page of a Sinatra application,
# which waits for Redis eight times.
#
# All profilers run in turn in one process of the server, a piece of load each, from clients in another process. A third
# as much load comes before each piece, because servers run for long: what a profiler does once for a session, or once
# for a thread, isn't measured. CPU is that of all the server's threads for one request, p50 and p99 are the latencies
# that the clients see. A ratio is the median of the ratios to the piece without a profiler in the same round.

require_relative "support/child"
require_relative "support/engines"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/native"
require_relative "support/options"
require_relative "support/profilers"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module Web
  SERVERS = %w[puma sockets pages sidekiq].freeze
  # Connections, and requests a second in all; 0: each as soon as the last is answered.
  LOADS = {
    "20/s" => [4, 20], "80/s" => [4, 80], "400/s" => [4, 400], "back to back" => [1, 0], "4 clients" => [4, 0],
    "saturated" => [16, 0]
  }.freeze
  FREQUENCIES = [999, 99].freeze
  # Profiler, and frequency in Hz.
  VARIANTS = ["rperf wall", "rperf cpu", "empty ticks"].product(FREQUENCIES) + [
    ["empty wall", 999], ["rperf wall with middleware", 999], ["rperf wall requests with middleware", 999],
    ["rperf wall requests with middleware", 99], ["rperf wall all with middleware", 99],
    ["none with port", 0], ["none with middleware", 0],
    ["rperf accounts with middleware", 0]
  ].freeze
  HEADINGS = ["server", "engine", "load", "profiler", "Hz", "CPU us", "ratio", "quartiles", "its threads us",
              "p50 us", "ratio", "p99 us", "ratio"].freeze

  module_function

  def options(arguments)
    lists = { servers: [], loads: [], profilers: [], frequencies: [], engines: ["interpreter"] }
    defaults = { runs: 5, seconds: 3.0, **lists }
    smoke = { runs: 1, seconds: 0.2, servers: ["sockets"], loads: ["80/s"] }
    Bench::Options.parse("web", arguments, defaults, smoke:) do |parser, given|
      parser.on("--server NAME", *Bench::Options.some_of(SERVERS, "all")) { |it| given[:servers] |= [it] }
      parser.on("--load NAME", *Bench::Options.some_of(LOADS.keys, "all")) { |it| given[:loads] |= [it] }
      parser.on("--profiler NAME", *Bench::Options.some_of(names, "all")) { |it| given[:profilers] |= [it] }
      parser.on("--frequency HZ", *Bench::Options.some_of(FREQUENCIES.map(&:to_s), "all")) do |it|
        given[:frequencies] |= [Integer(it)]
      end
      Bench::Engines.add_option(parser, given, "interpreter")
      parser.on("--seconds S", Float, "length of a piece of load (default 3)") { |it| given[:seconds] = it }
    end
  end

  # Profilers of others that are installed are measured at both frequencies, too.
  # @param wanted [Array<String>] the names of some; none: all
  # @param frequencies [Array<Integer>] some, in Hz; none: all
  def variants(wanted, frequencies)
    others = Bench::Profilers.available.reject { |name| name.start_with?("none", "rperf", "empty") }
    missing = Bench::Native.missing
    warn("empty ticks are left out: #{missing}") if missing
    ours = missing ? VARIANTS.reject { |name,| name == "empty ticks" } : VARIANTS
    chosen = ours + others.product(FREQUENCIES)
    chosen.select! { |name,| wanted.include?(name) } unless wanted.empty?
    chosen.select! { |_, hertz| hertz.zero? || frequencies.include?(hertz) } unless frequencies.empty?
    [["none", 0]] + chosen
  end

  def names = VARIANTS.map(&:first).uniq + Bench::Profilers.names.grep(/stackprof|vernier|pf2/)

  def run(arguments)
    options = options(arguments)
    Bench::Machine.head("#{options[:runs]} rounds of #{options[:seconds]} s for each profiler, medians")
    servers = options[:servers].empty? ? SERVERS : options[:servers]
    loads = options[:loads].empty? ? LOADS.keys : options[:loads]
    rows = servers.product(Bench::Engines.available(options[:engines])).flat_map do |server, engine|
      variants = variants(options[:profilers], options[:frequencies])
      with_server(server, engine) do |site|
        loads.flat_map do |load|
          warn("web: #{server}, #{engine}, #{load}") if $stderr.tty?
          table(site.in_turn(variants, load, options)).map { |row| [server, engine, load, *row] }
        end
      end
    end
    Bench::Table.print(HEADINGS, rows)
  end

  def with_server(server, engine)
    IO.popen(Bench::Child.command(SERVER, server, engine:), "r+") do |pipe|
      port = pipe.gets or return skip(server)
      yield Site.new(pipe, server, Integer(port))
    ensure
      pipe.close_write
    end
  end

  def skip(server)
    puts "#{server}: can't be started; left out"
    []
  end

  def table(results)
    base = results.fetch(["none", 0])
    results.map { |(name, hertz), runs| [name, hertz.zero? ? "-" : hertz.to_s, *figures(runs, base)] }
  end

  def figures(runs, base)
    of = ->(all, key) { all.map { |it| it[key] } }
    median = ->(key, form = "%.0f") { format(form, Bench::Statistics.median(of[runs, key])) }
    ratios = ->(key) { Bench::Statistics.ratios(of[runs, key], of[base, key]) }
    ratio = ->(key) { format("%.2f", Bench::Statistics.median(ratios[key])) }
    quartiles = Bench::Statistics.quartiles(ratios[:cpu]).map { |it| format("%.2f", it) }.join(" to ")
    [median[:cpu], ratio[:cpu], quartiles, median[:own, "%.1f"], median[:p50], ratio[:p50], median[:p99], ratio[:p99]]
  end

  SERVER = File.expand_path("web/server.rb", __dir__)
  CLIENT = File.expand_path("web/client.rb", __dir__)

  # A running server.
  class Site
    def initialize(pipe, kind, port)
      @pipe = pipe
      @kind = kind
      @port = port
    end

    # @return [Hash] what each variant cost, by round: us of CPU for a request, of them those of rperf's threads, and
    #   latencies
    def in_turn(variants, load, options)
      load_for = ->(seconds) { Bench::Child.json(CLIENT, @kind, @port, *LOADS.fetch(load), seconds) }
      command("start", "none", 0)
      Bench::Interleave.call(variants, runs: options[:runs], warm_up: !options[:smoke]) do |name, hertz|
        command("start", name, hertz)
        load_for[options[:seconds] / 3]
        command("measure")
        seen = load_for[options[:seconds]]
        stopped = command("stop")
        { cpu: stopped[:cpu_ns] / 1e3 / seen[:requests], own: stopped[:own_ns] / 1e3 / seen[:requests],
          p50: seen[:p50_ns] / 1e3, p99: seen[:p99_ns] / 1e3 }
      end
    end

    private

    def command(*words)
      @pipe.puts(words.join("\t"))
      JSON.parse(@pipe.readline, symbolize_names: true)
    end
  end
end

Web.run(ARGV)
