# frozen_string_literal: true

require "json"

# The apps in spec/support/apps, and what they measure. Goes with Commands.
module Apps
  def app(name) = File.join(__dir__, "apps", name)

  # Seconds by label, as the apps measured them themselves: the sum of all processes.
  def measured_times
    files = Dir.glob("times-*.json", base: folder)
    files.map { |file| JSON.parse(File.read(in_folder(file))) }.reduce({}) do |all, times|
      all.merge(times) { |_, sum, time| sum + time }
    end
  end
end
