# frozen_string_literal: true

require "json"

# The apps in spec/support/apps, and their measurements. Goes with Commands.
module Apps
  def app(name) = File.join(__dir__, "apps", name)

  # The apps' own measurements: by process id, { label => [seconds, number] }.
  def measured
    Dir.glob("measured-*.json", base: directory).to_h do |file|
      [file[/\d+/], JSON.parse(File.read(path_to(file)))]
    end
  end

  # Seconds by label, of all processes together.
  def measured_times
    measured.values.reduce({}) do |all, labels|
      all.merge(labels.transform_values(&:first)) { |_, sum, time| sum + time }
    end
  end

  # How many requests or jobs there were, by label, in all processes together.
  def measured_numbers
    measured.values.reduce({}) do |all, labels|
      all.merge(labels.transform_values(&:last)) { |_, sum, number| sum + number }
    end
  end
end
