# frozen_string_literal: true

# Requests and their ops on threads that share native threads, and in Ractors (measure: [:requests, :ops]).
RSpec.describe "Requests and ops", vm: true do
  head = <<~RUBY
    require "rperf/rack"

    def compute(ms)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (ms / 1000.0)
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    end

    # 60 requests for this path, of which one waits for long.
    def serve(path)
      server = Rperf::RackMiddleware.new(lambda { |env|
        Rperf.op("query") { sleep(env["number"] == 50 ? 0.3 : 0.001) }
        compute(0.2)
        [200, {}, []]
      })
      60.times do |number|
        server.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "number" => number })
      end
    end

    def profiled(&) = Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests ops blame], &)

    # The requests, those of each class, and the calls of ops of each endpoint; the time of all samples of requests, and
    # that of those with a class; the ops and times of the slowest.
    def answer(profile)
      endpoints = profile.why[:endpoints].to_h { |it| [it[:name], profile.why(it[:name])] }
      of_requests = profile.filter(tagfocus: "endpoint=.").top(by: "label:%latency", idle: true, limit: nil)
      classes, others = of_requests.partition { |row| %w[first fast typical slow tail].include?(row[:name]) }
      {
        requests: endpoints.transform_values { |it| it[:requests] },
        classes: endpoints.transform_values { |it| it[:classes].values.sum },
        slowest: endpoints.transform_values { |it| it[:slowest].first(3).map { |slow| slow[:blocked_ns] } },
        states: endpoints.transform_values do |it|
          parts = %i[running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns]
          it[:slowest].map { |slow| slow[:wall_ns] - slow.values_at(*parts).sum }
        end,
        others: others.map { |row| row[:name] },
        ops: profile.ops[:ops].map { |it| it.values_at(:name, :calls) }
      }
    end
  RUBY

  define_method(:told_of) do |program, **run|
    told("#{head}\n#{program}", "-W0", symbolize_names: true, **run)
  end

  # What is true of an endpoint whose requests `threads` threads have served.
  def expect_endpoint(answer, name, threads)
    expect(answer[:requests][name]).to eq(60 * threads)
    expect(answer[:classes][name]).to eq(60 * threads)
    expect(answer[:slowest][name].first(threads)).to all(be > 250_000_000)
    expect(answer[:states][name]).to all(eq(0))
  end

  it "are exact on threads that share native threads" do
    answer = told_of(<<~RUBY, env: { "RUBY_MN_THREADS" => "1" })
      profile = profiled { 6.times.map { |number| Thread.new { serve(number.odd? ? "/odd" : "/even") } }.each(&:join) }
      puts answer(profile).to_json
    RUBY
    expect(answer[:requests].keys).to contain_exactly(:"GET /odd", :"GET /even")
    [:"GET /odd", :"GET /even"].each { |name| expect_endpoint(answer, name, 3) }
    expect(answer.values_at(:others, :ops)).to eq([[], [["[op] query", 360]]])
  end

  it "are those of the main Ractor, and the programs of others run as ever" do
    answer = told_of(<<~RUBY)
      ended = nil
      profile = profiled do
        others = 2.times.map { |it| Ractor.new("/ractor \#{it}") { |path| serve(path) } }
        serve("/main")
        ended = others.map { |it| it.respond_to?(:value) ? it.value : it.take }
      end
      puts answer(profile).merge(ended:).to_json
    RUBY
    expect(answer[:ended]).to eq([60, 60])
    expect(answer[:requests].keys).to eq([:"GET /main"])
    expect_endpoint(answer, :"GET /main", 1)
    expect(answer.values_at(:others, :ops)).to eq([[], [["[op] query", 60]]])
  end
end
