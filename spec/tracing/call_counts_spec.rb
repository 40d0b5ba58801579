# frozen_string_literal: true

# How often methods were called: before and after a change, and beside the times of a sampled run.
RSpec.describe "Counts of calls" do
  program = lambda do |totals, more = ""|
    <<~RUBY
      class Order
        def total = items.sum { |it| price(it) }
        def items = [1, 2, 3]
        def price(item) = item * 2
      end

      #{totals}.times { Order.new.total }
      #{more}
    RUBY
  end

  def trace(name, source, *)
    write_file("app.rb", source)
    rperf("trace", "--calls", "count", "-o", name, *, ruby, "app.rb")
  end

  # A row of a table, by its numbers and its method in the program.
  def row_of(numbers, method)
    /^ *#{numbers.gsub(/[+.]/) { "\\#{it}" }.gsub(" ", " +")}  #{Regexp.escape(method)} \(app\.rb\)$/
  end

  def diff(*) = rperf("diff", "--calls", *)

  describe "rperf diff --calls" do
    before do
      trace("a.data", program.call(100))
      trace("b.data", program.call(110, "def added = 1\n7.times { added }"))
    end

    it "shows each difference in one table, the largest first" do
      outcome = diff("a.data", "b.data")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      expect(outcome.stdout).to start_with("Type: calls of methods and blocks\n")
      expect(outcome.stdout).to match(/^Base:   \d+ \(a\.data\)\nTarget: [\d,]+ \(b\.data\)\nTotal:  \+/)
      expect(outcome.stdout).to match(/^ *delta +delta% +base +target$/)
      expect(outcome.stdout).to match(row_of("+30 +10.0% 300 330", "Order#price"))
      expect(outcome.stdout).to match(row_of("+30 +10.0% 300 330", "block in Order#total"))
      expect(outcome.stdout).to match(row_of("+7 new 0 7", "Object#added"))
      expect(outcome.stdout.index("Order#price")).to be < outcome.stdout.index("Object#added")
      expect(diff("-n", "1", "a.data", "b.data").stdout).to match(/^\(\d more; -n shows more\)$/)
    end

    it "knows methods in another directory by their names" do
      Dir.mkdir(path_to("moved"))
      write_file("moved/app.rb", program.call(110))
      rperf("trace", "--calls", "count", "-o", "moved.data", ruby, "moved/app.rb")
      outcome = diff("a.data", "moved.data")
      expect(outcome.stdout).to match(/^ *\+10 +\+10\.0% +100 +110  Order#items /)
      expect(outcome.stdout).not_to match(/ new | -100\.0% /)
    end

    it "has no noise: equal programs have equal counts" do
      trace("again.data", program.call(100))
      outcome = diff("--fail-on", "0%", "a.data", "again.data")
      expect(outcome.status.exitstatus).to eq(0)
      expect(outcome.stdout).to match(/^Total:  0 \(\+?0\.0%\)\n\nNothing differs\.$/)
    end

    {
      %w[--fail-on 20%] => [3, /allows: (?:block in <main> new|Object#added new) \(--fail-on '20%'\)/],
      %w[--fail-on
         Order#total>5%] => [3,
                             /: block in Order#total \+10\.0% \(--fail-on 'Order#total>5%'\), Order#total \+10\.0% /],
      %w[--fail-on Order#total>10] => [0, /\A\z/],
      %w[--fail-on Order#>10% --fail-on total>5%] => [3, /allows: all calls \+\d+\.\d% \(--fail-on 'total>5%'\)$/],
      %w[--fail-on total>50% --fail-on
         Object#added>0] => [3, /allows: Object#added new \(--fail-on 'Object#added>0'\)$/],
      %w[--focus total --fail-on 10%] => [0, /\A\z/]
    }.each do |arguments, (status, message)|
      it "ends with #{status} for #{arguments.join(" ")}" do
        outcome = diff(*arguments, "a.data", "b.data")
        expect(outcome.status.exitstatus).to eq(status)
        expect(outcome.stderr).to match(message)
        expect(outcome.stdout).to match(/^Type: calls of methods and blocks$/)
      end
    end

    it "is what diff does with two traces, unless it is asked for something else" do
      expect(rperf("diff", "a.data", "b.data").stdout).to eq(diff("a.data", "b.data").stdout)
      outcome = rperf("diff", "--fail-on", "Order#total>5%", "a.data", "b.data")
      expect([outcome.status.exitstatus, outcome.stdout]).to match([3, /^Type: calls of methods and blocks$/])
      expect(rperf("diff", "--top", "a.data", "b.data").stdout).to match(/^Total:  .*, more$/)
      rperf("trace", "-o", "timed.data", ruby, "app.rb")
      timed = rperf("diff", "timed.data", "timed.data").stdout
      expect(timed).to match(/^Type: calls of .*^Nothing differs\.$.*not: --value wall compares these\.$/m)
      expect(rperf("diff", "--value", "wall", "timed.data", "timed.data").stdout).to match(/^Type: wall$/)
      ["--top", "--text", "--format=markdown"].each do |view|
        expect(rperf("diff", view, "timed.data", "timed.data").stdout)
          .to match(/^Counts of traces are exact, times are not: --calls compares counts\.$/)
      end
    end

    it "says of times that one side alone has traced, and why noise can't be told" do
      rperf("record", "-m", "cpu", "-o", "sampled.data", ruby, "app.rb")
      rperf("trace", "--measure", "cpu", "-o", "timed.data", ruby, "app.rb")
      text = rperf("diff", "--top", "--value", "cpu", "sampled.data", "timed.data").stdout
      expect(text).to match(/^The target is a trace, the base isn't: the cost of tracing is left out of a trace's /)
      expect(text).to match(/^unknown: samples aren't counted on both sides, so only several runs of each tell noise/)
    end

    it "says nothing of times where objects are compared" do
      rperf("record", "--measure", "alloc", "-o", "sampled.data", ruby, "app.rb")
      rperf("trace", "--measure", "alloc", "-o", "traced.data", ruby, "app.rb")
      text = rperf("diff", "--top", "--value", "alloc_objects", "sampled.data", "traced.data").stdout
      expect(text).to match(/^Type: alloc_objects$/)
      expect(text).not_to match(/times|cost of tracing/)
    end

    it "can't tell where a filter leaves nothing" do
      outcome = diff("--fail-on", "5%", "--focus", "Typo", "a.data", "b.data")
      expect([outcome.status.exitstatus, outcome.messages.last.chomp])
        .to eq([2, "rperf: --fail-on can't tell: there is nothing to compare"])
    end

    it "does not fail for fewer calls" do
      expect(diff("--fail-on", "0", "b.data", "a.data").status.exitstatus).to eq(0)
    end

    it "refuses what can't be compared, in one line" do
      rperf("record", "-o", "sampled.data", ruby, "app.rb")
      rperf("trace", "--calls", "count-all", "-o", "all.data", ruby, "app.rb")
      {
        %w[sampled.data b.data] => "the base has no calls: 'rperf trace' counts them",
        %w[a.data all.data] => "the counts can't be compared: the base was traced with calls ruby, the target with " \
                               "calls all",
        %w[--fail-on Nope#x>5 a.data b.data] => "--fail-on 'Nope#x>5': no method in the profiles matches it",
        %w[--fail-on x a.data b.data] => "--fail-on must be a percentage, as 5%, one of a method, as " \
                                         "'Order#total>5%', or one of a value, as 'inuse_space>5%', not 'x'",
        %w[--text a.data b.data] => "--text and --calls can't be combined: give one of them",
        %w[--normalize total a.data b.data] => "--normalize goes with --web, --html, --top, --text or --format, not " \
                                               "with --calls",
        %w[--base a.data a.data --target b.data] => "--calls compares two profiles: counts are exact, and need no " \
                                                    "further runs"
      }.each do |arguments, message|
        outcome = diff(*arguments)
        expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr]).to eq([2, "", "rperf: #{message}\n"])
      end
      expect(rperf("diff", "--top", "--fail-on", "5", "a.data", "b.data").stderr)
        .to eq("rperf: --fail-on goes with --calls, not with --top\n")
    end
  end

  describe "rperf report --counts" do
    def row(name, ns, path = path_to("app.rb"))
      [[[path, name], [path_to("app.rb"), "<main>"]], ns, 1, 0, 1, ns]
    end

    def sampled(rows)
      Rperf.save(path_to("s.data"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
    end

    before { trace("calls.data", program.call(100)) }

    it "has the calls of a trace beside the times of a sampled run, and says what didn't match" do
      sampled([row("Order#price", 30_000_000), row("Order#items", 4_000_000, "/moved/app.rb"),
               row("Order#gone", 16_000_000), row("Array#sort", 50_000_000, "<C method>")])
      outcome = rperf("report", "--counts", "calls.data", "s.data")
      expect(outcome.stderr).to eq("")
      text = outcome.stdout.force_encoding("UTF-8")
      expect(text).to match(/^Calls: [\d,]+ in calls\.data; what a call takes is right if both runs did the same work$/)
      expect(text).to match(/^Matched: 2 methods that both have, 1 of them at another path$/)
      expect(text).to match(/^Without calls: 3 methods, with 66\.0% of the values; methods of C have calls with /)
        .and match(/ with 'rperf trace --calls count-all'$/)
      expect(text).to match(/^Without samples: \d+ methods, with [\d,]+ calls$/)
      expect(text).to match(/^ *300 +- +100\.0 µs +100\.0 µs +30\.0 ms .*Order#price/)
      expect(text).to match(/^ *100 +- +40\.0 µs +40\.0 µs +4\.0 ms .*Order#items/)
      expect(text).to match(/^ *- +- +- +- +16\.0 ms .*Order#gone/)
    end

    it "joins real runs" do
      write_file("app.rb", "#{program.call(200_000)}100.times { Order.new.total }")
      rperf("record", "-m", "wall", "-o", "real.data", ruby, "app.rb")
      rperf("trace", "--calls", "count", "-o", "real-calls.data", ruby, "app.rb")
      text = rperf("report", "--top", "--counts", "real-calls.data", "real.data").stdout
      expect(text).to match(/^ *200,100 +- .*  Order#total /)
      expect(text).to match(/^ *- +600,300 .*  block in Order#total /)
    end

    it "refuses what has no meaning, in one line" do
      sampled([row("Order#price", 1)])
      {
        %w[--counts s.data s.data] => "--counts: s.data has no calls: 'rperf trace' counts them",
        %w[--counts calls.data calls.data] => "--counts is for a sampled profile, and this one has calls of its own: " \
                                              "give the trace to --counts, and the profile of 'rperf record' as FILE",
        %w[--tree --counts calls.data s.data] => "--counts goes with --top, not with --tree",
        %w[--by state --counts calls.data s.data] => "--counts goes with --by method, class, file, dir or gem",
        %w[--counts nope.data s.data] => /\Arperf: .*nope\.data/
      }.each do |arguments, message|
        outcome = rperf("report", *arguments)
        expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
        expect(outcome.stderr).to(message.is_a?(Regexp) ? match(message) : eq("rperf: #{message}\n"))
      end
    end
  end
end
