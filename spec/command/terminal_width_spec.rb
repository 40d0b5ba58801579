# frozen_string_literal: true

require_relative "../support/terminals"

RSpec.describe "Tables on terminals" do
  include Ports
  include Terminals

  widths = [40, 60, 80, 100]
  main = ["/srv/shop/bin/server.rb", "<main>"]
  parse = ["/srv/shop/lib/a_library_with_a_long_name/of_several/directories/parser_of_orders.rb",
           "ALibraryWithALongName::OfSeveralModules::ParserOfOrders#parse_each_order"]
  price = ["/srv/shop/app/models/pricing.rb", "Pricing#total"]
  kanji = ["/srv/shop/計算/注文.rb", "計算計算計算計算計算計算計算::注文#合計"]

  def save(name, stacks)
    rows = stacks.map { |frames, count| [frames, count * 1_000_000, 1, 0, count, count * 500_000] }
    Rperf.save(path_to(name), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
  end

  # Characters of East Asia take two columns.
  def columns(line) = line.each_char.sum { |it| it.match?(/\p{Han}/) ? 2 : 1 }

  def expect_to_fit(text, width)
    expect(text.lines(chomp: true).reject { |line| columns(line) <= width }).to eq([])
  end

  before do
    stacks = [[[parse, main], 1_200], [[price, parse, main], 400], [[kanji, price, parse, main], 300]]
    save("rperf.data", stacks)
    save("other.data", stacks.map { |frames, count| [frames, (count * 1.5).to_i] })
  end

  {
    "--top" => %w[report --top], "--top --sort total" => %w[report --top --sort total], "--text" => %w[report --text],
    "--methods" => %w[report --methods], "--tree" => %w[report --tree],
    "--callers" => %w[report --callers Pricing#total], "--annotate" => %w[report --annotate Pricing#total],
    "--by file" => %w[report --by file], "--full-path" => %w[report --top --full-path],
    "diff --top" => %w[diff --top rperf.data other.data],
    "diff --text" => %w[diff --text rperf.data other.data]
  }.each do |name, arguments|
    it "fit their width: #{name}" do
      whole = rperf(*arguments, env: { "COLUMNS" => "40" }).stdout.force_encoding("UTF-8")
      expect(whole).not_to include("…")
      widths.each do |width|
        text = on_terminal(width, *arguments)
        expect_to_fit(text, width)
        expect(text).to include(name == "--by file" ? "pricing.rb" : "Pricing#total")
      end
      expect(on_terminal(0, *arguments)).to eq(whole)
      expect(on_terminal(40, *arguments, env: { "COLUMNS" => "500" })).to eq(whole)
    end
  end

  it "are shortened for a pager, too" do
    text = on_terminal(60, "report", "--top", rows: 4, env: { "PAGER" => "sed 's/^/> /'" })
    expect(text.lines).to all(start_with("> "))
    expect_to_fit(text.gsub(/^> /, ""), 60)
  end

  it "have the end of a method and the file of a path" do
    text = on_terminal(80, "report", "--top")
    expect(text).to match(/  ALibrary\S*…\S*parse_each_order$/)
    expect(on_terminal(120, "report", "--top")).to match(/#parse_each_order( …)?$/)
    expect(on_terminal(150, "report", "--top")).to match(%r{#parse_each_order \(\S*…\S*/parser_of_orders\.rb\)$})
  end

  it "fit where a terminal tells its width alone" do
    expect_to_fit(on_terminal(80, "report", "--top", rows: 0), 80)
    expect(on_terminal(80, "report", "--top", rows: 0)).to eq(on_terminal(80, "report", "--top"))
  end

  it "leave nothing out in files" do
    on_terminal(40, "report", "--text", "-o", "report.txt")
    report = File.read(path_to("report.txt"))
    expect(report).to include(parse[1], "parser_of_orders.rb")
    expect(report).not_to include("…")
  end

  describe "of traces" do
    before do
      write_file("app.rb", <<~RUBY)
        class AClassWithALongName
          def a_method_with_a_long_name(list) = list.map { |it| price(it) }.sum
          def price(item) = item.to_s * 3
        end
        class AClassWithALongName
          def price(item) = item.to_s.size
        end
        Integer(ARGV[0]).times { AClassWithALongName.new.a_method_with_a_long_name([1, 2, 3]) }
      RUBY
      rperf("trace", "--measure", "alloc,cpu,latency", "-o", "trace.data", ruby, "app.rb", "300")
      rperf("trace", "--calls", "count", "-o", "counts.data", ruby, "app.rb", "300")
      rperf("record", "-o", "sampled.data", ruby, "app.rb", "100000")
    end

    it "hide columns rather than the method, and say which" do
      expect(rperf("report", "--methods", "trace.data").stdout.force_encoding("UTF-8")).not_to match(/Too narrow|…/)
      [60, 80, 100].each do |width|
        text = on_terminal(width, "report", "--methods", "trace.data")
        expect_to_fit(text, width)
        expect(text).to match(/^ *AClassWithALongName#price|  AClassWithALongName#price/)
        expect(text).to match(/^Too narrow for: [^(]*own,\s+slots/)
        expect(text).to match(/less\s+-S/).and match(/^ *(calls\b.*)?\bself\b/)
      end
      expect_to_fit(on_terminal(40, "report", "--methods", "trace.data"), 40)
      expect(on_terminal(400, "report", "--methods", "trace.data")).not_to include("Too narrow")
    end

    it "keep the column with the only count of blocks" do
      %w[--methods --top].each do |view|
        text = on_terminal(80, "report", view, "--value", "wall", "trace.data")
        expect(text).to match(/^Too narrow for: (?!.*blocks)/).and match(/^ *calls +blocks .*block in /m)
        expect(text).to include("less -S' shows all)").or match(/less\s+-S'\s+shows\s+all/)
      end
    end

    it "fit with the calls of a trace, or differences of calls" do
      widths.each do |width|
        expect_to_fit(on_terminal(width, "report", "--top", "--counts", "trace.data", "sampled.data"), width)
        expect_to_fit(on_terminal(width, "report", "--text", "--lines", "sampled.data"), width)
        expect_to_fit(on_terminal(width, "report", "--annotate", "app.rb", "sampled.data"), width)
        expect_to_fit(on_terminal(width, "report", "--text", "trace.data"), width)
        expect_to_fit(on_terminal(width, "diff", "--calls", "counts.data", "trace.data"), width)
      end
    end
  end

  it "of rperf stat and -v fit stderr", vm: true do
    write_file("app.rb", "def method_that_works = 200_000.times { it.to_s }\nmethod_that_works")
    widths.each do |width|
      # On the narrowest there is no room for the mark in front of what -v says.
      text = on_terminal(width, "stat", "--report", *(["-v"] if width > 40), ruby, "app.rb")
      expect_to_fit(text, width)
      expect(text).to include("Integer#to_s").and match(/^ +[\d.,]+ ms +user$/)
    end
  end

  it "of programs and their stacks fit", vm: true, emulated: false do
    title = "a program with a very long title: worker 17 of 32 [a_directory_with_a_long_name]"
    code = "module AModuleWithALongName; def self.wait_for_the_next_job = sleep; end\n" \
           "Process.setproctitle(#{title.dump})\nputs Rperf.listen\nAModuleWithALongName.wait_for_the_next_job"
    listening(code) do |program|
      wait_until("title") { rperf("ps").stdout.include?(title) }
      widths.each do |width|
        list = on_terminal(width, "ps")
        stacks = on_terminal(width, "stacks", program.pid.to_s)
        expect_to_fit(list, width)
        expect_to_fit(stacks, width)
        expect(list).to match(/^#{program.pid} .*long_name\]$/)
        expect(stacks).to match(/^    AModule.*next_job +\S*-e:\d$/)
      end
    end
  end
end
