# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# RUBYOPT is split at blanks, and RUBYLIB at colons.
RSpec.describe "rperf at a path with a blank" do
  def copy_library
    FileUtils.mkdir_p(path_to("my: gems"))
    FileUtils.cp_r(File.join(Commands::ROOT, "lib"), path_to("my: gems"))
  end

  it "works from a directory with a blank in its path, and names one with a colon too" do
    %w[lib exe].each { |part| FileUtils.cp_r(File.join(Commands::ROOT, part), directory) }
    FileUtils.mkdir_p(path_to("my gems"))
    %w[lib exe].each { |part| FileUtils.mv(path_to(part), path_to("my gems/#{part}")) }
    outcome = run(ruby, path_to("my gems/exe/rperf"), "record", ruby, "-e", "1")
    expect(outcome.messages).to contain_exactly(/wrote rperf\.data/)
    FileUtils.mv(path_to("my gems"), path_to("my: gems"))
    outcome = run(ruby, path_to("my: gems/exe/rperf"), "record", ruby, "-e", "1")
    expect([outcome.status.exitstatus, outcome.stderr])
      .to match([1, /can't load from a directory with both a blank and a ':'/])
  end

  it "refuses alike in a program that starts a session of its own from there, and in one that starts with it" do
    copy_library
    write_file("app.rb", <<~'RUBY')
      require_relative "my: gems/lib/rperf"
      begin
        Rperf.start(inherit: true)
      rescue Rperf::Error => e
        puts e.message
      end
      puts ENV.slice("RUBYOPT", "RUBYLIB", "RPERF_SESSION").inspect, Rperf.running?
      system(RbConfig.ruby, "-e", "puts 'child'")
    RUBY
    line = "rperf is installed in #{path_to("my: gems/lib")}, and Ruby can't load from a directory with both a " \
           "blank and a ':' in its path"
    outcome = run(ruby, "app.rb")
    expect([outcome.stdout, outcome.stderr]).to eq(["#{line}\n{}\nfalse\nchild\n", ""])
    write_file("app.rb", "require_relative 'my: gems/lib/rperf'; system(RbConfig.ruby, '-e', 'puts :child'); exit 3")
    outcome = run(ruby, "app.rb", env: { "RPERF_ENABLED" => "1", "RPERF_INHERIT" => "1" })
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus])
      .to eq(["child\n", "rperf: #{line}; running without profiling\n", 3])
    expect(session_directories).to be_empty
  end

  it "profiles children from there that have lost variables, if the cache has room for a link" do
    copy_library
    write_file("app.rb", <<~'RUBY')
      require_relative "my: gems/lib/rperf"
      Rperf.start(inherit: true)
      child = [RbConfig.ruby, "-e", "puts ['child', Rperf.running?, $LOADED_FEATURES.grep(/launched/)].inspect"]
      system({ "RUBYLIB" => nil }, *child)
      system({ "RUBYLIB" => "/elsewhere" }, *child)
      profile = Rperf.stop
      puts profile[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size
      puts ENV.slice("RUBYOPT", "RUBYLIB", "RPERF_SESSION").inspect
    RUBY
    Dir.mktmpdir("rperf-spec") do |cache|
      outcome = run(ruby, "app.rb", env: { "XDG_CACHE_HOME" => cache })
      launched = "#{File.realpath(cache)}/rperf/lib-"
      child = %r{\A\["child", true, \["#{launched}\h{16}/rperf/launched\.rb"\]\]\n\z}
      expect(outcome.stdout.lines).to match([child, child, "3\n", "{}\n"])
    end
  end

  it "profiles forked children from there, which need not load it again", vm: true do
    copy_library
    write_file("app.rb", <<~'RUBY')
      require_relative "my: gems/lib/rperf"
      profile = Rperf.start(mode: :wall, inherit: :fork) { Process.wait(fork { sleep 0.02 }) }
      puts profile[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size
    RUBY
    expect(run(ruby, "app.rb").stdout).to eq("2\n")
  end
end
