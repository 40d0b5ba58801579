# frozen_string_literal: true

# The formats' examples, from the documentation. What it does with `go tool pprof` is done with it where there is one;
# what that goes by in the file is looked at always.
RSpec.describe "Output formats, used as documented" do
  include Guide

  # Two kinds of requests, each in a method of its own and with its own label, and a thread without one.
  requests = <<~RUBY
    require "rperf"

    def spin(seconds)
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end

    def slow_request = spin(0.2)
    def health_request = spin(0.1)
    def background = spin(0.1)

    Rperf.start(output: "profile.pb.gz") do
      Rperf.label(request: "abc-123") { slow_request }
      Rperf.label(request: "healthcheck") { health_request }
      Thread.new { background }.join
    end
  RUBY
  methods = %w[Object#slow_request Object#health_request Object#background]

  describe "pprof" do
    it "tells by whom, in what mode and when the profile was made, and where the documentation is" do
      write_file("my_app.rb", Guide::APP)
      before = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
      type("rperf record -m wall -f 500 -o profile.pb.gz ruby my_app.rb")
      after = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
      message = PprofMessage.read(path_to("profile.pb.gz"))
      expect(message.comments.first(3)).to eq(["rperf #{Rperf::VERSION}", "mode: wall, frequency: 500 Hz",
                                               RUBY_DESCRIPTION])
      expect(message.time_nanos).to be_between(before, after)
      expect(message.duration_nanos).to be_between(100_000_000, after - before)
      expect(message.doc_url).to start_with("https://").and include("rperf")
    end

    it "has the number of its thread and its own labels on each sample" do
      output_of(requests)
      labels = PprofMessage.read(path_to("profile.pb.gz")).labels
      expect(labels.map { |set| set["thread_seq"] }).to all(be_an(Integer)).and include(1, be > 1)
      expect(labels.map { |set| set["request"] }.uniq).to contain_exactly("abc-123", "healthcheck", nil)
      expect(labels.flat_map(&:keys).uniq.grep_v(/\A%G/i)).to contain_exactly("thread_seq", "thread", "request")
      data = read_profile(path_to("profile.pb.gz"))
      expect_own_labels(data, :request, methods.zip(["abc-123", "healthcheck", nil]).to_h)
      numbers = methods.map { |name| data[:samples].filter_map { |row| row[2] if weight_in?(row, name) }.uniq }
      expect(numbers).to match([[1], [1], [be > 1]])
    end

    # Whether the sample has a frame of this name.
    def weight_in?(row, method) = row.first.any? { |_, name| name == method }
  end

  describe "go tool pprof", skip: Guide.without_go_pprof do
    # What is left of the methods after a filter, and what is added to the stacks.
    define_method(:top_by) do |options|
      top = go_top(options, "profile.pb.gz")
      [methods.map { |name| top.key?(name) }, top.slice("abc-123", "healthcheck", "1")]
    end

    it "shows the comments" do
      write_fib(25)
      type("rperf record -o profile.pb.gz ruby fib.rb")
      shown = type("go tool pprof -comments profile.pb.gz").stdout.lines(chomp: true)
      expect(shown.first(3)).to eq(["rperf #{Rperf::VERSION}", "mode: cpu, frequency: 1000 Hz", RUBY_DESCRIPTION])
    end

    it "shows the functions with the most time, with -top" do
      write_fib(27)
      type("rperf record -o profile.pb.gz ruby fib.rb")
      page = type("go tool pprof -top profile.pb.gz").stdout
      expect(page).to match(/^Type: cpu$.*^ +flat  flat%   sum%        cum   cum%$.* Object#fib$/m)
      expect(go_top("", "profile.pb.gz")).to include("Object#fib" => be > 50, "<main>" => be > 50)
    end

    it "groups by thread, with -tagroot=thread_seq" do
      output_of(requests)
      expect(top_by("-tagroot=thread_seq")).to match([[true] * 3, { "1" => be_between(40, 95) }])
    end

    it "shows one request, with -tagfocus" do
      output_of(requests)
      expect(top_by("-tagfocus=request=abc-123")).to eq([[true, false, false], {}])
    end

    it "groups by request, with -tagroot and -tagleaf" do
      output_of(requests)
      shares = { "abc-123" => be_between(20, 85), "healthcheck" => be_between(5, 60) }
      %w[-tagroot -tagleaf].each do |option|
        expect(top_by("#{option}=request")).to match([[true] * 3, shares])
      end
    end

    it "leaves requests out, with -tagignore" do
      output_of(requests)
      expect(top_by("-tagignore=request=healthcheck")).to eq([[true, false, true], {}])
    end
  end

  describe "collapsed stacks" do
    it "have a line for each stack, which flamegraph.pl can read" do
      write_file("my_app.rb", Guide::MIXED)
      type("rperf record -o profile.collapsed ruby my_app.rb")
      stacks = collapsed(File.read(path_to("profile.collapsed")))
      expect(stacks.map(&:first)).to eq(stacks.map(&:first).uniq)
      expect(stacks.flat_map(&:first)).to all(match(/\S/))
      expect(stacks.map(&:last)).to all(be_positive)
      work = ["<main>", "Integer#times", "block in <main>", "Object#cpu_work", "Integer#times"]
      expect(stacks.map(&:first)).to include(work, [*work, "block in Object#cpu_work"])
    end

    it "can be taken apart by a program" do
      write_file("my_app.rb", Guide::MIXED)
      type("rperf record -m wall -o profile.collapsed ruby my_app.rb")
      output = output_of(<<~RUBY)
        File.readlines("profile.collapsed").each do |line|
          stack, weight = line.rpartition(" ").then { |s, _, w| [s, w.to_i] }
          frames = stack.split(";")
          puts "\#{frames.last}: \#{weight / 1_000_000.0}ms"
        end
      RUBY
      rows = output.lines.map { |line| line.match(/\A(.+): ([\d.]+(?:e-\d+)?)ms\n\z/).captures }
      blocked = rows.sum { |name, ms| name == "[GVL blocked]" ? ms.to_f : 0 }
      expect(blocked).to be_between(220, 2500)
    end
  end

  describe "text" do
    # Runs a program that is in as many methods, with rperf record, and returns the report.
    def report_on_methods(count)
      write_file("my_app.rb", <<~RUBY)
        def spin(seconds)
          limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
          nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
        end

        #{Array.new(count) { |n| "def method_#{n} = (i = 0; i += 1 while i < 80_000; spin(0.01))" }.join("\n")}
        #{Array.new(count) { |n| "method_#{n}" }.join("\n")}
      RUBY
      type("rperf record -o profile.txt ruby my_app.rb")
      File.read(path_to("profile.txt"))
    end

    it "has a head and two tables of at most 50 rows, the greatest times first" do
      report = report_on_methods(60)
      expect(report).to match(/\ATotal: [\d,.]+ms \(cpu\)\nSamples: [\d,]+, Frequency: 1000Hz\n\nFlat:\n/)
      flat, all = %w[Flat Cumulative].map { |title| table(report, title) }
      expect([flat.size, all.size]).to match([be_between(2, 50), 50])
      [flat, all].each { |rows| expect(rows.values).to eq(rows.values.sort.reverse) }
      expect(report).to match(/^Cumulative:\n(?:  .*\n){50}  \(\d+ more\)\n\z/)
      expect(all.keys.grep(/\AObject#method_/).size).to be_between(40, 50)
    end

    it "has a method's own time in the first table, and that of all it calls in the second" do
      report = report_on_methods(10)
      flat, all = %w[Flat Cumulative].map { |title| table(report, title).transform_values(&:first) }
      expect(flat.fetch("<main> (my_app.rb)", 0)).to be < all["<main> (my_app.rb)"] / 2
      called = all.select { |name,| name.start_with?("Object#method_") }.values
      expect(all["<main> (my_app.rb)"]).to be >= called.sum - 1
    end
  end

  describe "the file's name" do
    gzip = /\A\x1f\x8b/n
    {
      "profile.collapsed" => /\A<main>;Object#work \d+\n/, "profile.txt" => /\ATotal: /, "profile.pb.gz" => gzip,
      "profile.data" => gzip, "profile" => gzip, "profile.json" => /\A{"version":1,/, "profile.txt.gz" => gzip
    }.each do |name, start|
      it "#{name} makes it the right format" do
        Rperf.save(path_to(name), made_profile)
        expect(File.binread(path_to(name))).to match(start)
      end
    end

    it "is rperf.data by default, in pprof's format" do
      type("rperf record ruby -e 1")
      expect(File.binread(path_to("rperf.data"))).to match(gzip)
    end

    it "doesn't matter where the format is given" do
      Rperf.save(path_to("profile.txt"), made_profile, format: :collapsed)
      expect(File.read(path_to("profile.txt"))).to start_with("<main>;")
      type("rperf record --format text -o profile.collapsed ruby -e 1")
      expect(File.read(path_to("profile.collapsed"))).to start_with("Total: ")
    end
  end
end
