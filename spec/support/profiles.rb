# frozen_string_literal: true

# Work to profile, and questions to a profile's Hash.
module Profiles
  # Uses this thread's CPU for so many seconds.
  def spin(seconds)
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
  end

  # A Hash as Rperf.stop gives it, with the same content always.
  def made_profile
    {
      mode: :wall,
      frequency: 1000,
      duration_ns: 30_000_000,
      samples: [
        [[["app.rb", "Object#work"], ["app.rb", "<main>"]], 10_000_000, 1, 0],
        [[["<GVL>", "[GVL blocked]"], ["app.rb", "<main>"]], 20_000_000, 1, 0]
      ]
    }
  end

  # The pprof file, read back (and checked: see Validity).
  def read_profile(path) = Rperf.load(path)

  # The profile as text.
  def text_report(profile, **)
    path = path_to("report.txt")
    Rperf.save(path, profile, **)
    File.read(path)
  end

  # Nanoseconds of the samples that have a frame of this name.
  def weight_of(data, label)
    data[:samples].sum { |frames, weight| frames.any? { |_path, name| name.include?(label) } ? weight : 0 }
  end
end
