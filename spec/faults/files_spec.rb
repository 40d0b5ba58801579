# frozen_string_literal: true

# Files that can't be opened or written: the program is what it is without rperf, and its profile is there, or one line
# says why not.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  describe "with few file descriptors" do
    [8, 12, 40].each_with_index do |descriptors, index|
      (Faults.kinds(index) - (descriptors < 40 ? %w[forks fibers] : [])).each do |kind|
        it "is as without rperf: #{descriptors} of them (#{kind})" do
          lefts = expect_same(kind, before: Faults.shell("ulimit -n #{descriptors}"))
          expect(lefts.map(&:early)).to all(be <= 2)
        end
      end
    end

    # As many as there may be, so rperf gets none.
    filled = <<~RUBY
      Process.setrlimit(:NOFILE, 64, Process.getrlimit(:NOFILE).last)
      OPEN = []
      begin
        OPEN << File.open(File::NULL) while true
      rescue Errno::EMFILE
        OPEN.freeze
      end
    RUBY

    (Faults.kinds(1) - %w[forks fibers]).each do |kind|
      it "is as without rperf: all in use (#{kind})" do
        lefts = expect_same(kind, inside: filled, is_whole: false)
        expect(lefts.map(&:early)).to all(be <= 2)
      end
    end
  end

  describe "where no file can be larger than 4096 bytes" do
    Faults.kinds(3).each do |kind|
      it "is as without rperf (#{kind})" do
        expect_same(kind, before: Faults.shell("ulimit -f 8"), is_whole: false)
      end
    end
  end

  describe "on a disk of its own" do
    before do
      command = %w[unshare --mount --propagation private mount -t tmpfs none]
      usable = run(*command, temporary_directory)
      skip "needs the right to mount" unless usable.status.success?
    rescue Errno::ENOENT
      skip "needs unshare, which was not found"
    end

    def mounted(text)
      ["unshare", "--mount", "--propagation", "private", *Faults.shell(text)]
    end

    full = ->(place) { "mount -t tmpfs -o size=8k none \"#{place}\" && (head -c 8192 /dev/zero >\"#{place}/.full\")" }
    read_only = ->(place) { "mount -t tmpfs -o ro none \"#{place}\"" }
    here = "cd \"$PWD\""

    # Where nothing could be written from the beginning, `rperf` says so and runs nothing.
    { "full" => full, "read-only" => read_only }.each_with_index do |(what, mount), index|
      Faults.kinds(index).each do |kind|
        it "is as without rperf if its directory is #{what} (#{kind})" do
          before = mounted("#{mount["$PWD"]} && #{here}")
          lefts = expect_same(kind, before:, may_refuse: what != "full", is_whole: what == "full")
          expect(lefts.map(&:profile)).to all(be_nil) unless what == "full"
        end
      end

      Faults.kinds(index + 2).each do |kind|
        it "is as without rperf if the temporary directory is #{what} (#{kind})" do
          expect_same(kind, before: mounted(mount["$TMPDIR"]))
        end
      end

      Faults.kinds(index + 3).each do |kind|
        it "is as without rperf if both are #{what} (#{kind})" do
          before = mounted([mount["$TMPDIR"], mount["$PWD"], here].join(" && "))
          expect_same(kind, before:, may_refuse: true, is_whole: false)
        end
      end
    end
  end
end
