# frozen_string_literal: true

require "json"

# Thirty files that load each other, and tell what they take by clocks of their own, which the profile is compared with.
RSpec.describe "The times of files that rperf report --boot has", vm: true do
  # How each file is loaded, by whom, and how many milliseconds it computes.
  plan = (1..30).to_h do |number|
    parent = number <= 3 ? "app" : format("f%02d", number / 3)
    how = %i[require autoload load][number % 3]
    [format("f%02d", number), { parent:, how:, ms: [10, 20, 40][number / 3 % 3] }]
  end

  # What loads a file, between two readings of the clock. To require it again loads nothing.
  load = lambda do |name, how|
    statement = { require: "require '#{name}'", autoload: name.capitalize, load: "load '#{name}.rb'" }.fetch(how)
    "asked = clock\n#{statement}\naround('#{name}', asked)\n#{"require '#{name}'\n" if how == :require}"
  end

  loads = plan.group_by { |_, it| it[:parent] }
              .transform_values { |files| files.map { |name, it| load.call(name, it[:how]) }.join }
  autoloaded = plan.select { |_, it| it[:how] == :autoload }.keys
  autoloads = autoloaded.map { |name| "autoload :#{name.capitalize}, '#{name}'\n" }

  # Half of its own time comes before the files that it loads, half of it afterwards.
  sources = plan.to_h do |name, file|
    [name, <<~RUBY]
      began = clock
      spend(#{file[:ms] / 2})
      inside = clock
      #{loads[name]}
      inside = clock - inside
      spend(#{file[:ms] / 2})
      #{name.capitalize} = 1
      took('#{name}', clock - began, inside)
    RUBY
  end

  app = lambda do |clock|
    <<~RUBY
      require "json"
      $LOAD_PATH.unshift(__dir__)
      TOLD = Hash.new { |told, name| told[name] = {} }
      def clock = Process.clock_gettime(Process::#{clock}, :nanosecond)
      def around(name, since) = TOLD[name][:around] = clock - since
      def took(name, total, inside) = TOLD[name].update(total:, own: total - inside)
      def spend(ms)
        ends = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + (ms * 1_000_000)
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < ends
      end
      #{autoloads.join}
      #{loads.fetch("app")}
      File.write("told.json", TOLD.to_json)
    RUBY
  end

  # What the report has, and what the files have told, in ns.
  def boot(mode)
    # Samples cost more on a busy machine: there would be fewer with a limit.
    rperf("record", "-m", mode, "-f", "10000", "--max-overhead", "100", "-o", "p.pb.gz", ruby, "app.rb")
    outcome = rperf("report", "--boot", "--format", "json", "-n", "0", "p.pb.gz")
    raise outcome.stderr unless outcome.status.success?

    found, told = [outcome.stdout, File.read(path_to("told.json"))].map { JSON.parse(_1, symbolize_names: true) }
    [found[:boot], told]
  end

  def within?(row, column, least, most)
    interval = 100_000 * Commands::SLOWNESS
    row[column].between?((least * 0.92) - interval, (most * 1.08) + interval)
  end

  # Within 8 % and one interval. Its total has the reading of the file, too, which its own clock doesn't.
  def near?(row, told)
    within?(row, :own, *[told[:own]] * 2) && within?(row, :total, told[:total], told[:around])
  end

  # The files' rows by their names.
  def rows_of(found)
    files = found[:files].select { |it| it[:kind] == "file" }
    rows = files.group_by { |it| it[:short_path].delete_suffix(".rb").to_sym }
    # A file has one row, also if it is required twice.
    expect(rows.values.map(&:size)).to all(eq(1))
    rows.transform_values(&:first)
  end

  # The files that have other times than their own clocks, all together included.
  def others(found, told)
    expect(found[:files].sum { |it| it[:own] + it[:load] }).to eq(found[:total])
    expect(told.size).to eq(30)
    rows = rows_of(found)
    own, expected = [rows.slice(*told.keys), told].map { |all| all.values.sum { |it| it[:own] } }
    far = told.keys.reject { |name| rows.key?(name) && near?(rows[name], told[name]) }
    (own - expected).abs <= 0.08 * expected ? far : [*far, :all]
  end

  { "wall" => "CLOCK_MONOTONIC", "cpu" => "CLOCK_THREAD_CPUTIME_ID" }.each do |mode, clock|
    it "are those of their own clocks, in #{mode} time", alone: true do
      sources.each { |name, source| write_file("#{name}.rb", source) }
      write_file("app.rb", app.call(clock))
      # A busy machine has no CPU for the timer now and then: what passes until its next tick is the next file's. So a
      # file has further tries.
      far = nil
      6.times do
        found = others(*boot(mode))
        far = far ? far & found : found
        break if far.empty?
      end
      expect(far).to eq([])
    end
  end
end
