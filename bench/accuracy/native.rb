# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "rbconfig"

module Accuracy
  # The C part (bench/native), built on first use below tmp/ for the Ruby that runs.
  module Native
    SOURCES = File.expand_path("../native", __dir__)
    TMP = File.expand_path("../../tmp/bench-native", __dir__)

    # Builds it if it is not there yet.
    # @return [String, nil] why it can't be had
    def self.missing
      return if File.file?(library)

      warn("accuracy: building bench/native ...")
      build("#{folder}.#{Process.pid}")
    end

    def self.load = require(library)

    def self.folder
      sources = Dir.glob("#{SOURCES}/*").map { |path| File.read(path) }
      File.join(TMP, Digest::SHA256.hexdigest([RUBY_DESCRIPTION, RbConfig.ruby, *sources].join("\0"))[0, 16])
    end

    def self.library = File.join(folder, "bench_native.#{RbConfig::CONFIG["DLEXT"]}")

    # Beside its place and renamed, as another run may build it at the same time.
    def self.build(partial)
      FileUtils.mkdir_p(partial)
      [[RbConfig.ruby, File.join(SOURCES, "extconf.rb")], ["make"]].each do |command|
        output, status = Open3.capture2e(*command, chdir: partial)
        return "the C part can't be built: #{output.lines.last.to_s.strip}" unless status.success?
      end
      File.rename(partial, folder) unless File.exist?(folder)
      nil
    rescue SystemCallError => e
      "the C part can't be built: #{e.message}"
    ensure
      FileUtils.rm_rf(partial)
    end
    private_class_method :folder, :library, :build
  end
end
