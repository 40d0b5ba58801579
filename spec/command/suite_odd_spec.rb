# frozen_string_literal: true

require "json"

# Tests that do what few do: their results stay, and so does what the table says.
RSpec.describe "rperf report --tests of odd tests", vm: true do
  # What tells subscribers of begins and ends, and a factory.
  program = <<~RUBY
    #{File.read(File.join(__dir__, "../fixtures/notifications.rb"))}
    def run_factory(name, &work)
      ActiveSupport::Notifications.instrument("factory_bot.run_factory", { name:, strategy: :create }, &work || proc {})
    end
  RUBY

  def rspec_command(*arguments) = [ruby, Gem.bin_path("rspec-core", "rspec"), *arguments]

  def record(*command)
    rperf("record", "-m", "wall", "-o", "p.pb.gz", *command, env: { "RUBYLIB" => File.join(Commands::ROOT, "lib") })
  end

  def tests
    outcome = rperf("report", "--tests", "--format", "json", "-n", "0", "p.pb.gz")
    raise outcome.stderr unless outcome.status.success?

    JSON.parse(outcome.stdout, symbolize_names: true)[:tests]
  end

  it "runs factories in tests that stub what they like, and passes over names that aren't texts" do
    write_file("program.rb", program)
    write_file("stubs_spec.rb", <<~RUBY)
      require "rperf/rspec"
      require_relative "program"

      Nameless = Class.new(BasicObject) { def to_s = ::Kernel.raise(::Exception, "no name") }
      RSpec.describe "Stubs" do
        it("stubs threads") do
          expect(Thread).not_to receive(:handle_interrupt)
          run_factory(:item)
        end
        it("has an odd factory") do
          run_factory(Nameless.new) { run_factory(:item) }
        end
      end
    RUBY
    outcome = record(*rspec_command("stubs_spec.rb"))
    expect(outcome.stdout).to include("2 examples, 0 failures")
    expect(outcome.messages).to match([/\Arperf: wrote p.pb.gz/])
    factories = tests[:factories]
    expect(factories.map { |it| it.values_at(:name, :count, :top_level) }).to eq([["item (create)", 2, 2]])
  end

  it "has tests within a test as parts of it, of RSpec and Minitest" do
    write_file("outer_spec.rb", <<~RUBY)
      require "rperf/rspec"
      RSpec.describe "Outer" do
        it("runs others") do
          within = RSpec::Core::ExampleGroup.describe { it("is within") { $labels = Rperf.labels; sleep(0.02) } }
          RSpec.world.example_groups.delete(within)
          expect(within.run).to be(true)
          expect($labels[:example]).to eq(Rperf.labels[:example])
        end
        it("runs afterwards") {}
      end
    RUBY
    write_file("outer_test.rb", <<~RUBY)
      require "minitest/autorun"
      require "rperf/minitest"
      Within = Class.new(Minitest::Test) { def test_it = sleep(0.02) }
      Minitest::Runnable.runnables.delete(Within)
      class OuterTest < Minitest::Test
        def test_others = assert_predicate(Within.new("test_it").run, :passed?)
        def test_more = pass
      end
    RUBY
    { rspec_command("outer_spec.rb") => %w[outer_spec.rb[1:1] outer_spec.rb[1:2]],
      [ruby, "outer_test.rb"] => %w[OuterTest#test_others OuterTest#test_more] }.each do |command, names|
      expect(record(*command).stdout).to match(/\b0 failures/)
      found = tests
      expect(found[:total][:wall_ns]).to eq(found[:files].sum { |it| it[:wall_ns] })
      expect(found[:examples].map { |it| it.values_at(:name, :count) }).to eq(names.map { |it| [it, 1] })
      expect(found[:examples].first[:wall_ns]).to be >= 20_000_000
    end
  end

  it "runs tests of Minitest that can't be named, without an account" do
    write_file("odd_test.rb", <<~RUBY)
      require "minitest/autorun"
      require "rperf/minitest"

      class ÉTest < Minitest::Test
        define_method("test_\u00e9".encode("ISO-8859-1")) { pass }
      end

      class OwnMethodTest < Minitest::Test
        def self.instance_method(*) = raise(NotImplementedError, "not here")
        def test_it = pass
      end
    RUBY
    outcome = record(ruby, "odd_test.rb")
    expect(outcome.stdout).to include("2 runs, 2 assertions, 0 failures, 0 errors")
    expect(outcome.messages).to match([/\Arperf: a test couldn't be named in the profile: .*Compatib/, /wrote p.pb.gz/])
    expect(tests[:examples].map { |it| it[:name] }).to eq(["OwnMethodTest#test_it"])
  end
end
