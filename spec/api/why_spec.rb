# frozen_string_literal: true

require "json"

# Profiles say in Ruby what slow requests have, and all of methods, as the command says it of the same file.
RSpec.describe "Rperf::Profile#why and #method_rows", vm: true do
  # Requests at two endpoints and a job. One in forty of those for /orders sleeps, and all of them repeat a query.
  shop = <<~'RUBY'
    require "json"
    require "rperf/rack"
    require "rperf/sidekiq"

    class Shop
      def query(id) = Rperf.op("SELECT * FROM lines WHERE id = #{id}", kind: :sql) { id.to_s }
      def lines = 6.times { |id| query(id) }
      def wait = sleep(0.03)
    end

    app = Rperf::RackMiddleware.new(lambda { |env|
      if env["PATH_INFO"] == "/orders"
        Shop.new.lines
        Shop.new.wait if env["number"] % 40 == 39
      end
      [200, {}, []]
    })
    profile = Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests blame ops], output: "p.pb.gz") do
      240.times do |number|
        %w[/orders /about].each do |path|
          app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "number" => number })
        end
      end
      Rperf::SidekiqMiddleware.new.call(nil, { "class" => "ExportJob" }, "default") { sleep(0.001) }
    end
    puts [profile.why, profile.why("/orders"), Rperf.start { 1.to_s }.why, Rperf.start { 1.to_s }.why("(")].to_json
  RUBY

  def parsed(json) = JSON.parse(json, symbolize_names: true)

  def told(*)
    outcome = rperf("why", "--json", path_to("p.pb.gz"), *)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    parsed(outcome.stdout)
  end

  describe "a profile with requests" do
    before do
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", write_file("shop.rb", shop))
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      @told = parsed(outcome.stdout)
    end

    it "tells why they are slow, as rperf why --json does" do
      profile = Rperf.load(path_to("p.pb.gz"))
      expect(profile.why).to eq(told)
      expect(profile.why[:endpoints].map { |it| it[:name] }).to match_array(["GET /orders", "GET /about", "ExportJob"])
      expect(profile.why[:repeats]).to match([include(endpoint: "GET /orders", calls: 1440, requests: 240)])
      one_of_them(profile)
      as_it_was_before_it_was_saved(profile)
      refuses_names(profile)
    end

    def one_of_them(profile)
      orders = profile.why("GET /orders")
      expect(orders).to eq(told("GET /orders"))
      expect(orders).to include(name: "GET /orders", requests: 240, enough: false)
      expect(orders[:ops].map { |it| it[:name] }).to eq(["[SQL] SELECT * FROM lines WHERE id = ?"])
      ["endpoint=GET /orders", "orders", :"/orders", /\AGET .*S\z/i].each { |it| expect(profile.why(it)).to eq(orders) }
      job = profile.why("Export")
      expect(job).to eq(told("job=ExportJob")).and include(key: "job", requests: 1, excess_ns: nil)
      expect(job[:means].values.uniq).to eq([{ typical: nil, tail: nil, difference: nil }])
    end

    def as_it_was_before_it_was_saved(profile)
      all, orders, *without = @told
      expect(all).to eq(profile.why)
      expect(orders).to eq(profile.why("/orders"))
      expect(without).to eq([nil, nil])
    end

    def refuses_names(profile)
      {
        "GET /" => "endpoint: 'GET /' is a part of 2 names: 'GET /about', 'GET /orders'",
        /^GET|Exp/ => "endpoint: '/^GET|Exp/' matches 3 names: 'job=ExportJob', 'GET /about', 'GET /orders'",
        "nope" => "endpoint: no request is of 'nope'; there are 'GET /about', 'GET /orders' and 'job=ExportJob'",
        "GET /ordres" => %r{\Aendpoint: no request is of 'GET /ordres'; did you mean 'GET /orders'},
        "(" => /\Aendpoint: no request is of '\(', and it is no valid regular expression: unclosed group; there are '/,
        /xzzz+/i => %r{\Aendpoint: no request is of '/xzzz\+/i'; there are },
        /GET (?!x)/ =>
          %r{\Aendpoint: no request is of '/GET \(\?!x\)/', and it is no valid regular expression: look-around, .*\z}
      }.each { |name, message| expect { profile.why(name) }.to raise_error(ArgumentError, message) }
      [5, [], "\xff", BasicObject.new].each do |name|
        expect { profile.why(name) }.to raise_error(ArgumentError, /\Aendpoint: must be a String or a Regexp/)
      end
    end
  end

  it "has the rows of rperf report --methods, where calls are counted" do
    program = write_file("app.rb", "def work = [3, 1, 2].sort_by { |it| -it }\n20.times { work }\n")
    outcome = rperf("trace", "-o", "t.data", ruby, program)
    expect(outcome.status).to be_success
    { {} => %w[-n 0], { limit: 3, sort: :total } => %w[-n 3 --sort total],
      { focus: "Object#work" } => %w[-n 0 --focus Object#work] }.each do |arguments, options|
      rows = parsed(rperf("report", "--format", "json", *options, path_to("t.data")).stdout)[:methods]
      expect(rows.size).to be > 1
      expect(Rperf.load(path_to("t.data")).method_rows(**arguments)).to eq(rows)
    end
    expect(Rperf.load(path_to("t.data")).method_rows).to include(include(name: "Object#work", calls: 20))
  end

  it "has no rows of methods where neither calls nor objects are counted" do
    expect(Rperf.start { spin(0.01) }.method_rows).to be_nil
    expect { Rperf.start { spin(0.01) }.method_rows(limit: -1) }.to raise_error(ArgumentError, /\Alimit: must be/)
  end
end
