# frozen_string_literal: true

require "fileutils"
require "json"

# rperf's own frames are told from the program's, however rperf is installed.
RSpec.describe "rperf's own frames", vm: true do
  lib = File.join(Commands::ROOT, "lib")

  work = <<~RUBY
    def spin(seconds)
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    end
  RUBY

  # An app under the middleware, that hands requests to a method of its own.
  rack_app = <<~RUBY
    require "rperf/rack"
    #{work}
    def show(_env) = spin(0.3) && [200, {}, []]
    app = Rperf::RackMiddleware.new(method(:show))
    Rperf.start(mode: :wall, frequency: 1000, output: ARGV.fetch(0)) do
      app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/" })
    end
  RUBY

  # The rows of methods.
  def rows(file)
    JSON.parse(rperf("report", "--format", "json", "--idle", "-n", "0", "--sort", "total", file).stdout)["top"]
  end

  # The categories of the methods that have this name.
  def categories(file, name)
    found = rows(file).select { |row| row["name"].match?(name) }
    found.map { |row| row["category"] }.uniq
  end

  # The rows of --by gem, which it prints and which the Ruby API has.
  def gems(file)
    found = Rperf.load(path_to(file)).top(by: :gem, sort: :total).to_h { |row| [row[:name], row[:total]] }
    page = rperf("report", "--top", "--idle", "--sort", "total", "--by", "gem", "-n", "0", file).stdout
    expect(page.lines(chomp: true).filter_map { |line| line[/.*%  (\S.*)/, 1] }).to match_array(found.keys)
    found
  end

  def run_with(lib, *) = run(ruby, "-I", lib, *)

  it "are rperf's in a Rack app with the middleware, and one row of --by gem" do
    write_file("config.rb", rack_app)
    run_with(lib, "config.rb", "x.pb.gz")
    expect(categories("x.pb.gz", /RackMiddleware#call/)).to eq(["rperf"])
    expect(categories("x.pb.gz", /Object#(show|spin)|<main>/)).to eq(["app"])
    found = gems("x.pb.gz")
    expect(found.keys.grep(/rperf/)).to eq(["rperf"])
    expect(found["rperf"]).to be_between(200_000_000, found["(application)"])
  end

  it "are rperf's in a script that starts and stops a session" do
    write_file("app.rb", <<~RUBY)
      require "rperf"
      #{work}
      Rperf.start(mode: :wall, frequency: 1000, output: "x.pb.gz") { spin(0.2) }
      data = Rperf.start(mode: :wall, frequency: 1000) { spin(0.2) }
      Rperf.save("saved.pb.gz", data)
    RUBY
    run_with(lib, "app.rb")
    %w[x.pb.gz saved.pb.gz].each do |file|
      expect(categories(file, /\ARperf\b/)).to eq(["rperf"])
      expect(gems(file).keys.grep(/rperf/)).to eq(["rperf"])
    end
  end

  it "are in no headline, also where the program itself hardly runs" do
    write_file("app.rb", "#{work}spin(ARGV.fetch(0).to_f)\nsleep 0.1\n")
    headlines = %w[0 0.2].map do |seconds|
      rperf("record", "-m", "cpu", ruby, "app.rb", seconds)
      rperf("report", "--format", "markdown").stdout[/^(?:Of|All of) .*/]
    end
    expect(headlines.join).not_to include("Rperf")
    expect(headlines.last).to match(/The method with the most of its own is `(Object#spin|Process.clock_gettime)`/)
  end

  it "are rperf's where the command loads it" do
    write_file("app.rb", "#{work}spin(0.2)\nexit!(0) if ARGV[0]\nThread.new { spin(0.1) }.join\n")
    rperf("record", "-m", "wall", "-f", "5000", "-o", "x.pb.gz", ruby, "app.rb")
    expect(categories("x.pb.gz", /Object#spin|<main>/)).to eq(["app"])
    expect(categories("x.pb.gz", /\ARperf\b/) - ["rperf"]).to eq([])
  end

  it "are rperf's where it is installed as a gem, or lies in the program" do
    FileUtils.mkdir_p(path_to("app"))
    %w[gems/rperf-9.9.9 app/vendor/rperf].each do |directory|
      copy = path_to("#{directory}/lib")
      FileUtils.mkdir_p(File.dirname(copy))
      FileUtils.cp_r(lib, copy)
      write_file("app/app.rb", rack_app)
      run_with(copy, "app/app.rb", path_to("x.pb.gz"))
      expect(categories("x.pb.gz", /RackMiddleware#call/)).to eq(["rperf"])
      expect(gems("x.pb.gz").keys.grep(/rperf/)).to eq(["rperf"])
    end
  end

  it "aren't those of a program that is called rperf_shop" do
    FileUtils.mkdir_p(path_to("rperf_shop/lib/rperf_shop"))
    write_file("rperf_shop/lib/rperf_shop/cart.rb", "module RperfShop\n  #{work.sub("def ", "def self.")}end\n")
    write_file("rperf_shop/lib/rperf.rb", "require_relative 'rperf_shop/cart'\nRperfShop.spin(0.2)\n")
    rperf("record", "-m", "wall", "-o", "x.pb.gz", ruby, "rperf_shop/lib/rperf.rb")
    expect(categories("x.pb.gz", /RperfShop|<main>/)).to eq(["app"])
  end
end
