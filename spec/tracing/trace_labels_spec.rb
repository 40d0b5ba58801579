# frozen_string_literal: true

require "json"

# Labels of blocks, requests and jobs in traces of all calls.
RSpec.describe "Labels in traces", vm: true do
  lib = "-I#{File.join(Commands::ROOT, "lib")}"

  setup = <<~RUBY
    def leaf = 1
    def twice = 2.times { leaf }

    # The calls of a method by the value of a label; nil without one.
    def calls(profile, name: "Object#leaf", key: "page", value: "calls")
      sets = profile[:label_sets] || [{}]
      values = sets.filter_map { |set| set[key.to_sym] }.uniq
      found = values.to_h { |text| [text, { tagfocus: "\#{key}=\\\\A\#{text}\\\\z" }] }
      found[nil] = { tagignore: key }
      all = found.transform_values do |filter|
        profile.top(value:, sort: :total, **filter).find { |row| row[:name] == name }&.fetch(:self).to_i
      end
      all.reject { |_, sum| sum.zero? }
    end
  RUBY

  # Of a program that traces itself, without a warning.
  define_method(:told) { |program, **options| super("#{setup}\n#{program}", "-W0", **options) }

  it "are on the calls and times of their blocks, at each level" do
    results = told(<<~RUBY)
      def run(calls)
        Rperf.trace(calls:, warn: false) do
          leaf
          Rperf.label(page: "a") do
            twice
            Rperf.label(page: "b", step: 1) { leaf; sleep 0.01 }
            leaf
          end
          Rperf.label(page: "c")
          3.times { leaf }
          Rperf.label(page: nil)
          leaf
        end
      end
      puts %i[ruby all count count-all].to_h { |level| [level, run(level)] }.map { |level, profile|
        wall = profile.top(by: "label:page", value: "wall").to_h { |row| [row[:name], row[:self]] } unless level[/count/]
        [calls(profile), profile.top(by: "label:step", value: "calls").map { |row| row[:name] }.sort, wall]
      }.to_json
    RUBY
    expect(results.map(&:first)).to all(eq("" => 2, "a" => 3, "b" => 1, "c" => 3))
    expect(results.map { |result| result[1] }).to all(include("1"))
    expect(results.first(2).map { |result| result[2].fetch("b") }).to all(be_between(10_000_000, 10_000_000_000))
  end

  it "are on method info, objects and CPU time" do
    methods, objects, cpu = told(<<~RUBY)
      def made = Array.new(100) { Object.new }
      profile = Rperf.trace(measure: %i[alloc cpu], warn: false) do
        made
        Rperf.label(page: "a") { 20.times { made } }
      end
      by = ->(value) { profile.top(by: "label:page", value:).to_h { |row| [row[:name], row[:self]] } }
      classes = profile.top(by: "label:%class", value: "alloc_objects", tagfocus: "page=a")
      puts [calls(profile, name: "Object#made"), classes.to_h { |row| [row[:name], row[:self]] }, by["cpu"]].to_json
    RUBY
    expect(methods).to eq("" => 1, "a" => 20)
    expect(objects).to include("Object" => 2000)
    expect(cpu.fetch("a")).to be > 0
  end

  it "are shown by rperf report --methods" do
    write_file("app.rb", <<~RUBY)
      require "rperf"
      def leaf = 1
      Rperf.label(page: "a") { 3.times { leaf } }
      Rperf.label(page: "b") { leaf }
    RUBY
    rperf("trace", ruby, lib, "app.rb")
    rows = rperf("report", "--methods", "--by", "label:page", "rperf.data").stdout
    expect(rows).to match(/^ *\d+ .* a$/).and match(/^ *\d+ .* b$/)
    focused = rperf("report", "--methods", "--tagfocus", "page=a", "rperf.data").stdout
    expect(focused).to match(/^ *3 .*Object#leaf /)
    json = JSON.parse(rperf("report", "--format", "json", "--tagfocus", "page=b", "rperf.data").stdout)
    expect(json["methods"].find { |row| row["name"] == "Object#leaf" }).to include("calls" => 1)
  end

  it "belong to fibers and threads, and are inherited by fibers only" do
    counted, adopted = told(<<~RUBY)
      started = Fiber.new { loop { leaf; Fiber.yield } }
      adopted = nil
      profile = Rperf.trace(warn: false) do
        Rperf.label(page: "a") do
          fiber = Fiber.new do
            leaf
            Rperf.label(page: "b") { leaf; Fiber.yield; leaf }
            Fiber.yield
            adopted = Rperf.labels
            leaf
          end
          fiber.resume
          leaf
          started.resume
          Thread.new { 5.times { leaf }; Rperf.label(page: "t") { leaf } }.join
          fiber.resume
          $fiber = fiber
          each = Enumerator.new { |to| 2.times { leaf; to << 1 } }
          each.next
          $each = each
        end
        leaf
        $fiber.resume
        $each.next
        started.resume
        leaf
      end
      puts [calls(profile), adopted].to_json
    RUBY
    # Of the fiber that was there before: 2 without labels.
    expect(counted).to eq("" => 9, "a" => 5, "b" => 2, "t" => 1)
    expect(adopted).to eq("page" => "a")
  end

  it "leave nothing out: the times of a thread are its life, whatever labels it has had" do
    wall, life, labels = told(<<~RUBY)
      profile = Rperf.trace(warn: false) do
        300.times { |n| Rperf.label(page: n % 7) { twice } }
        Thread.new { 50.times { |n| Rperf.label(page: n) { twice; sleep 0.0001 } } }.join
      end
      sums = %w[wall overhead].map { |value| profile.top(by: :thread, value:).to_h { |row| [row[:name], row[:self]] } }
      lives = sums[0].merge(sums[1]) { |_, own, cost| own + cost }
      puts [lives.values.max, profile[:duration_ns], calls(profile)].to_json
    RUBY
    expect(wall).to be_within(1).of(life)
    expect(labels.values.sum).to eq(700)
    expect(labels.fetch("0")).to eq(2 * (43 + 1))
  end

  it "come and go with exceptions, Timeout and kill" do
    counted, left = told(<<~RUBY)
      require "timeout"
      profile = Rperf.trace(warn: false) do
        (Rperf.label(page: "a") { leaf; raise "no" }) rescue leaf
        catch(:out) { Rperf.label(page: "b") { leaf; throw :out } }
        20.times { (Timeout.timeout(0.0005) { loop { Rperf.label(page: "t") { twice } } }) rescue leaf }
        thread = Thread.new { Rperf.label(page: "k") { leaf; sleep } }
        Thread.pass until thread.stop?
        thread.kill.join
        leaf
        $left = Rperf.labels
      end
      puts [calls(profile), $left].to_json
    RUBY
    expect(counted).to include("a" => 1, "b" => 1, "" => 22, "k" => 1)
    expect(left).to eq({})
  end

  it "stay over snapshots that clear, and end with their session" do
    first, second, third = told(<<~RUBY)
      Rperf.start(mode: :trace)
      Rperf.label(page: "a") { leaf }
      Rperf.label(page: "b")
      leaf
      one = Rperf.snapshot(clear: true)
      leaf
      two = Rperf.stop
      three = Rperf.trace(warn: false) { leaf }
      puts [one, two, three].map { |profile| calls(profile) }.to_json
    RUBY
    expect([first, second, third]).to eq([{ "a" => 1, "b" => 1 }, { "b" => 1 }, { "" => 1 }])
  end

  it "are those of requests and jobs, as the middleware puts them on" do
    counted = told(<<~RUBY)
      require "rperf/rack"
      app = Rperf::RackMiddleware.new(->(_) { leaf; [200, {}, []] })
      profile = Rperf.trace(warn: false) do
        3.times { |n| app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/users/\#{n}") }
        leaf
        Rperf.profile(page: "section") { leaf }
      end
      puts [calls(profile, key: "endpoint"), calls(profile)].to_json
    RUBY
    expect(counted.first).to eq("GET /users/:id" => 3, "" => 2)
    expect(counted.last).to eq("section" => 1, "" => 4)
  end

  it "go on in a forked child that is traced, too" do
    write_file("fork.rb", <<~RUBY)
      require "rperf"
      def leaf = 1
      Rperf.label(page: "a") do
        leaf
        Process.wait(fork { 2.times { leaf }; Rperf.label(page: "b") { leaf } })
        leaf
      end
    RUBY
    rperf("trace", "-o", "f.pb.gz", ruby, lib, "fork.rb")
    profile = Rperf.load(path_to("f.pb.gz"))
    calls = %w[a b].map do |page|
      profile.top(value: "calls", tagfocus: "page=#{page}").find { |row| row[:name] == "Object#leaf" }[:self]
    end
    expect(calls).to eq([4, 1])
  end

  it "are inherited by fibers where chosen methods are counted alone" do
    counted = told(<<~RUBY)
      class Order; def total = 1; end
      profile = Rperf.trace(only: "Order#total") do
        Rperf.label(page: "a") { Fiber.new { 3.times { Order.new.total } }.resume }
        Order.new.total
      end
      puts calls(profile, name: "Order#total").to_json
    RUBY
    expect(counted).to eq("" => 1, "a" => 3)
  end

  it "are sound with many of them, threads, collections and forks" do
    outcome = run(ruby, "-W0", lib, "-rrperf", "-e", <<~'RUBY')
      def leaf = 1
      profile = Rperf.trace(warn: false) do
        threads = Array.new(4) do |thread|
          Thread.new do
            500.times do |n|
              Rperf.label(page: rand(300), thread:) do
                leaf
                Fiber.new { Rperf.label(inner: n) { leaf }; leaf }.resume
                Thread.pass
              end
              GC.start if n % 200 == 0
              GC.compact if n == 100 && GC.respond_to?(:compact)
              Process.wait(fork { exit!(Rperf.running? ? 1 : 0) }) if n == 300
            end
          end
        end
        threads.each(&:join)
      end
      print profile.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self], " ", Rperf.labels
    RUBY
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["6000 {}", "", 0])
  end
end
