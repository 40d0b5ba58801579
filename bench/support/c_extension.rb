# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "rbconfig"

module Bench
  # A small extension in C for a benchmark or for specs, built on first use below
  # tmp/ for the Ruby that runs.
  class CExtension
    TMP = File.expand_path("../../tmp", __dir__)
    private_constant :TMP

    # @param name [String] what its extconf.rb calls it
    # @param sources [String] the directory of extconf.rb
    def initialize(name, sources)
      @name = name
      @sources = sources
    end

    # Builds it if it is not there yet.
    # @return [String, nil] why it can't be had
    def missing
      return if File.file?(library)

      warn("building #{@name} ...")
      build("#{directory}.#{Process.pid}")
    end

    # @return [String] what to require
    def library = File.join(directory, "#{@name}.#{RbConfig::CONFIG["DLEXT"]}")

    private

    def directory
      @directory ||= begin
        sources = Dir.glob("#{@sources}/*").map { |path| File.read(path) }
        # Ruby's description tells whether a JIT is on, too.
        key = Digest::SHA256.hexdigest([RUBY_VERSION, RUBY_REVISION, RbConfig.ruby, *sources].join("\0"))
        File.join(TMP, @name.tr("_", "-"), key[0, 16])
      end
    end

    # Beside its place and renamed, as another run may build it at the same time.
    def build(partial)
      FileUtils.mkdir_p(partial)
      [[RbConfig.ruby, File.join(@sources, "extconf.rb")], ["make"]].each do |command|
        output, status = Open3.capture2e(*command, chdir: partial)
        return "the C part can't be built: #{output.lines.last.to_s.strip}" unless status.success?
      end
      File.rename(partial, directory) unless File.exist?(directory)
      nil
    rescue SystemCallError => e
      "the C part can't be built: #{e.message}"
    ensure
      FileUtils.rm_rf(partial)
    end
  end
end
