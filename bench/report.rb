# frozen_string_literal: true

# How long a very large profile takes to be looked at, and how much memory.
#
# A profile of 100 MB without its compression, made from chance by
# crates/rperf-format/examples/large_profile.rs; whole processes, Ruby's start and its
# memory included.

require "open3"
require "tmpdir"
require_relative "support/child"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Report
  ROOT = File.expand_path("..", __dir__)
  COMMAND = File.join(ROOT, "exe", "rperf")
  EXAMPLE = "large_profile"
  HEADINGS = ["command", "s", "quartiles", "peak MB"].freeze
  # Runs the command, and prints the most memory that the process ever had to the descriptor given first.
  MEASURED = <<~RUBY.freeze
    output = IO.for_fd(Integer(ARGV.shift))
    require #{File.join(__dir__, "support", "proc_status").dump}
    at_exit { output.puts(Bench::ProcStatus.peak_rss_kb) }
    load ARGV.shift
  RUBY

  module_function

  def options(arguments)
    defaults = { runs: 5, stacks: 650_000, depth: 60 }
    Bench::Options.parse("report", arguments, defaults, smoke: { runs: 1, stacks: 2_000 }) do |parser, given|
      parser.on("--stacks N", Integer, "stacks in the profile (default 650000)") { |it| given[:stacks] = it }
      parser.on("--depth N", Integer, "frames in a stack (default 60)") { |it| given[:depth] = it }
    end
  end

  def run(options)
    Dir.mktmpdir("rperf-bench") do |directory|
      profile = File.join(directory, "large.pb.gz")
      size = make(profile, options)
      next puts("left out: cargo isn't there to make the profile") unless size

      Bench::Machine.head("#{options[:stacks]} stacks of depth #{options[:depth]}, #{megabytes(size)} " \
                          "(#{megabytes(File.size(profile))} with gzip), medians of #{options[:runs]} interleaved runs")
      commands = commands(profile, directory)
      results = Bench::Interleave.call(commands, runs: options[:runs], warm_up: !options[:smoke]) { |it| measure(it) }
      Bench::Table.print(HEADINGS, results.map { |command, runs| row(command, runs, directory) })
    end
  end

  # @return [Integer, nil] bytes without the compression
  def make(path, options)
    arguments = [options[:stacks], options[:depth], path].map(&:to_s)
    cargo = %w[cargo run --quiet --release -p rperf-format --example] << EXAMPLE << "--"
    output, status = Open3.capture2(*cargo, *arguments, chdir: ROOT)
    abort("bench/report: the profile could not be made") unless status.success?
    Integer(output)
  rescue Errno::ENOENT
    nil
  end

  def commands(profile, directory)
    page = File.join(directory, "page.html")
    [%w[report --top], %w[report --tree], %w[report --top --tagroot route], ["report", "--html", "-o", page],
     ["report", "--format", "collapsed", "-o", File::NULL]].map { |command| [*command, profile] } +
      [["diff", "--top", profile, profile]]
  end

  def megabytes(size) = format("%.1f MB", size / 1e6)

  # @return [Array(Integer, Integer)] nanoseconds and KiB
  def measure(command)
    reader, writer = IO.pipe
    started = Bench::Clock.wall
    ruby = [RbConfig.ruby, "-I", Bench::Child::LIBRARY, "-e", MEASURED, writer.fileno.to_s, COMMAND]
    pid = Process.spawn(*ruby, *command, writer => writer, out: File::NULL, err: File::NULL)
    writer.close
    _, status = Process.wait2(pid)
    took = Bench::Clock.wall - started
    abort("bench/report: rperf #{command.join(" ")} failed") unless status.success?
    [took, reader.read.to_i]
  ensure
    reader&.close
  end

  def row(command, runs, directory)
    times, memory = runs.transpose
    quartiles = Bench::Statistics.quartiles(times).map { |it| format("%.2f", it / 1e9) }
    files = command.map { |word| word.start_with?(directory, File::NULL) ? File.basename(word) : word }
    [files.join(" "), format("%.2f", Bench::Statistics.median(times) / 1e9), quartiles.join(" to "),
     format("%.0f", Bench::Statistics.median(memory) / 1024.0)]
  end
end

Report.run(Report.options(ARGV)) if $PROGRAM_NAME == __FILE__
