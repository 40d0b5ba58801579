# frozen_string_literal: true

# Ops that requests call again and again (N+1), among others that look like it.
RSpec.describe "Ops that requests repeat", vm: true do
  # A gem, which is no part of the app.
  driver = <<~'RUBY'
    def query(table, id, seconds) = Rperf.op("SELECT * FROM #{table} WHERE id = #{id}", kind: :sql) { sleep(seconds) }
  RUBY

  # An app of 20 endpoints. The requests of three of them call one statement for each record; the others call as many
  # statements, or take as long, and repeat none.
  shop = <<~'RUBY'
    require "rperf/rack"
    require_relative "gems/driver-1.0/lib/driver"

    class Shop
      # With an N+1: the first one costs most, the last one next to nothing in the database.
      def orders(_) = Array.new(8) { |id| query("products", id, 0.008) }
      def invoices(_) = Array.new(12) { |id| query("customers", id, 0.001) }
      def baskets(_) = Array.new(5) { |id| query("prices", id, 0.0002) }

      # Without: four calls, cheap and costly.
      def home(_) = Array.new(4) { |id| query("products", id, 0.0002) }
      def cart(_) = Array.new(4) { |id| query("products", id, 0.006) }
      # Eight of different statements.
      def report(_) = Array.new(8) { |id| query("report_#{("a".ord + id).chr}", id, 0.0002) }
      def export(_) = Array.new(8) { |id| query("export_#{("a".ord + id).chr}", id, 0.003) }
      # Four of each of two statements.
      def pairs(_) = Array.new(4) { |id| query("lefts", id, 0.0002) && query("rights", id, 0.0002) }
      # Many in a fiftieth of the requests, cheap and costly.
      def search(number) = Array.new(number % 50 == 7 ? 40 : 1) { |id| query("words", id, 0.0002) }
      def admin(number) = Array.new(number % 50 == 7 ? 100 : 1) { |id| query("users", id, 0.002) }
      # One costly call.
      def slow(_) = query("slow_ones", 1, 0.02)
      # Many rows of one statement, each of which is another request's.
      def item(number) = query("products", number, 0.0002)
    end

    OTHERS = %w[home cart report export pairs search admin slow] + (1..9).map { |number| "item#{number}" }
    PAGES = %w[orders invoices baskets] + OTHERS
    shop = Shop.new
    app = Rperf::RackMiddleware.new(lambda { |env|
      shop.public_send(env["PATH_INFO"].delete("/0-9"), env["number"])
      [200, {}, []]
    })
    Rperf.start(mode: :wall, frequency: 1000, measure: %i[ops requests], output: "p.pb.gz") do
      # As on a server, requests of several endpoints run at once.
      queue = Thread::Queue.new(Array.new(50) { |number| PAGES.map { |page| [page, number] } }.flatten(1)).close
      Array.new(4) do
        Thread.new do
          while (page, number = queue.pop)
            app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/#{page}", "number" => number })
          end
        end
      end.each(&:join)
    end
    puts PAGES.size
  RUBY

  # The repeats of the three, in their order by time. Their methods have one line each.
  define_method(:expected) do
    { orders: ["products", 8], invoices: ["customers", 12], baskets: ["prices", 5] }.map do |page, (table, calls)|
      line = shop.lines.index { |it| it.include?("def #{page}(") } + 1
      app = { "name" => "block in Shop##{page}", "path" => path_to("shop.rb"), "short_path" => "shop.rb",
              "line" => line }
      include("key" => "endpoint", "endpoint" => "GET /#{page}", "name" => "[SQL] SELECT * FROM #{table} WHERE id = ?",
              "calls" => calls * 50, "requests" => 50, "repeated" => 50, "endpoint_requests" => 50, "app" => app)
    end
  end

  # The lines of a text that follow this one, up to the next empty one.
  def paragraph(text, first) = text.lines(chomp: true).drop_while { |line| !line.match?(first) }.take_while { _1 != "" }

  it "are those of three endpoints of twenty, each with its line, the costly ones first" do
    FileUtils.mkdir_p(path_to("gems/driver-1.0/lib"))
    write_file("gems/driver-1.0/lib/driver.rb", driver)
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", write_file("shop.rb", shop))
    expect([outcome.status, outcome.stderr, outcome.stdout]).to match([be_success, "", "20\n"])
    why = JSON.parse(rperf("why", "--json", path_to("p.pb.gz")).stdout)
    expect(why["endpoints"].size).to eq(20)
    expect(why["repeats"]).to match(expected)
    expect(why["repeats"].map { |it| it["own_ns"] }).to eq(why["repeats"].map { |it| it["own_ns"] }.sort.reverse)

    report = paragraph(rperf("report", "--ops", path_to("p.pb.gz")).stdout, /\ACalled 5 times or more/).drop(2)
    said = rperf("why", path_to("p.pb.gz")).stdout
    places = expected_places
    expect(report).to match(places.map { |page, place| match(%r{ 100 %  GET /#{page}: .*\(#{place}\)\z}) })
    said = said.lines(chomp: true)
    expect(said.grep(/N\+1/)).to match(places.map { |page, _| start_with("GET /#{page}   ") })
    expect(said.grep(/, in /)).to match(places.map { |_, place| match(/ WHERE id = \?, in #{place}\z/) })
  end

  define_method(:expected_places) do
    %w[orders invoices baskets].to_h do |page|
      [page, "block in Shop##{page}  shop\\.rb:#{shop.lines.index { |it| it.include?("def #{page}(") } + 1}"]
    end
  end
end
