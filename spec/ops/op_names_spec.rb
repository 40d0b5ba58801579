# frozen_string_literal: true

# Names of ops that know no end, as statements are whose tables or columns a program makes up.
RSpec.describe "Ops with a hundred thousand names", vm: true do
  # Statements that differ in more than their values. As many calls with one name come before: so what grows
  # afterwards is what rperf keeps of the names. The pages of Ruby's heap don't count, because they grow with
  # what a call leaves behind until the next collection; the objects that are left after it do.
  head = <<~'RUBY'
    PAGE = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE) / 1024

    # KB outside of Ruby's heap, and objects.
    def kept
      GC.start
      resident = Integer(File.read("/proc/self/status")[/^RssAnon:\s+(\d+)/, 1])
      stat = GC.stat
      [resident - (PAGE * stat.fetch(:heap_allocated_pages)), stat.fetch(:heap_live_slots)]
    end

    RANDOM = Random.new(1)
    LETTERS = [*"a".."z"].freeze
    def word = Array.new(8) { LETTERS[RANDOM.rand(26)] }.join

    def statement
      "SELECT #{word}, #{word} FROM #{word} WHERE #{word} = #{RANDOM.rand(1_000_000)} AND name = '#{word}'"
    end

    def run = 100_000.times { query(yield) }

    # What the session keeps of them, in KB and in objects, and its ops.
    def measured
      Rperf.start(mode: :wall, measure: :ops)
      run { statement && "SELECT 1" }
      before = kept
      run { statement }
      [kept.zip(before).map { |after, it| after - it }, Rperf.stop.ops]
    end
  RUBY

  sources = {
    "Rperf.op" => [nil, "def query(sql) = Rperf.op(sql, kind: :sql) { nil }"],
    "events of Active Record" => ["activesupport", <<~RUBY]
      require "active_support"
      require "active_support/notifications"
      def query(sql) = ActiveSupport::Notifications.instrument("sql.active_record", sql:, name: "Load") { nil }
    RUBY
  }
  sources.each do |name, (gem, source)|
    it "have a bound, and all calls are counted, by #{name}",
       if: File.exist?("/proc/self/status"), skip: gem && Servers.missing(gem) do
      grown, ops = told("#{head}\n#{source}\nputs measured.to_json", symbolize_names: true)
      rows = ops[:ops]
      expect([rows.sum { |it| it[:calls] }, ops[:total][:calls]]).to eq([200_000] * 2)
      # 4,095 numbers, of which 32 are kept for the others of each kind.
      expect(rows.size).to be_between(4_000, 4_095)
      others, named = rows.partition { |it| it[:name] == "[SQL] (other)" }
      expect(others.map { |it| it[:calls] }).to eq([100_001 - named.size])
      expect(named.map { |it| it[:name] }).to all(match(/\A\[SQL\] SELECT [^']*\z/))
      # In KB: names, texts that are known as they came, and sums. No object is kept for a name.
      expect(grown).to match([be < 6_000, be < 1_000])
    end
  end
end
