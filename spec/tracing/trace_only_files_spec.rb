# frozen_string_literal: true

# The methods that some files define: their calls are counted, all other code runs as if nobody looked.
RSpec.describe "Tracing of the methods of chosen files", vm: true do
  order = <<~RUBY
    class Order
      attr_reader :id
      def total(n) = n.zero? ? 0 : 1 + total(n - 1)
      def self.find(id) = new
      class << self
        def seen = hidden
        private def hidden = 1
      end
      def outer
        Order.class_eval { def late = 4 }
        late
      end
      define_method(:made) { |x| [x].sum { |y| y } }
      module Deep
        def self.below = 9
      end
      def <=>(other) = 0
    end
    def at_top = 7
  RUBY
  work = <<~RUBY
    3.times { Order.find(1).total(2); Order.seen; Order.new.made(1); Order::Deep.below; Order.new <=> 1; at_top }
    2.times { Order.new.outer }
    Other.new.other
  RUBY
  # Each is counted once, nested ones too, and not what Other has.
  calls = { "Order.find" => 4, "Order#total" => 10, "Order.seen" => 3, "Order.hidden" => 3, "Order#made" => 3,
            "Order::Deep.below" => 3, "Order#<=>" => 3, "Object#at_top" => 3, "Order#outer" => 2, "Order#late" => 2 }

  before do
    ["app/models", "lib"].each { |it| FileUtils.mkdir_p(File.join(directory, it)) }
    write_file("app/models/order.rb", order)
    write_file("lib/other.rb", "class Other; def other = Order.find(1).total(0); end")
  end

  # Calls by method, and the lines about the trace.
  define_method(:counted) do |only, program, env: {}|
    path = write_file("program.rb", <<~RUBY)
      require "json"
      require "rperf"
      Dir.chdir(__dir__)
      #{program}
      text = Rperf.const_get(:Asking).natives.of(profile).encode(:text).force_encoding("UTF-8")
      lines = text.lines.grep(/^Traced: /)
      puts({ rows: profile.top(value: "calls").to_h { |row| [row[:name], row[:self]] }, lines: }.to_json)
    RUBY
    outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", path, *only, env:)
    raise outcome.stderr unless outcome.status.success?

    expect(outcome.stderr).to eq("")
    JSON.parse(outcome.stdout)
  end

  ["before the trace", "within the trace"].each do |moment|
    it "counts each call once where the files were loaded #{moment}" do
      load = %w[models/order ../lib/other].map { |file| "require './app/#{file}'" }.join("; ")
      told = counted(%w[app/**], <<~RUBY)
        #{load if moment.start_with?("before")}
        profile = Rperf.trace(only: ARGV) do
          #{load}
          #{work}
        end
      RUBY
      expect(told["rows"]).to eq(calls)
      expect(told["lines"].grep(/no method|not found/)).to be_empty
    end
  end

  it "knows patterns, absolute paths and names of methods together, and says what matches nothing" do
    told = counted(%w[Order#total ./app/*.rb lib/*her.rb nothing/**], <<~RUBY)
      require "./app/models/order"
      profile = Rperf.trace(only: ARGV + [File.join(__dir__, "lib/[n-p]*.rb")]) do
        require "./lib/other"
        #{work}
      end
    RUBY
    expect(told["rows"]).to eq("Order#total" => 10, "Other#other" => 1)
    notes = told["lines"].grep(/no method of such a file was found/).map { |it| it[/\S+(?=: no method)/] }
    expect(notes).to eq(%w[./app/*.rb nothing/**])
  end

  it "counts methods of a file that is loaded anew, and no other file's that has the same class" do
    told = counted(%w[app/models/order.rb], <<~RUBY)
      profile = Rperf.trace(only: ARGV) do
        2.times do
          load "./app/models/order.rb"
          Order.new.total(0)
        end
        class Order; def elsewhere = total(0); end
        Order.new.elsewhere
      end
    RUBY
    expect(told["rows"]).to eq("Order#total" => 3)
  end

  it "takes a directory's name as it is, whatever it has in it" do
    told = counted(%w[deep/**], <<~'RUBY')
      Dir.mkdir("a[b]{c,d}*")
      Dir.chdir("a[b]{c,d}*")
      Dir.mkdir("deep")
      File.write("deep/one.rb", "def one = 1")
      profile = Rperf.trace(only: ARGV) { require "./deep/one"; one }
    RUBY
    expect(told["rows"]).to eq("Object#one" => 1)
  end

  it "counts a thousand methods, and says how many more there were" do
    told = counted(%w[many.rb], <<~'RUBY')
      File.write("many.rb", "class Many\n#{Array.new(1203) { |it| "def m#{it} = #{it}\n" }.join}end")
      require "./many"
      many = Many.new
      profile = Rperf.trace(only: ARGV) { 1203.times { |it| many.public_send(:"m#{it}") } }
    RUBY
    expect(told["rows"].size).to eq(1000)
    expect(told["lines"].join).to include("calls of 1000 methods are counted; those of 203 more are not")
  end

  it "goes with the command line" do
    script = write_file("program.rb", "require './app/models/order'; require './lib/other'\n#{work}")
    outcome = rperf("trace", "--only", "app/**", "-p", ruby, script)
    expect(outcome.stdout).to match(/10 .* Order#total /)
    expect(outcome.stdout).not_to include("Other#other")
    outcome = rperf("trace", "--only", "app/{a,b}.rb", ruby, script)
    expect(outcome.stderr)
      .to eq("rperf: --only must be methods or their files, such as Order#total or app/**, not 'app/{a,b}.rb'\n")
    expect(outcome.status.exitstatus).to eq(2)
  end
end
