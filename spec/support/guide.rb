# frozen_string_literal: true

# Programs and command lines as users write them: `rperf`, `ruby` and `require "rperf"` mean this checkout's. And
# questions to what is printed. Goes with Commands.
module Guide
  FIB = <<~RUBY
    def fib(n)
      return n if n <= 1
      fib(n - 1) + fib(n - 2)
    end

    fib(%d)
  RUBY

  MIXED = <<~RUBY
    def cpu_work(n)
      sum = 0
      n.times { |i| sum += i * i }
      sum
    end

    def io_work
      sleep(0.05)
    end

    5.times do
      cpu_work(500_000)
      io_work
    end
  RUBY

  # Any program: it computes, waits and prints.
  APP = <<~RUBY
    def compute = 200_000.times { |i| i * i }
    def wait = sleep(0.1)
    compute
    wait
    puts "the app's own output"
  RUBY

  # The reason to skip examples that need `go tool pprof`; nil where there is one.
  def self.without_go_pprof
    found = system("go", "tool", "-n", "pprof", out: File::NULL, err: File::NULL)
    "needs go tool pprof, which was not found" unless found
  end

  def write_fib(number) = write_file("fib.rb", format(FIB, number))

  # Runs a line of shell, which must succeed.
  def type(line, env: {}, **)
    path = [our_commands, ENV.fetch("PATH")].join(":")
    library = File.join(Commands::ROOT, "lib")
    outcome = run("/bin/sh", "-c", line, env: { "PATH" => path, "RUBYLIB" => library, **env }, **)
    raise "#{line}: #{outcome.status}: #{outcome.stderr}" unless outcome.status.success?

    outcome
  end

  # The program's output.
  def output_of(program)
    write_file("example.rb", program)
    outcome = type("ruby example.rb")
    expect(outcome.stderr).to be_empty
    outcome.stdout
  end

  # The files that programs have written into the example's directory.
  def files = Dir.children(directory).grep(/\A[^.]/).grep_v(/\.rb\z/).sort

  # Rows of a text report's table, in order: { "name (file)" => [ms, percent] }. Files have absolute paths in reports;
  # here those in the example's directory are without it.
  def table(report, title)
    rows = report[/^#{title}:\n((?:  .*\n)*)/, 1] or raise "no table #{title} in: #{report}"
    rows = rows.gsub("(#{directory}/", "(")
    rows.scan(/^ +([\d,.]+) ms +([\d.]+)%  (.+)$/).to_h { |ms, share, name| [name, [number(ms), share.to_f]] }
  end

  # Rows of the page of `rperf stat` that are times, in order: { text => [ms, percent or nil] }.
  def times(page)
    page.scan(/^ +([\d,.]+) ms +(?:([\d.]+)%)? +(\S.*)$/).to_h { |ms, share, text| [text, [number(ms), share&.to_f]] }
  end

  # Lines of collapsed stacks: [[frames, ns], ...].
  def collapsed(text)
    text.lines.map do |line|
      # As flamegraph.pl takes them apart.
      parts = line.match(/\A(.*)\s+?(\d+(?:\.\d*)?)\n\z/) or raise "no stack: #{line}"
      [parts[1].split(";", -1), Integer(parts[2])]
    end
  end

  # The output of `top -cum` in `go tool pprof OPTIONS FILE`: { name => percent of the cumulative time }.
  def go_top(options, file)
    page = type("go tool pprof #{options} #{file}", input: "nodefraction=0\ntop100 -cum\n").stdout
    page.scan(/^ *\S+ +[\d.]+% +[\d.]+% +\S+ +([\d.]+)%  (.+)$/).to_h { |share, name| [name, share.to_f] }
  end

  private

  def number(text) = text.delete(",").to_f

  def our_commands
    path_to(".commands").tap do |path|
      next if Dir.exist?(path)

      Dir.mkdir(path)
      File.symlink(ruby, File.join(path, "ruby"))
      File.write(File.join(path, "rperf"), "#!/bin/sh\nexec ruby '#{Commands::ROOT}/exe/rperf' \"$@\"\n", perm: 0o755)
    end
  end
end
