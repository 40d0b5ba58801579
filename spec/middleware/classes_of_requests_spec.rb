# frozen_string_literal: true

# Each request has one class, whatever runs beside it, and classes take nothing from the profile and add nothing to it.
RSpec.describe "The classes of requests", vm: true do
  # Each request has a number as a label of the program's own, which tells it from all others. Four threads serve 12
  # rare endpoints with three requests each, all of which are kept, and three busy ones.
  program = <<~'RUBY'
    require "rperf/rack"

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def compute(ms)
      deadline = now + (ms / 1000.0)
      nil while now < deadline
    end
    def collect = GC.start(full_mark: false)

    APP = Rperf::RackMiddleware.new(lambda { |env|
      number = env["number"]
      Rperf.label(number:) do
        compute(0.3)
        sleep(0.0005)
        Array.new(500) { "text" }
        next unless number % 100 == 50

        Fiber.new { compute(3) }.resume
        sleep(0.006)
        collect
      end
      [200, {}, []]
    })
    queue = Thread::Queue.new
    900.times { |number| queue << ["/busy#{("a".ord + (number % 3)).chr}", number] }
    36.times { |number| queue << ["/rare#{("a".ord + (number % 12)).chr}", 1_050 + (100 * number)] }
    queue.close

    Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests blame], output: "p.pb.gz") do
      compute(5)
      Array.new(4) do
        Thread.new do
          while (path, number = queue.pop)
            APP.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "number" => number })
            compute(0.1)
          end
        end
      end.each(&:join)
    end
  RUBY

  define_method(:profile) do
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", write_file("program.rb", program))
    expect([outcome.status, outcome.stdout, outcome.stderr]).to match([be_success, "", ""])
    PprofMessage.read(path_to("p.pb.gz"))
  end

  def sums(samples)
    samples.each_with_object(Hash.new(0)) { |(_, values), sums| values.each { |type, value| sums[type] += value } }
  end

  it "are one for each request, and of what is in no request none" do
    samples = profile.samples
    by = ->(key) { samples.filter_map { |it, _| it.values_at(key, "%latency") if it.key?(key) }.uniq.group_by(&:first) }
    [by["number"], by["%request"]].each { |classes| expect(classes.values.map(&:size).uniq).to eq([1]) }
    outside, inside = samples.map(&:first).partition { |labels| labels["endpoint"].nil? }
    expect(inside.map { |labels| labels["%latency"] }.uniq - %w[first fast typical slow tail]).to eq([])
    expect(outside.flat_map(&:keys) & %w[%latency %request]).to eq([])
    expect(outside.size).to be_positive
    expect(by["%request"].size).to eq(36 + 15)
    expect_kept(samples.map(&:first).select { |labels| labels.key?("%request") })
  end

  # All of the rare endpoints, of which there are no more than are kept, and five of each busy one; each has one
  # number.
  def expect_kept(labels)
    why = JSON.parse(rperf("why", "--json", path_to("p.pb.gz")).stdout)["endpoints"]
    expect_one_number(labels.filter_map { |it| it.values_at("%request", "number") if it.key?("number") }.uniq)
    endpoints = labels.map { |it| it.values_at("endpoint", "%request") }.uniq.group_by(&:first)
    expect(endpoints.transform_values(&:size)).to eq(why.to_h { |it| [it["name"], [it["requests"], 5].min] })
    rare = why.select { |it| it["name"].start_with?("GET /rare") }
    expect(rare.map { |it| [it["requests"], it["classes"]["first"]] }).to eq([[3, 3]] * 12)
  end

  def expect_one_number(pairs)
    expect([pairs.uniq(&:first).size, pairs.uniq(&:last).size]).to eq([pairs.size, pairs.size])
  end

  it "add up to the whole, in each value and to the ns" do
    message = profile
    samples = message.samples
    whole = sums(samples)
    expect(message.types).to include("wall", "cpu", "gvl_blame", "gvl_waited_for")
    expect(whole.values).to all(be_positive)
    classes = samples.group_by { |labels, _| labels["%latency"] }.transform_values { |part| sums(part) }
    # On a busy machine, the others are as slow as the slow ones.
    expect(classes).to include(nil, "first", "typical").and(have_attributes(size: be >= 4))
    whole.each { |type, sum| expect([type, classes.values.sum { |part| part[type] }]).to eq([type, sum]) }
    # As the engine has it, and the same by filters.
    loaded = Rperf.load(path_to("p.pb.gz"))
    expect(loaded.totals(idle: true)[:total]).to eq(whole["wall"])
    named = classes.except(nil)
    expect(named.to_h { |name, _| [name, loaded.totals(idle: true, tagfocus: "%latency=^#{name}$")[:left]] })
      .to eq(named.transform_values { |part| part["wall"] })
    expect(loaded.totals(idle: true, tagignore: "%latency=.")[:left]).to eq(classes[nil]["wall"])
  end
end
