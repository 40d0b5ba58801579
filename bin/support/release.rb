# frozen_string_literal: true

# release.rb [OPTION]... VERSION: what bin/release does, in the checkout that it lies in.
# release.rb --gems: prints the files of this version's gems, in the order in which they are pushed.

require "fileutils"
require "open3"
require "time"
require_relative "../../lib/rperf/names"

# A release is made in a clone, so that a checkout that stays as it was is the outcome of whatever goes wrong.
module Release
  # What can't be released, or done.
  class Refusal < StandardError; end
end

require_relative "release/changelog"
require_relative "release/files"
require_relative "release/version"

# The steps.
module Release
  # The tests on other systems.
  SYSTEMS = %w[--arm64 --musl].freeze
  OPTIONS = (["--really", "--untested", "--quick"] + SYSTEMS).freeze
  # In the order in which the gems are pushed: while there is only the source gem, users would build theirs.
  PLATFORMS = %w[x86_64-linux-gnu aarch64-linux-gnu x86_64-linux-musl ruby].freeze

  # The files of a version's gems.
  # @raise [Refusal] if there is no name by which they can be pushed
  def self.gems_to_push(version)
    name = Rperf::Names::GEM
    if name == Rperf::Names::ORIGINAL
      raise Refusal, "no gem can be pushed as '#{name}', which is another project's: " \
                     "choose a name in lib/rperf/names.rb"
    end

    gems(version)
  end

  def self.gems(version) = PLATFORMS.map { |platform| Files.gem(Rperf::Names::GEM, version, platform) }

  # One release, or its rehearsal.
  class Run
    def initialize(root, arguments)
      @root = root
      @options, versions = arguments.partition { |argument| argument.start_with?("-") }
      unknown = @options - OPTIONS
      raise Refusal, "'#{unknown.first}' is no option; see bin/release --help" unless unknown.empty?
      raise Refusal, "one version is needed, as 'bin/release 1.2.3'" unless versions.one?

      check_options
      @version = versions.first
      @clone = File.join(root, "tmp/release/rperf")
    end

    def call
      check
      clone
      change
      run_tests
      commit
      package
      take_over if really?
      say_what_is_next
    end

    private

    def check_options
      raise Refusal, "--quick leaves out what a release must pass: not with --really" if with?("--quick") && really?

      tested = SYSTEMS.select { |system| with?(system) }
      raise Refusal, "--quick leaves out all tests: not with #{tested.first}" if with?("--quick") && tested.any?
      return if !really? || tested == SYSTEMS || with?("--untested")

      raise Refusal, "a release must pass #{(SYSTEMS - tested).join(" and ")}, too: add them, or --untested"
    end

    def really? = with?("--really")
    def with?(option) = @options.include?(option)
    def tag = "v#{@version}"
    def say(text) = puts("release: #{text}")
    def git(*arguments, in_directory: @root) = run("git", "-C", in_directory, *arguments)

    def output(*command)
      out, status = Open3.capture2(*command)
      status.success? ? out : raise(Refusal, "'#{command.join(" ")}' failed")
    end

    def run(*command, env: {}, directory: @root)
      system(env, *command, chdir: directory) || raise(Refusal, "'#{command.join(" ")}' failed")
    end

    def check
      @branch = output("git", "-C", @root, "branch", "--show-current").chomp
      raise Refusal, "no branch is checked out" if @branch.empty?

      # Before hours of tests.
      Release.gems_to_push(@version) if really?
      changed = output("git", "-C", @root, "status", "--porcelain").lines
      raise Refusal, "not all is committed: #{changed.first.chomp}" unless changed.empty?

      tags = output("git", "-C", @root, "tag", "--list", "v*").split.map { |name| name.delete_prefix("v") }
      log = File.read(File.join(@root, "CHANGELOG.md"))
      Version.check(@version, Files.version(@root), tags + Changelog.released(log))
      Changelog.dated(log, @version, date)
    end

    def date = (ENV["SOURCE_DATE_EPOCH"] ? Time.at(Integer(ENV["SOURCE_DATE_EPOCH"])) : Time.now).utc.strftime("%F")

    def clone
      FileUtils.rm_rf(File.dirname(@clone))
      FileUtils.mkdir_p(File.dirname(@clone))
      git("clone", "--quiet", "--branch", @branch, @root, @clone)
      take_over_names
      # Other Rubies may lie beside the checkout: bin/test.
      shared = File.expand_path("../shared", @root)
      File.symlink(shared, File.expand_path("../shared", @clone)) if File.exist?(shared)
    end

    # Whoever commits here, by settings of this checkout alone, commits in the clone.
    def take_over_names
      %w[user.name user.email].each do |key|
        value, status = Open3.capture2("git", "-C", @root, "config", key)
        git("config", key, value.chomp, in_directory: @clone) if status.success?
      end
    end

    def change
      Files.set(@clone, Rperf::Names::GEM, @version)
      Files.change(@clone, "CHANGELOG.md") { |text| Changelog.dated(text, @version, date) }
      # Cargo writes the versions of the workspace's crates into its lock file, and no others.
      run("cargo", "update", "--quiet", "--workspace", "--offline", directory: @clone)
      say("changes for #{@version}:")
      git("--no-pager", "diff", "--unified=0", in_directory: @clone)
    end

    def run_tests
      return say("--quick: bin/test is LEFT OUT") if with?("--quick")

      run("bin/test", directory: @clone)
      SYSTEMS.each do |system|
        next run("bin/test", system, directory: @clone) if with?(system)

        say("bin/test #{system} is NOT RUN: with #{system} it is")
      end
    end

    def commit
      git("commit", "--quiet", "--all", "--message", "Version #{@version}", in_directory: @clone)
      git("tag", "--annotate", "--message", "Version #{@version}", tag, in_directory: @clone)
    end

    def package
      return say("--quick: bin/package #{PLATFORMS.join(" ")} is LEFT OUT") if with?("--quick")

      run("bin/package", *PLATFORMS, directory: @clone)
      missing = Release.gems(@version).find { |gem| !File.exist?(File.join(packages, gem)) }
      raise Refusal, "bin/package has left no pkg/#{missing}" if missing
    end

    def packages = File.join(@clone, "pkg")

    # Whatever has been committed meanwhile must be released, too, or this must fail.
    def take_over
      unless output("git", "-C", @root, "branch", "--show-current").chomp == @branch
        raise Refusal, "#{@branch} isn't checked out any more"
      end

      git("fetch", "--quiet", "--no-tags", @clone, "HEAD")
      unless system("git", "-C", @root, "merge-base", "--is-ancestor", "HEAD", "FETCH_HEAD")
        raise Refusal, "#{@branch} has other commits by now: release again"
      end

      FileUtils.mkdir_p(File.join(@root, "pkg"))
      FileUtils.cp_r("#{packages}/.", File.join(@root, "pkg"))
      git("fetch", "--quiet", @clone, "refs/tags/#{tag}:refs/tags/#{tag}")
      merge_tag
      say("#{tag} is committed and tagged, and its gems are in pkg/; nothing is pushed")
    end

    # No tag is left of a release that hasn't come about.
    def merge_tag
      merged = false
      git("merge", "--quiet", "--ff-only", tag)
      merged = true
    ensure
      system("git", "-C", @root, "tag", "--delete", tag, %i[out err] => File::NULL) unless merged
    end

    def say_what_is_next
      say("a rehearsal: the checkout is as it was; the release is to be seen in #{@clone}") unless really?
      say(really? ? "to push it:" : "with --really, the commit and the tag would come here; to push them then:")
      puts("  git push --atomic origin #{@branch} #{tag}")
      say("where .github/workflows/release.yml runs, that is all; else, to push the gems:")
      puts(push_gems.map { |line| "  #{line}" })
    end

    def push_gems
      Release.gems_to_push(@version).map { |gem| "gem push pkg/#{gem}" }
    rescue Refusal => e
      ["# #{e.message}"]
    end
  end
end

if $PROGRAM_NAME == __FILE__
  root = File.expand_path("../..", __dir__)
  begin
    if ARGV == ["--gems"]
      puts Release.gems_to_push(Release::Files.version(root))
    else
      Release::Run.new(root, ARGV).call
    end
  rescue Release::Refusal, SystemCallError => e
    abort("bin/release: #{e.message.lines.first.chomp}")
  end
end
