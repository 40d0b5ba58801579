# frozen_string_literal: true

# Times that a program measures under its labels, and those of the profile.
module LabelTimes
  # Nanoseconds by label set of the program; nil for time without labels, which is the main thread's only. Time of
  # collections has a label of rperf's own besides.
  def by_labels(data)
    sets = data.fetch(:label_sets, [{}]).map { |set| set.except(:"%gc") }
    rows = data[:samples].reject { |row| row[3].zero? && row[2] != 1 }
    times = rows.group_by { |row| sets.fetch(row[3]) }.transform_values { |group| group.sum { |row| row[1] } }
    times.transform_keys { |set| set.empty? ? nil : set }
  end

  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # Runs for so long, and is true. Notes under `key` how long it really was.
  def spin_wall(seconds, key = nil)
    started = nanoseconds
    nil while nanoseconds < started + (seconds * 1e9)
    spent[key] += nanoseconds - started
    true
  end

  def spent = @spent ||= Hash.new(0)

  def wall(&)
    data = Rperf.start(mode: :wall, frequency: 5000, &)
    @elsewhere = data[:duration_ns] - spent.values.sum
    # Where ticks are late, one sample has the time of many.
    @late = [spent.values.sum - (data[:sampling_count] * 200_000), 0].max
    by_labels(data)
  end

  # Sampling is a matter of chance. And on a busy machine time passes elsewhere than where it is measured.
  def be_nearly(nanoseconds)
    be_between((nanoseconds * 0.7) - 30_000_000 - @late, (nanoseconds * 1.3) + 40_000_000 + @elsewhere + @late)
  end
end
